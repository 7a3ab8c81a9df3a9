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
