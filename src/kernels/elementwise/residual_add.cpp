// src/kernels/elementwise/residual_add.cpp - a sum of two tensors
#include "ptxgen/kernels/elementwise/residual_add.hpp"

#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kResidualInputs[] = {"a", "b"};

Value<f32> sum(std::span<const Value<f32>> x) { return x[0] + x[1]; }

void reference_sum(HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& a = host.input("a");
  const std::vector<double>& b = host.input("b");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
}

}  // namespace

BuiltKernel ResidualAdd::build(const ptx::Target& target) const {
  return map_kernel(kernel_name<ResidualAdd>, target, type, kResidualInputs, sum);
}

LaunchGeometry ResidualAdd::geometry() const {
  return map_geometry(kernel_name<ResidualAdd>, n, type);
}

KernelCost ResidualAdd::cost() const noexcept { return map_cost(n, type, 2, 1); }

void Describe<ResidualAdd>::reference(const ResidualAdd&, HostOperands& host) {
  reference_sum(host);
}

ErrorBound Describe<ResidualAdd>::bound(const ResidualAdd&) { return {.exact = true}; }

BuiltKernel BatchedResidualAdd::build(const ptx::Target& target) const {
  return batched_map_kernel(kernel_name<BatchedResidualAdd>, target, type, kResidualInputs, sum);
}

LaunchGeometry BatchedResidualAdd::geometry() const {
  return batched_map_geometry(kernel_name<BatchedResidualAdd>, n, rows);
}

KernelCost BatchedResidualAdd::cost() const noexcept {
  return map_cost(std::uint64_t{rows} * n, type, 2, 1);
}

void Describe<BatchedResidualAdd>::reference(const BatchedResidualAdd&, HostOperands& host) {
  reference_sum(host);
}

ErrorBound Describe<BatchedResidualAdd>::bound(const BatchedResidualAdd&) {
  return {.exact = true};
}

}  // namespace ptxgen::inline v0
