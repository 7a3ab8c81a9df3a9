// tests/tile/kernels_test.cpp - four kernels by tiles beside hand-written twins
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "kernels/gemm.hpp"
#include "kernels/gemv.hpp"
#include "kernels/stencil.hpp"
#include "kernels/transpose.hpp"
#include "ptxgen/check/gates.hpp"
#include "support/harness.hpp"
#include "tile_rig.hpp"

using namespace ptxgen;
using test::TileArgument;

namespace {

constexpr std::uint32_t kSide = 1024;

template <class Body>
BuiltKernel gemv_kernel(const Body& body) {
  return build_kernel("gemv", "sm_80",
                      params(param<Ptr<f32>>("y"), param<Ptr<f32>>("a"), param<Ptr<f32>>("x"),
                             param<u32>("rows"), param<u32>("columns"), param<u32>("pitch")),
                      body);
}
/// Of `transpose` and `stencil`.
template <class Body>
BuiltKernel plane_kernel(const Body& body) {
  return build_kernel(
      "plane", "sm_80",
      params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("rows"),
             param<u32>("columns"), param<u32>("in_pitch"), param<u32>("out_pitch")),
      body);
}
template <class Body>
BuiltKernel gemm_kernel(const Body& body) {
  return build_kernel("gemm", "sm_80",
                      params(param<Ptr<f32>>("c"), param<Ptr<f32>>("a"), param<Ptr<f32>>("b"),
                             param<u32>("m"), param<u32>("n"), param<u32>("depth"),
                             param<u32>("a_pitch"), param<u32>("b_pitch"), param<u32>("c_pitch")),
                      body);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

/// Runs both with equal arguments, the first of which is the output.
void compare(const char* name, const BuiltKernel& tiles, const BuiltKernel& twin,
             emulator::Dim3 grid, const std::vector<TileArgument>& arguments) {
  std::vector<TileArgument> by_tiles = arguments;
  std::vector<TileArgument> by_hand = arguments;
  const emulator::Result a = test::run_tiles(tiles, grid, 256, by_tiles);
  const emulator::Result b = test::run_tiles(twin, grid, 256, by_hand);
  CHECK(test::findings_of(a) == "");
  CHECK(test::findings_of(b) == "");
  CHECK(same_bits(by_tiles[0].memory, by_hand[0].memory));
  const emulator::Counters& x = a.counters;
  const emulator::Counters& y = b.counters;
  const double ratio =
      static_cast<double>(x.warp_instructions) / static_cast<double>(y.warp_instructions);
  std::printf("%s: %llu warp instructions, %llu by hand (%.4f)\n", name,
              static_cast<unsigned long long>(x.warp_instructions),
              static_cast<unsigned long long>(y.warp_instructions), ratio);
  CHECK(ratio <= 1.01);
  CHECK(x.global_load.sectors == y.global_load.sectors);
  CHECK(x.global_store.sectors == y.global_store.sectors);
  CHECK(x.shared_load.wavefronts == y.shared_load.wavefronts);
  CHECK(x.shared_store.wavefronts == y.shared_store.wavefronts);
  CHECK(x.barriers == y.barriers);
}

/// Memory of rows with a pitch; elements between rows are kGap.
constexpr float kGap = -777.0f;
struct Plane {
  std::uint32_t rows, columns, pitch;
  std::vector<float> memory;

  Plane(std::uint32_t r, std::uint32_t c, std::uint32_t p, std::uint32_t seed)
      : rows(r), columns(c), pitch(p) {
    // The last row has no gap after it: that memory is not the kernel's.
    memory.assign(static_cast<std::size_t>(r - 1) * p + c, kGap);
    const std::vector<float> all = test::values(std::size_t{r} * c, seed);
    for (std::uint32_t i = 0; i < r; ++i) {
      for (std::uint32_t j = 0; j < c; ++j)
        at(i, j) = seed == 0 ? kGap : all[std::size_t{i} * c + j];
    }
  }
  float& at(std::uint32_t i, std::uint32_t j) { return memory[std::size_t{i} * pitch + j]; }
  [[nodiscard]] float get(std::int64_t i, std::int64_t j) const {
    const bool inside = i >= 0 && j >= 0 && i < rows && j < columns;
    return inside ? memory[static_cast<std::size_t>(i) * pitch + static_cast<std::size_t>(j)]
                  : 0.0f;
  }
  /// With elements in front, so that the kernel's first one is aligned to 4 bytes only.
  [[nodiscard]] TileArgument argument(std::size_t before) const {
    std::vector<float> all(before, kGap);
    all.insert(all.end(), memory.begin(), memory.end());
    return {std::move(all), before};
  }
};

/// Checks the output, and that gaps and elements in front are as they were.
void check_output(const TileArgument& out, const Plane& wanted, const emulator::Result& result) {
  CHECK(test::findings_of(result) == "");
  CHECK(same_bits(out.memory, wanted.argument(out.offset).memory));
}

constexpr std::uint32_t tiles_of(std::uint32_t size, std::uint32_t tile) {
  return (size + tile - 1) / tile;
}

struct Shape {
  std::uint32_t rows, columns, pitch;
};
// Tails in both dims, one element, a row pitch of 48 bytes, exactly one tile, pitches beyond.
constexpr Shape kShapes[] = {{1, 1, 1},    {33, 10, 12},   {17, 12, 12},   {64, 64, 64},
                             {65, 63, 77}, {31, 100, 101}, {70, 130, 132}, {3, 257, 300}};

}  // namespace

