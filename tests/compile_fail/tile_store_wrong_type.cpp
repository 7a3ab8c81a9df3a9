// tests/compile_fail/tile_store_wrong_type.cpp - falsification 40: a tile stores its elements
// expect: a tile stores values or variables of its own element type
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

using namespace ptxgen;

#ifdef WRONG
using Element = float;
#else
using Element = Value<f32>;
#endif

void store(TileGroup& block, const TileGrid<f32>& tiles, const std::vector<Element>& values) {
  store_tile(block, tiles, {0, 0}, values);
}
