// tests/tile/partition_test.cpp - what partitions accept and refuse, by text
#include <catch2/catch.hpp>

#include "ptxgen/tile/view.hpp"
#include "refusal.hpp"

using namespace ptxgen;
using test::refusal;

namespace {

std::string refused_partition(const Dims& sizes, const Dims& tile,
                              ptx::Type element = ptx::Type::f32, Padding padding = Padding::None,
                              const Dims& dim_map = {}) {
  return refusal(
      [&] { (void)Partition(TensorLayout::row_major(sizes), element, tile, padding, dim_map); });
}

}  // namespace

TEST_CASE("partitions that are legal") {
  const TensorLayout view = TensorLayout::row_major({17, 33});
  const Partition parts(view, ptx::Type::f32, {16, 32});
  CHECK(parts.tiles().text() == "[2, 2]");
  CHECK(parts.dim_map().text() == "[0, 1]");
  const TileInfo last = parts.tile({1, 1});
  CHECK(last.is_edge);
  CHECK(last.first.text() == "[16, 32]");
  CHECK(last.sizes.text() == "[1, 1]");
  CHECK(last.view.text() == "[1, 1]:[33, 1]+560");
  CHECK_FALSE(parts.tile({0, 0}).is_edge);
  CHECK(parts.tile({0, 1}).is_edge);
  // The tile's dim 0 walks the tensor's dim 1.
  const Partition mapped(view, ptx::Type::f32, {32, 16}, Padding::Zero, {1, 0});
  CHECK(mapped.tiles().text() == "[2, 2]");
  CHECK(mapped.tile({1, 0}).view.text() == "[1, 16]:[1, 33]+32");
  CHECK(
      Partition(TensorLayout::row_major({kDynamicDim, 8}), ptx::Type::f32, {4, 4}).tiles().text() ==
      "[dynamic, 2]");
  // No cap along a dim but 2^24 elements in all.
  CHECK(Partition(TensorLayout::row_major({1, 1}), ptx::Type::f32, {1 << 24, 1}).count() == 1);
  for (const Padding padding : {Padding::None, Padding::Zero, Padding::NegativeZero, Padding::NaN,
                                Padding::PositiveInfinity, Padding::NegativeInfinity}) {
    for (const ptx::Type element :
         {ptx::Type::f32, ptx::Type::f16, ptx::Type::bf16, ptx::Type::f64}) {
      CHECK(Partition(view, element, {1, 1}, padding).padding() == padding);
    }
  }
  CHECK(Partition(view, ptx::Type::u32, {1, 1}, Padding::Zero).padding() == Padding::Zero);
}

TEST_CASE("a load through a dim map is a load with the identity, and a permutation") {
  const TensorLayout view = TensorLayout::row_major({5, 6, 7});
  const Dims orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const Dims tile{2, 4, 1};
  for (const Dims& order : orders) {
    const Partition mapped(view, ptx::Type::f32, tile, Padding::None, order);
    Dims matching = tile;
    for (std::size_t i = 0; i < 3; ++i) matching[static_cast<std::size_t>(order[i])] = tile[i];
    const Partition plain(view, ptx::Type::f32, matching);
    for (std::uint64_t n = 0; n < mapped.count(); ++n) {
      const Dims index = mapped.index_of(n);
      Dims same = index;
      for (std::size_t i = 0; i < 3; ++i) same[static_cast<std::size_t>(order[i])] = index[i];
      CHECK(mapped.tile(std::span<const std::int64_t>(index.begin(), 3)).view ==
            plain.tile(std::span<const std::int64_t>(same.begin(), 3)).view.permute(order));
    }
  }
}

TEST_CASE("partitions that are refused") {
  const std::string where = "partition: partition of view [8, 8]:[8, 1]+0 into tiles ";
  CHECK(refused_partition({8, 8}, {}) ==
        where +
            "[]: the tile has rank 0; rule: a tile has 1 dim or more; cure: "
            "load the element itself");
  CHECK(refused_partition({8, 8}, {4}) ==
        where +
            "[4]: the tile has rank 1, the view 2; rule: a tile has the rank "
            "of its view; cure: use 1 for the dims that a tile does not span");
  CHECK(refused_partition({8, 8}, {4, std::int64_t{1} << 31}) ==
        where +
            "[4, 2147483648]: tile dim 1 is 2147483648; rule: tile dims are at most 2^31 - 1; "
            "cure: choose a smaller power of two");
  CHECK(refused_partition({8, 8}, {4, 4}, ptx::Type::f32, Padding::None, {0}) ==
        where +
            "[4, 4]: the dim map [0] has 1 entry; rule: a dim map names the tensor's dim of each "
            "tile dim; cure: give 2 entries");
  CHECK(refused_partition({8, 8}, {4, 4}, ptx::Type::f32, Padding::None, {1, 1}) ==
        where +
            "[4, 4]: the dim map [1, 1] names dim 1 twice; rule: each tile dim walks a dim of "
            "its own; cure: name each dim once");
  CHECK(refused_partition({8, 8}, {4, 4}, ptx::Type::f32, Padding::None, {0, 2}) ==
        where +
            "[4, 4]: entry 1 of the dim map [0, 2] is 2; rule: entries are 0 to 1; cure: name "
            "dims of the view");
  CHECK(refused_partition({8, 8}, {4, 4}, ptx::Type::f32, Padding::None, {-1, 0}) ==
        where +
            "[4, 4]: entry 0 of the dim map [-1, 0] is -1; rule: entries are 0 to 1; cure: name "
            "dims of the view");
  for (const Padding padding : {Padding::NegativeZero, Padding::NaN, Padding::PositiveInfinity,
                                Padding::NegativeInfinity}) {
    CHECK(refused_partition({8, 8}, {4, 4}, ptx::Type::u32, padding) ==
          where + "[4, 4]: padding " + std::string(to_string(padding)) +
              " for elements .u32; rule: elements that are no floats are padded with zero; cure: "
              "use Padding::Zero");
  }
}

