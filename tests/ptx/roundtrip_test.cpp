// tests/ptx/roundtrip_test.cpp - random modules: print, parse, assemble
#include <rapidcheck/catch.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "ptx/function_generator.hpp"
#include "ptx/module_generator.hpp"
#include "ptx/op_line.hpp"
#include "ptx/scrambler.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/cubin.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using ptxgen::test::Recipe;

namespace rc {

// Seeds do not shrink; sizes do.
template <>
struct Arbitrary<Recipe> {
  static Gen<Recipe> arbitrary() {
    return gen::build<Recipe>(
        gen::set(&Recipe::seed,
                 gen::noShrink(gen::resize(kNominalSize, gen::arbitrary<std::uint64_t>()))),
        gen::set(&Recipe::functions, gen::inRange(1u, 6u)),
        gen::set(&Recipe::statements, gen::inRange(0u, 60u)));
  }
};

}  // namespace rc

namespace {

std::string findings_of(const Module& module) {
  std::string text;
  for (const Finding& finding : verify(module)) text += to_text(finding) + "\n";
  return text;
}

// As rc::prop, with a number of cases of its own.
template <typename Property>
void check_property(const std::string& name, int cases, Property property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = cases;
  rc::detail::TestMetadata metadata;
  metadata.id = name;
  metadata.description = name;
  const auto result = rc::detail::checkTestable(property, metadata, params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  INFO(name << ": " << text.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

// Catch2 would print the text of a module that fails on one line.
[[noreturn]] void fail(const std::string& what, const std::string& text) {
  std::ostringstream numbered;
  std::istringstream lines(text);
  std::string line;
  for (unsigned number = 1; std::getline(lines, line); ++number) {
    numbered << number << "\t" << line << "\n";
  }
  RC_FAIL(what + "\n" + numbered.str());
}

Version before(Version version) {
  const auto all = test::versions();
  const auto at = std::find(all.begin(), all.end(), version);
  return at == all.begin() || at == all.end() ? Version{1, 0} : *(at - 1);
}

bool has_ptxas(const Assembler& assembler) {
  const auto tools = assembler.tools();
  return std::any_of(tools.begin(), tools.end(), [](const AssemblerFinding& tool) {
    return tool.tool == AssemblerTool::Ptxas && tool.found;
  });
}

// What a module exercises, to see that the generator leaves nothing out.
struct Coverage {
  std::set<Op> rows;
  std::set<StatementKind> statements;
  std::set<std::string> targets;
  std::size_t instructions = 0;
  std::size_t functions = 0;
  std::size_t shadowed_labels = 0;

  void add(const Module& m) {
    targets.insert(m.target);
    for (const Function& f : m.functions) {
      ++functions;
      std::map<NameId, std::set<std::uint32_t>,
               decltype([](NameId a, NameId b) { return a.value < b.value; })>
          scopes;
      for (const Label& label : f.labels) scopes[label.name].insert(label.scope);
      for (const auto& [name, where] : scopes) shadowed_labels += where.size() > 1 ? 1 : 0;
      for (const Instruction& s : f.body) {
        statements.insert(s.kind);
        if (s.kind != StatementKind::Instruction) continue;
        rows.insert(s.op);
        ++instructions;
      }
    }
  }
};

}  // namespace

TEST_CASE("a random module parses back from its text as it was, and is found legal") {
  Coverage coverage;
  check_property("parse(print(m)) equals m", test::count(3000, 50000), [&](const Recipe& recipe) {
    const Module m = test::random_module(recipe);
    const std::string text = print(m);
    const Module back = parse(text);
    if (const std::string found = difference(m, back); !found.empty()) fail(found, text);
    if (print(back) != text) fail("prints differently: " + print(back), text);
    if (const std::string found = findings_of(m); !found.empty()) fail(found, text);
    coverage.add(m);
  });
  std::cout << "random modules: " << coverage.functions << " functions, " << coverage.instructions
            << " instructions of " << coverage.rows.size() << " rows for "
            << coverage.targets.size() << " targets, " << coverage.shadowed_labels
            << " label names in several scopes\n";
  std::string missing;
  for (const TargetName newest :
       {TargetName{103, Variant::Architecture}, TargetName{90, Variant::None}}) {
    for (const Op op : test::free_rows(newest)) {
      if (coverage.rows.count(op) == 0) missing += " " + std::string(info(op).id);
    }
  }
  INFO("rows that no module used:" << missing);
  CHECK(missing.empty());
  CHECK(coverage.targets.size() == targets().size());
  CHECK(coverage.statements.size() == 9);  // all but Unknown and CallTargets
  CHECK(coverage.shadowed_labels > 30);
}

TEST_CASE("the lowest version of a random module is enough and one below is not") {
  std::size_t refused = 0;
  check_property("lowest_version", test::count(1000, 10000), [&](const Recipe& recipe) {
    Module m = test::random_module(recipe);
    const Version lowest = lowest_version(m, m.target);
    m.version = lowest;
    if (const std::string found = findings_of(m); !found.empty()) fail(found, print(m));
    m.version = before(lowest);
    bool reported = false;
    for (const Finding& finding : verify(m)) {
      RC_ASSERT(finding.rule == "version-too-low");
      reported = true;
    }
    RC_ASSERT(reported);
    ++refused;
  });
  CHECK(refused >= 1000);
}

TEST_CASE("a random module in another spelling is the same module") {
  check_property("parse(scrambled(print(m))) equals m", test::count(2000, 30000),
                 [](const Recipe& recipe) {
                   const Module m = test::random_module(recipe);
                   const std::string text = print(m);
                   const std::string other = test::scrambled(text, recipe.seed);
                   RC_ASSERT(other != text);
                   const Module back = parse(other);
                   if (const std::string found = difference(m, back); !found.empty())
                     fail(found, other);
                   if (print(back) != text) fail("prints differently:\n" + print(back), text);
                 });
}

TEST_CASE("a random module assembles to the code of its other spellings") {
  const Assembler assembler(Settings::from_environment());
  if (!has_ptxas(assembler))
    return test::skip("ptxas is not installed, random modules stay unassembled");
  std::size_t bytes = 0;
  std::size_t compared = 0;
  int broke = 0;
  const int cases = test::count(40, 800);
  check_property("same machine code", cases, [&](const Recipe& recipe) {
    const Module m = test::random_module(recipe);
    const std::string text = test::scrambled(print(m), recipe.seed);
    const std::string printed = print(parse(text));
    AssembleOptions options;
    options.target = m.target;
    // In a process of its own: assemblers break, and optimising random control flow can take for
    // ever.
    options.tool = AssemblerTool::Ptxas;
    options.timeout_ms = 20000;
    // Without optimisation every instruction of the text becomes code.
    options.optimization = test::full() && recipe.seed % 4 == 0 ? 1 : 0;
    std::vector<std::byte> cubins[2];
    for (int i = 0; i < 2; ++i) {
      const std::string& source = i == 0 ? text : printed;
      try {
        cubins[i] = assembler.assemble(source, options).cubin;
      } catch (const Error& error) {
        if (error.code == "timeout" || error.code == "tool-failed") {
          ++broke;
          return;
        }
        fail(std::string(error.what()) + "\n" + error.log, source);
      }
    }
    const test::CodeComparison comparison = test::same_code(cubins[0], cubins[1]);
    if (!comparison) fail(comparison.text, printed);
    for (const auto& [name, code] : test::text_sections(cubins[0])) bytes += code.size();
    ++compared;
  });
  std::cout << "compared " << compared << " modules, " << bytes
            << " bytes of machine code; the assembler broke or "
            << "did not end " << broke << " times\n";
  CHECK(broke * 20 <= cases);
}
