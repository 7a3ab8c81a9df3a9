// src/qa/lines/claims_tiles.cpp - claims 1 to 15: tile constraints
#include <algorithm>
#include <array>
#include <chrono>

#include "ptxgen/builder.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/check/tile.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/claim_row.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace claims_tiles {
namespace {

using tile::Tile;

Tile shaped(std::vector<std::int64_t> shape, ptx::Type type = ptx::Type::f32) {
  Tile tile;
  tile.name = "t";
  tile.element = type;
  tile.shape = std::move(shape);
  return tile;
}

bool refused_before_code(const Tile& tile) {
  try {
    tile::require_valid(tile);
  } catch (const Error& error) {
    return error.stage == Stage::Build && error.code == "tile-limits";
  }
  return false;
}

Outcome invalid_shapes(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::int64_t kBad[] = {0, -1, -8, 3, 5, 6, 7, 9, 12, 48, 96, 100, 255, 257, 1000, 4095};
  for (const std::int64_t bad : kBad) {
    const std::int64_t dim = fixture.changed() ? 8 : bad;
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{dim}, {dim, 8}, {8, dim}, {dim, dim}, {2, dim, 4}}) {
      tally.check(!tile::validate(shaped(shape)).empty(), "a dim of {} is accepted", bad);
      tally.check(refused_before_code(shaped(shape)), "code for a dim of {} is not refused", bad);
    }
  }
  // Products beyond 2^24, and beyond 64 bits.
  tile::TileCaps wide;
  wide.dim = {1u << 30, 1u << 30, 1u << 30};
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{1 << 13, 1 << 12}, {1 << 30, 1 << 30, 1 << 30}}) {
    tally.check(!tile::validate(shaped(shape), wide).empty(), "a product above 2^24 is accepted");
  }
  tally.check(tile::validate(shaped({16, 16})).empty(), "16 x 16 is refused");
  tally.figure("100 % of {} invalid shapes are refused, each before any PTX",
               std::size(kBad) * 5 + 2);
  return tally.outcome(Verdict::Supported);
}

// n elements of y are x + 1; beyond n threads either have a false predicate, or branch.
constexpr std::string_view kPredicated = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry edge(.param .u64 y, .param .u64 x, .param .u32 n)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [y];
  ld.param.u64 %rd2, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r5, %r3, %r4, %r2;
  setp.lt.u32 %p1, %r5, %r1;
  mad.wide.u32 %rd3, %r5, 4, %rd2;
  mov.f32 %f1, 0f00000000;
  @%p1 ld.global.f32 %f1, [%rd3];
  add.rn.f32 %f2, %f1, 0f3F800000;
  mad.wide.u32 %rd4, %r5, 4, %rd1;
  @%p1 st.global.f32 [%rd4], %f2;
  ret;
}
)";

emulator::Result run_edge(Tally& tally, Fixture& fixture, const ptx::Module& module,
                          std::uint32_t elements, std::uint32_t threads) {
  Emulation emulation(gpu_of(fixture.device().info()));
  const std::vector<float> x(elements, 2.0f);
  const std::uint64_t y = emulation.allocate(4 * std::uint64_t{elements});
  LaunchGeometry geometry;
  geometry.grid = {(elements + threads - 1) / threads, 1, 1};
  geometry.block = {threads, 1, 1};
  emulator::Result result = emulation.launch(module, geometry, {y, emulation.upload(x), elements});
  tally.check(result.status == emulator::Status::Ok, "{}", first_error(result));
  const std::vector<float> sums = emulation.download<float>(y, elements);
  tally.check(std::ranges::count(sums, 3.0f) == elements, "not every element is right");
  return result;
}

// A branch around the load, in place of its predicate.
void branch_around_load(ptx::Module& m) {
  ptx::Function& f = m.functions.front();
  const std::size_t load = find_statement(f, ptx::Op::ld, 3);
  if (load == f.body.size()) return;
  remove_statement(m, ptx::Op::ld, 3);
  insert_before(m, load, "@!%p1 bra beyond_edge;\nld.global.f32 %f1, [%rd3];\nbeyond_edge:\n");
}

Outcome divergence_of_edges(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module = fixture.edited(ptx::parse(kPredicated));
  for (const std::uint32_t elements : {48u, 50u, 96u, 100u, 127u, 1000u}) {
    const emulator::Result result = run_edge(tally, fixture, module, elements, 64);
    tally.check(result.counters.divergent_branches == 0, "{} elements: {} divergent branches",
                elements, result.counters.divergent_branches);
  }
  tally.figure("0 divergent branches for 48, 50, 96, 100, 127 and 1000 elements in tiles of 64");
  return tally.outcome(Verdict::Falsified);
}

