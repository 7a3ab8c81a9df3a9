// tests/tile/kernels/transpose.hpp - out = in^T by tiles and by hand
#pragma once

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

namespace ptxgen::test {

inline void transpose_tiles(KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows,
                            Value<u32> columns, Value<u32> in_pitch, Value<u32> out_pitch) {
  TileGroup block = TileGroup::block(k, 256);
  const Value<u32> p = k.ctaid_y();
  const Value<u32> q = k.ctaid_x();
  const TensorView<f32> source(in, {rows, columns}, {in_pitch, 1});
  const TensorView<f32> target(out, {columns, rows}, {out_pitch, 1});
  TilePart<f32> from(block, source.tiles({32, 32}), {p, q});
  TilePart<f32> to(block, target.tiles({32, 32}), {q, p});
  const SharedTile<f32> tile(k, {32, 32}, {from.use(), to.use(true)});
  from.bind(tile).stage();
  block.sync();
  to.bind(tile.transpose()).unstage();
}

inline void transpose_twin(KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows,
                           Value<u32> columns, Value<u32> in_pitch, Value<u32> out_pitch) {
  constexpr std::uint32_t kPitch = 33;
  const Value<u32> thread = k.tid_x();
  const Value<u32> p = k.ctaid_y();
  const Value<u32> q = k.ctaid_x();
  const Value<u32> lane = k.and_(thread, 31u);
  const Value<u32> warp = k.shr(thread, 5u);
  const SharedArray<f32> tile = k.shared<f32>(32 * kPitch);
  const Value<u32> row = k.mad_lo(p, 32u, warp);
  const Value<u32> column = k.mad_lo(q, 32u, lane);
  const Value<u64> skipped = k.mul_wide(row, in_pitch);
  auto source = k.var(in + column + skipped);
  const Value<u32> slot = k.mad_lo(warp, kPitch, lane);
  const Ptr<f32, Shared> to = tile + slot;
  const Pred in_column = column < columns;
  const Value<u64> step = k.mul_wide(in_pitch, 8u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Value<u32> r = row + 8 * i;
    const Pred inside = k.setp(Comparison::lt, ptx::Modifier::and_, r, rows, in_column);
    const Value<f32> element = k.undefined<f32>();
    k.guarded(inside, [&] {
      k.emit(ptx::Op::ld, {ptx::Modifier::global, ptx::Modifier::type_f32}, {element, source});
      k.st_shared(to + 8 * i * kPitch, element);
    });
    if (i != 3) source += step;
  }
  k.bar_sync();
  const Value<u32> out_row = k.mad_lo(q, 32u, warp);
  const Value<u32> out_column = k.mad_lo(p, 32u, lane);
  const Value<u64> out_skipped = k.mul_wide(out_row, out_pitch);
  auto target = k.var(out + out_column + out_skipped);
  const Value<u32> out_slot = k.mad_lo(lane, kPitch, warp);
  const Ptr<f32, Shared> from = tile + out_slot;
  const Pred in_row = out_column < rows;
  const Value<u64> out_step = k.mul_wide(out_pitch, 8u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Value<u32> r = out_row + 8 * i;
    const Pred inside = k.setp(Comparison::lt, ptx::Modifier::and_, r, columns, in_row);
    const Value<f32> element = k.undefined<f32>();
    k.guarded(inside, [&] {
      k.emit(ptx::Op::ld, {ptx::Modifier::shared, ptx::Modifier::type_f32},
             {element, from + 8 * i});
      k.st_global(target, element);
    });
    if (i != 3) target += out_step;
  }
}

}  // namespace ptxgen::test
