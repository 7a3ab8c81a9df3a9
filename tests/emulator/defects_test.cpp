// tests/emulator/defects_test.cpp - every defect is found under every schedule, nothing else
#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>

#include "emulator/defect_corpus.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// The bar of the corpus, also in everyday runs.
constexpr int kSeeds = 20;

void check_rule(emulator::Rule rule, bool clean) {
  static const std::vector<DefectCase> cases = read_cases(DEFECTS_FOLDER, ".ptx");
  std::size_t checked = 0;
  for (const DefectCase& test : cases) {
    if (test.about != rule || test.clean != clean) continue;
    ++checked;
    const std::string text = complaints(test, test.text, kSeeds);
    CHECK(text == "");
  }
  CHECK(checked >= 2);
}

}  // namespace

// One case for each rule, so that ctest spreads them and a failure names the rule.
#define PTXGEN_RULE(id, name, severity, on, doc)                                   \
  TEST_CASE("defects are found: " name) { check_rule(emulator::Rule::id, false); } \
  TEST_CASE("look-alikes are clean: " name) { check_rule(emulator::Rule::id, true); }
#include "ptxgen/emulator/report/rules.def"

TEST_CASE("the runner notices what is missing, misplaced or too much") {
  const DefectCase defect = read_case(
      "x", "// run: grid=1 block=1\n// expect: trap\ntrap; // <- trap\nret; // <~ trap\n");
  const DefectCase clean = read_case("x", "// run: grid=1 block=1\n// expect: clean trap\n");
  const auto found = [](emulator::Rule rule, std::uint32_t line) {
    emulator::RunFinding finding;
    finding.rule = rule;
    finding.finding.rule = std::string(emulator::info(rule).name);
    finding.finding.severity = emulator::info(rule).severity;
    finding.finding.message = "m";
    finding.finding.line = line;
    return finding;
  };
  emulator::Result result;
  CHECK(judge(clean, result) == "");
  CHECK(judge(defect, result) == "not found: trap\n");
  result.status = emulator::Status::Fault;
  CHECK(judge(clean, result) == "the status does not fit the findings\n");
  result.findings = {found(emulator::Rule::Trap, 3)};
  CHECK(judge(defect, result) == "");
  CHECK(judge(clean, result).starts_with("not expected: "));
  result.findings = {found(emulator::Rule::Trap, 4)};
  CHECK(judge(defect, result) == "no finding names line 3\n");
  result.findings = {found(emulator::Rule::Trap, 3), found(emulator::Rule::Trap, 5)};
  CHECK(judge(defect, result).starts_with("line 5 is not marked: "));
  result.findings = {found(emulator::Rule::Trap, 3), found(emulator::Rule::Misaligned, 3)};
  CHECK(judge(defect, result).starts_with("not expected: "));
  result.status = emulator::Status::Ok;
  result.findings = {found(emulator::Rule::DivisionByZero, 3)};
  CHECK(judge(clean, result).starts_with("not expected: "));
}
