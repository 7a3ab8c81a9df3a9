// tests/runtime/count_allocations.hpp - what a thread asked of operator new
#pragma once

#include <cstdint>

namespace ptxgen::test {

/// Whether they are counted: clang's TSan has an operator new of its own.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PTXGEN_HAS_OTHER_NEW
#endif
#endif
#if defined(PTXGEN_HAS_OTHER_NEW)
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

/// Calls of operator new by this thread so far; for programs that link count_allocations.cpp.
[[nodiscard]] std::uint64_t allocations() noexcept;
/// The bytes that they asked for.
[[nodiscard]] std::uint64_t allocated_bytes() noexcept;

}  // namespace ptxgen::test
