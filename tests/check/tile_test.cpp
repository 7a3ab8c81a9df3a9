// tests/check/tile_test.cpp - shapes of tiles and what kernels take
#include "ptxgen/check/tile.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::gates;

namespace {

Tile grid_tile(std::vector<std::int64_t> shape, ptx::Type element = ptx::Type::f32) {
  return {.name = "t", .level = TileLevel::Grid, .element = element, .shape = std::move(shape)};
}

// Without the caps of the levels, to meet the limit of elements in one dim.
constexpr TileCaps kWide{.dim = {1u << 30, 1u << 30, 1u << 30}};

std::string all_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    CHECK(finding.rule == "tile-limits");
    CHECK(finding.severity == Severity::Error);
    text += finding.message;
    for (const std::string& detail : finding.details) text += "\n  " + detail;
    text += "\n";
  }
  return text;
}

std::string reported(const Tile& tile, const TileCaps& caps = {}) {
  return all_text(validate(tile, caps));
}

}  // namespace

TEST_CASE("legal tiles: scalars, ones, and exactly the limit of elements") {
  const std::int64_t max = std::int64_t{1} << 24;
  for (const std::vector<std::int64_t>& shape : {
           std::vector<std::int64_t>{},
           {1},
           {1, 1, 1},
           {2, 4, 8},
           {max},
           {4096, 4096},
           {1, 16, 1024, 1024},
           {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
       }) {
    INFO(shape.size());
    CHECK(reported(grid_tile(shape), kWide) == "");
  }
  CHECK(reported(grid_tile({2}, ptx::Type::e2m1)) == "");
  CHECK(reported(grid_tile({}, ptx::Type::e2m1)) == "");
}

TEST_CASE("a dim that is 0, negative or dynamic") {
  CHECK(reported(grid_tile({4, 0})) ==
        "tile 't' of shape [4, 0]: dim 1 is 0\n"
        "  rule: every dim of a tile is at least 1\n"
        "  cure: the nearest legal dim is 1\n");
  CHECK(reported(grid_tile({-8})) ==
        "tile 't' of shape [-8]: dim 0 is -8\n"
        "  rule: every dim of a tile is at least 1\n"
        "  cure: the nearest legal dim is 1\n");
  CHECK(reported(grid_tile({4, kDynamicDim})) ==
        "tile 't' of shape [4, dynamic]: dim 1 is dynamic\n"
        "  rule: a tile's shape is known when the kernel is built\n"
        "  cure: choose a power of two, and let the bounds cut off the last tile\n");
  // Each dim that breaks the rule is named, and no later rule.
  CHECK(validate(grid_tile({0, 3, -1})).size() == 2);
}

TEST_CASE("dims that are not powers of two, and the nearest that are") {
  CHECK(reported(grid_tile({3, 5, 9})) ==
        "tile 't' of shape [3, 5, 9]: dim 0 is 3, which is not a power of two\n"
        "  rule: every dim of a tile is a power of two\n"
        "  cure: the nearest legal dims are 2 and 4\n"
        "tile 't' of shape [3, 5, 9]: dim 1 is 5, which is not a power of two\n"
        "  rule: every dim of a tile is a power of two\n"
        "  cure: the nearest legal dim is 4\n"
        "tile 't' of shape [3, 5, 9]: dim 2 is 9, which is not a power of two\n"
        "  rule: every dim of a tile is a power of two\n"
        "  cure: the nearest legal dim is 8\n");
  const auto cure = [](TileLevel level, std::int64_t dim) {
    const std::vector<Finding> findings =
        validate(Tile{.name = "t", .level = level, .shape = {dim}});
    REQUIRE(findings.size() == 1);
    return findings[0].details.at(1);
  };
  CHECK(cure(TileLevel::Block, 7) == "cure: the nearest legal dim is 8");
  CHECK(cure(TileLevel::Block, 255) == "cure: the nearest legal dim is 256");
  // Above the cap the next power of two is no cure.
  CHECK(cure(TileLevel::Block, 300) == "cure: the nearest legal dim is 256");
  CHECK(cure(TileLevel::Block, 511) == "cure: the nearest legal dim is 256");
  CHECK(cure(TileLevel::Block, 777) == "cure: the nearest legal dim is 256");
  CHECK(cure(TileLevel::Warp, 777) == "cure: the nearest legal dim is 32");
  CHECK(cure(TileLevel::Grid, std::numeric_limits<std::int64_t>::max()) ==
        "cure: the nearest legal dim is 16384");
}

TEST_CASE("more than 2^24 elements, whatever the product wraps to") {
  CHECK(reported(grid_tile({4096, 8192})) ==
        "tile 't' of shape [4096, 8192]: it has 33554432 elements, beyond the limit at dim 1, "
        "which is 8192\n"
        "  rule: a tile has at most 16777216 elements\n"
        "  cure: make dim 1 at most 4096\n");
  CHECK(reported(grid_tile({1 << 25}), kWide) ==
        "tile 't' of shape [33554432]: it has 33554432 elements, beyond the limit at dim 0, which "
        "is 33554432\n"
        "  rule: a tile has at most 16777216 elements\n"
        "  cure: make dim 0 at most 16777216\n");
  // 2^32 wraps 32 bits to 0, 2^64 and 2^66 wrap 64.
  CHECK(reported(grid_tile({65536, 65536}), kWide) ==
        "tile 't' of shape [65536, 65536]: it has 4294967296 elements, beyond the limit at dim 1, "
        "which is 65536\n"
        "  rule: a tile has at most 16777216 elements\n"
        "  cure: make dim 1 at most 256\n");
  const std::int64_t half = std::int64_t{1} << 32;
  CHECK(reported(grid_tile({half, half}), kWide) ==
        "tile 't' of shape [4294967296, 4294967296]: it has 2^64 or more elements, beyond the "
        "limit at dim 0, which is 4294967296\n"
        "  rule: a tile has at most 16777216 elements\n"
        "  cure: make dim 0 at most 16777216 and the dims after it 1\n");
  CHECK(reported(grid_tile({16, std::int64_t{1} << 62}), kWide) ==
        "tile 't' of shape [16, 4611686018427387904]: it has 2^64 or more elements, beyond the "
        "limit at dim 1, which is 4611686018427387904\n"
        "  rule: a tile has at most 16777216 elements\n"
        "  cure: make dim 1 at most 1048576\n");
  CHECK(validate(grid_tile({4096, 4096, 2})).size() == 1);
}

TEST_CASE("elements smaller than a byte fill whole bytes") {
  CHECK(reported(grid_tile({4, 1}, ptx::Type::u4)) ==
        "tile 't' of shape [4, 1]: dim 1 is 1, and an element .u4 has 4 bits\n"
        "  rule: the last dim of a tile fills whole bytes\n"
        "  cure: the nearest legal dim is 2\n");
  CHECK(reported(grid_tile({1, 2}, ptx::Type::s4)) == "");
  CHECK(reported(grid_tile({2}, ptx::Type::s2)) ==
        "tile 't' of shape [2]: dim 0 is 2, and an element .s2 has 2 bits\n"
        "  rule: the last dim of a tile fills whole bytes\n"
        "  cure: the nearest legal dim is 4\n");
}

TEST_CASE("caps of the levels") {
  struct Row {
    TileLevel level;
    std::int64_t cap;
  };
  for (const Row& row :
       {Row{TileLevel::Grid, 16384}, Row{TileLevel::Block, 256}, Row{TileLevel::Warp, 32}}) {
    Tile tile{.name = "t", .level = row.level, .shape = {row.cap}};
    CHECK(reported(tile) == "");
    tile.shape = {1, row.cap * 2};
    const std::string cap = std::to_string(row.cap);
    CHECK(reported(tile) ==
          "tile 't' of shape [1, " + std::to_string(row.cap * 2) + "]: dim 1 is " +
              std::to_string(row.cap * 2) + "\n  rule: a dim of a " +
              std::string(to_string(row.level)) + "'s tile is at most " + cap +
              "\n  cure: the nearest legal dim is " + cap + "; process the rest in a loop\n");
  }
  // They are defaults.
  CHECK(reported(Tile{.name = "t", .shape = {512}}, {.dim = {512, 512, 512}}) == "");
}

TEST_CASE("paddings count in bytes, not in elements") {
  Tile tile{.name = "t", .shape = {32, 32}, .padding = {0, 1}};
  CHECK(reported(tile) == "");
  CHECK(elements(tile) == 1024);
  CHECK(bytes(tile) == 32 * 33 * 4);
  tile.padding = {1};
  CHECK(reported(tile) ==
        "tile 't' of shape [32, 32]: it has 1 paddings for 2 dims\n"
        "  rule: each dim has a padding, or none has\n"
        "  cure: give one for each dim, 0 where there is none\n");
  tile.padding = {0, -1};
  CHECK(reported(tile) ==
        "tile 't' of shape [32, 32]: the padding of dim 1 is -1\n"
        "  rule: a padding is a number of elements, 0 or more\n"
        "  cure: the nearest legal padding is 0\n");
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  tile.padding = {kMax, kMax};
  CHECK(bytes(tile) == std::numeric_limits<std::uint64_t>::max());
  CHECK(bytes(Tile{.element = ptx::Type::f16, .shape = {}}) == 2);
  CHECK(bytes(Tile{.element = ptx::Type::u4, .shape = {2, 2}}) == 2);
  CHECK(bytes(Tile{.element = ptx::Type::u4, .shape = {}}) == 1);
  CHECK(elements(Tile{.shape = {kDynamicDim}}) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("what a kernel takes against what the target has") {
  const ptx::Target& target = ptx::target("sm_89");
  const auto check = [&](const KernelTiles& kernel) { return all_text(validate(kernel, target)); };
  KernelTiles kernel{.kernel = "k"};
  CHECK(check(kernel) == "");
  kernel.block = {1024, 1, 1};
  kernel.registers_per_thread = 64;
  kernel.static_shared_bytes = 49152;
  kernel.dynamic_shared_bytes = 99 * 1024 - 49152;
  CHECK(check(kernel) == "");

  CHECK(check({.kernel = "k", .block = {32, 64, 1}}) ==
        "kernel 'k': a block has 2048 threads\n"
        "  rule: a block has at most 1024 threads\n"
        "  cure: make it at most 1024 threads, and let each work on more elements\n");
  CHECK(check({.kernel = "k", .block = {1, 1, 65}}) ==
        "kernel 'k': a block has 65 threads in z\n"
        "  rule: a block has at most 64 threads in z\n"
        "  cure: make it at most 64\n");
  CHECK(check({.kernel = "k", .block = {32, 0, 1}}) ==
        "kernel 'k': a block has 0 threads in y\n"
        "  rule: a block has at least 1 thread along each side\n"
        "  cure: make it 1\n");
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  CHECK(validate(KernelTiles{.kernel = "k", .block = {kMax, kMax, kMax}}, target).size() == 3);
  CHECK(check({.kernel = "k", .registers_per_thread = 256}) ==
        "kernel 'k': a thread has 256 registers\n"
        "  rule: a thread has at most 255 registers of 32 bits\n"
        "  cure: keep less alive at once; the assembler spills the rest to local memory\n");
  CHECK(check({.kernel = "k", .block = {1024, 1, 1}, .registers_per_thread = 65}) ==
        "kernel 'k': 1024 threads of 65 registers take 73728\n"
        "  rule: a block has at most 65536 registers\n"
        "  cure: with that many threads at most 64 registers fit\n");
  CHECK(check({.kernel = "k", .static_shared_bytes = 49153}) ==
        "kernel 'k' has 49153 bytes of static shared memory\n"
        "  rule: a block has at most 49152 bytes of static shared memory on every target\n"
        "  cure: declare it as .extern .shared and ask for the bytes at launch: sm_89 has up to "
        "101376\n");
  CHECK(check({.kernel = "k", .static_shared_bytes = 1024, .dynamic_shared_bytes = 101376}) ==
        "kernel 'k': 1024 static and 101376 dynamic bytes of shared memory\n"
        "  rule: a block on sm_89 has at most 101376 bytes, static and dynamic together\n"
        "  cure: make the tiles smaller, or keep fewer of them at once\n");
  CHECK(validate(KernelTiles{.kernel = "k", .static_shared_bytes = 1, .dynamic_shared_bytes = kMax},
                 target)
            .size() == 1);
  kernel = {.kernel = "k",
            .tiles = {{.name = "a", .shape = {32, 32}, .storage = TileStorage::Shared},
                      {.name = "b", .shape = {256, 256}}},
            .static_shared_bytes = 4096};
  CHECK(check(kernel) == "");
  kernel.tiles[0].padding = {0, 1};
  CHECK(check(kernel) ==
        "kernel 'k': its shared tiles take 4224 bytes\n"
        "  rule: the tiles are in the kernel's 4096 bytes of shared memory\n"
        "  cure: declare or launch with as many bytes as the tiles and their padding take\n");
}

TEST_CASE("a kernel whose tiles are not legal is not built") {
  KernelTiles kernel{.kernel = "k", .tiles = {{.name = "x", .shape = {300}}}};
  kernel.block = {2048, 1, 1};
  try {
    require_valid(kernel, ptx::target("sm_75"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    CHECK(error.code == "tile-limits");
    CHECK(error.kernel == "k");
    CHECK(error.target == "sm_75");
    CHECK(error.message ==
          "tile 'x' of shape [300]: dim 0 is 300, which is not a power of two; rule: every dim of "
          "a tile is a power of two; cure: the nearest legal dim is 256");
    CHECK(error.log.find("a block has 2048 threads in x [tile-limits]") != std::string::npos);
  }
  require_valid(GemvCoalesced::tiles(), ptx::target("sm_75"));
  const KernelTiles gemv = GemvCoalesced::tiles();
  REQUIRE(gemv.tiles.size() == 1);
  CHECK(gemv.tiles[0].shape == std::vector<std::int64_t>{256});
  CHECK(bytes(gemv.tiles[0]) == gemv.static_shared_bytes);
}

TEST_CASE("every target has the limits of its architecture") {
  for (const ptx::Target& target : ptx::targets()) {
    const ptx::Limits& limits = ptx::limits(target.name);
    INFO(target.name);
    CHECK(limits.sm == target.sm);
    // A block of the largest size fits, and the SM holds all that a block may have.
    CHECK(limits.threads_per_sm >= limits.threads_per_block);
    CHECK(limits.shared_per_sm >= target.shared_per_block_opt_in);
  }
  for (const ptx::Gpu& gpu : ptx::gpus()) {
    const ptx::Limits& limits = ptx::limits(gpu.target);
    INFO(gpu.name);
    CHECK(limits.threads_per_sm == gpu.threads_per_sm);
    CHECK(limits.blocks_per_sm == gpu.blocks_per_sm);
    CHECK(limits.shared_per_sm == gpu.shared_per_sm);
    CHECK(limits.registers_per_sm == gpu.registers_per_sm);
  }
  CHECK(ptx::limits("sm_52").sm == 75);
  CHECK(ptx::limits("sm_999").sm == 121);
  CHECK(ptx::limits("nonsense").sm == 121);
}
