// tests/tile/builder_tile_test.cpp - tiles in kernels: every dim map, padding, staging; refusals
#include <bit>
#include <cmath>
#include <limits>

#include "ptxgen/builder/tile.hpp"
#include "refusal.hpp"
#include "tile_rig.hpp"

using namespace ptxgen;
using test::refusal;
using test::TileArgument;

namespace {

constexpr float kOld = -5.0f;

/// Which of the tile's elements a copy goes through.
enum class Way { Registers, Shared, Async };

std::vector<Extent> extents(const Dims& dims) { return {dims.begin(), dims.end()}; }

/// out[block][element] = the tile of index (ctaid.x, ctaid.y, ctaid.z) of a view with constant
/// sizes and strides; `out` has a row-major tile of the same shape for each block.
BuiltKernel tile_reader(const TensorLayout& view, const Dims& tile, Padding padding,
                        const Dims& dim_map, Way way, std::uint32_t threads,
                        std::string_view target = "sm_80") {
  return build_kernel(
      "read_tile", target, params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
      [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
        const std::size_t rank = view.rank();
        const std::vector<Extent> sizes = extents(view.sizes());
        const std::vector<Extent> strides = extents(view.strides());
        const std::vector<Extent> tile_sizes = extents(tile);
        const TensorView<f32> from_view(in + view.offset(), std::span(sizes), std::span(strides));
        TileGroup block = TileGroup::block(k, threads);
        const Value<u32> x = k.ctaid_x();
        const Value<u32> y = k.ctaid_y();
        const Value<u32> z = k.ctaid_z();
        const Extent all[] = {x, y, z};
        const std::span<const Extent> index(all, rank);
        // The result: tiles one after another, each with all its elements.
        std::int64_t elements = 1;
        for (const std::int64_t n : tile) elements *= n;
        const Value<u32> blocks_x = k.nctaid_x();
        const Value<u32> blocks_y = k.nctaid_y();
        const Value<u32> plane = k.mad_lo(z, blocks_y, y);
        const Value<u32> number = k.mad_lo(plane, blocks_x, x);
        const Value<u32> start = k.mul_lo(number, static_cast<std::uint32_t>(elements));
        const TensorView<f32> to_view(out + start, std::span(tile_sizes));
        const Extent zero[] = {0, 0, 0};
        const TileOptions single{.each = Dims::filled(rank, 1)};
        TilePart<f32> from(block, from_view.tiles(tile, padding, dim_map), index, single);
        TilePart<f32> to(block, to_view.tiles(tile), std::span<const Extent>(zero, rank), single);
        if (way == Way::Registers) {
          const RegisterTile<f32> loaded = from.load();
          // Both parts have the same order only if the same dim is dense.
          if (from.plan().order == to.plan().order) {
            to.store(loaded);
            return;
          }
        }
        const SharedTile<f32> tile_memory(k, tile, {from.use(), to.use()});
        from.bind(tile_memory).stage(way == Way::Async ? Staging::Async : Staging::Registers);
        block.sync();
        to.bind(tile_memory).unstage();
      });
}

float padded(Padding padding) {
  switch (padding) {
    case Padding::NegativeZero:
      return -0.0f;
    case Padding::NaN:
      return std::bit_cast<float>(0x7fffffffu);
    case Padding::PositiveInfinity:
      return std::numeric_limits<float>::infinity();
    case Padding::NegativeInfinity:
      return -std::numeric_limits<float>::infinity();
    default:
      return 0.0f;
  }
}

/// Reads every tile of the view on the emulator, and compares with the rules of the host.
void check_tiles(const TensorLayout& view, const Dims& tile, Padding padding, const Dims& dim_map,
                 Way way, std::uint32_t threads = 32, std::string_view target = "sm_80") {
  const Partition rules(view, ptx::Type::f32, tile, padding, dim_map);
  const std::vector<float> memory = test::values(view.bytes(4) / 4, 21);
  const TensorLayout dense = TensorLayout::row_major(tile);
  const auto at = [&](std::size_t i) {
    return i < rules.rank() ? static_cast<std::uint32_t>(rules.tiles()[i]) : 1u;
  };
  std::vector<float> wanted(rules.count() * dense.count(), padded(padding));
  Traversal traversal;
  traversal.kind = Traversal::Kind::ColumnMajor;  // ctaid.x first
  const Partition each(dense, ptx::Type::f32, Dims::filled(rules.rank(), 1));
  for (std::uint64_t n = 0; n < rules.count(); ++n) {
    const Dims index = rules.index_of(n, traversal);
    const TileInfo info = rules.tile(std::span<const std::int64_t>(index.begin(), index.size()));
    for (std::uint64_t e = 0; e < each.count(); ++e) {
      const Dims element = each.index_of(e);
      bool inside = true;
      for (std::size_t i = 0; i < rules.rank(); ++i) inside = inside && element[i] < info.sizes[i];
      if (!inside) continue;
      const std::span<const std::int64_t> place(element.begin(), element.size());
      wanted[n * dense.count() + e] =
          memory[static_cast<std::size_t>(info.view.linear_index(place))];
    }
  }
  std::vector<TileArgument> arguments{std::vector<float>(wanted.size(), kOld), memory};
  const BuiltKernel kernel = tile_reader(view, tile, padding, dim_map, way, threads, target);
  const emulator::Result result =
      test::run_tiles(kernel, {at(0), at(1), at(2)}, threads, arguments);
  INFO(view.text() << " in tiles " << tile.text() << " by " << dim_map.text());
  CHECK(test::findings_of(result) == "");
  CHECK(std::memcmp(arguments[0].memory.data(), wanted.data(), wanted.size() * 4) == 0);
}

}  // namespace

