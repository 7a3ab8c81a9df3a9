// ptxgen/kernels/elementwise/elementwise_mul.hpp - a product of two tensors
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// `out[i] = a[i] * b[i]` for i in [0, n), computed in f32 and rounded once to the type. Entry
/// `elementwise_mul(a, b, out, n)`: buffers of n elements, aligned to an element; out may be an
/// input. 16 bytes a lane where every address is a multiple of 16, else single elements.
struct ElementwiseMul {
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
struct Describe<ElementwiseMul> {
  using K = ElementwiseMul;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"elementwise_mul", "out[i] = a[i] * b[i]",
                                  "coalesced: consecutive lanes on consecutive 16 bytes"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes()};
  static constexpr Row arguments[] = {
      Row::input("a", &O::a, &K::type, &K::n, "factor"),
      Row::input("b", &O::b, &K::type, &K::n, "factor"),
      Row::output("out", &O::out, &K::type, &K::n, "result").may_alias("a").may_alias("b"),
      Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K&);
  static constexpr K cases[] = {
      {1}, {255}, {4099}, {70000}, {4099, ElementType::f16}, {4099, ElementType::bf16}};
};

}  // namespace ptxgen::inline v0
