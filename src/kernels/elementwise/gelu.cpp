// src/kernels/elementwise/gelu.cpp - the activation GELU, in three forms
#include "ptxgen/kernels/elementwise/gelu.hpp"

#include <cmath>

#include "kernels/parts/activation.hpp"
#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kGeluInputs[] = {"in"};

/// The factor of x.
template <GeluForm kForm>
Value<f32> gate(const Value<f32>& x, Accuracy accuracy) {
  if constexpr (kForm == GeluForm::Erf) {
    return erf_gate(x, accuracy);
  } else if constexpr (kForm == GeluForm::Tanh) {
    return tanh_gate(x, accuracy);
  } else {
    return sigmoid(x * 1.702f, accuracy);
  }
}

template <GeluForm kForm>
double exact_gate(double x) {
  if constexpr (kForm == GeluForm::Erf) return exact_erf_gate(x);
  if constexpr (kForm == GeluForm::Sigmoid) return 1 / (1 + std::exp(-1.702 * x));
  return exact_tanh_gate(x);
}

constexpr std::string_view kFunctions[] = {"erf", "tanh", "sigmoid"};  // by form

}  // namespace

template <GeluForm kForm>
BuiltKernel Gelu<kForm>::build(const ptx::Target& target) const {
  const Accuracy accuracy = precise ? Accuracy::Precise : Accuracy::Approximate;
  return map_kernel(
      kernel_name<Gelu>, target, type, kGeluInputs,
      [&](std::span<const Value<f32>> x) { return x[0] * gate<kForm>(x[0], accuracy); });
}

template <GeluForm kForm>
LaunchGeometry Gelu<kForm>::geometry() const {
  return map_geometry(kernel_name<Gelu>, n, type);
}

template <GeluForm kForm>
KernelCost Gelu<kForm>::cost() const noexcept {
  return map_cost(n, type, 1, 8);
}

template <GeluForm kForm>
void Describe<Gelu<kForm>>::reference(const K&, HostOperands& host) {
  HostOperands::Operand& out = host["out"];
  const std::vector<double>& in = host.input("in");
  out.magnitude.resize(out.values.size());
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = in[i] * exact_gate<kForm>(in[i]);
    out.magnitude[i] = std::abs(in[i]);
  }
}

// The factor of x is at most 1, and its error is that of the function, a unit in the last place of
// numbers near 1 being 2^-24 or 2^-23; the argument has up to four roundings, which change the
// factor by less than one each; the sum and the product.
template <GeluForm kForm>
ErrorBound Describe<Gelu<kForm>>::bound(const K& spec) {
  const MathBound& function = math_bound(kFunctions[static_cast<std::size_t>(kForm)],
                                         spec.precise ? Accuracy::Precise : Accuracy::Approximate);
  return {.relative = (function.ulp + 6) * 0x1p-23, .absolute = 1e-36};
}

template struct Gelu<GeluForm::Erf>;
template struct Gelu<GeluForm::Tanh>;
template struct Gelu<GeluForm::Sigmoid>;
template struct Describe<GeluErf>;
template struct Describe<GeluTanh>;
template struct Describe<GeluSigmoid>;

}  // namespace ptxgen::inline v0