TEST_CASE(
    "falsification 39: tiles of strided views have the right addresses, in every permutation") {
  const TensorLayout view = TensorLayout::strided({5, 9, 6}, {80, 8, 1}, 3);
  for (const Dims& order : {Dims{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    for (const Way way : {Way::Registers, Way::Shared, Way::Async}) {
      check_tiles(view, {2, 4, 8}, Padding::Zero, order, way);
      check_tiles(view.transpose(), {4, 2, 2}, Padding::Zero, order, way);
    }
  }
}

TEST_CASE("tiles of one to three dims, sizes that are no multiples of the tile") {
  for (const Way way : {Way::Registers, Way::Shared, Way::Async}) {
    check_tiles(TensorLayout::row_major({17}), {16}, Padding::Zero, {0}, way);
    check_tiles(TensorLayout::strided({100}, {3}, 1), {64}, Padding::Zero, {0}, way);
    check_tiles(TensorLayout::row_major({33, 17}), {32, 16}, Padding::Zero, {0, 1}, way, 64);
    check_tiles(TensorLayout::column_major({33, 17}), {32, 16}, Padding::Zero, {0, 1}, way, 64);
    check_tiles(TensorLayout::row_major({3, 5, 7}), {2, 2, 4}, Padding::Zero, {0, 1, 2}, way);
    // Fewer elements than threads, and a tile of one element.
    check_tiles(TensorLayout::row_major({5, 3}), {2, 2}, Padding::Zero, {0, 1}, way, 128);
    check_tiles(TensorLayout::row_major({2, 3}), {1, 1}, Padding::Zero, {0, 1}, way);
  }
  // Without cp.async the copy goes through registers.
  check_tiles(TensorLayout::row_major({33, 17}), {32, 16}, Padding::Zero, {0, 1}, Way::Async, 64,
              "sm_75");
}

TEST_CASE("paddings of floats") {
  for (const Padding padding : {Padding::Zero, Padding::NegativeZero, Padding::NaN,
                                Padding::PositiveInfinity, Padding::NegativeInfinity}) {
    for (const Way way : {Way::Registers, Way::Shared, Way::Async}) {
      check_tiles(TensorLayout::row_major({5, 6}), {4, 4}, padding, {0, 1}, way);
    }
  }
}

TEST_CASE("cp.async is used where the target has it") {
  const auto text = [](std::string_view target) {
    return tile_reader(TensorLayout::row_major({33, 17}), {32, 16}, Padding::Zero, {0, 1},
                       Way::Async, 64, target)
        .ptx();
  };
  CHECK(text("sm_80").find("cp.async.ca.shared.global") != std::string::npos);
  CHECK(text("sm_80").find("cp.async.wait_all") != std::string::npos);
  CHECK(text("sm_75").find("cp.async") == std::string::npos);
}

TEST_CASE("elements without padding are poison: the emulator reports their use") {
  const BuiltKernel kernel =
      build_kernel("poison", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
                   [](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
                     TileGroup warp = TileGroup::warp(k);
                     const RegisterTile<f32> loaded =
                         load_tile(warp, TensorView<f32>(in, {20}).tiles({32}), {0});
                     store_tile(warp, TensorView<f32>(out, {32}).tiles({32}), {0}, loaded);
                   });
  std::vector<TileArgument> arguments{std::vector<float>(32), test::values(20, 1)};
  const std::string findings = test::findings_of(test::run_tiles(kernel, {1}, 32, arguments));
  CHECK(findings.find("uninitialized-read") != std::string::npos);
}

namespace {

std::string ptx_of(const Known& known, std::uint64_t alignment, std::int64_t pitch) {
  return build_kernel(
             "vectors", "sm_80",
             params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("rows"),
                    param<u32>("columns")),
             [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows, Value<u32> columns) {
               TileGroup block = TileGroup::block(k, 64);
               const auto view = [&](Ptr<f32> p) {
                 return TensorView<f32>(p, {rows, {columns, known}}, {pitch, 1})
                     .aligned(alignment)
                     .tiles({16, 16});
               };
               store_tile(block, view(out), {0, 0}, load_tile(block, view(in), {0, 0}));
             })
      .ptx();
}

}  // namespace

TEST_CASE(
    "falsification 38: what is known of base, pitch and size decides the vectors of a kernel") {
  CHECK(ptx_of({.divisible_by = 4}, 16, 12).find("ld.global.v4.f32") != std::string::npos);
  CHECK(ptx_of({.divisible_by = 4}, 16, 12).find("st.global.v4.f32") != std::string::npos);
  // A pitch of 40 bytes, a base of 8 bytes, a size divisible by 2: pairs. Anything odd: singles.
  CHECK(ptx_of({.divisible_by = 4}, 16, 10).find("ld.global.v2.f32") != std::string::npos);
  CHECK(ptx_of({.divisible_by = 4}, 8, 12).find("ld.global.v2.f32") != std::string::npos);
  CHECK(ptx_of({.divisible_by = 2}, 16, 12).find("ld.global.v2.f32") != std::string::npos);
  for (const std::string& text : {ptx_of({.divisible_by = 4}, 4, 12), ptx_of({}, 16, 12),
                                  ptx_of({.divisible_by = 4}, 16, 13)}) {
    CHECK(text.find("ld.global.f32") != std::string::npos);
    CHECK(text.find(".v2.") == std::string::npos);
    CHECK(text.find(".v4.") == std::string::npos);
  }
}

TEST_CASE("a size that is known to be a multiple of the tile needs no bounds") {
  CHECK(ptx_of({.divisible_by = 16}, 16, 16).find("setp.lt.and") == std::string::npos);
  CHECK(ptx_of({.divisible_by = 8}, 16, 16).find("setp.lt.and") != std::string::npos);
}

TEST_CASE("the placement of a shared tile is chosen for its accesses and reported") {
  std::string text;
  (void)build_kernel(
      "placed", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
      [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
        TileGroup block = TileGroup::block(k, 256);
        TilePart<f32> from(block, TensorView<f32>(in, {32, 32}).tiles({32, 32}), {0, 0});
        TilePart<f32> to(block, TensorView<f32>(out, {32, 32}).tiles({32, 32}), {0, 0});
        const SharedTile<f32> tile(k, {32, 32}, {from.use(), to.use(true)});
        text = tile.text();
      });
  CHECK(
      text ==
      "tile [32 x 32] of 4-byte elements: rows of 33, 4224 bytes, 8 wavefronts (plain rows: 132)");
}

TEST_CASE("an index outside of the tiles traps where it is checked") {
  const auto kernel = [](bool check) {
    return build_kernel(
        "checked", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("p")),
        [check](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> p) {
          TileGroup warp = TileGroup::warp(k);
          const RegisterTile<f32> loaded = load_tile(
              warp, TensorView<f32>(in, {64}).tiles({32}, Padding::Zero), {p}, {.check = check});
          store_tile(warp, TensorView<f32>(out, {32}).tiles({32}), {0}, loaded);
        });
  };
  const auto status = [&](bool check, std::uint32_t p) {
    std::vector<TileArgument> arguments{std::vector<float>(32), test::values(64, 1), p};
    return test::run_tiles(kernel(check), {1}, 32, arguments).status;
  };
  CHECK(status(true, 1) == emulator::Status::Ok);
  CHECK(status(true, 2) == emulator::Status::Fault);
  // Unchecked, the emulator finds the access: 64 elements are whole tiles, without bounds.
  CHECK(status(false, 2) == emulator::Status::Findings);
}