TEST_CASE("falsification 36: gemv by tiles is the hand-written kernel") {
  compare("gemv", gemv_kernel(test::gemv_tiles), gemv_kernel(test::gemv_twin), {kSide / 256},
          {std::vector<float>(kSide), test::values(kSide * kSide, 1), test::values(kSide, 2), kSide,
           kSide, kSide});
}

TEST_CASE("falsification 36: a transpose by tiles is the hand-written kernel") {
  compare("transpose", plane_kernel(test::transpose_tiles), plane_kernel(test::transpose_twin),
          {kSide / 32, kSide / 32},
          {std::vector<float>(kSide * kSide), test::values(kSide * kSide, 3), kSide, kSide, kSide,
           kSide});
}

TEST_CASE("falsification 36: a stencil by tiles is the hand-written kernel") {
  compare("stencil", plane_kernel(test::stencil_tiles), plane_kernel(test::stencil_twin),
          {kSide / 32, kSide / 8},
          {std::vector<float>(kSide * kSide), test::values(kSide * kSide, 4), kSide, kSide, kSide,
           kSide});
}

TEST_CASE("falsification 36: a matrix product by tiles is the hand-written kernel") {
  const std::uint32_t depth = test::full() ? kSide : 128;
  compare("gemm", gemm_kernel(test::GemmTiles{{4}, 16}), gemm_kernel(test::gemm_twin),
          {kSide / 64, kSide / 64},
          {std::vector<float>(kSide * kSide), test::values(kSide * depth, 5),
           test::values(depth * kSide, 6), kSide, kSide, depth, depth, kSide, kSide});
}

TEST_CASE("gemv by tiles on ugly tensors") {
  const BuiltKernel kernel = gemv_kernel(test::gemv_tiles);
  for (const Shape& s : kShapes) {
    const Plane a(s.rows, s.columns, s.pitch, 7);
    const std::vector<float> x = test::values(s.rows, 8);
    Plane y(1, s.columns, s.columns, 0);
    std::vector<TileArgument> arguments{y.argument(1), a.argument(1), TileArgument(x),
                                        s.rows,        s.columns,     s.pitch};
    const emulator::Result result =
        test::run_tiles(kernel, {tiles_of(s.columns, 256)}, 256, arguments);
    for (std::uint32_t j = 0; j < s.columns; ++j) {
      float sum = 0;
      for (std::uint32_t i = 0; i < s.rows; ++i) sum = std::fma(x[i], a.get(i, j), sum);
      y.at(0, j) = sum;
    }
    INFO(s.rows << " x " << s.columns << ", pitch " << s.pitch);
    check_output(arguments[0], y, result);
  }
}

TEST_CASE("a transpose by tiles on ugly tensors") {
  const BuiltKernel kernel = plane_kernel(test::transpose_tiles);
  for (const Shape& s : kShapes) {
    const Plane in(s.rows, s.columns, s.pitch, 9);
    Plane out(s.columns, s.rows, s.rows + s.pitch - s.columns, 0);
    std::vector<TileArgument> arguments{out.argument(3), in.argument(1), s.rows,
                                        s.columns,       in.pitch,       out.pitch};
    const emulator::Result result =
        test::run_tiles(kernel, {tiles_of(s.columns, 32), tiles_of(s.rows, 32)}, 256, arguments);
    for (std::uint32_t i = 0; i < s.rows; ++i) {
      for (std::uint32_t j = 0; j < s.columns; ++j) out.at(j, i) = in.get(i, j);
    }
    INFO(s.rows << " x " << s.columns << ", pitch " << s.pitch);
    check_output(arguments[0], out, result);
  }
}

