// ptxgen/kernels/normalization/layernorm.hpp - rows with their mean taken away, scaled to variance
// 1
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `y[r][i] = (x[r][i] - mean_r) / sqrt(variance_r + eps) * weight[i] + bias[i]` for each row r,
/// with the biased variance (divided by the number of columns); without weight and bias unless
/// `affine`. Computed in f32 and rounded once to the type of x and y.
///
/// One block for each row. Each thread follows mean and squared deviations of every 256th element
/// with Welford's update; `block_reduce` joins the means, then the deviations from the joint mean
/// (Chan, Golub and LeVeque). No difference of large sums is taken, so rows far from 0 keep their
/// variance. The grid's y counts rows by stride. Entry
/// `layernorm(x, weight, bias, y, rows, columns, eps)`; weight and bias are null unless `affine`;
/// y may be x. Consecutive lanes access
/// consecutive elements.
struct LayerNorm {
  std::uint32_t rows = 1;
  std::uint32_t columns = 4096;         ///< of a row, also the stride of rows
  ElementType type = ElementType::f32;  ///< of x and y: f32, f16 or bf16; the others are f32
  bool affine = true;                   ///< weight and bias are there
  bool precise = false;                 ///< `sqrt.rn` and `div.rn` in the place of `.approx`

  static constexpr std::uint32_t kThreads = 256;

  struct Operands {
    DeviceRange y{}, x{}, weight{}, bias{};
    float eps = 1e-5f;
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x (again from a cache), weight and bias once, writes y once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<LayerNorm> {
  using K = LayerNorm;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{
      "layernorm", "y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias, row by row",
      "coalesced: consecutive lanes on consecutive elements of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "rows"),
      number<&K::columns>("columns", 1, 0x7fffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of x and y").specializes(),
      flag<&K::affine>("affine", "with weight and bias").specializes(),
      flag<&K::precise>("precise", "exact root and divisions").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr auto kAffine = [](const K& spec) { return spec.affine; };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows"),
      Row::input("weight", &O::weight, ElementType::f32, &K::columns, "factor of each column")
          .only_if(kAffine),
      Row::input("bias", &O::bias, ElementType::f32, &K::columns, "summand of each column")
          .only_if(kAffine),
      Row::output("y", &O::y, &K::type, kElements, "normalised rows").may_alias("x"),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::columns>("columns"),
      Row::scalar<&O::eps>("eps", "added to the variance").values(1e-6, 1e-3)};
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
                                {5, 1000, ElementType::f16},
                                {1, 70000},
                                {3, 300, ElementType::f32, false},
                                {3, 257, ElementType::f32, true, true}};
};

}  // namespace ptxgen::inline v0