TEST_CASE("promises about sizes, strides and alignment are checked where asked for") {
  const Known known{.divisible_by = 4, .at_least = 8, .at_most = 16};
  const BuiltKernel kernel = build_kernel(
      "promises", "sm_80",
      params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("columns"),
             param<u32>("pitch")),
      [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> columns, Value<u32> pitch) {
        TileGroup warp = TileGroup::warp(k);
        const auto view =
            TensorView<f32>(in, {4, {columns, known}}, {{pitch, known}, 1}).aligned(16);
        TilePart<f32> part(warp, view.tiles({4, 16}, Padding::Zero), {0, 0}, {.check = true});
        store_tile(warp, TensorView<f32>(out, {4, 16}).aligned(16).tiles({4, 16}), {0, 0},
                   part.load());
      });
  const auto status = [&](std::uint32_t columns, std::uint32_t pitch, std::size_t before) {
    std::vector<TileArgument> arguments{std::vector<float>(64),
                                        TileArgument(test::values(80, 1), before), columns, pitch};
    return test::run_tiles(kernel, {1}, 32, arguments).status;
  };
  CHECK(status(12, 12, 0) == emulator::Status::Ok);
  CHECK(status(16, 16, 4) == emulator::Status::Ok);
  CHECK(status(10, 12, 0) == emulator::Status::Fault);  // not divisible
  CHECK(status(4, 12, 0) == emulator::Status::Fault);   // below the minimum
  CHECK(status(12, 20, 0) == emulator::Status::Fault);  // above the maximum
  CHECK(status(12, 12, 1) == emulator::Status::Fault);  // misaligned
}