TEST_CASE("a stencil by tiles on ugly tensors") {
  const BuiltKernel kernel = plane_kernel(test::stencil_tiles);
  for (const Shape& s : kShapes) {
    const Plane in(s.rows, s.columns, s.pitch, 10);
    Plane out(s.rows, s.columns, s.columns + 5, 0);
    std::vector<TileArgument> arguments{out.argument(1), in.argument(3), s.rows,
                                        s.columns,       in.pitch,       out.pitch};
    const emulator::Result result =
        test::run_tiles(kernel, {tiles_of(s.columns, 32), tiles_of(s.rows, 8)}, 256, arguments);
    for (std::int64_t i = 0; i < s.rows; ++i) {
      for (std::int64_t j = 0; j < s.columns; ++j) {
        const float around =
            in.get(i - 1, j) + in.get(i + 1, j) + in.get(i, j - 1) + in.get(i, j + 1);
        out.at(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j)) =
            std::fma(in.get(i, j), 0.5f, around * 0.125f);
      }
    }
    INFO(s.rows << " x " << s.columns << ", pitch " << s.pitch);
    check_output(arguments[0], out, result);
  }
}

TEST_CASE("a matrix product by tiles on ugly tensors") {
  const BuiltKernel kernel = gemm_kernel(test::GemmTiles{});
  struct Case {
    std::uint32_t m, n, depth, gap;
  };
  for (const Case& s : {Case{1, 1, 1, 0},
                        {65, 63, 17, 3},
                        {10, 12, 12, 0},
                        {64, 64, 16, 0},
                        {130, 10, 33, 2},
                        {5, 66, 100, 7}}) {
    const Plane a(s.m, s.depth, s.depth + s.gap, 11);
    const Plane b(s.depth, s.n, s.n + s.gap, 12);
    Plane c(s.m, s.n, s.n + s.gap, 0);
    std::vector<TileArgument> arguments{c.argument(1), a.argument(3), b.argument(1), s.m,    s.n,
                                        s.depth,       a.pitch,       b.pitch,       c.pitch};
    const emulator::Result result =
        test::run_tiles(kernel, {tiles_of(s.n, 64), tiles_of(s.m, 64)}, 256, arguments);
    for (std::uint32_t i = 0; i < s.m; ++i) {
      for (std::uint32_t j = 0; j < s.n; ++j) {
        float sum = 0;
        for (std::uint32_t d = 0; d < s.depth; ++d) sum = std::fma(a.get(i, d), b.get(d, j), sum);
        c.at(i, j) = sum;
      }
    }
    INFO(s.m << " x " << s.n << " x " << s.depth);
    check_output(arguments[0], c, result);
  }
}

TEST_CASE("falsification 43: a batched product has the offsets of a loop over the batch") {
  constexpr std::uint32_t kBatch = 3, kM = 20, kN = 18, kDepth = 21;
  const BuiltKernel batched = build_kernel(
      "batched", "sm_80", params(param<Ptr<f32>>("c"), param<Ptr<f32>>("a"), param<Ptr<f32>>("b")),
      [&](KernelBuilder& k, Ptr<f32> c, Ptr<f32> a, Ptr<f32> b) {
        TileGroup block = TileGroup::block(k, 64);
        const Value<u32> z = k.ctaid_z();
        const Value<u32> p = k.ctaid_y();
        const Value<u32> q = k.ctaid_x();
        TileProduct<f32> product(block, {16, 16, 8}, {2, 2});
        // Of a there are two elements between batches, of b rows have a gap.
        const TensorView<f32> as(a, {kBatch, kM, kDepth}, {kM * kDepth + 2, kDepth, 1});
        const TensorView<f32> bs(b, {kBatch, kDepth, kN}, {kDepth * (kN + 1), kN + 1, 1});
        const TensorView<f32> cs(c, {kBatch, kM, kN});
        TilePart<f32> from_a(block, as.tiles({1, 16, 8}, Padding::Zero), {z, p, 0}, {.along = 2});
        TilePart<f32> from_b(block, bs.tiles({1, 8, 16}, Padding::Zero), {z, 0, q}, {.along = 1});
        const SharedTile<f32> a_tile(k, {16, 8}, {from_a.use(), product.use_a()});
        const SharedTile<f32> b_tile(k, {8, 16}, {from_b.use(), product.use_b()});
        from_a.bind(a_tile);
        from_b.bind(b_tile);
        product.bind(a_tile, b_tile);
        for_each_staged(
            block, kDepth, 8, [&] { product.accumulate(); }, from_a, from_b);
        store_tile(block, cs.tiles({1, 16, 16}), {z, p, q}, product.sums(), {.each = {1, 2, 2}});
      });
  const std::vector<float> a = test::values(kBatch * (kM * kDepth + 2), 31);
  const std::vector<float> b = test::values(kBatch * kDepth * (kN + 1), 32);
  std::vector<TileArgument> arguments{std::vector<float>(kBatch * kM * kN), a, b};
  const emulator::Result result =
      test::run_tiles(batched, {tiles_of(kN, 16), tiles_of(kM, 16), kBatch}, 64, arguments);
  CHECK(test::findings_of(result) == "");
  std::vector<float> wanted;
  for (std::uint32_t z = 0; z < kBatch; ++z) {
    for (std::uint32_t i = 0; i < kM; ++i) {
      for (std::uint32_t j = 0; j < kN; ++j) {
        float sum = 0;
        for (std::uint32_t d = 0; d < kDepth; ++d) {
          sum = std::fma(a[z * (kM * kDepth + 2) + i * kDepth + d],
                         b[(z * kDepth + d) * (kN + 1) + j], sum);
        }
        wanted.push_back(sum);
      }
    }
  }
  CHECK(same_bits(arguments[0].memory, wanted));
}

