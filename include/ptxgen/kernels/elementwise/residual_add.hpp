// ptxgen/kernels/elementwise/residual_add.hpp - a sum of two tensors
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `out[i] = a[i] + b[i]` for i in [0, n), computed in f32 and rounded once to the type. Entry
/// `residual_add(a, b, out, n)`: buffers of n elements, aligned to an element; out may be an
/// input. 16 bytes a lane where every address is a multiple of 16, else single elements.
struct ResidualAdd {
  std::uint32_t n = 1u << 20;           ///< elements, for geometry and cost; the code takes any n
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16

  struct Operands {
    DeviceRange out{}, a{}, b{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<ResidualAdd> {
  using K = ResidualAdd;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"residual_add", "out[i] = a[i] + b[i]",
                                  "coalesced: consecutive lanes on consecutive 16 bytes"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes()};
  static constexpr Row arguments[] = {
      Row::input("a", &O::a, &K::type, &K::n, "summand"),
      Row::input("b", &O::b, &K::type, &K::n, "summand"),
      Row::output("out", &O::out, &K::type, &K::n, "result").may_alias("a").may_alias("b"),
      Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K&);
  static constexpr K cases[] = {
      {1}, {255}, {4099}, {70000}, {4099, ElementType::f16}, {4099, ElementType::bf16}};
};

/// `out[r][i] = a[r][i] + b[r][i]` for each row r and i in [0, n): `residual_add` of each row, bit
/// for bit. Entry `batched_residual_add(a, b, out, n)`: buffers of [rows][n] elements, otherwise as
/// `residual_add`. The grid's y is the row, a block of 256 threads for each 256 elements of it; 16
/// bytes a lane where the addresses of a row are multiples of 16.
struct BatchedResidualAdd {
  std::uint32_t rows = 1;               ///< at most 65535
  std::uint32_t n = 4096;               ///< elements of a row
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16

  struct Operands {
    DeviceRange out{}, a{}, b{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or n = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<BatchedResidualAdd> {
  using K = BatchedResidualAdd;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"batched_residual_add", "out[r][i] = a[r][i] + b[r][i]",
                                  "coalesced: consecutive lanes on consecutive 16 bytes of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 65535, "rows, in the grid's y"),
      number<&K::n>("n", 1, 0xffffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes()};
  static constexpr auto kElements = [](const K& spec) { return std::uint64_t{spec.rows} * spec.n; };
  static constexpr Row arguments[] = {
      Row::input("a", &O::a, &K::type, kElements, "summands"),
      Row::input("b", &O::b, &K::type, kElements, "summands"),
      Row::output("out", &O::out, &K::type, kElements, "sums").may_alias("a").may_alias("b"),
      Row::shape<&K::n>("n")};
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows"};
  static ResidualAdd twin(const K& spec) { return {spec.n, spec.type}; }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.n = sizes.hidden;
    return spec;
  }
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 1},
                                {17, 255},
                                {3, 4096},
                                {1, 70000},
                                {16, 4099},
                                {5, 1000, ElementType::f16},
                                {7, 513, ElementType::bf16}};
};

}  // namespace ptxgen::inline v0
