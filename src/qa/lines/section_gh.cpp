// src/qa/lines/section_gh.cpp - G: documentation; H: hypotheses of the GEMV; quality gates
#include <algorithm>

#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/kernels.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

namespace section_gh {
namespace {

// Whether the pattern that a description states is that of the kernel's code.
void check_pattern(Tally& tally, const KernelDescription& kernel, const ptx::Module& code,
                   bool coalesced) {
  tally.check(kernel.access_pattern.starts_with(coalesced ? "coalesced" : "strided"),
              "{} states '{}'", kernel.name, kernel.access_pattern);
  const analysis::MemoryReport report = analysis::memory_report(code, code.functions.front());
  std::size_t strided = 0;
  std::size_t loads = 0;
  for (const analysis::MemoryAccess& access : report.accesses) {
    if (access.space != ptx::Space::Global || !access.reads) continue;
    ++loads;
    strided += access.pattern == analysis::AccessPattern::Strided;
  }
  tally.check(loads != 0, "{} has no loads", kernel.name);
  tally.check((strided == 0) == coalesced, "{}: {} of {} loads are strided", kernel.name, strided,
              loads);
  tally.figure("{}: '{}', {} of {} loads strided", kernel.name, kernel.access_pattern, strided,
               loads);
}

Outcome patterns(Fixture& fixture, const Line&) {
  Tally tally;
  for (const KernelDescription& kernel : fixture.catalog) {
    tally.check(!kernel.access_pattern.empty(), "{} states no access pattern", kernel.name);
  }
  check_pattern(tally, kernel_named("gemv_coalesced"), fixture.build(GemvCoalesced{}), true);
  check_pattern(tally, kernel_named("gemv_strided"), fixture.build(GemvStrided{}), false);
  return tally.outcome();
}

Outcome predictions(Fixture& fixture, const Line&) {
  Tally tally;
  const KernelDescription& kernel = kernel_named("gemv_coalesced");
  const std::vector<std::uint64_t> values{4096, 4096};
  for (const ptx::Gpu& gpu : ptx::gpus()) {
    const LaunchWork work = launch_work(kernel, values, gpu);
    const LaunchPrediction prediction = predict(work, gpu);
    // No prediction is below the time of the bytes at the datasheet's rate.
    const double bytes =
        static_cast<double>(fixture.changed() ? 100 * work.bytes_read : work.bytes_read);
    const double min_us = bytes / gpu.bandwidth_gb_per_s / 1e3;
    tally.check(prediction.us >= min_us, "{}: {:.1f} us is below {:.1f} us of the bytes", gpu.name,
                prediction.us, min_us);
    tally.check(!prediction.bound_by.empty(), "{}: no binding term", gpu.name);
  }
  tally.figure("{} GPUs", ptx::gpus().size());
  return tally.outcome();
}

Outcome coalescing_hypothesis(Fixture& fixture, const Line&) {
  Tally tally;
  constexpr std::uint32_t kSize = 512;
  const Problem problem = random_problem(kSize, kSize, 61);
  Emulation emulation(gpu_of(fixture.device().info()));
  const emulator::Result result = emulation.launch(
      fixture.build(GemvCoalesced{kSize, kSize}), GemvCoalesced{kSize, kSize}.geometry(),
      {emulation.allocate(4 * std::uint64_t{kSize}), emulation.upload(problem.a),
       emulation.upload(problem.x), kSize, kSize});
  const emulator::MemoryCounters& load = result.counters.global_load;
  const double used = static_cast<double>(load.bytes) / (32.0 * static_cast<double>(load.sectors));
  tally.check(load.sectors != 0 && used >= 0.9, "H1a: {:.1f} % of loaded bytes are used",
              100 * used);
  tally.check(result.counters.shared_load.bank_conflicts == 0, "{} bank conflicts",
              result.counters.shared_load.bank_conflicts);
  tally.figure("H1a supported: {:.1f} % of loaded bytes used, 0 bank conflicts (emulator)",
               100 * used);
  const Outcome outcome = tally.outcome(Verdict::Supported);
  if (outcome.status != Status::Passed) return outcome;
  Outcome open = skipped(fixture.facts.gpu ? Need::Tool : Need::Gpu,
                         "H1b, 90 % of the read-only rate of DRAM, needs a GPU and its counters");
  open.figures = outcome.figures;
  return open;
}

constexpr Line kDocumentation[] = {
    {"G1", Section::G, 1, "the public headers are documented",
     "a comment on every public type and function, but for a list that may only become shorter",
     Means::Record, by_record, kFailedResult, "python3 tests/house/check_documented.py .",
     "case house/documented"},
    {"G2",
     Section::G,
     1,
     "each kernel states its access pattern",
     "every row of the catalog; of both GEMV baselines what the memory report derives from the "
     "code",
     Means::Unit,
     patterns,
     {"columns of gemv_coalesced are 256 bytes apart",
      [](ptx::Module& m) { set_operand(m, ptx::Op::mad_wide, 0, 2, ptx::Operand::integer(256)); },
      nullptr},
     "ptxgen explain gemv_coalesced"},
    {"G3",
     Section::G,
     1,
     "targets of speed are stated",
     "a predicted time with its binding term for every GPU of the table, not below that of the "
     "bytes",
     Means::Unit,
     predictions,
     {"the bytes are a hundred times as many"},
     "ptxgen predict gemv_coalesced -p k=4096 -p n=4096 --gpu h200"},
    {"G4", Section::G, 1, "the examples build and run", "the examples of ctest", Means::Record,
     by_record, kFailedResult, "ctest -R ^examples/", "case examples/"},
    {"G5", Section::G, 1, "the changelog has entries for what is not released",
     "sections in order, none empty", Means::Record, by_record, kFailedResult,
     "ctest -R docs/changelog", "case docs/changelog"},
};

constexpr Line kHypotheses[] = {
    {"H1",
     Section::H,
     1,
     "coalescing lifts the use of bandwidth above 90 %",
     "H1a: bytes used of sectors >= 90 % and no bank conflicts, exact; H1b: the rate of DRAM on a "
     "GPU",
     Means::Emulator,
     coalescing_hypothesis,
     {"a warp's columns are 128 bytes apart",
      [](ptx::Module& m) { set_operand(m, ptx::Op::mad_wide, 0, 2, ptx::Operand::integer(128)); },
      nullptr},
     {}},
    {"H2",
     Section::H,
     1,
     "an isolated cold time is within 1.15 x bytes / copy rate + 3.5 us",
     "4096 x 4096, by gemv-bench",
     Means::Gpu,
     nullptr,
     {},
     "gemv-bench run"},
    {"H3",
     Section::H,
     1,
     "more than 10,000 products each second, and H2",
     "by gemv-bench",
     Means::Gpu,
     nullptr,
     {},
     "gemv-bench run"},
    {"H4",
     Section::H,
     1,
     "loads of 16 bytes help a starved schedule, not a saturated one",
     "ratio > 1.5 starved, 0.97 to 1.3 saturated, by gemv-bench",
     Means::Gpu,
     nullptr,
     {},
     "gemv-bench run"},
    {"H5",
     Section::H,
     1,
     "1024 or 256 threads of a block: a ratio below 1.2 when saturated",
     "the same bytes in flight, by gemv-bench",
     Means::Gpu,
     nullptr,
     {},
     "gemv-bench run"},
};

constexpr Line kGates[] = {
    {"Q1", Section::Gates, 0, "every test of a claim passes", "ctest -R falsification",
     Means::Record, by_record, kFailedResult, "ctest -R falsification", "case falsification"},
    {"Q2", Section::Gates, 0, "90 % of the lines of new code are executed by tests",
     "all lines of src and include, by gcov, in scripts/test --full", Means::Record, by_record,
     kFailedResult, "tools/line_coverage.py build/coverage --min 90", "step line coverage"},
    {"Q3",
     Section::Gates,
     0,
     "no benchmark has become slower",
     "the step of scripts/test --full",
     Means::Record,
     by_record,
     kFailedResult,
     {},
     "step benchmarks"},
    {"Q4", Section::Gates, 0, "documents and examples are what the code does",
     "ctest -R '^(docs|examples)/'", Means::Record, by_record, kFailedResult,
     "ctest -R '^(docs|examples)/'", "case docs/;case examples/"},
    {"Q5", Section::Gates, 0, "every mutant of the C++ code is killed",
     "tests/mutation/run_mutants.py", Means::Record, by_record, kFailedResult,
     "tests/mutation/run_mutants.py", "step mutants"},
};

}  // namespace
}  // namespace section_gh

std::span<const Line> documentation_lines() { return section_gh::kDocumentation; }
std::span<const Line> hypothesis_lines() { return section_gh::kHypotheses; }
std::span<const Line> gate_lines() { return section_gh::kGates; }

}  // namespace ptxgen::qa
