// tests/kernels/gemv_plan_test.cpp - what follows from a GEMV plan
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "kernels/gemv/emit.hpp"
#include "kernels/gemv/partition.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;

namespace {

GemvProblem problem(std::uint32_t k, std::uint32_t n, GemvLayout layout = GemvLayout::T,
                    ElementType weights = ElementType::f32) {
  GemvProblem p;
  p.k = k;
  p.n = n;
  p.layout = layout;
  p.weights = weights;
  return p;
}

// One warp, one row of k and 32 outputs a step: steps are k, strips are n / 32.
GemvPlan plain(std::uint32_t steps, std::uint32_t strips, std::uint32_t blocks,
               std::uint32_t chunk_steps = 0) {
  GemvPlan plan;
  plan.problem = problem(steps, 32 * strips);
  plan.load_bytes = 4;
  plan.warps_out = 1;
  plan.unroll = 1;
  plan.blocks = blocks;
  plan.chunk_steps = chunk_steps;
  return plan;
}

// The blocks that have units of each strip, and the place of each one's sums, found by walking.
struct Walk {
  std::vector<std::set<std::uint64_t>> blocks, slots;
  std::uint64_t max_units = 0;
};
Walk walk(const GemvPlan& plan) {
  Walk found;
  found.blocks.resize(plan.strips());
  found.slots.resize(plan.strips());
  for (std::uint64_t block = 0; block < plan.blocks; ++block) {
    const std::uint64_t end = plan.first_unit(block + 1);
    for (std::uint64_t unit = plan.first_unit(block); unit < end; ++unit) {
      const std::uint64_t strip = unit / plan.steps();
      found.blocks[strip].insert(block);
      found.slots[strip].insert(plan.chunk_steps != 0
                                    ? unit / plan.steps() * gemv::items(plan).per_strip +
                                          unit % plan.steps() / plan.chunk_steps
                                : plan.blocks % plan.strips() == 0 ? block
                                                                   : block + strip);
    }
    found.max_units = std::max(found.max_units, end - plan.first_unit(block));
  }
  return found;
}

std::string refusal(const GemvPlan& plan, std::string_view target = "sm_90") {
  try {
    check(plan, ptx::target(target));
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    return error.code + ": " + error.message;
  }
  return "fine";
}

std::string refusal(const GemvProblem& p) {
  try {
    check(p);
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    return error.code + ": " + error.message;
  }
  return "fine";
}

}  // namespace

TEST_CASE("gemv plan: blocks, strips, parts and places as found by walking the units") {
  int plans = 0;
  for (std::uint32_t steps = 1; steps <= 7; ++steps) {
    for (std::uint32_t strips = 1; strips <= 6; ++strips) {
      for (std::uint32_t chunk = 0; chunk <= 3; ++chunk) {
        const std::uint32_t items = strips * (chunk == 0 ? steps : (steps + chunk - 1) / chunk);
        for (std::uint32_t blocks = 1; blocks <= items; ++blocks) {
          const GemvPlan plan = plain(steps, strips, blocks, chunk);
          INFO(steps << " steps, " << strips << " strips, " << blocks << " blocks, chunk "
                     << chunk);
          REQUIRE(refusal(plan) == "fine");
          REQUIRE(plan.strips() == strips);
          REQUIRE(plan.steps() == steps);
          REQUIRE(plan.first_unit(0) == 0);
          REQUIRE(plan.first_unit(blocks) == plan.units());
          const Walk found = walk(plan);
          bool split = false;
          std::uint64_t largest = 0;
          std::set<std::uint64_t> all;
          for (std::uint32_t s = 0; s < strips; ++s) {
            split = split || found.blocks[s].size() > 1;
            largest = std::max<std::uint64_t>(largest, found.slots[s].size());
            // Neighbours in the order of k, and no other strip's.
            REQUIRE(*found.slots[s].rbegin() - *found.slots[s].begin() + 1 ==
                    found.slots[s].size());
            for (const std::uint64_t slot : found.slots[s]) REQUIRE(all.insert(slot).second);
          }
          REQUIRE(plan.is_split() == split);
          REQUIRE(plan.max_parts() == largest);
          if (largest > 1) {
            REQUIRE(*all.rbegin() < gemv::slots(plan));
            REQUIRE(plan.workspace_bytes() == plan.ticket_bytes() + 128 * gemv::slots(plan));
            REQUIRE(plan.ticket_bytes() == (strips + 7) / 8 * 32);
          } else {
            REQUIRE(plan.workspace_bytes() == 0);
            REQUIRE(plan.ticket_bytes() == 0);
          }
          if (chunk == 0) {
            for (std::uint32_t b = 0; b <= blocks; ++b) {
              REQUIRE(plan.first_unit(b) == std::uint64_t{b} * plan.units() / blocks);
            }
          }
          ++plans;
        }
      }
    }
  }
  REQUIRE(plans > 1000);
}

