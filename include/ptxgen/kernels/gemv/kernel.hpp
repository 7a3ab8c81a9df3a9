// ptxgen/kernels/gemv/kernel.hpp - the kernel of a GEMV plan
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"

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
  using Operands = GemvOperands;

  /// Throws what `check(plan, target)` throws.
  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads weights, x, bias, residual (and y with beta) once, writes y once. Without the workspace.
  [[nodiscard]] KernelCost cost() const noexcept;
  friend const GemvProblem& problem_of(const Gemv& kernel) { return kernel.plan.problem; }
};

namespace detail {

/// Of a (0), x (1), and y, bias and residual (2).
[[nodiscard]] constexpr std::uint32_t plan_alignment(const Gemv& kernel, std::size_t of) {
  const GemvProblem& p = kernel.plan.problem;
  const std::uint32_t bytes = of == 0 ? p.a_alignment : of == 1 ? p.x_alignment : p.y_alignment;
  return bytes < 16 ? bytes : 16;
}

}  // namespace detail

/// A GEMV as one plan computes it, whatever the family would choose. A programmatic plan assumes
/// constant weights.
template <>
struct Describe<Gemv> {
  static constexpr KernelDoc text = Describe<GemvProblem>::text;
  static constexpr std::array<ParameterRow<Gemv>, 0> parameters{};  // the plan is the key
  static constexpr auto arguments = detail::gemv_arguments<Gemv, detail::plan_alignment>();
  static void check(const Gemv& kernel, const GemvOperands& operands) {
    Describe<GemvProblem>::check(kernel.plan.problem, operands);
  }
  static void check_target(const Gemv& kernel, const ptx::Target& target) {
    ptxgen::check(kernel.plan, target);
  }
  static std::string_view implementation(const Gemv& kernel) { return to_string(kernel.plan.path); }
  static KernelKey key(const Gemv& kernel);
  static WorkspaceNeed workspace(const Gemv& kernel);
  static void reference(const Gemv& kernel, HostOperands& host) {
    Describe<GemvProblem>::reference(kernel.plan.problem, host);
  }
  static void host(const Gemv& kernel, const GemvOperands& operands, const HostRun& run);
  static ErrorBound bound(const Gemv& kernel);
  static constexpr std::array<Gemv, 0> cases{};
};

/// The plan of a launcher's choice for a GEMV; nothing if a baseline or a routine serves it.
[[nodiscard]] inline std::optional<GemvPlan> plan_of(const KernelDescription* kernel,
                                                     const void* spec) {
  if (kernel == nullptr || kernel->name_hash != kDescription<Gemv>.name_hash) return std::nullopt;
  return static_cast<const Gemv*>(spec)->plan;
}

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
