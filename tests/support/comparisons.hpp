// tests/support/comparisons.hpp - how much the tests have compared so far
#pragma once

#include <cstdint>

namespace ptxgen::test {

/// Assertions of this program so far, whatever came out of them, but for SUCCEED: that compares
/// nothing. Properties of rapidcheck count as one each.
[[nodiscard]] std::uint64_t comparisons();

/// Parts of cases, and whole cases, that were skipped so far.
[[nodiscard]] std::uint64_t skips();

}  // namespace ptxgen::test