TEST_CASE("tiles of a partition obey the rules of tile shapes, in their order") {
  CHECK(
      refused_partition({8, 8}, {4, 0}) ==
      "tile-limits: tile 'tile' of shape [4, 0]: dim 1 is 0; rule: every dim of a tile is at least "
      "1; cure: the nearest legal dim is 1");
  CHECK(refused_partition({8, 8}, {4, -4}).find("dim 1 is -4") != std::string::npos);
  CHECK(
      refused_partition({8, 8}, {kDynamicDim, 4}) ==
      "tile-limits: tile 'tile' of shape [dynamic, 4]: dim 0 is dynamic; rule: a tile's shape is "
      "known when the kernel is built; cure: choose a power of two, and let the bounds cut off the "
      "last tile");
  CHECK(
      refused_partition({8, 8, 8}, {3, 5, 9}) ==
      "tile-limits: tile 'tile' of shape [3, 5, 9]: dim 0 is 3, which is not a power of two; rule: "
      "every dim of a tile is a power of two; cure: the nearest legal dims are 2 and 4");
  CHECK(refused_partition({8, 8}, {8192, 4096})
            .find("it has 33554432 elements, beyond the limit at dim 1") != std::string::npos);
  CHECK(refused_partition({8, 8}, {4, 1}, ptx::Type::u4)
            .find("the last dim of a tile fills whole bytes") != std::string::npos);
}

TEST_CASE("tiles outside of the index space are refused") {
  const Partition parts(TensorLayout::row_major({8, 8}), ptx::Type::f32, {4, 4});
  const std::string where = "partition of view [8, 8]:[8, 1]+0 into tiles [4, 4]: ";
  CHECK(refusal([&] {
          (void)parts.tile({0, 2});
        }) ==
        "out-of-bounds: " + where +
            "index 2 in dim 1 of 2 tiles; rule: an index is at least 0 and below the number of "
            "tiles; cure: check the bounds before the access");
  CHECK(refusal([&] { (void)parts.tile({-1, 0}); }).find("index -1 in dim 0") != std::string::npos);
  CHECK(refusal([&] { (void)parts.tile({0}); }) ==
        "partition: " + where +
            "an index of 1 number; rule: a tile is named by one index for each dim; cure: give 2 "
            "numbers");
  CHECK(
      refusal([&] { (void)parts.index_of(4); }) ==
      "out-of-bounds: " + where +
          "place 4 of 4 tiles; rule: a place is below the number of tiles; cure: check the bounds "
          "before the access");
  CHECK(refusal([&] {
          (void)parts.index_of(0, {Traversal::Kind::Grouped, 0});
        }) == "partition: " + where +
                  "bands of 0 rows; rule: a band has 1 row of tiles or more; cure: use 1 or more");
  const Partition dynamic(TensorLayout::row_major({kDynamicDim, 8}), ptx::Type::f32, {4, 4});
  CHECK(refusal([&] { (void)dynamic.tile({0, 0}); }).find("bind() the sizes") != std::string::npos);
}

TEST_CASE("orders of visit") {
  const Partition parts(TensorLayout::row_major({3, 4}), ptx::Type::f32, {1, 1});
  const auto order = [&](const Traversal& traversal) {
    std::string text;
    for (std::uint64_t n = 0; n < parts.count(); ++n) {
      const Dims index = parts.index_of(n, traversal);
      text += std::to_string(index[0]) + std::to_string(index[1]) + " ";
    }
    return text;
  };
  CHECK(order({}) == "00 01 02 03 10 11 12 13 20 21 22 23 ");
  CHECK(order({Traversal::Kind::ColumnMajor}) == "00 10 20 01 11 21 02 12 22 03 13 23 ");
  CHECK(order({Traversal::Kind::Grouped, 2}) == "00 10 01 11 02 12 03 13 20 21 22 23 ");
  CHECK(order({Traversal::Kind::Grouped, 100}) == "00 10 20 01 11 21 02 12 22 03 13 23 ");
}
