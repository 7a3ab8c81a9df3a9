// src/kernels/normalization/per_head_rmsnorm.cpp - heads divided by their root mean square
#include "ptxgen/kernels/normalization/per_head_rmsnorm.hpp"

#include "kernels/parts/element.hpp"
#include "kernels/parts/root_mean_square.hpp"

namespace ptxgen::inline v0 {

namespace {

void normalise_head(const RowBlock& b, bool precise, const Ptr<f32>& weight, const Value<f32>& eps,
                    const Value<u64>& first) {
  const auto load = [&](const Value<u32>& i) { return b.load(first, i); };
  store_scaled(b, weight, inverse_rms(b, precise, eps, load), first, load);
}

}  // namespace

BuiltKernel PerHeadRmsNorm::build(const ptx::Target& target) const {
  with_float_type(kernel_name<PerHeadRmsNorm>, type, [](auto) {});
  return build_kernel(
      kernel_name<PerHeadRmsNorm>, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<f32>>("weight"), param<Ptr<b8>>("y"),
             param<u32>("rows"), param<u32>("heads"), param<u32>("head_size"), param<f32>("eps")),
      [&](KernelBuilder& k, Ptr<b8> x, Ptr<f32> weight, Ptr<b8> y, Value<u32> row_count,
          Value<u32> head_count, Value<u32> size, Value<f32> eps) {
        k.required_threads(kThreads);
        if (precise) k.contract(Contract::Forbid);
        const RowBlock block{k, type, kThreads, x, y, k.tid_x(), size};
        const Value<u64> head = k.convert<u64>(k.ctaid_x());
        const Value<u32> first_row = k.ctaid_y();
        k.for_(first_row, row_count, k.nctaid_y(), [&](Value<u32> row) {
          const Value<u64> index = k.mad_wide(row, head_count, head);
          normalise_head(block, precise, weight, eps, index * k.convert<u64>(size));
        });
      });
}

LaunchGeometry PerHeadRmsNorm::geometry() const {
  const bool empty = rows == 0 || head_size == 0;
  LaunchGeometry geometry =
      one_dimensional(kernel_name<PerHeadRmsNorm>, empty ? 0 : heads, 1, kThreads);
  geometry.grid.y = std::min(rows, 65535u);
  return geometry;
}

KernelCost PerHeadRmsNorm::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * heads * head_size;
  return {.bytes_read = elements * bytes(type) + std::uint64_t{4} * head_size,
          .bytes_written = elements * bytes(type),
          .flops = 4 * elements};
}

void Describe<PerHeadRmsNorm>::reference(const PerHeadRmsNorm& spec, HostOperands& host) {
  const std::span y(host["y"].values);
  const std::span x(host.input("x"));
  for (std::size_t first = 0; first < x.size(); first += spec.head_size) {
    rms_reference(x.subspan(first, spec.head_size), host.input("weight"), host.number("eps"),
                  y.subspan(first, spec.head_size));
  }
}

ErrorBound Describe<PerHeadRmsNorm>::bound(const PerHeadRmsNorm& spec) {
  return {.relative = rms_error(spec.head_size, PerHeadRmsNorm::kThreads, spec.precise)};
}

}  // namespace ptxgen::inline v0
