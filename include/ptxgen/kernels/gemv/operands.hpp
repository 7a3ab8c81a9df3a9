// ptxgen/kernels/gemv/operands.hpp - operands of a GEMV launch, measured plans
#pragma once

#include <optional>
#include <string>

#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0 {

/// Operands of a launch of a `GemvProblem`. Elements have the problem's types. Leave operands that
/// the problem does not have empty, and alpha and beta at 1 and 0. y must not overlap the others,
/// but the residual may be y itself.
struct GemvOperands {
  DeviceRange y{}, a{}, x{}, bias{}, residual{};
  float alpha = 1;
  float beta = 0;
  /// The caller's promise that no earlier work of the stream writes `a`. A plan with
  /// `GemvPlan::programmatic` then loads weights while the previous kernel still runs; without the
  /// promise it starts after that kernel.
  bool constant_weights = false;
};

/// Operands of the baselines, f32.
struct GemvVectors {
  DeviceRange y{}, a{}, x{};
};

/// A measured plan and its origin: "tuned on NVIDIA H200, 14.9 us".
struct TunedGemv {
  GemvPlan plan;
  std::string why;
};

/// Measured plans, which a launcher prefers to the planner's. A launcher calls `find` once per
/// problem, so it need not be fast.
///
/// Threads: `find` from any thread at once.
class GemvPlanSource : public PlanSource {
 public:
  /// A plan of exactly this problem for the launcher's device, or nothing. The problem's alignments
  /// are those of the addresses (1 to 16); `lda` is 0 if it equals the row length. A plan that
  /// `check` rejects is not used, and the log says so.
  [[nodiscard]] virtual std::optional<TunedGemv> find(const GemvProblem& problem) const = 0;

 protected:
  GemvPlanSource() = default;
};

/// Whether the problem is y = A^T x of f32 with tight rows, which the baselines and cublasSgemv
/// compute.
[[nodiscard]] constexpr bool is_plain(const GemvProblem& p) noexcept {
  return p.layout == GemvLayout::T && p.weights == ElementType::f32 && p.x == ElementType::f32 &&
         p.y == ElementType::f32 && (p.lda == 0 || p.lda == p.n) && !p.scaled && !p.bias &&
         !p.residual;
}

/// Operands at addresses with exactly the problem's alignments, to choose a plan with; not memory.
[[nodiscard]] GemvOperands aligned_operands(const GemvProblem& problem) noexcept;

namespace detail {

inline const GemvProblem& problem_of(const GemvProblem& problem) { return problem; }

/// Elements from the first weight to the end of the last row, saturated.
[[nodiscard]] std::uint64_t saturated_matrix_elements(const GemvProblem& problem) noexcept;
void refuse_unscaled(const GemvOperands& operands);

/// The arguments of K, a GemvProblem or a Gemv.
template <class K, std::uint32_t (*kAlignment)(const K&, std::size_t)>
constexpr auto gemv_arguments() {
  using Row = ArgumentRow<K>;
  using O = GemvOperands;
  const auto type = [](auto of) { return OperandType<K>(of); };
  constexpr auto k = [](const K& spec) { return std::uint64_t{problem_of(spec).k}; };
  constexpr auto n = [](const K& spec) { return std::uint64_t{problem_of(spec).n}; };
  constexpr auto matrix = [](const K& spec) {
    const GemvProblem& p = problem_of(spec);
    if (p.repacked) return p.matrix_bytes();
    const std::uint64_t rows = p.layout == GemvLayout::T ? p.k : p.n;
    // Without overflow: the everyday case, in line.
    return (p.leading_dimension() | rows) >> 32 == 0 ? p.matrix_elements()
                                                     : saturated_matrix_elements(p);
  };
  constexpr auto weights_type = [](const K& spec) {
    const GemvProblem& p = problem_of(spec);
    return p.repacked ? ElementType::b8 : p.weights;
  };
  constexpr auto rows = [](const K& spec) {
    const GemvProblem& p = problem_of(spec);
    return p.repacked ? RepackedRows{p.weights, p.k} : RepackedRows{};
  };
  constexpr auto x_type = [](const K& spec) { return problem_of(spec).x; };
  constexpr auto y_type = [](const K& spec) { return problem_of(spec).y; };
  constexpr auto bias = [](const K& spec) { return problem_of(spec).bias; };
  constexpr auto residual = [](const K& spec) { return problem_of(spec).residual; };
  constexpr auto scaled = [](const K& spec) { return problem_of(spec).scaled; };
  constexpr auto a_bytes = [](const K& spec) { return kAlignment(spec, 0); };
  constexpr auto x_bytes = [](const K& spec) { return kAlignment(spec, 1); };
  constexpr auto y_bytes = [](const K& spec) { return kAlignment(spec, 2); };
  return std::array{
      Row::output("y", &O::y, type(y_type), n, "result; read too if the problem is scaled")
          .may_alias("residual")
          .read_if(scaled)
          .aligned(y_bytes),
      Row::input("a", &O::a, type(weights_type), matrix, "weights").aligned(a_bytes).repacked(rows),
      Row::input("x", &O::x, type(x_type), k, "vector").aligned(x_bytes),
      Row::input("bias", &O::bias, type(y_type), n, "added to the result")
          .only_if(bias)
          .aligned(y_bytes),
      Row::input("residual", &O::residual, type(y_type), n, "added to the result; may be y")
          .only_if(residual)
          .aligned(y_bytes),
      Row::workspace(),
      Row::template scalar<&O::alpha>("alpha", "factor of the sum; 1 unless scaled")
          .only_if(scaled),
      Row::template scalar<&O::beta>("beta", "factor of the old y; 0 unless scaled")
          .only_if(scaled),
      Row::template promise<&O::constant_weights>("constant_weights",
                                                  "no earlier work of the stream writes a")};
}

/// Repacked rows are aligned to 16 bytes.
[[nodiscard]] constexpr std::uint32_t any_alignment(const GemvProblem& problem, std::size_t of) {
  return problem.repacked && of == 0 ? 16 : 1;
}

}  // namespace detail

