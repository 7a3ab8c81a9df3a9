// tests/ptx/op_assembly_test.cpp - claims of the op table against an assembler
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "ptx/op_line.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using ptxgen::test::OpLine;

namespace {

std::string shown(Version v) { return std::to_string(v.major) + "." + std::to_string(v.minor); }

// The lines of a text that an assembler's log complains about ("line 12; error").
std::set<std::uint32_t> complained_lines(std::string_view log) {
  std::set<std::uint32_t> lines;
  for (std::size_t at = log.find("line "); at != std::string_view::npos;
       at = log.find("line ", at + 1)) {
    std::uint32_t number = 0;
    std::size_t end = at + 5;
    for (; end < log.size() && log[end] >= '0' && log[end] <= '9'; ++end) {
      number = number * 10 + static_cast<std::uint32_t>(log[end] - '0');
    }
    const std::string_view rest = log.substr(end, 16);
    if (rest.find("error") != std::string_view::npos) lines.insert(number);
  }
  return lines;
}

struct Claim {
  OpLine line;
  const Target* target;
  Version version;
};

std::vector<Claim> claims() {
  std::vector<Claim> all;
  for (const OpLine& line : test::op_lines()) {
    const Module module = parse(test::module_with({&line, 1}, "sm_75", {9, 0}));
    const Function& function = *module.find_function("k");
    const auto* statement = test::statement_on(function, test::first_line());
    REQUIRE(statement != nullptr);
    const Target* target = test::lowest_target(function, *statement);
    REQUIRE(target != nullptr);
    all.push_back({line, target, lowest_version(module, target->name)});
  }
  return all;
}

// What the assembler says of these lines: the set of those it refuses, by number.
std::set<std::uint32_t> refused(const Assembler& assembler, const std::vector<OpLine>& lines,
                                std::string_view target, Version version, std::string& log) {
  AssembleOptions options;
  options.target = target;
  options.optimization = 0;
  options.tool = AssemblerTool::Ptxas;  // it names every line at once
  try {
    log = assembler.assemble(test::module_with(lines, target, version), options).log;
    return {};
  } catch (const Error& error) {
    log = error.log;
    return complained_lines(error.log);
  }
}

bool has_ptxas(const Assembler& assembler) {
  for (const AssemblerFinding& tool : assembler.tools()) {
    if (tool.tool == AssemblerTool::Ptxas) return tool.found;
  }
  return false;
}

}  // namespace

TEST_CASE("each line assembles for the lowest target and version it claims") {
  const Assembler assembler(Settings::from_environment());
  if (!has_ptxas(assembler))
    return test::skip("ptxas is not installed, the op table's claims stay unchecked");
  std::map<std::tuple<std::string, Version>, std::vector<OpLine>> groups;
  for (const Claim& claim : claims()) {
    groups[{std::string(claim.target->name), claim.version}].push_back(claim.line);
  }
  std::size_t assembled = 0;
  for (const auto& [key, lines] : groups) {
    const auto& [target, version] = key;
    std::string log;
    for (const std::uint32_t line : refused(assembler, lines, target, version, log)) {
      const std::size_t index = line - test::first_line();
      FAIL_CHECK(target << ", PTX " << shown(version) << ": "
                        << (index < lines.size() ? lines[index].text : "line outside the list")
                        << "\n"
                        << log);
    }
    assembled += lines.size();
  }
  CHECK(assembled == test::op_lines().size());
}

TEST_CASE("the assembler refuses each line one version below its claim") {
  const Assembler assembler(Settings::from_environment());
  if (!has_ptxas(assembler))
    return test::skip("ptxas is not installed, the op table's claims stay unchecked");
  std::map<std::tuple<std::string, Version>, std::vector<OpLine>> groups;
  for (const Claim& claim : claims()) {
    if (claim.line.lax) continue;
    const auto all = test::versions();
    const auto at = std::find(all.begin(), all.end(), claim.version);
    REQUIRE(at != all.end());
    if (at == all.begin()) continue;
    const Version below = *(at - 1);
    // Where the target itself is that new, ptxas refuses the file, not the line.
    if (below < claim.target->version) continue;
    groups[{std::string(claim.target->name), below}].push_back(claim.line);
  }
  std::size_t checked = 0;
  for (const auto& [key, lines] : groups) {
    const auto& [target, version] = key;
    std::string log;
    const auto found = refused(assembler, lines, target, version, log);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (found.count(test::first_line() + static_cast<std::uint32_t>(i)) == 0) {
        FAIL_CHECK(target << ", PTX " << shown(version)
                          << " accepts what the table says is newer: " << lines[i].text);
      }
    }
    checked += lines.size();
  }
  CHECK(checked > 30);
}
