// ptxgen/kernels/normalization/softmax.hpp - exponentials of rows, divided by their sums
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `y[r][i] = exp(x[r][i] - m_r) / s_r` with m_r the largest element of row r and s_r the sum of
/// the exponentials. Computed in f32 and rounded once to the type.
///
/// One block for each row, of any length: a pass for the maximum, one for the sum, one that writes;
/// each thread takes every 256th element in order, `block_reduce` the threads' results. With
/// `warp_rows` a block is one warp, which needs no barrier: for short rows. The grid's y counts
/// rows by stride. Entry `softmax(x, y, rows, columns, temperature)`; y may be x. Consecutive lanes
/// access consecutive elements.
///
/// With `scaled` the elements are divided by the temperature t, a positive number:
/// `exp((x[r][i] - m_r) / t)`. Without it the temperature is 1, and the operand is not read.
///
/// A row of -inf gives NaN, as IEEE arithmetic does, or zeros with `masked_rows`.
struct Softmax {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1024;         ///< of a row, also the stride of rows
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  bool precise = false;                 ///< the precise exp and `div.rn`
  bool masked_rows = false;             ///< rows of -inf give zeros
  bool warp_rows = false;               ///< a warp for each row instead of 256 threads
  bool scaled = false;                  ///< divided by the temperature

  /// Of a block.
  [[nodiscard]] constexpr std::uint32_t threads() const noexcept { return warp_rows ? 32 : 256; }

  struct Operands {
    DeviceRange y{}, x{};
    float temperature = 1;
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x once (again from a cache), writes y once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Softmax> {
  using K = Softmax;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"softmax",
                                  "y = exp(x - max(x)) / sum(exp(x - max(x))), row by row",
                                  "coalesced: consecutive lanes on consecutive elements of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "rows"),
      number<&K::columns>("columns", 1, 0x7fffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of x and y").specializes(),
      flag<&K::precise>("precise", "precise exp and division").specializes(),
      flag<&K::masked_rows>("masked_rows", "rows of -inf give zeros").specializes(),
      flag<&K::warp_rows>("warp_rows", "a warp for each row").specializes(),
      flag<&K::scaled>("scaled", "divided by the temperature").specializes()};
  static constexpr auto kScaled = [](const K& spec) { return spec.scaled; };
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.columns;
  };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows").values(-20, 20),
      Row::output("y", &O::y, &K::type, kElements, "shares of the rows' sums").may_alias("x"),
      Row::shape<&K::rows>("rows"), Row::shape<&K::columns>("columns"),
      Row::scalar<&O::temperature>("temperature", "divides the elements, positive")
          .only_if(kScaled)
          .values(0.5, 2)};
  /// Throws `Error` (Stage::Launch, "bad-parameter") unless the temperature is positive, finite and
  /// not so small that its inverse is infinite; 1 without `scaled`.
  static void check(const K& spec, const O& operands);
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
                                {1, 31},
                                {3, 256},
                                {2, 1000, ElementType::bf16},
                                {5, 4097, ElementType::f16},
                                {1, 70000},
                                {3, 257, ElementType::f32, true},
                                {2, 100, ElementType::f32, false, true},
                                {7, 33, ElementType::f16, false, false, true},
                                {2, 1000, ElementType::f32, true, true, true},
                                {17, 300, ElementType::f32, false, false, false, true},
                                {2, 4097, ElementType::f16, true, true, false, true}};
};

}  // namespace ptxgen::inline v0
