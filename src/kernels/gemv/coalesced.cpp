// src/kernels/gemv/coalesced.cpp - GEMV with one thread per output column
#include "ptxgen/kernels/gemv/coalesced.hpp"

#include "kernels/parts/geometry.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

namespace {

void body(KernelBuilder& k, Ptr<f32> y, Ptr<f32> a, Ptr<f32> x, Value<u32> rows,
          Value<u32> columns) {
  k.max_threads(GemvCoalesced::kThreads);
  const SharedArray<f32> tile = k.shared<f32>(GemvCoalesced::kTile, "tile");
  const Value<u32> thread = k.tid_x();
  const Value<u32> column = k.mad_lo(k.ctaid_x(), GemvCoalesced::kThreads, thread);
  // Columns beyond the matrix skip the sums, never the barriers.
  const Pred in_range = column < columns;
  const Ptr<f32, Shared> slot = tile + thread;
  const Ptr<f32> top = a + column;
  auto sum = k.var<f32>(0.0f);

  // One emitting call per statement: C++ does not specify the evaluation order of arguments.
  k.for_(0u, rows, GemvCoalesced::kTile, [&](Value<u32> row0) {
    const Value<u32> row = row0 + thread;
    const Pred in_x = row < rows;
    const Value<f32> element = k.ld_global_predicated(x + row, in_x, 0.0f);
    k.st_shared(slot, element);
    k.bar_sync();
    k.if_(in_range, [&] {
      const Value<u32> rows_left = rows - row0;
      const Value<u32> rows_here = k.min(rows_left, GemvCoalesced::kTile);
      const Value<u64> skipped = k.mul_wide(row0, columns);
      auto weight = k.var(top + skipped);
      auto factor = k.var(tile.base());
      const auto add_row = [&](Value<u32>) {
        const Value<f32> w = k.ld_global(weight);
        const Value<f32> f = k.ld_shared(factor);
        k.fma_inplace(sum, f, w);
        weight += columns;
        factor += 1;
      };
      k.for_(0u, rows_here, 1u, add_row, Unroll{GemvCoalesced::kUnroll});
    });
    k.bar_sync();
  });
  k.if_(in_range, [&] { k.st_global(y + column, sum); });
}

}  // namespace

gates::KernelTiles GemvCoalesced::tiles() {
  gates::KernelTiles tiles;
  tiles.kernel = kName;
  tiles.tiles = {{.name = "x",
                  .level = gates::TileLevel::Block,
                  .element = ptx::Type::f32,
                  .shape = {kTile},
                  .storage = gates::TileStorage::Shared}};
  tiles.block = {kThreads, 1, 1};
  tiles.static_shared_bytes = gates::bytes(tiles.tiles[0]);
  return tiles;
}

GemvCoalesced::KernelType GemvCoalesced::build(const ptx::Target& target) const {
  gates::require_valid(tiles(), target);
  return build_kernel(kName, target.name,
                      params(param<Ptr<f32>>("y_ptr"), param<Ptr<f32>>("a_ptr"),
                             param<Ptr<f32>>("x_ptr"), param<u32>("k_dim"), param<u32>("n_dim")),
                      body);
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
