// tests/kernels/gemv_grid_gates_test.cpp - gates and memory report on the grid
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "gemv_grid_run.hpp"
#include "gemv_operands.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// Errors and warnings of all gates that run before a load.
std::string complaints(const ptx::Module& module, const gates::GateOptions& options) {
  std::string text;
  for (const gates::GateInfo& gate : gates::all_gates()) {
    if (!gate.before_load) continue;
    for (const Finding& finding : gate.run(module, options)) {
      if (finding.severity == Severity::Note) continue;
      text += std::string(gate.name) + ": " + to_text(finding) + "\n";
    }
  }
  return text;
}

struct Report {
  std::size_t loads = 0;  ///< of weights
  std::size_t copies = 0;
  std::size_t unknown = 0;
  std::string wrong;
};

/// Each load and copy of weights is understood, and all that it moves is wanted if it is a full one
/// and rows begin at sectors. Where they do not, a bulk copy must have a constant size to be
/// understood. Lanes copy to neighbouring places of shared memory.
Report weight_report(const GemvCase& point, const std::string& text) {
  const ptx::Module module = ptx::parse(text);
  const auto operands = operands_of_lines(module);
  const GemvProblem& problem = point.plan.problem;
  const bool aligned = problem.leading_dimension() * bytes(problem.weights) % 32 == 0;
  Report report;
  analysis::MemoryReportOptions options;
  options.block = {point.plan.threads(), 1, 1};
  for (const ptx::Function& function : module.functions) {
    for (const auto& access : analysis::memory_report(module, function, options).accesses) {
      const auto found = operands.find(access.line);
      if (found == operands.end() || found->second != "a") continue;
      const auto is_wrong = [&] {
        report.wrong +=
            access.opcode + " " + access.address_text + ": " + analysis::verdict(access) + "\n";
      };
      if (access.space == ptx::Space::Shared) {
        if (!access.affine() || access.wavefronts.max != access.ideal_wavefronts) is_wrong();
        continue;
      }
      const bool bulk = access.copy == analysis::CopyKind::Bulk;
      ++(access.copy == analysis::CopyKind::None ? report.loads : report.copies);
      const bool full = bulk || access.bytes == point.plan.load_bytes;
      const bool wanted = access.sectors.min == access.ideal_sectors &&
                          access.bytes_wanted == 32 * access.ideal_sectors;
      if (!access.affine()) ++report.unknown;
      if (access.affine() ? aligned && full && !wanted : aligned || !bulk) is_wrong();
    }
  }
  return report;
}

}  // namespace

TEST_CASE("every plan of the grid passes every gate, its weights are read coalesced") {
  const std::vector<GemvCase> grid = gemv_grid(static_cast<std::size_t>(count(400, 6000)));
  Report all;
  for (const GemvCase& point : grid) {
    INFO(to_text(point));
    const auto kernel = Gemv{point.plan}.build(ptx::target(point.target));
    const ptx::Module& module = kernel.module();
    gates::GateOptions options;
    options.block = {point.plan.threads(), 1, 1};
    CHECK(complaints(module, options) == "");
    // A block of which nothing is told is what `.reqntid` says.
    CHECK(complaints(module, {}) == "");
    const Report report = weight_report(point, kernel.ptx());
    CHECK(report.wrong == "");
    if (point.plan.problem.k != 0 && point.plan.path == GemvPath::Direct) CHECK(report.loads > 0);
    all.loads += report.loads;
    all.copies += report.copies;
    all.unknown += report.unknown;
  }
  std::printf("gemv gates: %zu plans, %zu loads and %zu copies of weights, %zu not understood\n",
              grid.size(), all.loads, all.copies, all.unknown);
  CHECK(all.copies > 5 * grid.size());
  CHECK(all.unknown * 100 < all.copies);
}

TEST_CASE("with programmatic launch only weights are asked for before the wait") {
  std::size_t programmatic = 0;
  std::size_t early = 0;
  for (const GemvCase& point : gemv_grid(600)) {
    if (!point.plan.programmatic) continue;
    INFO(to_text(point));
    const std::string text = Gemv{point.plan}.build(ptx::target(point.target)).ptx();
    const std::size_t wait = text.find("griddepcontrol.wait;");
    REQUIRE(wait != std::string::npos);
    CHECK(text.find("griddepcontrol.wait;", wait + 1) == std::string::npos);
    const auto wait_line = static_cast<std::uint32_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(wait), '\n') + 1);
    std::uint32_t number = 0;
    std::istringstream lines(text);
    const auto operands = operands_of_lines(ptx::parse(text));
    for (std::string line; std::getline(lines, line);) {
      const auto found = operands.find(++number);
      if (found == operands.end() || found->second == "a") continue;
      INFO(line);
      CHECK(found->second != "?");
      // What the kernel before may still write is not read through the read-only path.
      CHECK(line.find(".nc") == line.npos);
      CHECK(number > wait_line);
    }
    // By loads or by prefetches of the first step, if a warp has one in full.
    const std::string_view before = std::string_view(text).substr(0, wait);
    const bool asks = before.find("prefetch") != before.npos ||
                      before.find("ld.global") != before.npos ||
                      before.find("cp.async") != before.npos;
    CHECK((asks || point.plan.problem.k < point.plan.step_elements()));
    if (asks) ++early;
    ++programmatic;
  }
  CHECK(programmatic >= 20);
  CHECK(early >= 20);
}
