// ptxgen/kernels/elementwise/narrow.hpp - f32 to 16-bit floats, with a flag for overflow
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

inline constexpr Word<ElementType> kNarrowTypes[] = {{"f16", ElementType::f16},
                                                     {"bf16", ElementType::bf16}};

/// `out[i] = in[i]`, rounded to the nearest f16 or bf16, for i in [0, n). Where a result is not
/// finite, because an input is not or is too large (f16: 65520 and more), `overflow[0]` becomes 1;
/// otherwise it keeps its value. So activations on their way to the tensor cores are checked
/// without another pass. Entry `narrow(in, out, overflow, n)`: in and overflow are aligned to 4
/// bytes, out to 2. Four elements a lane where both addresses are multiples of 16, else single
/// ones.
struct Narrow {
  std::uint32_t n = 1u << 20;           ///< elements, for geometry and cost; the code takes any n
  ElementType type = ElementType::f16;  ///< of out: f16 or bf16

  struct Operands {
    DeviceRange out{}, in{}, overflow{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// n = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

/// The smallest magnitude that `narrow` rounds to infinity.
[[nodiscard]] constexpr float narrow_limit(ElementType type) noexcept {
  return type == ElementType::f16 ? 65520.0f : 0x1.ffp127f;
}

template <>
struct Describe<Narrow> {
  using K = Narrow;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"narrow", "out[i] = in[i] as f16 or bf16; tells of overflow",
                                  "coalesced: consecutive lanes on consecutive 16 bytes"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      choice<&K::type, kNarrowTypes>("type", "of the result").specializes()};
  static constexpr Row arguments[] = {
      Row::input("in", &O::in, ElementType::f32, &K::n, "argument").values(-70000, 70000),
      Row::output("out", &O::out, &K::type, &K::n, "result"),
      Row::in_out(
          "overflow", &O::overflow, ElementType::u32, [](const K&) { return std::uint64_t{1}; },
          "becomes 1 if a result is not finite")
          .values(0, 1),
      Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1}, {255}, {4099}, {70000, ElementType::bf16}};
};

}  // namespace ptxgen::inline v0
