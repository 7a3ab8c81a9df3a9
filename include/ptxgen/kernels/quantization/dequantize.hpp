// ptxgen/kernels/quantization/dequantize.hpp - block formats to floats
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

inline constexpr Word<ElementType> kBlockFormats[] = {
    {"q4_0", ElementType::q4_0}, {"q4_1", ElementType::q4_1}, {"q5_0", ElementType::q5_0},
    {"q5_1", ElementType::q5_1}, {"q8_0", ElementType::q8_0}, {"q8_1", ElementType::q8_1},
    {"q4_k", ElementType::q4_k}, {"q5_k", ElementType::q5_k}, {"q6_k", ElementType::q6_k}};

/// `y[i]` = value i of the blocks, for i in [0, n): in f32 bit for bit as the function
/// `dequantize`, then rounded once to the type of y. Entry `dequantize(w, y, n)`: w is aligned to 2
/// bytes, y to an element. A thread decodes 8 values and stores them 16 bytes at a time where y is
/// a multiple of 16.
struct Dequantize {
  std::uint32_t n = 4096;                ///< values, a multiple of 32; the last block may have more
  ElementType type = ElementType::q4_k;  ///< of the blocks
  ElementType y = ElementType::f32;      ///< f32, f16 or bf16

  struct Operands {
    DeviceRange y{}, w{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// n = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Dequantize> {
  using K = Dequantize;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"dequantize", "y[i] = value i of the blocks of w",
                                  "coalesced: consecutive lanes on consecutive 8 values"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 32, 0xffffffe0u, "values").multiple_of(32),
      choice<&K::type, kBlockFormats>("type", "of the blocks").specializes(),
      choice<&K::y, kFloatTypes>("y", "type of the result").specializes()};
  static constexpr Row arguments[] = {Row::input("w", &O::w, &K::type, &K::n, "blocks"),
                                      Row::output("y", &O::y, &K::y, &K::n, "their values"),
                                      Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{32, ElementType::q4_0},
                                {4128, ElementType::q4_1},
                                {992, ElementType::q5_0},
                                {1024, ElementType::q5_1, ElementType::bf16},
                                {4096, ElementType::q8_0, ElementType::f16},
                                {96, ElementType::q8_1},
                                {70048, ElementType::q4_k},
                                {2048, ElementType::q5_k},
                                {4352, ElementType::q6_k}};
};

}  // namespace ptxgen::inline v0
