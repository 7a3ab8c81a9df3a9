// ptxgen/kernels/normalization/rmsnorm.hpp - rows divided by their root mean square
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `y[r][i] = x[r][i] * r_rms * weight[i]` with `r_rms = 1 / sqrt(mean over i of x[r][i]^2 + eps)`,
/// for each row r. Computed in f32 and rounded once to the type of x and y.
///
/// One block for each row; each thread adds every 256th element of a row in order, `block_reduce`
/// the threads' sums. The grid's y counts rows, so that rows beyond its limit are taken by stride.
/// Entry `rmsnorm(x, weight, y, rows, columns, eps)`; y may be x. Consecutive lanes access
/// consecutive elements.
struct RmsNorm {
  std::uint32_t rows = 1;
  std::uint32_t columns = 4096;         ///< of a row, also the stride of rows
  ElementType type = ElementType::f32;  ///< of x and y: f32, f16 or bf16; the weight is f32
  /// `sqrt.rn` and `div.rn` in the place of `rsqrt.approx`, and a compensated sum per thread.
  bool precise = false;

  static constexpr std::uint32_t kThreads = 256;

  struct Operands {
    DeviceRange y{}, x{}, weight{};
    float eps = 1e-5f;
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x and the weight once (x again from a cache), writes y once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<RmsNorm> {
  using K = RmsNorm;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"rmsnorm", "y = x * weight / sqrt(mean(x^2) + eps), row by row",
                                  "coalesced: consecutive lanes on consecutive elements of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "rows"),
      number<&K::columns>("columns", 1, 0x7fffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of x and y").specializes(),
      flag<&K::precise>("precise", "compensated sum, exact root and division").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows"),
      Row::input("weight", &O::weight, ElementType::f32, &K::columns, "factor of each column"),
      Row::output("y", &O::y, &K::type, kElements, "normalised rows").may_alias("x"),
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
                                {5, 1000, ElementType::f16},
                                {1, 70000},
                                {3, 257, ElementType::f32, true}};
};

}  // namespace ptxgen::inline v0
