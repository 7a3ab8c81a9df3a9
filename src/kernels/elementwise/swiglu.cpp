// src/kernels/elementwise/swiglu.cpp - the gated activation silu(gate) * up
#include "ptxgen/kernels/elementwise/swiglu.hpp"

#include <cmath>

#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<Swiglu>::text.name;
constexpr std::string_view kInputs[] = {"gate", "up"};

}  // namespace

BuiltKernel Swiglu::build(const ptx::Target& target) const {
  const Accuracy accuracy = precise ? Accuracy::Precise : Accuracy::Approximate;
  return map_kernel(kName, target, type, kInputs, [&](std::span<const Value<f32>> x) {
    const Value<f32> silu = x[0] * sigmoid(x[0], accuracy);
    return silu * x[1];
  });
}

LaunchGeometry Swiglu::geometry() const { return map_geometry(kName, n, type); }

KernelCost Swiglu::cost() const noexcept { return map_cost(n, type, 2, 5); }

void Describe<Swiglu>::reference(const Swiglu&, HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& gate = host.input("gate");
  const std::vector<double>& up = host.input("up");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

// The error of sigmoid, and of two products.
ErrorBound Describe<Swiglu>::bound(const Swiglu& spec) {
  const MathBound& sigmoid =
      math_bound("sigmoid", spec.precise ? Accuracy::Precise : Accuracy::Approximate);
  return {.relative = (sigmoid.ulp + 2) * 0x1p-23, .absolute = 1e-36};
}

}  // namespace ptxgen::inline v0
