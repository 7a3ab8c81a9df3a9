// tests/tile/access_test.cpp - vector widths and bank conflicts
#include "ptxgen/tile/access.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::tile;

namespace {

/// Lane l at (l, 0): a column.
WarpAccess column() {
  WarpAccess access;
  for (std::uint32_t l = 0; l < 32; ++l) access.lanes[l] = {l, 0};
  return access;
}
/// 32 lanes along rows of `columns`, `elements` each.
WarpAccess rows(std::uint32_t columns, std::uint32_t elements) {
  WarpAccess access;
  access.elements = elements;
  for (std::uint32_t l = 0; l < 32; ++l) {
    access.lanes[l] = {l * elements / columns, l * elements % columns};
  }
  return access;
}

}  // namespace

TEST_CASE("falsification 38: the derived width is legal at every address, and the next is not") {
  std::mt19937_64 random(test::seed());
  const auto below = [&](std::uint64_t end) { return random() % end; };
  for (int n = 0; n < 100'000; ++n) {
    RowFacts row;
    row.element_bytes = 1u << below(4);
    row.base_alignment = row.element_bytes << below(5);
    row.dense = below(8) != 0;
    row.tile = 1u << below(6);
    row.size_divisor = 1 + below(8);
    row.stride_divisor = below(9);
    const std::uint32_t width = vector_elements(row);
    const auto legal = [&](std::uint32_t elements) {
      if (elements * row.element_bytes > 16 || (elements > 1 && !row.dense)) return false;
      if (elements == 1) return true;
      // Addresses and ends of vectors as they can occur: base and stride as little aligned as the
      // facts allow, the last row's end as far in as its divisor allows.
      const std::uint64_t bytes = elements * row.element_bytes;
      for (std::uint64_t i = 0; i < 4; ++i) {
        const std::uint64_t start = row.base_alignment + i * row.stride_divisor * row.element_bytes;
        if (start % bytes != 0) return false;
      }
      for (std::uint64_t size = row.size_divisor; size < 64; size += row.size_divisor) {
        if (size % elements != 0) return false;
      }
      return row.tile % elements == 0;
    };
    INFO(width << " of " << row.element_bytes << " bytes");
    REQUIRE(legal(width));
    REQUIRE_FALSE(legal(width * 2));
  }
  // A base that is aligned to its elements only has no vectors.
  CHECK(vector_elements({.element_bytes = 4,
                         .base_alignment = 4,
                         .dense = true,
                         .tile = 32,
                         .size_divisor = 32}) == 1);
  CHECK(vector_elements({.element_bytes = 4,
                         .base_alignment = 16,
                         .dense = true,
                         .tile = 32,
                         .size_divisor = 32}) == 4);
  // A row pitch of 48 bytes keeps vectors of 16 bytes, one of 40 those of 8.
  CHECK(vector_elements({.element_bytes = 4,
                         .base_alignment = 256,
                         .dense = true,
                         .tile = 4,
                         .size_divisor = 4,
                         .stride_divisor = 12}) == 4);
  CHECK(vector_elements({.element_bytes = 4,
                         .base_alignment = 256,
                         .dense = true,
                         .tile = 4,
                         .size_divisor = 4,
                         .stride_divisor = 10}) == 2);
}

TEST_CASE("wavefronts of known accesses") {
  CHECK(wavefronts({32, 32, 1, 0}, rows(32, 1), 4) == 1);
  CHECK(wavefronts({32, 32, 1, 0}, column(), 4) == 32);
  CHECK(wavefronts({32, 33, 1, 0}, column(), 4) == 1);
  CHECK(wavefronts({32, 32, 4, 7}, column(), 4) == 4);
  CHECK(wavefronts({32, 32, 1, 31}, column(), 4) == 1);
  CHECK(wavefronts({64, 64, 1, 0}, rows(64, 4), 4) == 4);
  CHECK(wavefronts({32, 32, 1, 0}, column(), 8) == 32);
  CHECK(wavefronts({32, 33, 1, 0}, column(), 8) == 2);
}

TEST_CASE("placements without conflicts, with their reason") {
  const WarpAccess both[] = {rows(32, 1), column()};
  const PlacementChoice longer = choose_placement(32, 32, 4, both);
  CHECK(longer.placement == Placement{32, 33, 1, 0});
  CHECK(longer.text ==
        "tile [32 x 32] of 4-byte elements: rows of 33, 4224 bytes, 2 wavefronts (plain rows: 33)");
  const PlacementChoice tight = choose_placement(32, 32, 4, both, 4096);
  CHECK(tight.placement == Placement{32, 32, 1, 31});
  CHECK(tight.text ==
        "tile [32 x 32] of 4-byte elements: groups of 1 exchanged by row & 31, 4096 bytes, 2 "
        "wavefronts (plain rows: 33)");
  const WarpAccess wide[] = {rows(32, 4)};
  CHECK(choose_placement(32, 32, 4, wide).placement == Placement{32, 32, 1, 0});
  CHECK(choose_placement(1, 256, 4, wide).placement == Placement{256, 256, 1, 0});
}

TEST_CASE("every placement keeps each element in a place of its own") {
  std::mt19937_64 random(test::seed());
  for (int n = 0; n < 300; ++n) {
    const std::uint32_t columns = 1u << random() % 7;
    const std::uint32_t height = 1u << random() % 7;
    const std::uint32_t vector = std::min(columns, 1u << random() % 3);
    std::vector<WarpAccess> accesses;
    for (int k = 0; k < 3; ++k) {
      WarpAccess access;
      access.elements = k == 0 ? vector : 1;
      for (auto& lane : access.lanes) {
        lane = {
            static_cast<std::uint32_t>(random() % height),
            static_cast<std::uint32_t>(random() % (columns / access.elements)) * access.elements};
      }
      accesses.push_back(access);
    }
    const PlacementChoice choice = choose_placement(height, columns, 4, accesses);
    INFO(choice.text);
    CHECK(choice.wavefronts <= choice.plain_wavefronts);
    std::set<std::uint32_t> seen;
    for (std::uint32_t row = 0; row < height; ++row) {
      for (std::uint32_t column = 0; column < columns; ++column) {
        const std::uint32_t position = choice.placement.position(row, column);
        REQUIRE(seen.insert(position).second);
        REQUIRE(position * 4 < choice.bytes);
        // A vector stays in one piece, aligned.
        if (column % vector == 0) REQUIRE(position % vector == 0);
        if (column % vector != 0)
          REQUIRE(position == choice.placement.position(row, column - 1) + 1);
      }
    }
  }
}
