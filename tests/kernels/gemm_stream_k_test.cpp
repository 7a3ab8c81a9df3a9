// tests/kernels/gemm_stream_k_test.cpp - tiles that blocks divide evenly
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/gemm/tile_division.hpp"
#include "launcher/rig.hpp"
#include "ptx/dice.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "support/half.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// A piece as a worker has it.
struct Piece {
  std::uint32_t worker, tile, first, units, complete, first_worker, last_worker;
};
constexpr std::uint32_t kMaxPieces = 256;  // of a worker

// Each thread is a worker and writes its pieces, and how many they are in the first word.
ptx::Module division_kernel(const gemm::TileShares& shares) {
  KernelBuilder k("division", "sm_80");
  const auto out = k.param<Ptr<u32>>("out");
  const auto tiles = k.param<u32>("tiles");
  const Value<u32> worker = k.tid_x();
  k.if_(worker < shares.workers, [&] {
    const auto own = out + k.mul_lo(worker, 7 * kMaxPieces + 1);
    auto count = k.var<u32>(0u);
    gemm::TileDivision division(k, tiles, worker, shares);
    division.for_each_piece([&](const gemm::TilePiece& piece) {
      const auto to = own + k.mad_lo(count, 7u, 1u);
      const Value<u32> complete = k.selp(k.constant<u32>(1), 0u, piece.complete);
      const gemm::TileWorkers workers = division.workers_of(piece.tile);
      const Value<u32> fields[] = {worker,   piece.tile,    piece.first, piece.units,
                                   complete, workers.first, workers.last};
      for (std::uint32_t i = 0; i < 7; ++i) k.st(to + i, fields[i]);
      count += 1u;
    });
    k.st(own, count.read());
  });
  return k.build().module();
}

std::vector<Piece> pieces_of(const gemm::TileShares& shares) {
  emulator::Device device(emulator::default_gpu("sm_80"));
  emulator::Program program = emulator::Program::load(device, division_kernel(shares));
  const std::size_t words = shares.workers * (7 * kMaxPieces + 1);
  const std::uint64_t out = device.allocate(4 * words, "out");
  struct {
    std::uint64_t out;
    std::uint32_t tiles;
  } parameters{out, static_cast<std::uint32_t>(shares.tiles)};
  emulator::Launch launch;
  launch.kernel = "division";
  launch.block = {(shares.workers + 31) / 32 * 32, 1, 1};
  launch.parameters = std::as_bytes(std::span(&parameters, 1)).first(12);
  CHECK(emulator::run(program, launch).findings.empty());
  std::vector<std::uint32_t> written(words);
  device.read(out, std::as_writable_bytes(std::span(written)));
  std::vector<Piece> all;
  for (std::uint32_t worker = 0; worker < shares.workers; ++worker) {
    const std::uint32_t* own = written.data() + worker * (7 * kMaxPieces + 1);
    for (std::uint32_t i = 0; i < *own; ++i) {
      Piece piece;
      std::memcpy(&piece, own + 1 + 7 * i, sizeof piece);
      all.push_back(piece);
    }
  }
  return all;
}

// Undivided tiles that the worker has before its first part of a divided one, and after its last.
struct Undivided {
  std::uint64_t before = 0, after = 0;
  bool divided = false;
};
Undivided undivided_of(const gemm::TileShares& shares, const std::vector<Piece>& pieces,
                       std::uint32_t worker) {
  Undivided counts;
  for (const Piece& piece : pieces) {
    if (piece.worker != worker) continue;
    if (piece.tile < shares.divided()) {
      counts.divided = true;
      counts.after = 0;
    } else {
      counts.before += counts.divided ? 0 : 1;
      ++counts.after;
    }
  }
  return counts;
}

// A rank has its undivided tiles before the divided ones, and none ends with a divided one if there
// are others.
void check_ranks(const gemm::TileShares& shares, const std::vector<Piece>& pieces) {
  for (std::uint32_t worker = 0; worker < shares.workers; ++worker) {
    const Undivided counts = undivided_of(shares, pieces, worker);
    if (!counts.divided) continue;
    CHECK(counts.before == shares.before(worker / shares.workers_of_rank()));
    CHECK((counts.after != 0) == (shares.undivided() != 0));
  }
}

