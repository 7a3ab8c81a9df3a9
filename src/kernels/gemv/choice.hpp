// src/kernels/gemv/choice.hpp - what tells one choice of a GEMV from another
#pragma once

#include <bit>
#include <cstdint>

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0 {

/// log2 of the alignment of an address, or of several that were combined by `or`; at most 4.
[[nodiscard]] constexpr std::uint64_t alignment_log2(std::uint64_t addresses) noexcept {
  return static_cast<std::uint64_t>(std::countr_zero(addresses | 16));
}

using GemvShape = ChoiceKey;

/// The problem with the alignments of these addresses: of a, of x, and of y, bias and residual
/// together.
[[nodiscard]] inline GemvShape shape_of(const GemvProblem& p, std::uint64_t a, std::uint64_t x,
                                        std::uint64_t y) noexcept {
  const std::uint32_t row = p.layout == GemvLayout::T ? p.n : p.k;
  const auto at = [](auto value, unsigned bit) { return static_cast<std::uint64_t>(value) << bit; };
  return {{at(p.k, 32) | p.n, p.lda == row ? 0 : p.lda,
           at(p.weights, 0) | at(p.x, 8) | at(p.y, 16) | at(p.layout, 24) | at(p.scaled, 32) |
               at(p.bias, 33) | at(p.residual, 34) | at(alignment_log2(a), 35) |
               at(alignment_log2(x), 38) | at(alignment_log2(y), 41) | at(p.repacked, 44)}};
}

}  // namespace ptxgen::inline v0
