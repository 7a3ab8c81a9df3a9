// src/runtime/launch/gemv_request.hpp - checked operands of a GEMV launch
#pragma once

#include <cstdint>
#include <string>

#include "ptxgen/runtime/launch/gemv_operands.hpp"
#include "runtime/launch/launch_checks.hpp"

namespace ptxgen::inline v0 {

/// Addresses and factors, checked.
struct GemvAddresses {
  std::uint64_t y = 0, a = 0, x = 0, bias = 0, residual = 0;
  float alpha = 1, beta = 0;
  bool constant_weights = false;
};

/// Whether the problem is y = A^T x of f32 with tight rows, which the baselines and cublasSgemv
/// compute.
[[nodiscard]] constexpr bool is_plain(const GemvProblem& p) noexcept {
  return p.layout == GemvLayout::T && p.weights == GemvType::f32 && p.x == GemvType::f32 &&
         p.y == GemvType::f32 && (p.lda == 0 || p.lda == p.n) && !p.scaled && !p.bias &&
         !p.residual;
}

/// "k = 5, n = 7"
[[nodiscard]] std::string shape_text(std::uint64_t k, std::uint64_t n);

inline void check_gemv(const DeviceSpan<f32>& y, const DeviceSpan<f32>& a, const DeviceSpan<f32>& x,
                       std::uint32_t k, std::uint32_t n) {
  check_buffers(
      "gemv", Overlap::None, [&] { return shape_text(k, n); }, BufferArgument::of("y", y, n),
      BufferArgument::of("a", a, std::uint64_t{k} * n), BufferArgument::of("x", x, k));
}
/// Checks sizes, null pointers, alignment, overlap, and that no operand is given which the problem
/// does not have.
void check_gemv(const GemvProblem& problem, const GemvOperands& operands);

}  // namespace ptxgen::inline v0
