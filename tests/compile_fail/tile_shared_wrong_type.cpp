// tests/compile_fail/tile_shared_wrong_type.cpp - falsification 40: shared tiles of other elements
// expect gcc: const SharedTile<u32>
// expect clang: SharedTile<u32>
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/tile.hpp"

using namespace ptxgen;

#ifdef WRONG
using Element = u32;
#else
using Element = f32;
#endif

void stage(TilePart<f32>& part, const SharedTile<Element>& tile) { part.bind(tile); }
