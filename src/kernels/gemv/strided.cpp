// src/kernels/gemv/strided.cpp - GEMV with one warp per output column
#include "ptxgen/kernels/gemv/strided.hpp"

#include "kernels/parts/geometry.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

namespace {

void body(KernelBuilder& k, Ptr<f32> y, Ptr<f32> a, Ptr<f32> x, Value<u32> rows,
          Value<u32> columns) {
  k.max_threads(GemvStrided::kThreads);
  const Value<u32> lane = k.tid_x();
  const Value<u32> column = k.ctaid_x();
  const Ptr<f32> top = a + column;
  auto sum = k.var<f32>(0.0f);
  k.for_(lane, rows, GemvStrided::kThreads, [&](Value<u32> row) {
    // One emitting call per statement: C++ does not specify the evaluation order of arguments.
    const Value<f32> f = k.ld_global(x + row);
    const Value<u64> skipped = k.mul_wide(row, columns);
    const Value<f32> w = k.ld_global(top + skipped);
    k.fma_inplace(sum, f, w);
  });
  const Value<f32> total = k.warp_reduce(sum);
  k.if_(lane == 0u, [&] { y[column] = total; });
}

}  // namespace

GemvStrided::KernelType GemvStrided::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<f32>>("y_ptr"), param<Ptr<f32>>("a_ptr"),
                             param<Ptr<f32>>("x_ptr"), param<u32>("k_dim"), param<u32>("n_dim")),
                      body);
}

LaunchGeometry GemvStrided::geometry() const { return one_dimensional(kName, n, 1, kThreads); }

KernelCost GemvStrided::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{k} * n;
  return {.bytes_read = 4 * (elements + k),
          .bytes_written = std::uint64_t{4} * n,
          .flops = 2 * elements};
}

}  // namespace ptxgen::inline v0
