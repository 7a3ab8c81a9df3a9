// ptxgen/kernels/elementwise/gelu.hpp - the activation GELU, in three forms
#pragma once

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// Which function a model calls GELU. They differ by up to 0.02, so each is a kernel of its own.
enum class GeluForm : std::uint8_t {
  Erf,      ///< x / 2 * (1 + erf(x / sqrt(2))), the definition
  Tanh,     ///< x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  Sigmoid,  ///< x / (1 + exp(-1.702 x))
};

/// `out[i] = gelu(in[i])` for i in [0, n), computed in f32 and rounded once to the type. Entries
/// `gelu_erf`, `gelu_tanh`, `gelu_sigmoid`, each `(in, out, n)`: buffers of n elements, aligned to
/// an element; out may be the input. 16 bytes a lane where every address is a multiple of 16, else
/// single elements.
template <GeluForm kForm>
struct Gelu {
  std::uint32_t n = 1u << 20;           ///< elements, for geometry and cost; the code takes any n
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  bool precise = false;                 ///< the precise erf, tanh or exp and division

  struct Operands {
    DeviceRange out{}, in{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};
using GeluErf = Gelu<GeluForm::Erf>;
using GeluTanh = Gelu<GeluForm::Tanh>;
using GeluSigmoid = Gelu<GeluForm::Sigmoid>;

extern template struct Gelu<GeluForm::Erf>;
extern template struct Gelu<GeluForm::Tanh>;
extern template struct Gelu<GeluForm::Sigmoid>;

namespace detail {

inline constexpr KernelDoc kGeluDocs[] = {
    {"gelu_erf", "out[i] = in[i] / 2 * (1 + erf(in[i] / sqrt(2)))",
     "coalesced: consecutive lanes on consecutive 16 bytes"},
    {"gelu_tanh", "out[i] = in[i] / 2 * (1 + tanh(sqrt(2 / pi) * (in[i] + 0.044715 * in[i]^3)))",
     "coalesced: consecutive lanes on consecutive 16 bytes"},
    {"gelu_sigmoid", "out[i] = in[i] / (1 + exp(-1.702 * in[i]))",
     "coalesced: consecutive lanes on consecutive 16 bytes"}};

}  // namespace detail

template <GeluForm kForm>
struct Describe<Gelu<kForm>> {
  using K = Gelu<kForm>;
  using Row = ArgumentRow<K>;
  using O = typename K::Operands;
  static constexpr KernelDoc text = detail::kGeluDocs[static_cast<std::size_t>(kForm)];
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::n>("n", 1, 0xffffffffu, "elements"),
      choice<&K::type, kFloatTypes>("type", "of the elements").specializes(),
      flag<&K::precise>("precise", "the precise form of the function").specializes()};
  static constexpr Row arguments[] = {
      Row::input("in", &O::in, &K::type, &K::n, "argument").values(-10, 10),
      Row::output("out", &O::out, &K::type, &K::n, "result").may_alias("in"),
      Row::template shape<&K::n>("n")};
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