TEST_CASE("gemv plan: the bits of a chunked plan do not depend on its blocks") {
  for (std::uint32_t blocks = 1; blocks <= 9; ++blocks) {
    const GemvPlan plan = plain(8, 3, blocks, 3);
    // Every block begins at a chunk.
    for (std::uint32_t b = 0; b <= blocks; ++b) REQUIRE(plan.first_unit(b) % 8 % 3 == 0);
    CHECK(plan.max_parts() == 3);
    CHECK(plan.roundings() == 3 + 2);
  }
}

TEST_CASE("gemv plan: a ticket releases a block's sums and acquires those of the others") {
  // The emulator takes the barrier after the ticket for the fence that PTX asks for there.
  const auto kernel = Gemv{plain(9, 2, 6)}.build(ptx::target("sm_80"));
  const ptx::Function& function = kernel.module().functions.front();
  int tickets = 0;
  for (const ptx::Instruction& s : function.body) {
    if (s.kind != ptx::StatementKind::Instruction || ptx::info(s.op).mnemonic != "atom") continue;
    CHECK(s.get(ptx::Field::Order) == ptx::Modifier::acq_rel);
    CHECK(s.get(ptx::Field::Scope) == ptx::Modifier::gpu);
    ++tickets;
  }
  CHECK(tickets == 1);
}

TEST_CASE("gemv plan: what a strip and a step are") {
  GemvPlan plan;
  plan.problem = problem(4096, 4096);
  plan.blocks = 264;
  CHECK(plan.threads() == 128);
  CHECK(plan.strip_outputs() == 512);
  CHECK(plan.step_elements() == 8);
  CHECK(plan.units() == 8 * 512);
  CHECK(plan.max_parts() == 33);
  CHECK(plan.workspace_bytes() == 32 + 264 * 2048);
  CHECK(plan.bytes_in_flight() == 128 * 8 * 16);
  CHECK(plan.shared_bytes() == 16);
  CHECK(plan.roundings() == 16 * 8 + 32);

  plan.problem = problem(11008, 4096, GemvLayout::R, ElementType::bf16);
  plan.problem.scaled = plan.problem.bias = plan.problem.residual = true;
  plan.warps_out = 2;
  plan.warps_k = 4;
  plan.rows = 3;
  plan.unroll = 2;
  plan.blocks = 683;
  CHECK(plan.strip_outputs() == 6);
  CHECK(plan.step_elements() == 4 * 2 * 32 * 8);
  CHECK(plan.strips() == 683);
  CHECK(plan.steps() == 6);
  CHECK_FALSE(plan.is_split());
  CHECK(plan.shared_bytes() == 3 * 32);
  CHECK(plan.bytes_in_flight() == 256u * 3 * 2 * 16);
  // 6 steps of 2 loads of 8; butterfly, warps, epilogue.
  CHECK(plan.roundings() == 96 + 5 + 3 + 4);
}

TEST_CASE("gemv plan: large numbers do not wrap around") {
  GemvPlan plan;
  plan.problem = problem(4294967295u, 4294967295u, GemvLayout::T, ElementType::bf16);
  plan.load_bytes = 2;
  plan.warps_out = 16;
  plan.warps_k = 2;
  plan.unroll = 32;
  plan.blocks = 2000000011u;
  CHECK(plan.strips() == 8388608);
  CHECK(plan.steps() == 67108864);
  CHECK(plan.units() == std::uint64_t{8388608} * 67108864);
  CHECK(plan.first_unit(plan.blocks) == plan.units());
  CHECK(plan.first_unit(1) == plan.units() / plan.blocks);
  // floor(1999999999 * 2^49 / 2000000011)
  CHECK(plan.first_unit(1999999999u) == 562949950043612);
  CHECK(plan.problem.matrix_elements() == std::uint64_t{4294967295u} * 4294967295u);
}

