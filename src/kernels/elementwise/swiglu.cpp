// src/kernels/elementwise/swiglu.cpp - the gated activation silu(gate) * up
#include "ptxgen/kernels/elementwise/swiglu.hpp"

#include <cmath>

#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kSwigluInputs[] = {"gate", "up"};

MapElement gated(bool precise) {
  const Accuracy accuracy = precise ? Accuracy::Precise : Accuracy::Approximate;
  return [accuracy](std::span<const Value<f32>> x) {
    const Value<f32> silu = x[0] * sigmoid(x[0], accuracy);
    return silu * x[1];
  };
}

void reference_gated(HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& gate = host.input("gate");
  const std::vector<double>& up = host.input("up");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

// The error of sigmoid, and of two products.
ErrorBound gated_bound(bool precise) {
  const MathBound& sigmoid =
      math_bound("sigmoid", precise ? Accuracy::Precise : Accuracy::Approximate);
  return {.relative = (sigmoid.ulp + 2) * 0x1p-23, .absolute = 1e-36};
}

}  // namespace

BuiltKernel Swiglu::build(const ptx::Target& target) const {
  return map_kernel(kernel_name<Swiglu>, target, type, kSwigluInputs, gated(precise));
}

LaunchGeometry Swiglu::geometry() const { return map_geometry(kernel_name<Swiglu>, n, type); }

KernelCost Swiglu::cost() const noexcept { return map_cost(n, type, 2, 5); }

void Describe<Swiglu>::reference(const Swiglu&, HostOperands& host) { reference_gated(host); }

ErrorBound Describe<Swiglu>::bound(const Swiglu& spec) { return gated_bound(spec.precise); }

BuiltKernel BatchedSwiglu::build(const ptx::Target& target) const {
  return batched_map_kernel(kernel_name<BatchedSwiglu>, target, type, kSwigluInputs,
                            gated(precise));
}

LaunchGeometry BatchedSwiglu::geometry() const {
  return batched_map_geometry(kernel_name<BatchedSwiglu>, n, rows);
}

KernelCost BatchedSwiglu::cost() const noexcept {
  return map_cost(std::uint64_t{rows} * n, type, 2, 5);
}

void Describe<BatchedSwiglu>::reference(const BatchedSwiglu&, HostOperands& host) {
  reference_gated(host);
}

ErrorBound Describe<BatchedSwiglu>::bound(const BatchedSwiglu& spec) {
  return gated_bound(spec.precise);
}

}  // namespace ptxgen::inline v0
