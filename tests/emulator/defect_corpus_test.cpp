// tests/emulator/defect_corpus_test.cpp - the corpus of defects is complete and legal PTX
#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <map>

#include "emulator/defect_corpus.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

const std::vector<DefectCase>& corpus() {
  static const std::vector<DefectCase> cases = read_cases(DEFECTS_FOLDER, ".ptx");
  return cases;
}

std::string target_of(const std::string& text) {
  const std::size_t at = text.find(".target ") + 8;
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("half of the corpus is clean and every rule has two of each") {
  struct Count {
    int defective = 0;
    int clean = 0;
  };
  std::map<emulator::Rule, Count> counts;
  std::map<std::string, int> targets;
  int clean = 0;
  for (const DefectCase& test : corpus()) {
    ++(test.clean ? counts[test.about].clean : counts[test.about].defective);
    ++targets[target_of(test.text)];
    if (test.clean) ++clean;
    INFO(test.name);
    CHECK(test.clean == test.name.starts_with("clean_"));
  }
  CHECK(corpus().size() >= 140);
  CHECK(2 * clean >= static_cast<int>(corpus().size()));
  for (std::size_t i = 0; i < emulator::rules().size(); ++i) {
    INFO(emulator::rules()[i].name);
    CHECK(counts[static_cast<emulator::Rule>(i)].defective >= 2);
    CHECK(counts[static_cast<emulator::Rule>(i)].clean >= 2);
  }
  for (const auto* target : {"sm_75", "sm_80", "sm_90"}) {
    INFO(target);
    CHECK(targets[target] >= 20);
  }
  std::cout << corpus().size() << " kernels, " << clean << " of them clean\n";
}

TEST_CASE("the corpus is legal PTX") {
  for (const DefectCase& test : corpus()) {
    INFO(test.name);
    const ptx::Module module = ptx::parse(test.text, test.name);
    ptx::VerifyOptions options;
    options.entry = "kernel";
    std::string found;
    for (const Finding& finding : ptx::verify(module, options)) found += to_text(finding) + '\n';
    CHECK(found == "");
  }
}

TEST_CASE("the corpus assembles") {
  const Assembler assembler{Settings::from_environment()};
  if (!assembler.available()) return skip("no assembler found: install ptxas or nvJitLink");
  for (const DefectCase& test : corpus()) {
    AssembleOptions options;
    options.target = target_of(test.text);
    options.file = test.name;
    options.optimization = 0;
    try {
      CHECK(!assembler.assemble(test.text, options).cubin.empty());
    } catch (const Error& error) {
      if (error.code == "unknown-target") {
        skip_part("the assembler does not know " + options.target);
        continue;
      }
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("first lines of a case that are wrong are refused") {
  const auto reason = [](const std::string& text) -> std::string {
    try {
      (void)read_case("x", text);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "read";
  };
  CHECK(reason("// run: grid=1 block=2\n// expect: clean trap\n") == "read");
  CHECK(reason("// run: grid=1\n") == "x: lacks // run: or // expect:");
  CHECK(reason("// run: speed=1\n") == "x: 'speed' is nothing that // run: knows");
  CHECK(reason("// run: grid=1\n// expect: trapp\n") == "x: no rule 'trapp'");
  CHECK(reason("// run: grid=1\n// expect: trap\n") == "x: no line is marked");
  CHECK(reason("// run: grid=1\n// expect: trap\ntrap; // <- assert\n") ==
        "x: line 3 is marked with a rule not expected");
  CHECK(reason("// run: grid=1\n// expect: trap\ntrap; // <- trap\n") == "read");
}
