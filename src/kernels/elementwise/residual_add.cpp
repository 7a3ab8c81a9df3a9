// src/kernels/elementwise/residual_add.cpp - a sum of two tensors
#include "ptxgen/kernels/elementwise/residual_add.hpp"

#include "kernels/parts/map.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<ResidualAdd>::text.name;
constexpr std::string_view kInputs[] = {"a", "b"};

}  // namespace

BuiltKernel ResidualAdd::build(const ptx::Target& target) const {
  return map_kernel(kName, target, type, kInputs,
                    [](std::span<const Value<f32>> x) { return x[0] + x[1]; });
}

LaunchGeometry ResidualAdd::geometry() const { return map_geometry(kName, n, type); }

KernelCost ResidualAdd::cost() const noexcept { return map_cost(n, type, 2, 1); }

void Describe<ResidualAdd>::reference(const ResidualAdd&, HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& a = host.input("a");
  const std::vector<double>& b = host.input("b");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
}

ErrorBound Describe<ResidualAdd>::bound(const ResidualAdd&) { return {.exact = true}; }

}  // namespace ptxgen::inline v0
