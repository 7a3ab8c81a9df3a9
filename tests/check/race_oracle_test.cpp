// tests/check/race_oracle_test.cpp - the gate shared_race against the emulator
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "emulator/defect_corpus.hpp"
#include "emulator/kernel_generator.hpp"
#include "emulator/kernel_runner.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"
#include "race_generator.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::vector<Finding> check(std::string_view text, const emulator::Dim3& block) {
  const ptx::Module module = ptx::parse(text);
  gates::GateOptions options;
  options.block = {block.x, block.y, block.z};
  return gates::shared_race(module, options);
}

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += to_text(finding) + "\n";
  return text;
}

bool finds(const std::vector<Finding>& findings, Severity severity) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.severity == severity; });
}

/// Whether each pair of the first has a line in common with one of the second. Of a byte the
/// emulator remembers the last write, and of several reads by a warp one: of three accesses that
/// race it may name other two.
bool share_lines(const LinePairs& first, const LinePairs& second) {
  std::set<std::uint32_t> lines;
  for (const auto& [a, b] : second) lines.insert({a, b});
  return std::all_of(first.begin(), first.end(), [&](const auto& pair) {
    return lines.count(pair.first) != 0 || lines.count(pair.second) != 0;
  });
}

}  // namespace

TEST_CASE("random exchanges: no race is missed, no error is made up") {
  const int kernels = test::count(600, 20000);
  int racy = 0, errors = 0, warned = 0, clean = 0, pairs = 0, exact = 0;
  for (int i = 0; i < kernels; ++i) {
    const Exchange exchange = random_exchange(test::seed() + static_cast<std::uint64_t>(i));
    INFO("kernel " << i << " with n = " << exchange.n << "\n" << exchange.ptx);
    const std::vector<Finding> findings = check(exchange.ptx, exchange.block);
    INFO(text_of(findings));
    const LinePairs found = emulated_races(exchange, 5);
    LinePairs reported = reported_races(findings, Severity::Error);
    const LinePairs proved = reported;
    reported.merge(reported_races(findings, Severity::Warning));
    REQUIRE(share_lines(found, reported));
    for (const auto& pair : found) {
      ++pairs;
      exact += reported.count(pair) != 0 ? 1 : 0;
    }
    if (!found.empty()) {
      ++racy;
      errors += proved.empty() ? 0 : 1;
      continue;
    }
    // What is proved is proved for a launch that the finding names: with n as it has it.
    const std::vector<std::uint32_t> sizes{4096, 1000, 257, 64, 33, 7, 1, 0};
    LinePairs elsewhere;
    for (const std::uint32_t n : sizes) {
      if (proved.empty()) break;
      Exchange other = exchange;
      other.n = n;
      elsewhere.merge(emulated_races(other, 5));
    }
    REQUIRE(share_lines(proved, elsewhere));
    if (!elsewhere.empty()) continue;
    ++clean;
    warned += finds(findings, Severity::Warning) ? 1 : 0;
  }
  std::printf(
      "exchanges: %d kernels, %d racy (%d with an error), %d free of races (%d with a "
      "warning)\n",
      kernels, racy, errors, clean, warned);
  std::printf("exchanges: %d of %d pairs of lines that the emulator names are reported\n", exact,
              pairs);
  CHECK(exact * 100 >= pairs * 95);
  CHECK(racy > kernels / 10);
  CHECK(clean > kernels / 10);
}

TEST_CASE("random kernels of the emulator's own tests: no race is missed") {
  const int kernels = test::count(150, 3000);
  int racy = 0, warned = 0, free = 0;
  for (int i = 0; i < kernels; ++i) {
    const RaceKind kind = i % 3 == 0 ? RaceKind::None : RaceKind::Shared;
    const RandomKernel kernel = random_kernel(test::seed() + static_cast<std::uint64_t>(i), kind);
    const std::vector<Finding> findings = check(kernel.ptx, kernel.block);
    INFO("kernel " << i << "\n" << kernel.ptx << text_of(findings));
    KernelRunner runner(kernel);
    bool raced = false;
    for (std::uint64_t seed = 0; seed < 3 && !raced; ++seed) {
      emulator::Options options;
      options.seed = seed;
      raced = runner.run(options).findings.find("[shared-race]") != std::string::npos;
    }
    const bool reported = finds(findings, Severity::Error) || finds(findings, Severity::Warning);
    if (raced) {
      ++racy;
      REQUIRE(reported);
    } else {
      REQUIRE_FALSE(finds(findings, Severity::Error));
      ++free;
      warned += reported ? 1 : 0;
    }
  }
  std::printf("random kernels: %d, %d racy, %d free of races (%d with a warning)\n", kernels, racy,
              free, warned);
  CHECK(racy > 0);
  CHECK(free > 0);
}

TEST_CASE("the corpus of defects is judged right") {
  // Ordered by flags, mbarriers, named barriers and masks: not followed.
  const std::vector<std::string> not_followed{"clean_elected_arrive",
                                              "clean_elected_release",
                                              "clean_flag_fence_atomic",
                                              "clean_flag_fence_relaxed",
                                              "clean_flag_release_acquire",
                                              "clean_half_warp_sync",
                                              "clean_invalid_generic",
                                              "clean_mbarrier",
                                              "clean_mbarrier_parity",
                                              "clean_named_barrier_bar_sync",
                                              "clean_named_barrier_barrier_aligned",
                                              "clean_named_barrier_barrier_sync",
                                              "clean_ping_pong",
                                              "clean_producer_consumer",
                                              "clean_spin_lock"};
  // What the gate says that it does not look at: memory of other blocks of a cluster, and whether
  // accesses that are both atomic or volatile have one width.
  const std::vector<std::string> not_looked_at{"race_cluster_no_barrier", "race_mixed_width"};
  int racy = 0, clean = 0;
  for (const DefectCase& test : read_cases(DEFECTS_FOLDER, ".ptx")) {
    const std::vector<Finding> findings = check(test.text, test.block);
    INFO(test.name << "\n" << text_of(findings));
    if (std::find(not_looked_at.begin(), not_looked_at.end(), test.name) != not_looked_at.end()) {
      CHECK_FALSE(finds(findings, Severity::Error));
      continue;
    }
    const bool races = std::find(test.expected.begin(), test.expected.end(),
                                 emulator::Rule::SharedRace) != test.expected.end();
    if (races) {
      ++racy;
      std::set<std::uint32_t> lines;
      for (const Finding& finding : findings) {
        if (finding.severity == Severity::Note) continue;
        lines.insert(finding.line);
        lines.insert(finding.other_line);
      }
      for (const std::uint32_t line : test.must) CHECK(lines.count(line) == 1);
      CHECK((finds(findings, Severity::Error) || finds(findings, Severity::Warning)));
    } else if (test.clean) {
      ++clean;
      CHECK_FALSE(finds(findings, Severity::Error));
      const bool followed =
          std::find(not_followed.begin(), not_followed.end(), test.name) == not_followed.end();
      if (followed) CHECK_FALSE(finds(findings, Severity::Warning));
    }
  }
  CHECK(racy >= 25);
  CHECK(clean >= 150);
}
