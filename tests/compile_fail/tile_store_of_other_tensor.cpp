// tests/compile_fail/tile_store_of_other_tensor.cpp - falsification 40: tiles of other elements
// expect: a tile stores values or variables of its own element type
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

using namespace ptxgen;

#ifdef WRONG
using Element = f64;
#else
using Element = f32;
#endif

void copy(TileGroup& block, const TileGrid<f32>& to, const TileGrid<Element>& from) {
  store_tile(block, to, {0, 0}, load_tile(block, from, {0, 0}));
}