TEST_CASE(
    "falsification 35: a tile along rows takes an eighth of the sectors of one along columns") {
  const auto sectors = [](std::int64_t row_stride, std::int64_t column_stride) {
    const BuiltKernel kernel = build_kernel(
        "sectors", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
        [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
          TileGroup block = TileGroup::block(k, 256);
          const TensorView<f32> view(in, {32, 32}, {row_stride, column_stride});
          const TileOptions single{.each = {1, 1}};
          // The same threads read the same elements; only their places in memory differ.
          const RegisterTile<f32> loaded = load_tile(block, view.tiles({32, 32}), {0, 0}, single);
          store_tile(block, TensorView<f32>(out, {32, 32}).tiles({32, 32}), {0, 0}, loaded, single);
        });
    std::vector<TileArgument> arguments{std::vector<float>(1024), test::values(8192, 33)};
    const emulator::Result result = test::run_tiles(kernel, {1}, 256, arguments);
    CHECK(test::findings_of(result) == "");
    return result.counters.global_load.sectors;
  };
  CHECK(sectors(32, 1) == 128);
  // Every element in a sector of its own.
  CHECK(sectors(256, 8) == 1024);
}

TEST_CASE("kernels by tiles pass the gates") {
  gates::GateOptions options;
  options.block = {256, 1, 1};
  options.origin = gates::CodeOrigin::Built;
  const auto findings = [&](const BuiltKernel& kernel) {
    std::string text;
    for (const Finding& finding : gates::run(kernel.module(), options)) {
      if (finding.severity != Severity::Note) text += to_text(finding) + "\n";
    }
    return text;
  };
  CHECK(findings(gemv_kernel(test::gemv_tiles)) == "");
  CHECK(findings(plane_kernel(test::transpose_tiles)) == "");
  CHECK(findings(plane_kernel(test::stencil_tiles)) == "");
  CHECK(findings(gemm_kernel(test::GemmTiles{})) == "");
  CHECK(findings(gemm_kernel(test::GemmTiles{{4}, 16})) == "");
}

TEST_CASE("kernels by tiles have at most half the lines of their twins") {
  const auto lines = [](const std::string& file, const std::string& from, const std::string& to) {
    std::ifstream in(std::string(TILE_KERNELS) + "/" + file);
    int count = 0;
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
      if (line.find(from) != std::string::npos) inside = true;
      if (inside && !to.empty() && line.find(to) != std::string::npos) break;
      const std::size_t first = line.find_first_not_of(' ');
      if (inside && first != std::string::npos && line.compare(first, 2, "//") != 0) ++count;
    }
    return count;
  };
  struct Row {
    const char* file;
    const char* tiles;
    const char* twin;
  };
  for (const Row& row : {Row{"gemv.hpp", "void gemv_tiles", "void gemv_twin"},
                         Row{"transpose.hpp", "void transpose_tiles", "void transpose_twin"},
                         Row{"stencil.hpp", "void stencil_tiles", "void stencil_twin"},
                         Row{"gemm.hpp", "struct GemmTiles", "void gemm_twin"}}) {
    const int tiles = lines(row.file, row.tiles, row.twin);
    const int twin = lines(row.file, row.twin, "}  // namespace");
    std::printf("%s: %d lines, %d by hand\n", row.file, tiles, twin);
    CHECK(tiles > 5);
    CHECK(2 * tiles <= twin);
  }
}