// Every unit has one worker, those of a tile follow each other, and no worker has more than
// `largest`.
void check_division(const gemm::TileShares& shares) {
  const std::vector<Piece> pieces = pieces_of(shares);
  INFO(shares.tiles << " tiles of " << shares.units << " units, " << shares.workers
                    << " workers of " << shares.ranks << " ranks");
  check_ranks(shares, pieces);
  std::vector<std::uint32_t> owner(shares.tiles * shares.units, ~0u);
  std::vector<std::uint64_t> of_worker(shares.workers), parts(shares.tiles);
  std::size_t twice = 0;
  for (const Piece& piece : pieces) {
    REQUIRE(piece.first + piece.units <= shares.units);
    CHECK(piece.complete == (piece.units == shares.units ? 1 : 0));
    of_worker[piece.worker] += piece.units;
    ++parts[piece.tile];
    for (std::uint32_t i = 0; i < piece.units; ++i) {
      std::uint32_t& one = owner[piece.tile * shares.units + piece.first + i];
      twice += one == ~0u ? 0 : 1;
      one = piece.worker;
    }
  }
  CHECK(twice == 0);
  CHECK(std::ranges::count(owner, ~0u) == 0);
  for (const Piece& piece : pieces) {
    if (piece.complete != 0) continue;
    CHECK(piece.first_worker == owner[piece.tile * shares.units]);
    CHECK(piece.last_worker == owner[(piece.tile + 1) * shares.units - 1]);
    CHECK(parts[piece.tile] == piece.last_worker - piece.first_worker + 1);
    CHECK(parts[piece.tile] <= shares.parts());
  }
  const double largest = static_cast<double>(*std::ranges::max_element(of_worker)) / shares.units;
  CHECK(largest == Approx(shares.of(0)));
  for (std::uint32_t worker = 0; worker < shares.workers; ++worker) {
    CHECK(shares.of(worker) * shares.units == Approx(static_cast<double>(of_worker[worker])));
  }
}

}  // namespace

TEST_CASE("stream-K: every unit of every tile has one worker, and the shares are even") {
  check_division({1, 1, 1});
  check_division({3, 7, 2});    // more workers than units: some have nothing
  check_division({1, 5, 100});  // a tile for all
  check_division({12, 4, 3});   // undivided tiles alone
  check_division({13, 4, 3});
  check_division({5, 4, 1});       // units that are tiles
  check_division({67, 10, 8, 2});  // undivided tiles for all that a rank has before
  check_division({35, 10, 8, 2});  // and for one of them
  check_division({85, 8, 3, 3});
  Dice dice(seed());
  for (int i = 0; i < count(3, 60); ++i) {
    const auto drawn = [&](std::uint64_t max) {
      return static_cast<std::uint32_t>(1 + dice.bits() % max);
    };
    check_division({drawn(150), drawn(40), drawn(20), drawn(3)});
  }
}

namespace {

std::vector<std::uint16_t> integers(std::size_t count, int modulus) {
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    const int value = static_cast<int>(i * 7 % static_cast<std::size_t>(modulus)) - modulus / 2;
    values.push_back(float_to_f16(static_cast<float>(value)));
  }
  return values;
}

template <class Kernel>
std::vector<float> launched(const Rig& rig, const Kernel& kernel) {
  const GemmProblem& p = kernel.problem;
  const Buffer<f16> a(rig.context, integers(p.elements_a(), 17));
  const Buffer<f16> b(rig.context, integers(p.elements_b(), 19));
  const Buffer<f32> c(rig.context, std::vector<float>(p.elements_c(), 7.0f));
  rig.launcher.launch(kernel, {.c = c, .a = a, .b = b}, rig.stream);
  rig.stream.synchronize();
  return read(c);
}

}  // namespace

TEST_CASE("stream-K: one module serves every number of rows, launch after launch") {
  const Rig rig;
  GemmMma kernel;
  kernel.tile = GemmTile::t16x64x32;
  kernel.stages = 2;
  kernel.blocks = 3;
  // 1, 2, 3 and 5 tiles for three blocks; the tickets are 0 again after each.
  for (const std::uint32_t m : {1u, 17u, 48u, 80u, 17u}) {
    kernel.problem = {.m = m, .n = 40, .k = 192, .transpose_b = true};
    GemmMma undivided = kernel;
    undivided.blocks = 0;
    INFO(m << " rows");
    CHECK(launched(rig, kernel) == launched(rig, undivided));  // sums of integers are exact
  }
  CHECK(rig.launcher.cache().statistics().compiles == 2);
}

