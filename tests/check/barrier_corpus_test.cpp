// tests/check/barrier_corpus_test.cpp - barriers judged by hand, gate and emulator
#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string_view>

#include "check/barrier_corpus.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"
#include "support/findings.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

void judge(const std::string& file, std::size_t min) {
  const std::vector<BarrierCase> cases =
      read_barrier_cases(std::string(BARRIER_CORPUS) + "/" + file);
  CHECK(cases.size() >= min);
  for (const BarrierCase& test : cases) {
    INFO(test.name);
    const ptx::Module module = ptx::parse(test.ptx);
    const std::vector<Finding> legal = ptx::verify(module);
    INFO(findings_of(legal));
    CHECK(legal.empty());
    gates::GateOptions options;
    if (test.shape == BarrierCase::Shape::Known) options.block = test.block;
    const std::vector<Finding> findings = gates::barrier_safety(module, options);
    BarrierCase::Verdict verdict = BarrierCase::Verdict::Clean;
    for (const Finding& finding : findings) {
      const bool exits = finding.rule == "exited-before-barrier";
      CHECK((exits || finding.rule == "barrier-divergence"));
      CHECK(finding.line != 0);
      verdict = std::max(verdict, finding.severity == Severity::Error ? BarrierCase::Verdict::Error
                                  : exits                             ? BarrierCase::Verdict::Exits
                                          : BarrierCase::Verdict::Warning);
    }
    INFO(findings_of(findings));
    CHECK(static_cast<int>(verdict) == static_cast<int>(test.verdict));
    if (test.run == BarrierCase::Run::CannotRun) continue;
    BarrierProgram program(test.ptx);
    BarrierRun run;
    bool left = false;
    for (std::uint64_t seed = 0; seed < 50 && !run.fault; ++seed) {
      run = program.run(test.block, test.n, seed);
      left = left || run.left;
    }
    INFO(run.findings);
    // What fails may show as threads that left before the others came.
    const bool fails = test.run == BarrierCase::Run::Fails;
    CHECK((run.fault || (fails && left)) == fails);
    if (test.run != BarrierCase::Run::Fails) CHECK(left == (test.run == BarrierCase::Run::Leaves));
    if (test.verdict == BarrierCase::Verdict::Exits) CHECK(test.run != BarrierCase::Run::Fails);
    CHECK_FALSE(run.over_budget);
    // What is called safe must not fail, and what is called wrong must.
    if (test.verdict == BarrierCase::Verdict::Clean) CHECK(test.run == BarrierCase::Run::Passes);
    if (test.verdict == BarrierCase::Verdict::Error) CHECK(test.run == BarrierCase::Run::Fails);
  }
  std::cout << file << ": " << cases.size() << " kernels\n";
}

}  // namespace

namespace {

std::string texts_of(const std::string& file) {
  std::string text;
  for (const BarrierCase& test : read_barrier_cases(file)) {
    gates::GateOptions options;
    if (test.shape == BarrierCase::Shape::Known) options.block = test.block;
    text += "== " + test.name + "\n" +
            findings_of(gates::barrier_safety(ptx::parse(test.ptx, "k.ptx"), options));
  }
  return text;
}

}  // namespace

TEST_CASE("every message about a barrier reads as it should") {
  const bool rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS") != nullptr;
  for (const char* name : {"errors", "exits", "warnings", "functions"}) {
    const std::string file = std::string(BARRIER_CORPUS) + "/" + name;
    const std::string text = texts_of(file + ".txt");
    if (rewrite) std::ofstream(file + ".golden") << text;
    std::ifstream in(file + ".golden");
    const std::string wanted{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    CHECK(text == wanted);
  }
  if (rewrite) FAIL("goldens were rewritten; look at the difference");
}

TEST_CASE("barriers that some threads miss are errors, and fail when run") {
  judge("errors.txt", 25);
}
TEST_CASE("threads that leave before a barrier are a warning, an error in code that we built") {
  judge("exits.txt", 30);
  int errors = 0;
  for (const BarrierCase& test : read_barrier_cases(std::string(BARRIER_CORPUS) + "/exits.txt")) {
    INFO(test.name);
    ptx::Module module = ptx::parse(test.ptx);
    const auto severities = [&](gates::CodeOrigin origin, std::string_view target) {
      gates::GateOptions options{.target = target, .origin = origin};
      if (test.shape == BarrierCase::Shape::Known) options.block = test.block;
      std::set<std::string> found;
      for (const Finding& finding : gates::barrier_safety(module, options)) {
        found.insert(std::string(to_string(finding.severity)) + " " + finding.rule);
      }
      return found;
    };
    using Found = std::set<std::string>;
    const Found warning{"warning exited-before-barrier"}, error{"error exited-before-barrier"};
    CHECK(severities(gates::CodeOrigin::Foreign, "sm_70") == warning);
    const Found built = severities(gates::CodeOrigin::Built, "sm_90");
    CHECK(severities(gates::CodeOrigin::Foreign, "sm_61") == built);
    // What depends on loaded data stays a warning.
    if (test.run == BarrierCase::Run::Leaves && built == error) ++errors;
    if (test.run != BarrierCase::Run::Leaves) CHECK(built == warning);
  }
  CHECK(errors >= 25);
}
TEST_CASE("barriers that cannot be shown safe are warnings") { judge("warnings.txt", 35); }
TEST_CASE("barriers that all threads reach are not reported") { judge("clean.txt", 50); }
TEST_CASE("barriers in functions and beside their calls are judged together") {
  judge("functions.txt", 20);
}
