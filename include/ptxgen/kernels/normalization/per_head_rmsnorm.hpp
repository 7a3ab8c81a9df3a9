// ptxgen/kernels/normalization/per_head_rmsnorm.hpp - heads divided by their root mean square
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `y[r][h][i] = x[r][h][i] / sqrt(mean over i of x[r][h][i]^2 + eps) * weight[i]` for each head h
/// of each row r; the heads share the weight. As Qwen3 and Gemma 3 normalise q and k. Computed in
/// f32 and rounded once to the type.
///
/// One warp for each head, which needs no barrier; each lane adds every 32nd element in order. The
/// grid's y counts rows by stride. Entry
/// `per_head_rmsnorm(x, weight, y, rows, heads, head_size, eps)`; y may be x. Consecutive lanes
/// access consecutive elements.
struct PerHeadRmsNorm {
  std::uint32_t rows = 1;
  std::uint32_t heads = 32;
  std::uint32_t head_size = 128;
  ElementType type = ElementType::f32;  ///< of x and y: f32, f16 or bf16; the weight is f32
  /// `sqrt.rn` and `div.rn` in the place of `rsqrt.approx`, and a compensated sum per lane.
  bool precise = false;

  static constexpr std::uint32_t kThreads = 32;

  struct Operands {
    DeviceRange y{}, x{}, weight{};
    float eps = 1e-5f;
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// No rows, heads or elements throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads x and the weight once (x again from a cache), writes y once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<PerHeadRmsNorm> {
  using K = PerHeadRmsNorm;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"per_head_rmsnorm",
                                  "y = x * weight / sqrt(mean(x^2) + eps), head by head",
                                  "coalesced: consecutive lanes on consecutive elements of a head"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0xffffffffu, "rows, of one token each"),
      number<&K::heads>("heads", 1, 0x7fffffffu, "heads of a row"),
      number<&K::head_size>("head_size", 1, 0x7fffffffu, "elements of a head"),
      choice<&K::type, kFloatTypes>("type", "of x and y").specializes(),
      flag<&K::precise>("precise", "compensated sum, exact root and division").specializes()};
  static constexpr auto kElements = [](const K& spec) {
    return std::uint64_t{spec.rows} * spec.heads * spec.head_size;
  };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::type, kElements, "rows of heads"),
      Row::input("weight", &O::weight, ElementType::f32, &K::head_size, "factor of each column"),
      Row::output("y", &O::y, &K::type, kElements, "normalised heads").may_alias("x"),
      Row::shape<&K::rows>("rows"),
      Row::shape<&K::heads>("heads"),
      Row::shape<&K::head_size>("head_size"),
      Row::scalar<&O::eps>("eps", "added to the mean square").values(1e-6, 1e-3)};
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows"};
  static K twin(K spec) {
    spec.rows = 1;
    return spec;
  }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.heads = sizes.heads;
    spec.head_size = sizes.head_size;
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 1, 1},
                                {1, 1, 33},
                                {3, 5, 128},
                                {17, 3, 64, ElementType::f16},
                                {2, 7, 96, ElementType::bf16},
                                {9, 57, 128},
                                {5, 3, 257, ElementType::f32, true}};
};

}  // namespace ptxgen::inline v0
