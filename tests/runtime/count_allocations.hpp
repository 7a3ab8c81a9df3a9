// tests/runtime/count_allocations.hpp - how often a thread called operator new
#pragma once

#include <cstdint>

namespace ptxgen::test {

/// Calls of operator new by this thread so far; for programs that link count_allocations.cpp.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace ptxgen::test
