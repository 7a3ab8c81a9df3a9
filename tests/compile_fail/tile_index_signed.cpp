// tests/compile_fail/tile_index_signed.cpp - falsification 40: a tile's index is unsigned
// expect: sizes, strides and indices of views are unsigned
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

using namespace ptxgen;

#ifdef WRONG
using Index = s32;
#else
using Index = u32;
#endif

RegisterTile<f32> load(TileGroup& block, const TileGrid<f32>& tiles, const Value<Index>& p) {
  return load_tile(block, tiles, {p, 0});
}
