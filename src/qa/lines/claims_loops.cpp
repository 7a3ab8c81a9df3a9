// src/qa/lines/claims_loops.cpp - claims 51 to 65 that the program decides: loop splitting
#include <algorithm>

#include "ptxgen/analysis/liveness.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/claim_row.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace claims_loops {
namespace {

// y = a value that depends on each i in [0, n) and on whether i REL s.
std::string loop_of(std::string_view relation) {
  return format_text(
      ".version 7.8\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 y, .param .u32 n, .param .u32 s)\n{{\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n"
      "ld.param.u64 %rd1, [y];\nld.param.u32 %r1, [n];\nld.param.u32 %r4, [s];\n"
      "mov.u32 %r2, 0;\nmov.u32 %r3, 1;\nsetp.ge.u32 %p1, %r2, %r1;\n@%p1 bra END;\n"
      "LOOP:\nsetp.{}.u32 %p2, %r2, %r4;\n@!%p2 bra SKIP;\nmad.lo.u32 %r3, %r3, 3, %r2;\n"
      "SKIP:\nadd.u32 %r3, %r3, 7;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n"
      "@%p1 bra LOOP;\nEND:\nst.global.u32 [%rd1], %r3;\nret;\n}}\n",
      relation);
}

optimize::PipelineReport split(ptx::Module& module, std::string_view pass = "loop_split") {
  optimize::PassOptions options;
  options.passes = {std::string(pass)};
  return optimize::run_passes(module, options);
}

struct LoopRun {
  std::uint32_t value = 0;
  emulator::Counters counters;
};

LoopRun run_loop(Tally& tally, Fixture& fixture, const ptx::Module& module, std::uint32_t n,
                 std::uint32_t s) {
  Emulation emulation(gpu_of(fixture.device().info()));
  const std::uint64_t y = emulation.allocate(4);
  emulator::Result result = emulation.launch(module, LaunchGeometry{}, {y, n, s});
  tally.check(result.status == emulator::Status::Ok, "{}", first_error(result));
  return {emulation.download<std::uint32_t>(y, 1)[0], std::move(result.counters)};
}

constexpr std::string_view kRelations[] = {"lt", "le", "gt", "ge"};

Outcome no_branch(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kIterations = 1000;
  for (const std::string_view relation : kRelations) {
    ptx::Module module = ptx::parse(loop_of(relation));
    const LoopRun before = run_loop(tally, fixture, module, kIterations, 400);
    tally.check(split(module, fixture.changed() ? "dead_code" : "loop_split").changed(),
                "{}: the loop is not split", relation);
    // A branch over code that is gone is left to the clean-up.
    split(module, "cleanup");
    const LoopRun after = run_loop(tally, fixture, module, kIterations, 400);
    tally.check(before.counters.branches >= 2 * kIterations, "{}: {} branches before", relation,
                before.counters.branches);
    tally.check(after.counters.branches <= kIterations + 8, "{}: {} branches after the split",
                relation, after.counters.branches);
  }
  tally.figure("1000 iterations: at most {} branches instead of {}", kIterations + 8,
               2 * kIterations);
  return tally.outcome(Verdict::Supported);
}

Outcome same_results(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t runs = 0;
  for (const std::string_view relation : kRelations) {
    const ptx::Module before = ptx::parse(loop_of(relation));
    ptx::Module after = before;
    tally.check(split(after).changed(), "{}: the loop is not split", relation);
    for (const std::uint32_t n : {0u, 1u, 2u, 3u, 5u, 8u}) {
      for (const std::uint32_t s : {0u, 1u, 2u, 4u, 7u, 8u, 9u, 0x80000000u, 0xffffffffu}) {
        const std::uint32_t expected = run_loop(tally, fixture, before, n, s).value;
        const std::uint32_t found =
            run_loop(tally, fixture, after, n, fixture.changed() ? s + 1 : s).value;
        tally.check(found == expected, "i {} {}, n = {}: {} instead of {}", relation, s, n, found,
                    expected);
        ++runs;
      }
    }
  }
  tally.figure("{} loops, bounds at both ends of the type among them", runs);
  return tally.outcome(Verdict::Supported);
}

Outcome splits_once(Fixture& fixture, const Line&) {
  Tally tally;
  for (const std::string_view relation : kRelations) {
    const ptx::Module start = ptx::parse(loop_of(relation));
    ptx::Module once = start;
    tally.check(split(once).changed(), "{}: the loop is not split", relation);
    ptx::Module twice = fixture.changed() ? start : once;
    tally.check(!split(twice).changed(), "{}: the second run changes the code", relation);
    tally.check(ptx::equal(once, twice), "{}: the second run gives other code: {}", relation,
                ptx::difference(once, twice));
  }
  return tally.outcome(Verdict::Supported);
}

Outcome overhead(Fixture& fixture, const Line&) {
  Tally tally;
  const std::uint32_t iterations = fixture.changed() ? 1 : 1001;
  // The condition never changes in the loop: nothing is gained but its test.
  for (const std::uint32_t s : {0u, 5000u}) {
    ptx::Module module = ptx::parse(loop_of("lt"));
    const LoopRun before = run_loop(tally, fixture, module, iterations, s);
    tally.check(split(module).changed(), "the loop is not split");
    const LoopRun after = run_loop(tally, fixture, module, iterations, s);
    const std::uint64_t a = before.counters.warp_instructions;
    const std::uint64_t b = after.counters.warp_instructions;
    tally.check(100 * b <= 101 * a, "s = {}: {} instructions become {}", s, a, b);
    tally.figure("s = {}: {} instructions become {}", s, a, b);
  }
  return tally.outcome(Verdict::Supported);
}

// The largest number of 32-bit registers that a loop needs at a time.
std::uint32_t pressure_of_loops(const ptx::Module& module) {
  const ptx::Function& function = module.functions.front();
  const analysis::Cfg cfg(function);
  const analysis::RegisterIndex index(function);
  const analysis::Liveness liveness(function, cfg, index);
  std::uint32_t words = 0;
  for (std::uint32_t loop = 0; loop < cfg.loops().loops().size(); ++loop) {
    words = std::max(words, liveness.in_loop(loop).pressure.words());
  }
  return words;
}

// False if one of four loops needs no fewer registers: a claim about all loops.
Outcome less_pressure(Fixture& fixture, const Line&) {
  Tally tally;
  std::size_t lower = 0;
  for (const std::string_view relation : kRelations) {
    ptx::Module module = ptx::parse(loop_of(relation));
    const std::uint32_t before = pressure_of_loops(module);
    tally.check(split(module, fixture.changed() ? "dead_code" : "loop_split").changed(),
                "{}: the loop is not split", relation);
    const std::uint32_t after = pressure_of_loops(module);
    tally.check(before != 0 && after != 0, "{}: no register is live in the loop", relation);
    lower += after < before;
    tally.figure("{}: {} registers before, {} after", relation, before, after);
  }
  return tally.outcome(lower == std::size(kRelations) ? Verdict::Supported : Verdict::Falsified);
}

constexpr Line kLines[] = {
    decided_claim(
        "51", "splitting removes the branches of the condition",
        "executed branches of four conditions before and after; the condition of a loop's "
        "variable is the same in all lanes",
        Means::Emulator, no_branch, {"the pass does not run"}, "ptxgen opt --passes loop_split"),
    decided_claim("54", "splitting keeps the results",
                  "four conditions with bounds in and around the loop, emulated before and after",
                  Means::Emulator, same_results, {"the split loop gets another bound"}),
    decided_claim("57", "splitting lowers the register pressure",
                  "32-bit registers that are live in the loops of four kernels, before and after",
                  Means::Unit, less_pressure, {"the pass does not run"}),
    decided_claim("64", "splitting is idempotent", "a second run changes no byte", Means::Unit,
                  splits_once, {"the second run begins with the original code"}),
    decided_claim("65", "the overhead is below 1 % for more than 1000 iterations",
                  "executed instructions where the condition never changes", Means::Emulator,
                  overhead, {"the loop has one iteration"}),
};

}  // namespace
}  // namespace claims_loops

std::span<const Line> loop_claims() { return claims_loops::kLines; }

}  // namespace ptxgen::qa
