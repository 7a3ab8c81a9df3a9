// tests/optimize/fusion_reference.hpp - a program with chosen pairs fused by hand
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::test {

/// The text with exactly the pairs of `decisions` (of fma_fusion, those that fired) rounded once.
/// Works on the text and knows nothing of the pass: the operands of each product are copied before
/// it, the sum becomes an fma of the copies, the product stays. Throws std::runtime_error if a
/// decision names no such pair. `text` is what the printer made of the module that the pass found.
[[nodiscard]] std::string fuse_by_hand(std::string_view text,
                                       std::span<const ptxgen::optimize::Decision> decisions);

}  // namespace ptxgen::test
