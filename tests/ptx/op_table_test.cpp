// tests/ptx/op_table_test.cpp - every row: printed, parsed, gated
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "ptx/op_line.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using ptxgen::test::OpLine;

namespace {

constexpr Version kNewest{9, 0};

std::string joined(const std::set<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += "\n  " + item;
  return text;
}

// The kernel of a parsed `module_with`.
const Function& kernel(const Module& module) { return *module.find_function("k"); }

bool contains(const Instruction& instruction, Modifier word) {
  for (const Modifier m : instruction.modifiers) {
    if (m == word) return true;
  }
  return false;
}

bool satisfies(const Instruction& instruction, const Need& need) {
  for (const Modifier word : condition(need)) {
    if (!contains(instruction, word)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every row of the op table has a line, and every need one that meets it") {
  std::set<std::string> missing;
  std::map<Op, std::vector<Instruction>> examples;
  const Module module = parse(test::module_with(test::op_lines(), "sm_90a", kNewest));
  for (const Instruction& statement : kernel(module).body) {
    if (statement.kind == StatementKind::Instruction) examples[statement.op].push_back(statement);
  }
  for (const OpInfo& row : op_table()) {
    if (examples[row.op].empty()) missing.insert(std::string(row.id));
    for (const Need& need : needs(row)) {
      if (need.condition_count == 0 || need.requirement.never()) continue;
      bool met = false;
      for (const Instruction& example : examples[row.op]) met = met || satisfies(example, need);
      std::string words;
      for (const Modifier word : condition(need)) words += "." + std::string(name(word));
      if (!met) missing.insert(std::string(row.id) + " with " + words);
    }
  }
  INFO("rows or needs without a line:" << joined(missing));
  CHECK(missing.empty());
  CHECK(op_table().size() > 250);
}

TEST_CASE("lines are read as their row, print back unchanged and are legal") {
  std::set<std::string> wrong;
  std::size_t checked = 0;
  const auto lines = test::op_lines();
  const Module module = parse(test::module_with(lines, "sm_90a", kNewest));
  const Function& function = kernel(module);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const OpLine& line = lines[i];
    const auto* statement =
        test::statement_on(function, test::first_line() + static_cast<std::uint32_t>(i));
    const std::string shown = std::string(info(line.op).id) + ": " + std::string(line.text);
    if (statement == nullptr || statement->kind != StatementKind::Instruction) {
      wrong.insert(shown + " is not read as an instruction of the table");
      continue;
    }
    if (statement->op != line.op) {
      wrong.insert(shown + " is read as " + std::string(info(statement->op).id));
      continue;
    }
    const std::string printed = print(module, function, *statement);
    if (printed != line.text) wrong.insert(shown + " prints as " + printed);
    const InstructionFault fault = check_operands(module, function, *statement);
    if (!fault.rule.empty()) wrong.insert(shown + ": " + fault.message);
    ++checked;
  }
  INFO(joined(wrong));
  CHECK(wrong.empty());
  CHECK(checked == lines.size());
  CHECK(difference(module, parse(print(module))) == "");
}

TEST_CASE("a line is accepted by the lowest target and version it claims, and not below") {
  std::set<std::string> wrong;
  std::size_t refused_by_target = 0;
  std::size_t refused_by_version = 0;
  for (const OpLine& line : test::op_lines()) {
    Module module = parse(test::module_with({&line, 1}, "sm_75", kNewest));
    const Function& function = kernel(module);
    const auto* statement = test::statement_on(function, test::first_line());
    REQUIRE(statement != nullptr);
    const Target* lowest = test::lowest_target(function, *statement);
    if (lowest == nullptr) {
      wrong.insert(std::string(line.text) + " is offered by no target");
      continue;
    }
    module.target = lowest->name;
    module.version = lowest_version(module, lowest->name);
    for (const Finding& finding : verify(module)) wrong.insert(to_text(finding));

    // A target that lacks it: any of the table, or an older one by its number.
    TargetName lacking{0, Variant::None};
    for (const Target& target : targets()) {
      const TargetName candidate{target.sm, target.variant};
      if (check_target(function, *statement, candidate, {255, 255}).rule == "target-lacks")
        lacking = candidate;
    }
    if (lacking.sm == 0 &&
        check_target(function, *statement, {1, Variant::None}, {255, 255}).rule == "target-lacks") {
      lacking.sm = 1;
    }
    if (lacking.sm != 0) {
      ++refused_by_target;
      Module other = module;
      other.target = name(lacking);
      bool reported = false;
      for (const Finding& finding : verify(other)) {
        reported =
            reported || (finding.rule == "target-lacks" && finding.line == test::first_line());
      }
      if (!reported) wrong.insert(std::string(line.text) + " is not refused on " + other.target);
      CHECK_THROWS_AS(lowest_version(other, other.target), Error);
    }
    // A version below its own need.
    const Version own = [&] {
      Module ancient = module;
      ancient.target = "sm_1000";  // beyond the table: no version of its own
      try {
        return lowest_version(ancient, ancient.target);
      } catch (const Error&) {
        return Version{1, 0};
      }
    }();
    if (own > Version{1, 0}) {
      Module older = module;
      older.version = {1, 0};
      older.target = lowest->name;
      bool reported = false;
      for (const Finding& finding : verify(older)) {
        reported =
            reported || (finding.rule == "version-too-low" && finding.line == test::first_line());
      }
      if (!reported) wrong.insert(std::string(line.text) + " is not refused with .version 1.0");
      ++refused_by_version;
    }
  }
  INFO(joined(wrong));
  CHECK(wrong.empty());
  CHECK(refused_by_target > 100);
  CHECK(refused_by_version > 200);
}