TEST_CASE("a size that is known to hold the tile needs no bounds") {
  const auto text = [](const Known& known) {
    return build_kernel("bounds", "sm_80",
                        params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("n")),
                        [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> n) {
                          TileGroup warp = TileGroup::warp(k);
                          const TensorView<f32> view(in, {{n, known}});
                          store_tile(warp, TensorView<f32>(out, {32}).tiles({32}), {0},
                                     load_tile(warp, view.tiles({32}, Padding::Zero), {1}));
                        })
        .ptx();
  };
  CHECK(text({.at_least = 63}).find("setp") != std::string::npos);
  CHECK(text({.at_least = 64}).find("setp") == std::string::npos);
}

TEST_CASE("neighbours of a tensor of whole tiles are padded outside of it") {
  const auto shifted = [](const Dims& shift) {
    const BuiltKernel kernel = build_kernel(
        "shifted", "sm_80", params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in")),
        [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in) {
          TileGroup warp = TileGroup::warp(k);
          const TensorView<f32> view(in, {8, 8});
          TilePart<f32> part(warp, view.tiles({8, 8}, Padding::Zero), {0, 0});
          part.of(TensorView<f32>(out, {8, 8}).tiles({8, 8})).store(part.load_shifted(shift));
        });
    const std::vector<float> in = test::values(64, 5);
    std::vector<float> wanted(64);
    for (std::int64_t n = 0; n < 64; ++n) {
      const std::int64_t i = n / 8 + shift[0];
      const std::int64_t j = n % 8 + shift[1];
      const bool inside = i >= 0 && i < 8 && j >= 0 && j < 8;
      wanted[static_cast<std::size_t>(n)] = inside ? in[static_cast<std::size_t>(i * 8 + j)] : 0.0f;
    }
    std::vector<TileArgument> arguments{std::vector<float>(64, kOld), in};
    const std::string findings = test::findings_of(test::run_tiles(kernel, {1}, 32, arguments));
    CHECK(findings == "");
    CHECK(arguments[0].memory == wanted);
  };
  for (const Dims& shift : {Dims{-1, 0}, Dims{1, 0}, Dims{0, -1}, Dims{0, 1}, Dims{2, -3}}) {
    INFO(shift.text());
    shifted(shift);
  }
}

