// ptxgen/kernels/gemv/batched.hpp - one matrix times several vectors
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"

namespace ptxgen::inline v0 {

/// `y[r][j] = sum over i of W[j][i] * x[r][i]` for r in [0, m_dim): `W[n x k]` row-major (layout
/// R), in f32, f16, bf16 or a block format; sums in f32 in the order of a GEMV's plan, so that each
/// row of y has the bits that the GEMV `single` gives.
///
/// The code is for up to `m` rows; how many there are is said at the launch, 1 to m: rows from
/// m_dim on are neither read nor written. Each weight is read and decoded once for up to eight
/// rows. Entry `batched_gemv(y, w, x, m_dim)`: w and x are aligned to 16 bytes; y is `[m][n]`, x
/// `[m][k]`.
struct BatchedGemv {
  std::uint32_t k = 4096;  ///< a multiple of a block's values
  std::uint32_t n = 4096;
  std::uint32_t m = 4;                      ///< rows of x and y that the code serves, 1 to 64
  ElementType weights = ElementType::q4_k;  ///< as `GemvProblem::weights` with layout R
  ElementType x = ElementType::f32;         ///< as `GemvProblem::x`
  ElementType y = ElementType::f32;         ///< as `GemvProblem::y`
  bool repacked = false;                    ///< as `GemvProblem::repacked`

  static constexpr std::uint32_t kMaxRows = 64;

  struct Operands {
    DeviceRange y{}, w{}, x{};
    std::uint32_t m_dim = 1;  ///< rows of this launch
  };

  /// The plan of a pass, of up to 8 rows, as many as fit the target's shared memory; and
  /// the same for one row.
  [[nodiscard]] GemvPlan plan(const ptx::Target& target) const;
  [[nodiscard]] GemvPlan single() const;
  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry(const ptx::Gpu& gpu) const;
  /// Reads the matrix once for every eight rows, at best.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<BatchedGemv> {
  using K = BatchedGemv;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "batched_gemv", "y[r] = W x[r] for up to m rows, f32 sums",
      "wide: consecutive lanes read consecutive 16 bytes of a row, each weight once for 8 rows"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::k>("k", 1, 0x7fffffffu, "elements of a row of x").specializes(),
      number<&K::n>("n", 1, 0x7fffffffu, "elements of a row of y").specializes(),
      number<&K::m>("m", 1, K::kMaxRows, "rows that the code serves").specializes(),
      choice<&K::weights, kGemvWeights>("dtype", "of the weights").specializes(),
      choice<&K::x, kGemvX>("x", "type of x: f32, or the weights'; with blocks any, or q8_1")
          .specializes(),
      choice<&K::y, kFloatTypes>("y", "type of y: f32, or the weights'; with blocks any float")
          .specializes(),
      flag<&K::repacked>("repacked",
                         "rows of blocks are arrays of their fields, as repack has them")
          .specializes()};
  static constexpr auto kMatrix = [](const K& spec) {
    return spec.repacked ? spec.single().problem.matrix_bytes() : std::uint64_t{spec.k} * spec.n;
  };
  static constexpr auto kMatrixType = [](const K& spec) {
    return spec.repacked ? ElementType::b8 : spec.weights;
  };
  static constexpr auto kRows = [](const K& spec) {
    return spec.repacked ? RepackedRows{spec.weights, spec.k} : RepackedRows{};
  };
  static constexpr auto kX = [](const K& spec) { return std::uint64_t{spec.k} * spec.m; };
  static constexpr auto kY = [](const K& spec) { return std::uint64_t{spec.n} * spec.m; };
  static constexpr auto kLoad = [](const K&) -> std::uint32_t { return 16; };
  static constexpr Row arguments[] = {
      Row::output("y", &O::y, &K::y, kY, "results; rows from m_dim on stay as they are")
          .read_if([](const K&) { return true; }),
      Row::input("w", &O::w, OperandType<K>(kMatrixType), kMatrix, "weights")
          .aligned(kLoad)
          .repacked(kRows),
      Row::input("x", &O::x, &K::x, kX, "vectors").aligned(kLoad),
      Row::scalar<&O::m_dim>("m_dim", "rows of this launch, 1 to m").values(1, 2)};
  static constexpr TwinOperand kRenamed[] = {{"a", "w"}};
  static constexpr KernelBatch batch{BatchStrategy::RegisterUnroll, "m", "dtype", kRenamed};
  static KernelKey key(const K& spec);
  static Gemv twin(const K& spec) { return {spec.single()}; }
  /// k is the hidden size, rounded up to whole blocks of the weights.
  static K for_layer(K spec, const LayerSizes& sizes) {
    const std::uint32_t values = info(spec.weights).block_values;
    spec.k = (sizes.hidden + values - 1) / values * values;
    spec.n = sizes.outputs;
    return spec;
  }
  /// Throws `Error` (Stage::Launch, "arguments") unless m_dim is 1 to m.
  static void check(const K& spec, const O& operands);
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {
      {1, 1, 1, ElementType::f32},
      {256, 33, 8},
      {4352, 19, 3, ElementType::q6_k},
      {576, 70, 16, ElementType::q4_1, ElementType::f16},
      {2080, 17, 4, ElementType::q8_0, ElementType::q8_1},
      {1000, 37, 7, ElementType::bf16, ElementType::bf16},
      {257, 300, 2, ElementType::f32},
      {70016, 3, 2, ElementType::q4_0},
      {2080, 17, 8, ElementType::q8_0, ElementType::f32, ElementType::f32, true},
      {4352, 19, 3, ElementType::q6_k, ElementType::f32, ElementType::f32, true}};
};

}  // namespace ptxgen::inline v0
