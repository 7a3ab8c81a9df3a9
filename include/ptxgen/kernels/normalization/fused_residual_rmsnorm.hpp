// ptxgen/kernels/normalization/fused_residual_rmsnorm.hpp - residual sum and its rmsnorm
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `s = x + residual` and `y[r][i] = s[r][i] / sqrt(mean over i of s[r][i]^2 + eps) * weight[i]`
/// for each row r, as `residual_add` and `rmsnorm` one after the other: s is rounded to the type
/// before the norm, bit for bit. Computed in f32, y is rounded once to the type.
///
/// With `write_sum` s is also written, to `sum`, which may be residual (a decoder's residual stream
/// in place) or x; otherwise sum is null. y may be x or residual, unless sum is that. One block for
/// each row, as `rmsnorm`; the grid's y counts rows by stride. Entry
/// `fused_residual_rmsnorm(x, residual, weight, sum, y, rows, columns, eps)`. Consecutive lanes
/// access consecutive elements.
struct FusedResidualRmsNorm {
  std::uint32_t rows = 1;
  std::uint32_t columns = 4096;         ///< of a row, also the stride of rows
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16; the weight is f32
  bool write_sum = true;                ///< s is written to `sum`
  /// `sqrt.rn` and `div.rn` in the place of `rsqrt.approx`, and a compensated sum per thread.
  bool precise = false;

  static constexpr std::uint32_t kThreads = 256;

  struct Operands {
    DeviceRange y{}, sum{}, x{}, residual{}, weight{};
    float eps = 1e-5f;
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x, residual and the weight once (the sum again from a cache), writes y, and sum if it is
  /// there, once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<FusedResidualRmsNorm> {
  using K = FusedResidualRmsNorm;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "fused_residual_rmsnorm",
      "s = x + residual, y = s * weight / sqrt(mean(s^2) + eps), row by row",
      "coalesced: consecutive lanes on consecutive elements of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "rows"),
      number<&K::columns>("columns", 1, 0x7fffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of x, residual, sum and y").specializes(),
      flag<&K::write_sum>("write_sum", "the sum is written").specializes(),
      flag<&K::precise>("precise", "compensated sum, exact root and division").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr auto kWritesSum = [](const K& spec) { return spec.write_sum; };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows"),
      Row::input("residual", &O::residual, &K::type, kElements, "rows that are added"),
      Row::input("weight", &O::weight, ElementType::f32, &K::columns, "factor of each column"),
      Row::output("sum", &O::sum, &K::type, kElements, "x + residual")
          .only_if(kWritesSum)
          .may_alias("residual")
          .may_alias("x"),
      Row::output("y", &O::y, &K::type, kElements, "normalised sums")
          .may_alias("x")
          .may_alias("residual"),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::columns>("columns"),
      Row::scalar<&O::eps>("eps", "added to the mean square").values(1e-6, 1e-3)};
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows"};
  static K twin(K spec) {
    spec.rows = 1;
    return spec;
  }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.columns = sizes.hidden;
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 1},
                                {1, 255},
                                {3, 4096},
                                {2, 4097, ElementType::bf16},
                                {17, 1000, ElementType::f16},
                                {1, 70000},
                                {5, 300, ElementType::f32, false},
                                {7, 513, ElementType::f16, false},
                                {2, 96, ElementType::bf16, false},
                                {3, 257, ElementType::f32, true, true}};
};

}  // namespace ptxgen::inline v0
