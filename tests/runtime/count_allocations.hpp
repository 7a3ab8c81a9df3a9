// tests/runtime/count_allocations.hpp - what a thread asked of operator new
#pragma once

#include <cstdint>

namespace ptxgen::test {

/// Calls of operator new by this thread so far; for programs that link count_allocations.cpp.
[[nodiscard]] std::uint64_t allocations() noexcept;
/// The bytes that they asked for.
[[nodiscard]] std::uint64_t allocated_bytes() noexcept;

}  // namespace ptxgen::test