Outcome same_on_all_targets(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t shapes = 0;
  for (const std::int64_t rows : {0, 1, 3, 8, 64, 300}) {
    for (const std::int64_t columns : {1, 2, 7, 128, 512}) {
      ++shapes;
      std::vector<std::size_t> verdicts;
      for (const ptx::Target& target : ptx::targets()) {
        gates::KernelTiles kernel;
        kernel.kernel = "k";
        kernel.tiles = {shaped({rows, columns})};
        // Bytes of shared memory are another layer, whose limits are the target's own.
        if (fixture.changed()) kernel.dynamic_shared_bytes = 150000;
        verdicts.push_back(gates::validate(kernel, target).size());
      }
      tally.check(std::ranges::count(verdicts, verdicts.front()) ==
                      static_cast<std::ptrdiff_t>(verdicts.size()),
                  "{} x {} is judged differently by targets", rows, columns);
    }
  }
  tally.figure("{} shapes on {} targets", shapes, ptx::targets().size());
  return tally.outcome(Verdict::Supported);
}

Outcome small_tiles(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module = ptx::parse(kPredicated);
  const auto cost = [&](std::uint32_t tile) {
    return run_edge(tally, fixture, module, 1024, tile).counters.warp_instructions;
  };
  const std::uint64_t four = cost(fixture.changed() ? 32 : 4);
  const std::uint64_t wide = cost(32);
  tally.check(four * 10 >= wide * 12, "{} instructions of warps with tiles of 4, {} with 32", four,
              wide);
  tally.figure(
      "1024 elements: {} instructions of warps with tiles of 4, {} with 32; the time needs "
      "a GPU",
      four, wide);
  return tally.outcome(Verdict::Supported);
}

// Loads every 64th element: the compiler's own strength reduction would be a shift.
Outcome addresses(Fixture& fixture, const Line&) {
  Tally tally;
  const ptx::Module module =
      fixture.edited(build_kernel("strided_copy", fixture.target().name,
                                  params(param<Ptr<f32>>("y"), param<Ptr<f32>>("x")),
                                  [](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x) {
                                    const Value<u32> i = k.tid_x();
                                    const Value<f32> value = k.ld_global(x + i);
                                    k.st_global(y + i, value);
                                  })
                         .module());
  const ptx::Function& function = module.functions.front();
  const std::size_t one = count_statements(function, ptx::Op::mad_wide);
  const std::size_t two =
      count_statements(function, ptx::Op::mul_wide) + count_statements(function, ptx::Op::shl);
  tally.check(one == 2 && two == 0, "{} addresses by one mad, {} by a product or shift alone", one,
              two);
  tally.figure("{} addresses, one mad.wide each; a shift needs an addition after it", one);
  return tally.outcome(Verdict::Falsified);
}

Outcome all_types(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr ptx::Type kTypes[] = {ptx::Type::f32, ptx::Type::f16, ptx::Type::bf16, ptx::Type::f64,
                                  ptx::Type::u8,  ptx::Type::s32, ptx::Type::u64};
  for (const std::int64_t rows : {0, 1, 2, 3, 64, 256, 300}) {
    const std::size_t expected = tile::validate(shaped({rows, 16})).size();
    for (const ptx::Type type : kTypes) {
      const std::int64_t dim = fixture.changed() && type == ptx::Type::f16 ? rows + 5 : rows;
      tally.check(tile::validate(shaped({dim, 16}, type)).size() == expected,
                  "{} x 16 is judged differently for one type", rows);
    }
  }
  tally.figure("7 shapes of {} element types", std::size(kTypes));
  return tally.outcome(Verdict::Supported);
}

Outcome messages(Fixture& fixture, const Line&) {
  Tally tally;
  struct Case {
    std::vector<std::int64_t> shape;
    std::string_view value, limit;
  };
  const Case cases[] = {
      {{48, 8}, "48", "power of two"}, {{8, 0}, "0", "at least 1"}, {{512, 8}, "512", "256"}};
  for (const Case& one : cases) {
    const std::vector<Finding> findings =
        tile::validate(shaped(fixture.changed() ? std::vector<std::int64_t>{3, 3} : one.shape));
    if (!tally.check(!findings.empty(), "{} is accepted", one.value)) continue;
    std::string text = findings.front().message;
    for (const std::string& detail : findings.front().details) text += "\n" + detail;
    tally.check(text.find(one.value) != text.npos, "the value {} is not in '{}'", one.value, text);
    tally.check(text.find(one.limit) != text.npos, "the limit '{}' is not in '{}'", one.limit,
                text);
    tally.check(text.find("dim") != text.npos, "the dim is not in '{}'", text);
  }
  return tally.outcome(Verdict::Supported);
}

// A kernel that keeps `count` values alive; a tile of as many elements is legal.
ptx::Module many_values(std::string_view target, std::uint32_t count) {
  return build_kernel("many", target, params(param<Ptr<f32>>("y"), param<Ptr<f32>>("x")),
                      [&](KernelBuilder& k, Ptr<f32> y, Ptr<f32> x) {
                        std::vector<Value<f32>> values;
                        for (std::uint32_t i = 0; i < count; ++i) {
                          values.push_back(k.ld_global(x + i));
                        }
                        for (std::uint32_t i = 0; i < count; ++i) {
                          k.st_global(y + (count - 1 - i), values[count - 1 - i]);
                        }
                      })
      .module();
}

