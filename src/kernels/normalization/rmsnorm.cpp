// src/kernels/normalization/rmsnorm.cpp - rows divided by their root mean square
#include "ptxgen/kernels/normalization/rmsnorm.hpp"

#include "kernels/parts/element.hpp"
#include "kernels/parts/root_mean_square.hpp"

namespace ptxgen::inline v0 {

BuiltKernel RmsNorm::build(const ptx::Target& target) const {
  with_float_type(kernel_name<RmsNorm>, type, [](auto) {});
  return build_kernel(kernel_name<RmsNorm>, target.name,
                      params(param<Ptr<b8>>("x"), param<Ptr<f32>>("weight"), param<Ptr<b8>>("y"),
                             param<u32>("rows"), param<u32>("columns"), param<f32>("eps")),
                      [&](KernelBuilder& k, Ptr<b8> x, Ptr<f32> weight, Ptr<b8> y,
                          Value<u32> row_count, Value<u32> column_count, Value<f32> eps) {
                        k.required_threads(kThreads);
                        if (precise) k.contract(Contract::Forbid);
                        const RowBlock block{k, type, kThreads, x, y, k.tid_x(), column_count};
                        for_each_row(block, row_count, [&](const Value<u64>& row) {
                          const auto load = [&](const Value<u32>& i) { return block.load(row, i); };
                          const Value<f32> scale = inverse_rms(block, precise, eps, load);
                          store_scaled(block, weight, scale, row, load);
                        });
                      });
}

LaunchGeometry RmsNorm::geometry() const {
  return row_geometry(kernel_name<RmsNorm>, rows, columns, kThreads);
}

KernelCost RmsNorm::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = elements * bytes(type) + std::uint64_t{4} * columns,
          .bytes_written = elements * bytes(type),
          .flops = 4 * elements};
}

void Describe<RmsNorm>::reference(const RmsNorm& spec, HostOperands& host) {
  const std::span y(host["y"].values);
  const std::span x(host.input("x"));
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const std::size_t first = row * spec.columns;
    rms_reference(x.subspan(first, spec.columns), host.input("weight"), host.number("eps"),
                  y.subspan(first, spec.columns));
  }
}

ErrorBound Describe<RmsNorm>::bound(const RmsNorm& spec) {
  return {.relative = rms_error(spec.columns, RmsNorm::kThreads, spec.precise)};
}

}  // namespace ptxgen::inline v0