TEST_CASE("stream-K: plans that divide nothing are refused by name") {
  const auto refusal = [](const auto& kernel, std::string_view target) {
    const Error error = error_of([&] { static_cast<void>(kernel.build(ptx::target(target))); });
    return error.code + ": " + error.message;
  };
  GemmMma mma;
  mma.blocks = 8;
  mma.problem.k = 160;
  CHECK(refusal(mma, "sm_80") ==
        "bad-plan: blocks is 8 with k = 160, 3 stages and 1 splits; it may be 0, or up to 4096 "
        "where k is a multiple of 96 (the terms of all stages), splits is 1, and k / 96 * blocks "
        "is below 2^31");
  mma.problem.k = 192;
  mma.splits = 2;
  CHECK(refusal(mma, "sm_80").starts_with("bad-plan: blocks is 8 with k = 192, 3 stages and 2 "));
  GemmWgmma wgmma;
  wgmma.stream_k = true;
  CHECK(refusal(wgmma, "sm_90a") ==
        "bad-plan: stream_k with 0 blocks and 8 steps; it needs blocks, and blocks * steps below "
        "2^31");
}

TEST_CASE("stream-K assembles without spills, and its wgmma are not serialised") {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available())
    return test::skip("no assembler: install the CUDA 13 toolkit's nvJitLink or ptxas");
  const auto check_assembly = [&](const auto& kernel, const char* target, std::uint32_t registers) {
    AssembleOptions options;
    options.target = target;
    const Assembly result = assembler.assemble(kernel.build(ptx::target(target)).ptx(), options);
    INFO(result.log);
    std::printf("%s for %s: %u registers\n", to_text(GemmKernel(kernel)).c_str(), target,
                static_cast<unsigned>(result.registers));
    CHECK(result.spill_stores == 0);
    CHECK(result.spill_loads == 0);
    CHECK(static_cast<std::uint32_t>(result.registers) <= registers);
    CHECK(result.log.find("serialized") == std::string::npos);
  };
  GemmMma mma;
  mma.stages = 2;
  mma.blocks = 264;
  check_assembly(mma, "sm_80", 255);
  if (!full()) return;  // the other takes as long again
  GemmWgmma wgmma;
  wgmma.blocks = 132;
  wgmma.cluster = 2;
  wgmma.stream_k = true;
  check_assembly(wgmma, "sm_90a", 168);
}

TEST_CASE("stream-K is planned where the prediction says that it pays") {
  const auto best = [](const GemmProblem& problem, const char* name) {
    return rank_gemm_plans(problem, *ptx::find_gpu(name)).front();
  };
  const auto divides = [](const GemmKernel& kernel) {
    const auto* mma = std::get_if<GemmMma>(&kernel);
    const auto* wgmma = std::get_if<GemmWgmma>(&kernel);
    return (mma != nullptr && mma->blocks != 0) || (wgmma != nullptr && wgmma->stream_k);
  };
  // 1024 tiles of 128 x 128 on 108 SMs are 9.5 waves; on 128 SMs they are 8.
  const GemmProblem cube{.m = 4096, .n = 4096, .k = 4096};
  CHECK(divides(best(cube, "a100").kernel));
  CHECK_FALSE(divides(best(cube, "rtx4090").kernel));
  // What is chosen is not slower than the same plan without the division.
  for (const ptx::Gpu& gpu : ptx::gpus()) {
    for (const std::uint32_t m : {100u, 1000u, 3000u}) {
      const GemmCandidate one = rank_gemm_plans({.m = m, .n = 4096, .k = 2048}, gpu).front();
      if (!divides(one.kernel)) continue;
      GemmKernel other = one.kernel;
      if (auto* mma = std::get_if<GemmMma>(&other)) mma->blocks = 0;
      if (auto* wgmma = std::get_if<GemmWgmma>(&other)) wgmma->stream_k = false;
      const double us =
          std::visit([&](const auto& kernel) { return predict(kernel, gpu).us; }, other);
      INFO(gpu.name << ", " << m << " rows: " << to_text(one.kernel));
      CHECK(one.prediction.us <= us);
    }
  }
}
