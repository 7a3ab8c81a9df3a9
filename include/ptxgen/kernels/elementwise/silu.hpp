// ptxgen/kernels/elementwise/silu.hpp - the activation x * sigmoid(x)
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `out[i] = in[i] / (1 + exp(-in[i]))` for i in [0, n), computed in f32 and rounded once to the
/// type. Entry `silu(in, out, n)`: buffers of n elements, aligned to an element; out may be an
/// input. 16 bytes a lane where every address is a multiple of 16, else single elements.
struct Silu {
  std::uint32_t n = 1u << 20;           ///< elements, for geometry and cost; the code takes any n
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  bool precise = false;                 ///< exp and division rounded as the precise forms

  struct Operands {
    DeviceRange out{}, in{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Silu> {
  using K = Silu;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"silu", "out[i] = in[i] / (1 + exp(-in[i]))",
                                  "coalesced: consecutive lanes on consecutive 16 bytes"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes(),
      flag<&K::precise>("precise", "precise exp and division").specializes()};
  static constexpr Row arguments[] = {
      Row::input("in", &O::in, &K::type, &K::n, "argument").values(-20, 20),
      Row::output("out", &O::out, &K::type, &K::n, "result").may_alias("in"),
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

}  // namespace ptxgen::inline v0