TEST_CASE("gemv plan: the widest load") {
  CHECK(widest_load(problem(8, 4096)) == 16);
  CHECK(widest_load(problem(8, 4097)) == 4);
  CHECK(widest_load(problem(1, 4097)) == 16);
  CHECK(widest_load(problem(8, 4098)) == 8);
  CHECK(widest_load(problem(4097, 8, GemvLayout::R, ElementType::bf16)) == 2);
  CHECK(widest_load(problem(4097, 1, GemvLayout::R, ElementType::bf16)) == 16);
  GemvProblem padded = problem(8, 4097);
  padded.lda = 4100;
  CHECK(widest_load(padded) == 16);
  padded.a_alignment = 8;
  CHECK(widest_load(padded) == 8);
}

TEST_CASE("gemv plan: as text") {
  GemvProblem p = problem(11008, 4096, GemvLayout::R, ElementType::bf16);
  CHECK(to_text(problem(4096, 2048)) == "T f32 4096x2048");
  CHECK(to_text(p) == "R bf16 4096x11008");
  p.lda = 11264;
  p.bias = true;
  CHECK(to_text(p) == "R bf16 4096x11008 lda 11264 bias");
  p.x = p.y = ElementType::bf16;
  p.a_alignment = 8;
  p.x_alignment = 4;
  p.y_alignment = 2;
  p.scaled = p.residual = true;
  CHECK(to_text(p) ==
        "R bf16 4096x11008 lda 11264 x bf16 y bf16 a at 8 B x at 4 B y at 2 B scaled bias "
        "residual");

  GemvPlan plan;
  plan.problem = problem(4096, 4096);
  plan.blocks = 264;
  CHECK(to_text(plan) == "direct 16 B, 4x1 warps, 8 in flight, 264 blocks (33 per strip)");
  plan.blocks = 1;
  CHECK(to_text(plan) == "direct 16 B, 4x1 warps, 8 in flight, 1 block (8 strips each)");
  plan.blocks = 132;
  plan.problem.layout = GemvLayout::R;
  plan.rows = 2;
  plan.chunk_steps = 4;
  plan.cluster = 2;
  plan.stages = 3;
  plan.path = GemvPath::Bulk;
  plan.programmatic = true;
  plan.streaming = false;
  plan.blocks_per_sm = 2;
  CHECK(to_text(plan) ==
        "bulk 16 B, 4x1 warps, 2 rows, 8 in flight, 132 blocks (512 strips in line), chunks of 4 "
        "steps, clusters of 2, 3 stages, programmatic, through L1, 2 per SM");
}

TEST_CASE("gemv plan: problems that there are not") {
  GemvProblem p = problem(64, 0);
  CHECK(refusal(p) == "bad-problem: n is 0; it may be 1 to 2147483647");
  p = problem(1u << 31, 64);
  CHECK(refusal(p) == "bad-problem: k is 2147483648; it may be 0 to 2147483647");
  p = problem(64, 64);
  p.x = ElementType::f16;
  CHECK(refusal(p) == "bad-problem: x is f16; with weights of f32 it may be f32");
  p = problem(64, 64, GemvLayout::R, ElementType::bf16);
  p.y = ElementType::f16;
  CHECK(refusal(p) == "bad-problem: y is f16; with weights of bf16 it may be f32 or bf16");
  p = problem(64, 65);
  p.lda = 64;
  CHECK(refusal(p) == "bad-problem: lda is 64; it may be 0, or at least the 65 elements of a row");
  p.lda = std::uint64_t{1} << 40;
  CHECK(refusal(p) ==
        "bad-problem: lda is 1099511627776; with 64 rows it may be up to 549755813888: a matrix "
        "may have 2^47 B");
  p = problem(64, 64, GemvLayout::R, ElementType::bf16);
  p.a_alignment = 1;
  CHECK(refusal(p) ==
        "bad-problem: a_alignment is 1 B; it may be a power of two of at least 2 B, an element");
  p.a_alignment = 2;
  p.x_alignment = 2;
  CHECK(refusal(p) ==
        "bad-problem: x_alignment is 2 B; it may be a power of two of at least 4 B, an element");
  p.x_alignment = 4;
  p.y_alignment = 12;
  CHECK(refusal(p) ==
        "bad-problem: y_alignment is 12 B; it may be a power of two of at least 4 B, an element");
  p.y_alignment = 4;
  CHECK(refusal(p) == "fine");
}

