// ptxgen/kernels/elementwise/swiglu.hpp - the gated activation silu(gate) * up
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]` for i in [0, n), computed in f32 and rounded
/// once to the type. Entry `swiglu(gate, up, out, n)`: buffers of n elements, aligned to an
/// element; out may be an input. 16 bytes a lane where every address is a multiple of 16, else
/// single elements.
struct Swiglu {
  std::uint32_t n = 1u << 20;           ///< elements, for geometry and cost; the code takes any n
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  bool precise = false;                 ///< exp and division rounded as the precise forms

  struct Operands {
    DeviceRange out{}, gate{}, up{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Swiglu> {
  using K = Swiglu;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"swiglu", "out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]",
                                  "coalesced: consecutive lanes on consecutive 16 bytes"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes(),
      flag<&K::precise>("precise", "precise exp and division").specializes()};
  static constexpr Row arguments[] = {
      Row::input("gate", &O::gate, &K::type, &K::n, "argument of silu").values(-20, 20),
      Row::input("up", &O::up, &K::type, &K::n, "factor"),
      Row::output("out", &O::out, &K::type, &K::n, "result").may_alias("gate").may_alias("up"),
      Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1},
                                {255},
                                {4099},
                                {70000},
                                {4099, ElementType::f16},
                                {4099, ElementType::bf16},
                                {4099, ElementType::f32, true}};
};

/// `out[r][i] = gate[r][i] / (1 + exp(-gate[r][i])) * up[r][i]` for each row r and i in [0, n):
/// `swiglu` of each row, bit for bit. Entry `batched_swiglu(gate, up, out, n)`: buffers of
/// [rows][n] elements, otherwise as `swiglu`. The grid's y is the row, a block of 256 threads for
/// each 256 elements of it; 16 bytes a lane where the addresses of a row are multiples of 16.
struct BatchedSwiglu {
  std::uint32_t rows = 1;               ///< at most 65535
  std::uint32_t n = 4096;               ///< elements of a row
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  bool precise = false;                 ///< exp and division rounded as the precise forms

  struct Operands {
    DeviceRange out{}, gate{}, up{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or n = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<BatchedSwiglu> {
  using K = BatchedSwiglu;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"batched_swiglu",
                                  "out[r][i] = gate[r][i] / (1 + exp(-gate[r][i])) * up[r][i]",
                                  "coalesced: consecutive lanes on consecutive 16 bytes of a row"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 65535, "rows, in the grid's y"),
      number<&K::n>("n", 1, 0xffffffffu, "elements of a row"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes(),
      flag<&K::precise>("precise", "precise exp and division").specializes()};
  static constexpr auto kElements = [](const K& spec) { return std::uint64_t{spec.rows} * spec.n; };
  static constexpr Row arguments[] = {
      Row::input("gate", &O::gate, &K::type, kElements, "arguments of silu").values(-20, 20),
      Row::input("up", &O::up, &K::type, kElements, "factors"),
      Row::output("out", &O::out, &K::type, kElements, "results").may_alias("gate").may_alias("up"),
      Row::shape<&K::n>("n")};
  static constexpr KernelBatch batch{BatchStrategy::GridY, "rows"};
  static Swiglu twin(const K& spec) { return {spec.n, spec.type, spec.precise}; }
  static K for_layer(K spec, const LayerSizes& sizes) {
    spec.n = sizes.intermediate;
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
                                {7, 513, ElementType::bf16},
                                {3, 8960, ElementType::f32, true}};
};

}  // namespace ptxgen::inline v0