TEST_CASE("cp.async of 16 bytes fills in zeros at the edges") {
  const auto kernel = [](Staging staging) {
    return build_kernel(
        "async", "sm_80",
        params(param<Ptr<f32>>("out"), param<Ptr<f32>>("in"), param<u32>("rows"),
               param<u32>("columns")),
        [&](KernelBuilder& k, Ptr<f32> out, Ptr<f32> in, Value<u32> rows, Value<u32> columns) {
          TileGroup block = TileGroup::block(k, 64);
          const TensorView<f32> view(in, {rows, {columns, {.divisible_by = 4}}}, {12, 1});
          const SharedTile<f32> tile(k, {16, 32});
          load_tile(block, view.aligned(16).tiles({16, 32}, Padding::Zero), {0, 0}, tile, staging);
          block.sync();
          store_tile(block, TensorView<f32>(out, {16, 32}).aligned(16).tiles({16, 32}), {0, 0},
                     tile);
        });
  };
  CHECK(kernel(Staging::Async).ptx().find("cp.async.cg.shared.global") != std::string::npos);
  // A row pitch of 48 bytes, 11 rows of 8 columns.
  const std::vector<float> in = test::values(11 * 12, 3);
  std::vector<float> wanted(16 * 32);
  for (std::size_t i = 0; i < 11; ++i) {
    for (std::size_t j = 0; j < 8; ++j) wanted[i * 32 + j] = in[i * 12 + j];
  }
  for (const Staging staging : {Staging::Registers, Staging::Async}) {
    std::vector<TileArgument> arguments{std::vector<float>(16 * 32, kOld), in, 11u, 8u};
    CHECK(test::findings_of(test::run_tiles(kernel(staging), {1}, 64, arguments)) == "");
    CHECK(arguments[0].memory == wanted);
  }
}

namespace {

/// What a kernel with a row-major view [rows x 64] refuses.
template <class Body>
std::string refused(const Body& body) {
  return refusal([&] {
    (void)build_kernel("refused", "sm_80", params(param<Ptr<f32>>("in"), param<u32>("rows")),
                       [&](KernelBuilder& k, Ptr<f32> in, Value<u32> rows) { body(k, in, rows); });
  });
}

}  // namespace

TEST_CASE("views and tiles of kernels are refused by the rules of the host") {
  using K = KernelBuilder;
  using P = Ptr<f32>;
  using N = Value<u32>;
  CHECK(
      refused([](K&, P in, N) {
        (void)TensorView<f32>(in, {4, 0});
      }) ==
      "view: view [4, 0]:[0, 1]+0: dim 1 has size 0; rule: sizes are 1 or more; cure: make a size "
      "dynamic that may be 0 when the kernel runs");
  CHECK(refused([](K&, P in, N rows) {
          (void)TensorView<f32>(in, {rows, 4}, {0, 1});
        }) ==
        "view: view [?, 4]:[0, 1]+0: dim 0 has stride 0; rule: strides are 1 or more; cure: repeat "
        "elements with broadcast(), which gives a read-only view");
  CHECK(refused([](K&, P in, N rows) {
          (void)TensorView<f32>(in, {rows, 4}, {1});
        }).find("2 sizes and 1 stride") != std::string::npos);
  CHECK(refused([](K&, P in, N rows) {
          (void)TensorView<f32>(in, {2, rows, rows});
        }) ==
        "view: a row-major view whose stride is a product of sizes of the launch; rule: a kernel "
        "gets such strides as parameters, since the product may not fit 32 bits; cure: give the "
        "strides");
  CHECK(refused([](K&, P in, N rows) {
          (void)TensorView<f32>(in, {{rows, {.at_least = 9, .at_most = 8}}, 4});
        }) ==
        "view: a number that is divisible by 1, at least 9 and at most 8; rule: some number is all "
        "of this; cure: correct what is known of it");
  CHECK(refused([](K&, P in, N rows) { (void)TensorView<f32>(in, {rows}).aligned(2); }) ==
        "view: a view of elements of 4 bytes aligned to 2 bytes; rule: an alignment is a power of "
        "two and at least an element; cure: use 16 for the widest accesses");
  CHECK(refused([](K&, P in, N rows) {
          (void)TensorView<f32>(in, {rows, 64}).tiles({3, 4});
        }).find("tile-limits: tile 'tile' of shape [3, 4]: dim 0 is 3") == 0);
  CHECK(refused([](K&, P in, N rows) {
          (void)TensorView<f32>(in, {rows}).transpose();
        }).find("use a view of rank 2 or more") != std::string::npos);
  CHECK(refused([](K&, P in, N) {
          (void)TensorView<f32>(in, {8, 8}).slice_dim(0, 4, 5);
        }).find("a slice of 5 elements from 4 in dim 0") != std::string::npos);
}