inline constexpr Word<ElementType> kGemvWeights[] = {
    {"f32", ElementType::f32},   {"f16", ElementType::f16},   {"bf16", ElementType::bf16},
    {"q4_0", ElementType::q4_0}, {"q4_1", ElementType::q4_1}, {"q5_0", ElementType::q5_0},
    {"q5_1", ElementType::q5_1}, {"q8_0", ElementType::q8_0}, {"q4_k", ElementType::q4_k},
    {"q5_k", ElementType::q5_k}, {"q6_k", ElementType::q6_k}};
inline constexpr Word<ElementType> kGemvX[] = {{"f32", ElementType::f32},
                                               {"f16", ElementType::f16},
                                               {"bf16", ElementType::bf16},
                                               {"q8_1", ElementType::q8_1}};
inline constexpr Word<GemvLayout> kGemvLayouts[] = {{"T", GemvLayout::T}, {"R", GemvLayout::R}};

/// A GEMV of any shape: the family chooses a plan, a baseline or cuBLAS.
template <>
struct Describe<GemvProblem> {
  using P = GemvProblem;
  static constexpr KernelDoc text{
      "gemv", "y = A^T x or y = W x, f32 sums, as planned for the GPU",
      "wide: consecutive lanes read consecutive 16 bytes of a row, each weight once"};
  static constexpr ParameterRow<P> parameters[] = {
      number<&P::k>("k", 0, 0xffffffffu, "elements of x").specializes(),
      number<&P::n>("n", 1, 0xffffffffu, "elements of y").specializes(),
      choice<&P::layout, kGemvLayouts>("layout", "T: A[k x n] row-major; R: W[n x k] row-major")
          .specializes(),
      choice<&P::weights, kGemvWeights>("dtype", "of the weights").specializes(),
      choice<&P::x, kGemvX>("x", "type of x: f32, or the weights'; with blocks any, or q8_1")
          .specializes(),
      choice<&P::y, kFloatTypes>(
          "y", "type of y, bias and residual: f32, or the weights'; with blocks any float")
          .specializes(),
      number<&P::lda>("lda", 0, std::uint64_t{1} << 31,
                      "elements from row to row; 0: the row length")
          .specializes(),
      flag<&P::repacked>("repacked",
                         "rows of blocks are arrays of their fields, as repack has them")
          .specializes(),
      flag<&P::scaled>("scaled", "alpha and beta").specializes(),
      flag<&P::bias>("bias", "n elements are added").specializes(),
      flag<&P::residual>("residual", "n elements are added").specializes()};
  static constexpr auto arguments = detail::gemv_arguments<P, detail::any_alignment>();
  static void check(const P& problem, const GemvOperands& operands) {
    if (!problem.scaled && !(operands.alpha == 1 && operands.beta == 0)) [[unlikely]] {
      detail::refuse_unscaled(operands);
    }
  }
  static bool may_start_early(const GemvOperands& operands) { return operands.constant_weights; }
  static KernelKey key(const P& problem);
  /// The planner's choice for the target's first GPU of the table.
  static ptx::Module build(const P& problem, const ptx::Target& target);
  static LaunchGeometry geometry(const P& problem, const ptx::Gpu& gpu);
  static KernelCost cost(const P& problem);
  static void reference(const P& problem, HostOperands& host);
  static void host(const P& problem, const GemvOperands& operands, const HostRun& run);
  static ErrorBound bound(const P& problem);
  static const KernelFamily family;
  static constexpr P cases[] = {
      {.k = 1, .n = 1},
      {.k = 257, .n = 1000},
      {.k = 70000, .n = 3},
      {.k = 1000, .n = 257, .layout = GemvLayout::R},
      {.k = 4099, .n = 33, .layout = GemvLayout::R, .weights = ElementType::bf16},
      {.k = 640, .n = 512, .weights = ElementType::f16, .x = ElementType::f16},
      {.k = 300, .n = 128, .scaled = true, .bias = true, .residual = true},
      {.k = 4608, .n = 33, .layout = GemvLayout::R, .weights = ElementType::q4_k},
      {.k = 1536, .n = 40, .layout = GemvLayout::R, .weights = ElementType::q6_k, .bias = true},
      {.k = 576,
       .n = 70,
       .layout = GemvLayout::R,
       .weights = ElementType::q4_1,
       .x = ElementType::f16,
       .y = ElementType::f16},
      {.k = 2080,
       .n = 17,
       .layout = GemvLayout::R,
       .weights = ElementType::q8_0,
       .x = ElementType::q8_1},
      {.k = 2592, .n = 33, .layout = GemvLayout::R, .weights = ElementType::q4_0, .repacked = true},
      {.k = 576, .n = 70, .layout = GemvLayout::R, .weights = ElementType::q4_1, .repacked = true},
      {.k = 1056, .n = 9, .layout = GemvLayout::R, .weights = ElementType::q5_0, .repacked = true},
      {.k = 1024, .n = 21, .layout = GemvLayout::R, .weights = ElementType::q5_1, .repacked = true},
      {.k = 2080,
       .n = 17,
       .layout = GemvLayout::R,
       .weights = ElementType::q8_0,
       .x = ElementType::q8_1,
       .repacked = true},
      {.k = 4608,
       .n = 33,
       .layout = GemvLayout::R,
       .weights = ElementType::q6_k,
       .repacked = true}};
};

}  // namespace ptxgen::inline v0
