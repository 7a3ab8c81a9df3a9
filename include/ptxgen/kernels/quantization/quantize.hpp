// ptxgen/kernels/quantization/quantize.hpp - floats to block formats
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

inline constexpr Word<ElementType> kQuantizedTypes[] = {
    {"q8_1", ElementType::q8_1}, {"q8_0", ElementType::q8_0}, {"q4_0", ElementType::q4_0}};

/// Blocks of 32 values of x, bit for bit as the function `quantize`. x is finite. Entry
/// `quantize(x, w, n)`: x is aligned to four elements, w to 2 bytes. Eight lanes to a block, four
/// consecutive values each.
struct Quantize {
  std::uint32_t n = 4096;                ///< values, a multiple of 32
  ElementType type = ElementType::q8_1;  ///< of the blocks: q8_1, q8_0 or q4_0
  ElementType x = ElementType::f32;      ///< f32, f16 or bf16

  struct Operands {
    DeviceRange w{}, x{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// n = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Quantize> {
  using K = Quantize;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"quantize", "w = blocks of 32 values of x",
                                  "coalesced: consecutive lanes on consecutive 4 values"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 32, 0xffffffe0u, "values").multiple_of(32),
      choice<&K::type, kQuantizedTypes>("type", "of the blocks").specializes(),
      choice<&K::x, kFloatTypes>("x", "type of x").specializes()};
  static constexpr auto kAlignment = [](const K& spec) -> std::uint32_t {
    return 4 * bytes(spec.x);
  };
  static constexpr Row arguments[] = {
      Row::input("x", &O::x, &K::x, &K::n, "values, finite").aligned(kAlignment),
      Row::output("w", &O::w, &K::type, &K::n, "blocks"), Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{32},
                                {70016},
                                {4128, ElementType::q8_0},
                                {992, ElementType::q4_0},
                                {1024, ElementType::q8_1, ElementType::f16},
                                {4096, ElementType::q4_0, ElementType::bf16}};
};

}  // namespace ptxgen::inline v0
