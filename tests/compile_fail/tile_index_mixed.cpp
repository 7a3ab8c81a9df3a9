// tests/compile_fail/tile_index_mixed.cpp - falsification 40: indices of one type
// expect: sizes, strides and indices of views are unsigned
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

using namespace ptxgen;

#ifdef WRONG
using Index = u64;
#else
using Index = u32;
#endif

RegisterTile<f32> load(TileGroup& block, const TileGrid<f32>& tiles, const Value<u32>& p,
                       const Value<Index>& q) {
  return load_tile(block, tiles, {p, q});
}
