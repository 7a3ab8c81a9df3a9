// src/kernels/elementwise/elementwise_mul.cpp - a product of two tensors
#include "ptxgen/kernels/elementwise/elementwise_mul.hpp"

#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kMulInputs[] = {"a", "b"};

}  // namespace

BuiltKernel ElementwiseMul::build(const ptx::Target& target) const {
  return map_kernel(kernel_name<ElementwiseMul>, target, type, kMulInputs,
                    [](std::span<const Value<f32>> x) { return x[0] * x[1]; });
}

LaunchGeometry ElementwiseMul::geometry() const {
  return map_geometry(kernel_name<ElementwiseMul>, n, type);
}

KernelCost ElementwiseMul::cost() const noexcept { return map_cost(n, type, 2, 1); }

void Describe<ElementwiseMul>::reference(const ElementwiseMul&, HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& a = host.input("a");
  const std::vector<double>& b = host.input("b");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] * b[i];
}

ErrorBound Describe<ElementwiseMul>::bound(const ElementwiseMul&) { return {.exact = true}; }

}  // namespace ptxgen::inline v0
