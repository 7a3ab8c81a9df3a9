// src/kernels/gemv_coalesced.cpp - GEMV with one thread per output column
#include "ptxgen/kernels/gemv_coalesced.hpp"

#include "kernels/geometry.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

GemvCoalesced::KernelType GemvCoalesced::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<f32>>("y_ptr"), param<Ptr<f32>>("a_ptr"),
                             param<Ptr<f32>>("x_ptr"), param<u32>("k_dim"), param<u32>("n_dim")),
                      [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> a, Ptr<f32> x, Value<u32> rows,
                         Value<u32> columns) {
                        k.max_threads(kThreads);
                        const SharedArray<f32> tile = k.shared<f32>(kTile, "tile");
                        const Value<u32> thread = k.tid_x();
                        const Value<u32> column = k.mad_lo(k.ctaid_x(), kThreads, thread);
                        // Columns beyond the matrix skip the sums, never the barriers.
                        const Pred in_range = column < columns;
                        const Ptr<f32> top = a + column;
                        auto sum = k.var<f32>(0.0f);

                        k.for_(0u, rows, kTile, [&](Value<u32> row0) {
                          const Value<u32> row = row0 + thread;
                          k.st_shared(tile + thread,
                                      k.ld_global_predicated(x + row, row < rows, 0.0f));
                          k.bar_sync(0);
                          k.if_(in_range, [&] {
                            const Value<u32> rows_here = k.min(rows - row0, kTile);
                            auto weight = k.var(top + k.mul_wide(row0, columns));
                            auto scale = k.var(tile.base());
                            k.for_(
                                0u, rows_here, 1u,
                                [&](Value<u32>) {
                                  k.fma_inplace(k.ld_shared(scale), k.ld_global(weight), sum);
                                  weight += columns;
                                  scale += 1;
                                },
                                Unroll{kUnroll});
                          });
                          k.bar_sync(0);
                        });
                        k.if_(in_range, [&] { k.st_global(y + column, sum); });
                      });
}

LaunchGeometry GemvCoalesced::geometry() const {
  return one_dimensional(kName, n, kThreads, kThreads);
}

KernelCost GemvCoalesced::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{k} * n;
  return {.bytes_read = 4 * (elements + k),
          .bytes_written = std::uint64_t{4} * n,
          .flops = 2 * elements};
}

}  // namespace ptxgen::inline v0
