// ptxgen/kernels/gemv/kernel.hpp - the kernel of a GEMV plan
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

/// The kernel of a plan. k, n, the leading dimension and the plan are constants of its code.
///
/// Entry `gemv(y, a, x, bias, residual, workspace, alpha, beta)`: the first six are addresses in
/// global memory, ignored if the problem has no such operand; alpha and beta are f32. y overlaps
/// neither a nor x nor the workspace; the residual may be y.
///
/// Access: a warp's load of weights reads `32 * load_bytes` consecutive bytes (layout T), or that
/// many in each of its rows (layout R); each weight is read once. Lanes read single elements only
/// where a row ends inside a load.
struct Gemv {
  GemvPlan plan;

  static constexpr std::string_view kName = "gemv";
  using KernelType = Kernel<Ptr<b8>, Ptr<b8>, Ptr<b8>, Ptr<b8>, Ptr<b8>, Ptr<b8>, f32, f32>;

  /// Throws what `check(plan, target)` throws.
  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads weights, x, bias, residual (and y with beta) once, writes y once. Without the workspace.
  [[nodiscard]] KernelCost cost() const noexcept;
};

/// `problem` in fp64. `a` holds `matrix_elements()` weights, `x` k, `y`, `bias` and `residual` n
/// elements (empty where the problem has none), each as its bits. Throws `Error` (Stage::Launch,
/// "bad-size"). `y` of the result is the exact value before the last rounding to y's type,
/// `magnitude` the sum of the absolute values of all terms.
struct GemvInputs {
  std::span<const std::byte> a, x, y, bias, residual;
  float alpha = 1;
  float beta = 0;
};
[[nodiscard]] GemvReference gemv_reference(const GemvProblem& problem, const GemvInputs& inputs);

}  // namespace ptxgen::inline v0
