// tests/check/race_corpus_test.cpp - compilers' kernels with shared memory are not refused
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

/// A list of one register is the register: Triton writes every scalar access with braces.
std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return std::regex_replace(text, std::regex(R"(\{ (%\w+) \})"), "$1");
}

/// How often each rule of the gates before a load is told, with its severity.
std::map<std::string, int> told(const ptx::Module& module, const gates::GateOptions& options) {
  std::map<std::string, int> counts;
  gates::GateRun shared(module, options);
  for (const gates::GateInfo& gate : gates::all_gates()) {
    const std::vector<Finding> alone = gate.run(module, options);
    const std::vector<Finding> together = shared.run(gate);
    // Analyses that gates share make no difference.
    REQUIRE(together.size() == alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(to_text(together[i]) == to_text(alone[i]));
    if (!gate.before_load) continue;
    for (const Finding& finding : alone) {
      INFO(to_text(finding));
      CHECK(finding.severity != Severity::Error);
      ++counts[std::string(to_string(finding.severity)) + " " + finding.rule];
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("no kernel of a compiler is refused for a race") {
  int files = 0, notes = 0, warnings = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RACE_CORPUS)) {
    if (entry.path().extension() != ".ptx") continue;
    const std::string name = entry.path().filename().string();
    INFO(name);
    const ptx::Module module = ptx::parse(content(entry.path()), name);
    for (const auto& [what, count] : told(module, {})) {
      (what.starts_with("note") ? notes : warnings) += count;
    }
    ++files;
  }
  std::cout << files << " files of compilers: no errors, " << warnings << " warnings, " << notes
            << " notes\n";
  CHECK(files >= 9);
}

TEST_CASE("what a warp has reduced and stores from all lanes is a note in Triton's kernels") {
  const auto of = [](const std::string& name) {
    const std::filesystem::path folder(RACE_CORPUS);
    return told(ptx::parse(content(folder / ("triton_" + name + ".ptx")), name), {});
  };
  using Counts = std::map<std::string, int>;
  const Counts none, one{{"note race-same-value", 1}}, two{{"note race-same-value", 2}};
  CHECK(of("softmax") == two);
  CHECK(of("layer_norm") == two);
  CHECK(of("sum_loop") == one);
  CHECK(of("histogram") == one);
  CHECK(of("scan") == none);
  CHECK(of("transpose") == none);
  // The value and its index are chosen together: not shown to be equal, and no error.
  CHECK(of("argmax") == Counts{{"warning shared-race", 2}});
}

TEST_CASE("CUDA samples: races that a launch could have are warnings that name it") {
  const std::filesystem::path file = std::filesystem::path(RACE_CORPUS) / "cuda_samples.sm_80.ptx";
  const ptx::Module module = ptx::parse(content(file), "cuda_samples.ptx");
  std::map<std::string, std::string> worst;
  for (const Finding& finding : gates::shared_race(module)) {
    std::string& text = worst[finding.kernel];
    if (finding.severity == Severity::Warning) text = "warning";
    if (text.empty()) text = finding.rule;
  }
  CHECK(worst.count("cg_rank_sum") == 0);
  CHECK(worst["softmax_rows"] == "race-same-value");
  CHECK(worst["one_thread"] == "warning");
  int exits = 0;
  for (const Finding& finding : gates::barrier_safety(module)) {
    CHECK(finding.rule == "exited-before-barrier");
    CHECK(finding.kernel == "early_return_sum");
    ++exits;
  }
  CHECK(exits == 1);
}