TEST_CASE("gemv plan: plans that there are not") {
  GemvPlan fine;
  fine.problem = problem(100, 300);
  REQUIRE(refusal(fine) == "fine");
  const auto with = [&](auto change, std::string_view target = "sm_90") {
    GemvPlan plan = fine;
    change(plan);
    return refusal(plan, target);
  };
  CHECK(with([](GemvPlan& p) { p.problem.n = 0; }) ==
        "bad-problem: n is 0; it may be 1 to 2147483647");
  CHECK(with([](GemvPlan& p) { p.problem.n = 301; }) ==
        "bad-plan: load_bytes is 16; it may be a power of two from 4, an element, to 4, to which "
        "the address of every row is aligned");
  CHECK(with([](GemvPlan& p) { p.load_bytes = 12; }) ==
        "bad-plan: load_bytes is 12; it may be a power of two from 4, an element, to 16, to which "
        "the address of every row is aligned");
  CHECK(with([](GemvPlan& p) { p.rows = 2; }) ==
        "bad-plan: rows is 2; it can only be 1 with layout T");
  CHECK(with([](GemvPlan& p) {
          p.problem.layout = GemvLayout::R;
          p.rows = 9;
        }) == "bad-plan: rows is 9; it may be 1 to 8");
  CHECK(with([](GemvPlan& p) { p.unroll = 33; }) == "bad-plan: unroll is 33; it may be 1 to 32");
  CHECK(
      with([](GemvPlan& p) {
        p.problem.layout = GemvLayout::R;
        p.rows = 8;
      }) ==
      "bad-plan: rows * unroll is 64; it may be 1 to 32, the loads that a lane may have in flight");
  CHECK(with([](GemvPlan& p) { p.warps_out = 0; }) ==
        "bad-plan: warps_out is 0; it may be 1 to 32");
  CHECK(with([](GemvPlan& p) { p.warps_k = 33; }) == "bad-plan: warps_k is 33; it may be 1 to 32");
  CHECK(with([](GemvPlan& p) { p.warps_k = 9; }) ==
        "bad-plan: warps_out * warps_k is 36; it may be 1 to 32");
  CHECK(with([](GemvPlan& p) { p.blocks_per_sm = 17; }) ==
        "bad-plan: blocks_per_sm is 17; it may be 1 to 16 with blocks of 128 threads on sm_90");
  CHECK(with([](GemvPlan& p) { p.blocks_per_sm = 9; }) ==
        "bad-plan: registers of a thread is 64; with 9 x 128 threads on an SM it may have 56: take "
        "fewer loads (unroll, rows), threads or blocks_per_sm");
  CHECK(with([](GemvPlan& p) { p.blocks_per_sm = 8; }) == "fine");
  CHECK(with([](GemvPlan& p) { p.blocks = 0; }) ==
        "bad-plan: blocks is 0; it may be 1 to 13 with 1 strip of 13 steps");
  CHECK(with([](GemvPlan& p) {
          p.chunk_steps = 13;
          p.blocks = 2;
        }) == "bad-plan: blocks is 2; it can only be 1 with 1 strip of 1 chunk");
  CHECK(with([](GemvPlan& p) {
          p.problem = problem(1u << 30, 1u << 11, GemvLayout::R);
          p.unroll = 1;
          p.warps_out = 1;
        }) ==
        "bad-plan: strips * steps is 17179869184; it may be up to 2147483647: make strips "
        "or steps larger");
  const auto bulk = [](GemvPlan& p) {
    p.path = GemvPath::Bulk;
    p.stages = 4;
  };
  CHECK(with(bulk) == "fine");
  CHECK(with(bulk, "sm_89") ==
        "bad-plan: path is bulk; it needs sm_90 or newer; the target is sm_89");
  CHECK(with([&](GemvPlan& p) {
          bulk(p);
          p.load_bytes = 8;
        }) == "bad-plan: load_bytes is 8; it can only be 16 with path bulk");
  const auto async = [](GemvPlan& p) {
    p.path = GemvPath::Async;
    p.stages = 4;
  };
  CHECK(with(async) == "fine");
  CHECK(with(async, "sm_75") ==
        "bad-plan: path is async; it needs sm_80 or newer; the target is sm_75");
  CHECK(with([&](GemvPlan& p) {
          async(p);
          p.stages = 1;
        }) == "bad-plan: stages is 1; it may be 2 to 32 with path async");
  CHECK(with([&](GemvPlan& p) {
          async(p);
          p.problem.weights = ElementType::bf16;
          p.load_bytes = 2;
        }) == "bad-plan: load_bytes is 2; it may be 4 to 16 with path async");
  CHECK(with([&](GemvPlan& p) {
          async(p);
          p.stages = 15;
        }) ==
        "bad-plan: shared memory is 245760 B; a block on sm_90 may have 232448 B: take fewer "
        "stages, loads (unroll, rows) or warps");
  CHECK(with([&](GemvPlan& p) {
          async(p);
          p.stages = 8;
          p.blocks_per_sm = 2;
        }) ==
        "bad-plan: shared memory is 131072 B; with 2 blocks on an SM of sm_90 each may have "
        "115712 B: take fewer stages, loads (unroll, rows) or warps");
  CHECK(with([](GemvPlan& p) { p.stages = 2; }) ==
        "bad-plan: stages is 2; it can only be 0 with path direct");
  CHECK(with([](GemvPlan& p) { p.cluster = 0; }) == "bad-plan: cluster is 0; it may be 1 to 8");
  CHECK(with([](GemvPlan& p) { p.cluster = 9; }) == "bad-plan: cluster is 9; it may be 1 to 8");
  const auto cluster = [](GemvPlan& p) {
    p.blocks = 4;
    p.cluster = 2;
  };
  CHECK(with(cluster) == "fine");
  CHECK(with(cluster, "sm_89") ==
        "bad-plan: cluster is 2; clusters need sm_90 or newer; the target is sm_89");
  CHECK(with([&](GemvPlan& p) {
          cluster(p);
          p.chunk_steps = 1;
        }) == "bad-plan: cluster is 2; with chunk_steps it can only be 1");
  CHECK(with([&](GemvPlan& p) {
          cluster(p);
          p.blocks = 5;
        }) ==
        "bad-plan: cluster is 2; it may divide the blocks of a strip, if all strips have the same "
        "number: here 5 blocks have 1 strip");
  CHECK(
      with([&](GemvPlan& p) {
        p.problem = problem(100, 4096, GemvLayout::T, ElementType::bf16);
        p.warps_out = 8;
        p.unroll = 4;
        p.blocks = 16;
        p.cluster = 8;
      }) ==
      "bad-plan: shared memory for sums is 57344 B; a block on sm_90 may have 49152 B: take fewer "
      "warps_k, or fewer blocks in a cluster");
  CHECK(with([](GemvPlan& p) { p.programmatic = true; }, "sm_89") ==
        "bad-plan: programmatic is true; it needs sm_90 or newer; the target is sm_89");
  CHECK(with([](GemvPlan& p) { p.programmatic = true; }) == "fine");
}

TEST_CASE("gemv plan: a division by a number that is known is a product, as far as that is exact") {
  const auto text = [](std::uint64_t max, std::uint64_t divisor) {
    KernelBuilder k("k");
    const auto y = k.param<Ptr<u32>>("y");
    const auto n = k.param<u32>("n");
    k.st(y, gemv::quotient(k, n, max, divisor));
    return ptx::print(k.build().module());
  };
  const auto has = [](const std::string& where, const char* what) {
    return where.find(what) != std::string::npos;
  };
  for (const std::uint64_t divisor : {3u, 5u, 6u, 7u, 96u, 1000u}) {
    CAPTURE(divisor);
    const std::string product = text(100'000, divisor);
    CHECK(has(product, "mul.hi.u32"));
    CHECK_FALSE(has(product, "div.u32"));
  }
  // The number that 1 / 7 is multiplied for takes 33 bits if every n is to be divided.
  CHECK(has(text(0xffffffffu, 7), "div.u32"));
  CHECK_FALSE(has(text(0xffffffffu, 8), "div.u32"));
}
