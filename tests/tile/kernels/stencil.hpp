// tests/tile/kernels/stencil.hpp - a five-point stencil by tiles and by hand
#pragma once

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

namespace ptxgen::test {

/// out = in / 2 + (north + south + west + east) / 8; 0 outside of the tensor.
inline void stencil_tiles(KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows,
                          Value<u32> columns, Value<u32> in_pitch, Value<u32> out_pitch) {
  TileGroup block = TileGroup::block(k, 256);
  const TensorView<f32> source(in, {rows, columns}, {in_pitch, 1});
  const TensorView<f32> target(out, {rows, columns}, {out_pitch, 1});
  const Value<u32> p = k.ctaid_y();
  const Value<u32> q = k.ctaid_x();
  TilePart<f32> at(block, source.tiles({8, 32}, Padding::Zero), {p, q});
  const RegisterTile<f32> middle = at.load();
  auto around = at.load_shifted({-1, 0})[0];
  for (const Dims& side : {Dims{1, 0}, Dims{0, -1}, Dims{0, 1}}) {
    around.rebind(around + at.load_shifted(side)[0]);
  }
  const Value<f32> part = around * 0.125f;
  at.of(target.tiles({8, 32})).store(std::array{fma(middle[0], 0.5f, part)});
}

inline void stencil_twin(KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows,
                         Value<u32> columns, Value<u32> in_pitch, Value<u32> out_pitch) {
  const Value<u32> thread = k.tid_x();
  const Value<u32> p = k.ctaid_y();
  const Value<u32> q = k.ctaid_x();
  const Value<u32> lane = k.and_(thread, 31u);
  const Value<u32> warp = k.shr(thread, 5u);
  const Value<u32> row = k.mad_lo(p, 8u, warp);
  const Value<u32> column = k.mad_lo(q, 32u, lane);
  const Pred in_column = column < columns;
  const auto with_row = [&](const Value<u32>& r, const Pred& other) {
    return k.setp(Comparison::lt, ptx::Modifier::and_, r, rows, other);
  };
  const Pred inside = with_row(row, in_column);
  const Value<u64> skipped = k.mul_wide(row, in_pitch);
  const Ptr<f32> center = in + column + skipped;
  const Value<f32> middle = k.ld_predicated(center, inside, 0.0f);
  // Coordinates below 0 wrap around.
  const Value<u32> above = row - 1u;
  const Pred in_north = with_row(above, in_column);
  const Value<f32> north = k.ld_predicated(center - in_pitch, in_north, 0.0f);
  const Value<u32> below = row + 1u;
  const Pred in_south = with_row(below, in_column);
  const Value<f32> south = k.ld_predicated(center + in_pitch, in_south, 0.0f);
  const Value<f32> vertical = north + south;
  const Value<u32> left = column - 1u;
  const Pred has_left = left < columns;
  const Pred in_west = with_row(row, has_left);
  const Value<f32> west = k.ld_predicated(center - 1, in_west, 0.0f);
  const Value<f32> three = vertical + west;
  const Value<u32> right = column + 1u;
  const Pred has_right = right < columns;
  const Pred in_east = with_row(row, has_right);
  const Value<f32> east = k.ld_predicated(center + 1, in_east, 0.0f);
  const Value<f32> around = three + east;
  const Value<f32> part = around * 0.125f;
  const Value<f32> result = fma(middle, 0.5f, part);
  const Value<u64> out_skipped = k.mul_wide(row, out_pitch);
  const Ptr<f32> to = out + column + out_skipped;
  k.guarded(inside, [&] { k.st_global(to, result); });
}

}  // namespace ptxgen::test
