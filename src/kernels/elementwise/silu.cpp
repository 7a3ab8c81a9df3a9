// src/kernels/elementwise/silu.cpp - the activation x * sigmoid(x)
#include "ptxgen/kernels/elementwise/silu.hpp"

#include <cmath>

#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kSiluInputs[] = {"in"};

}  // namespace

BuiltKernel Silu::build(const ptx::Target& target) const {
  const Accuracy accuracy = precise ? Accuracy::Precise : Accuracy::Approximate;
  return map_kernel(kernel_name<Silu>, target, type, kSiluInputs,
                    [&](std::span<const Value<f32>> x) { return x[0] * sigmoid(x[0], accuracy); });
}

LaunchGeometry Silu::geometry() const { return map_geometry(kernel_name<Silu>, n, type); }

KernelCost Silu::cost() const noexcept { return map_cost(n, type, 1, 4); }

void Describe<Silu>::reference(const Silu&, HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& in = host.input("in");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] / (1 + std::exp(-in[i]));
}

// The error of sigmoid, and of the product.
ErrorBound Describe<Silu>::bound(const Silu& spec) {
  const MathBound& sigmoid =
      math_bound("sigmoid", spec.precise ? Accuracy::Precise : Accuracy::Approximate);
  return {.relative = (sigmoid.ulp + 1) * 0x1p-23, .absolute = 1e-36};
}

}  // namespace ptxgen::inline v0
