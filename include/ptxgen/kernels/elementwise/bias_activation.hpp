// ptxgen/kernels/elementwise/bias_activation.hpp - a bias and an activation, in place
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

enum class Activation : std::uint8_t {
  None,
  Relu,         ///< x where x is not below 0, else 0; NaN stays NaN
  GeluSigmoid,  ///< x / (1 + exp(-1.702 x))
};
inline constexpr Word<Activation> kActivations[] = {{"none", Activation::None},
                                                    {"relu", Activation::Relu},
                                                    {"gelu_sigmoid", Activation::GeluSigmoid}};

/// `out[i] = activation(out[i] + bias[i mod bias_size])` for i in [0, n), in place. Computed in f32
/// and rounded once to the type of out; the bias is f32. Entry
/// `bias_activation(out, bias, n, bias_size)`: buffers aligned to an element. Consecutive lanes
/// access consecutive elements.
struct BiasActivation {
  std::uint32_t n = 1u << 20;           ///< elements of out
  std::uint32_t bias_size = 4096;       ///< elements of the bias
  ElementType type = ElementType::f32;  ///< of out: f32, f16 or bf16
  Activation activation = Activation::GeluSigmoid;
  bool precise = false;  ///< exp and division of the GELU rounded as the precise forms

  struct Operands {
    DeviceRange out{}, bias{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// n = 0 or bias_size = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads and writes out once, reads the bias once.
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<BiasActivation> {
  using K = BiasActivation;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"bias_activation",
                                  "out[i] = activation(out[i] + bias[i mod bias_size]), in place",
                                  "coalesced: consecutive lanes on consecutive elements"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      number<&K::bias_size>("bias_size", 1, 0x7fffffffu, "elements of the bias"),
      choice<&K::type, kFloatTypes>("type", "of out").specializes(),
      choice<&K::activation, kActivations>("activation", "after the bias").specializes(),
      flag<&K::precise>("precise", "precise exp and division").specializes()};
  static constexpr Row arguments[] = {
      Row::in_out("out", &O::out, &K::type, &K::n, "argument and result").values(-20, 20),
      Row::input("bias", &O::bias, ElementType::f32, &K::bias_size, "added to every row"),
      Row::shape<&K::n>("n"), Row::shape<&K::bias_size>("bias_size")};
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 1},
                                {255, 300},
                                {4099, 7, ElementType::f32, Activation::None},
                                {70000, 4096, ElementType::f32, Activation::Relu},
                                {70000, 1000, ElementType::f32, Activation::GeluSigmoid},
                                {4099, 256, ElementType::f16, Activation::None},
                                {4099, 1, ElementType::bf16, Activation::Relu},
                                {4099, 257, ElementType::f16, Activation::GeluSigmoid},
                                {5000, 2500, ElementType::f32, Activation::GeluSigmoid, true}};
};

}  // namespace ptxgen::inline v0
