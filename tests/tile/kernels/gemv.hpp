// tests/tile/kernels/gemv.hpp - y = x^T A by tiles and by hand
#pragma once

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

namespace ptxgen::test {

inline constexpr std::uint32_t kGemvThreads = 256;

inline void gemv_tiles(KernelBuilder& k, Ptr<f32> y, Ptr<f32> a, Ptr<f32> x, Value<u32> rows,
                       Value<u32> columns, Value<u32> pitch) {
  TileGroup block = TileGroup::block(k, kGemvThreads);
  TilePart<f32> out(block, TensorView<f32>(y, {columns}).tiles({kGemvThreads}), {k.ctaid_x()});
  TilePart<f32> in(block, TensorView<f32>(x, {rows}).tiles({kGemvThreads}, Padding::Zero), {0},
                   {.along = 0});
  const SharedTile<f32> tile = in.make_shared();
  auto column = k.var(a + out.first(0));
  auto sum = k.var<f32>(0.0f);
  const auto add = [&](const auto& w, const auto& f) { k.fma_inplace(sum, f, w); };
  const auto add_rows = [&](const Value<u32>& here) {
    out.if_in_range([&] { walk(k, here, {4}, add, Walking{column, pitch}, Walked{tile.base()}); });
  };
  for_each_staged(block, rows, kGemvThreads, add_rows, in);
  out.store(std::span(&sum, 1));
}

inline void gemv_twin(KernelBuilder& k, Ptr<f32> y, Ptr<f32> a, Ptr<f32> x, Value<u32> rows,
                      Value<u32> columns, Value<u32> pitch) {
  const SharedArray<f32> tile = k.shared<f32>(kGemvThreads);
  const Value<u32> thread = k.tid_x();
  const Value<u32> block = k.ctaid_x();
  const Value<u32> column = k.mad_lo(block, kGemvThreads, thread);
  const Pred in_range = column < columns;
  const Ptr<f32, Shared> slot = tile + thread;
  const Ptr<f32> top = a + column;
  auto sum = k.var<f32>(0.0f);
  k.for_(0u, rows, kGemvThreads, [&](Value<u32> row0) {
    const Value<u32> row = row0 + thread;
    const Pred in_x = row < rows;
    const Value<f32> element = k.ld_global_predicated(x + row, in_x, 0.0f);
    k.st_shared(slot, element);
    k.bar_sync();
    k.if_(in_range, [&] {
      const Value<u32> rows_left = rows - row0;
      const Value<u32> rows_here = k.min(rows_left, kGemvThreads);
      const Value<u64> skipped = k.mul_wide(row0, pitch);
      auto weight = k.var(top + skipped);
      auto factor = k.var(tile.base());
      const auto add_row = [&](Value<u32>) {
        const Value<f32> w = k.ld_global(weight);
        const Value<f32> f = k.ld_shared(factor);
        k.fma_inplace(sum, f, w);
        weight += pitch;
        factor += 1;
      };
      k.for_(0u, rows_here, 1u, add_row, Unroll{4});
    });
    k.bar_sync();
  });
  k.if_(in_range, [&] { k.st_global(y + column, sum); });
}

}  // namespace ptxgen::test