Outcome pressure(Fixture& fixture, const Line&) {
  Tally tally;
  const std::uint32_t count = fixture.changed() ? 8 : 512;
  tally.check(tile::validate(shaped({512 / 2, 2})).empty(), "a tile of 512 elements is refused");
  const ptx::Module module = many_values(fixture.target().name, count);
  const std::vector<Finding> notes = gates::performance_notes(module);
  const auto note = std::ranges::find(notes, "register-pressure", &Finding::rule);
  tally.check(note != notes.end(),
              "a legal tile of 512 elements in one thread needs no more "
              "registers than a thread may have");
  if (note != notes.end()) tally.figure("a legal tile of 512 elements: {}", note->message);
  return tally.outcome(Verdict::Falsified);
}

Outcome limit_is_bounded(Fixture& fixture, const Line&) {
  Tally tally;
  tile::TileCaps caps;
  caps.dim = {1u << 30, 1u << 30, 1u << 30};
  const std::int64_t columns = fixture.changed() ? 1 << 13 : 1 << 12;
  tally.check(tile::validate(shaped({1 << 12, columns}), caps).empty(),
              "a tile of exactly 2^24 elements is refused");
  tally.check(!tile::validate(shaped({1 << 12, 2 * columns}), caps).empty(),
              "a tile above the limit is accepted");
  // The largest block and shared array that a target has, as a kernel.
  const ptx::Module module = fixture.build(GemvCoalesced{8192, 8192});
  const std::size_t statements = module.functions.front().body.size();
  tally.check(statements < 200, "the code of the largest shape has {} statements", statements);
  tally.figure("{} statements for 8192 x 8192, as many as for any shape", statements);
  return tally.outcome(Verdict::Supported);
}

constexpr Line kLines[] = {
    on_gpu("1", "tiles of powers of two have 10 % more throughput",
           "times of tiles of 48, 64, 96 and 128 with the same bytes"),
    decided_claim("2", "the limit of elements prevents spills",
                  "a legal tile of 512 elements, held by one thread: register pressure of its code",
                  Means::Unit, pressure, {"the thread holds 8 values"}),
    on_gpu("3", "4096 x 1 and 64 x 64 differ by less than 5 %", "times of both"),
    decided_claim("4", "invalid shapes are refused before any code",
                  "an exhaustive list of invalid shapes, ranks 1 to 3", Means::Unit, invalid_shapes,
                  {"the invalid dims are 8"}),
    decided_claim("5", "sizes that are no powers of two cause divergence",
                  "divergent branches of a kernel with predicated edges", Means::Emulator,
                  divergence_of_edges, {"the edge is a branch", branch_around_load, nullptr}),
    decided_claim("6", "the rules of shapes are the same for all backends",
                  "the shape layer on every target", Means::Unit, same_on_all_targets,
                  {"150,000 bytes of shared memory, a rule of resources, are asked for, too"}),
    decided_claim("7", "tiles of fewer than 8 elements are 20 % slower",
                  "instructions of warps for 1024 elements in tiles of 4 and of 32",
                  Means::Emulator, small_tiles, {"both tiles have 32 elements"}),
    on_gpu("8", "tiles of 1 MB have 50 % more L1 misses than those of 32 KB", "a hardware counter"),
    on_gpu("9", "misses of the instruction cache follow the size of the code",
           "a hardware counter"),
    decided_claim("10", "a shift is the better address of a power of two",
                  "instructions for each address that the builder emits", Means::Unit, addresses,
                  {"a shift is added to the code",
                   [](ptx::Module& m) {
                     insert_before(m, m.functions.front().body.size() - 1,
                                   ".reg .b32 shifted;\nshl.b32 shifted, 1, 2;\n");
                   },
                   nullptr}),
    decided_claim("11", "tiles of f16 and bf16 obey the same rules", "a sweep of types",
                  Means::Unit, all_types, {"tiles of f16 have five rows more"}),
    decided_claim("12", "no compiler hangs at the limit",
                  "the limit is accepted, twice as much refused; code does not grow with the shape",
                  Means::Unit, limit_is_bounded, {"the accepted tile is twice as large"}),
    decided_claim("13", "messages name dim, value and limit", "three refusals by their text",
                  Means::Unit, messages, {"all are about 3 x 3"}),
    tested("14", "batched operations obey the limits", "each product of a batch against a loop",
           "case falsification 43"),
    on_gpu("15", "without the constraints kernels are 5 % slower", "as claim 1"),
};

}  // namespace
}  // namespace claims_tiles

std::span<const Line> tile_claims() { return claims_tiles::kLines; }

}  // namespace ptxgen::qa