TEST_CASE("parts of tiles that are refused") {
  using K = KernelBuilder;
  using P = Ptr<f32>;
  using N = Value<u32>;
  const auto part = [](const detail::Extents& index, const TileOptions& options) {
    return refused([&](K& k, P in, N rows) {
      TileGroup block = TileGroup::block(k, 64);
      TilePart<f32>(block, TensorView<f32>(in, {rows, 64}).tiles({16, 16}), index, options);
    });
  };
  CHECK(
      part({0}, {}) ==
      "partition: 1 number for a tile of rank 2; rule: a tile is named by one index for each dim; "
      "cure: give 2 numbers");
  CHECK(
      part({0, -1}, {}) ==
      "out-of-bounds: tile index -1 in dim 1; rule: coordinates fit 32 bits; cure: name a tile of "
      "the tensor");
  CHECK(
      part({0, 0}, {.along = 2}) ==
      "partition: a part that moves along dim 2 of a tile of rank 2; rule: it moves along a dim of "
      "the tile; cure: name dim 0 to 1");
  CHECK(part({0, 0}, {.each = {3, 1}}) ==
        "partition: [3, 1] elements of a tile [16, 16] for each thread; rule: a thread has a power "
        "of two of elements along each dim, at most the tile's; cure: change the parts");
  CHECK(
      refused([](K& k, P, N) { (void)TileGroup::block(k, 96); }) ==
      "block-size: a group of 96 threads; rule: a block that works on tiles has a power of two of "
      "threads, 32 to 1024; cure: use 64");
  CHECK(
      refused([](K& k, P in, N rows) {
        TileGroup block = TileGroup::block(k, 64);
        const SharedTile<f32> tile(k, {16, 8});
        load_tile(block, TensorView<f32>(in, {rows, 64}).tiles({16, 16}), {0, 0}, tile);
      }) ==
      "partition: a tile [16, 16] and a shared tile [16, 8]; rule: both have the same shape; cure: "
      "make the shared tile of the tile's shape");
  CHECK(refused([](K& k, P in, N rows) {
          TileGroup block = TileGroup::block(k, 64);
          TilePart<f32>(block, TensorView<f32>(in, {rows, 64}).tiles({16, 16}), {0, 0}).stage();
        }).find("bind() names the shared tile") != std::string::npos);
  CHECK(refused([](K& k, P in, N rows) {
          TileGroup block = TileGroup::block(k, 64);
          TilePart<f32>(block, TensorView<f32>(in, {rows, 64}).tiles({16, 16}), {0, 0}).next();
        }).find("next() of a part that stays") != std::string::npos);
}

TEST_CASE("stores through broadcast and overlapping views are refused") {
  using K = KernelBuilder;
  const auto stored = [](const auto& view) {
    return refused([&](K& k, Ptr<f32> in, Value<u32> rows) {
      TileGroup block = TileGroup::block(k, 64);
      TilePart<f32> part(block, view(in, rows).tiles({16, 16}), {0, 0});
      part.store(part.load());
    });
  };
  CHECK(stored([](Ptr<f32> in, Value<u32>) {
          return TensorView<f32>(in, {1, 64}).broadcast({16, 64});
        }) ==
        "view: view [16, 64]:[0, 1]+0 read-only: store_tile writes through it; rule: a broadcast "
        "view is read-only; cure: write to the view that was broadcast");
  CHECK(stored([](Ptr<f32> in, Value<u32>) {
          return TensorView<f32>(in, {16, 16}, {1, 1});
        }).find("two indices name one element") != std::string::npos);
  CHECK(stored([](Ptr<f32> in, Value<u32> rows) {
          return TensorView<f32>(in, {rows, 16}, {16, 1});
        }) == "no error");
  CHECK(
      refused([](K& k, Ptr<f32> in, Value<u32> rows) {
        TileGroup block = TileGroup::block(k, 64);
        TilePart<f32> part(block, TensorView<f32>(in, {rows, 64}).tiles({16, 16}), {0, 0});
        part.store(RegisterTile<f32>{});
      }) ==
      "partition: a thread has 4 elements of the tile, and 0 are stored; rule: a store takes what "
      "a load gives; cure: pass one value for each element");
}
