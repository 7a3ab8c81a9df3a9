// tests/ptx/tensor_map_test.cpp - forms of tensormap that are refused, here and by ptxas
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ptx/op_line.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using ptxgen::test::OpLine;

namespace {

struct Case {
  std::string statement;
  std::string expected;  ///< what the finding has; empty: none
};
struct Group {
  std::string target;
  Version version;
  std::vector<Case> cases;
};

const std::string kReplace = "tensormap.replace.tile.";
const std::string kPublish =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned ";

/// tensormap.replace of a 32-bit field of a global map.
Case field(const std::string& name, const std::string& operands, const std::string& expected) {
  return {kReplace + name + ".global.b1024.b32 [%rd1], " + operands + ";", expected};
}

std::vector<Case> operand_cases() {
  const std::string unknown = "[unknown-instruction]";
  return {
      {kReplace + "global_address.global.b1024.b64 [%rd1], %rd2;", ""},
      {kReplace + "global_address.shared::cta.b1024.b64 [%r1], 17;", ""},
      {kReplace + "global_address.shared::cta.b1024.b64 [s], %rd2;", ""},
      {kReplace + "global_address.b1024.b64 [s], %rd2;", ""},
      {kReplace + "global_address.shared::cta.b1024.b64 [g], %rd2;",
       "accesses .shared, but 'g' of operand 1 is in .global [type-mismatch]"},
      {kReplace + "global_address.shared.b1024.b64 [%r1], %rd2;", unknown},
      {kReplace + "global_address.shared::cluster.b1024.b64 [%r1], %rd2;", unknown},
      {kReplace + "global_address.const.b1024.b64 [%rd1], %rd2;", unknown},
      {kReplace + "global_address.global.b1024.b32 [%rd1], %r2;", unknown},
      {kReplace + "global_address.global.b64 [%rd1], %rd2;", unknown},
      {"tensormap.replace.im2col.global_address.global.b1024.b64 [%rd1], %rd2;", unknown},
      {kReplace + "global_address.global.b1024.b64 [%rd1], %r2;",
       "expects .b64 as operand 2, but '%r2' is .b32 [type-mismatch]"},
      {kReplace + "global_address.global.b1024.b64 [%rd1], g;",
       "expects a register or constant, not the name of a symbol as operand 2 [bad-operand]"},
      {kReplace + "rank.global.b1024.b64 [%rd1], %rd2;", unknown},
      field("rank", "%r2", ""),
      field("rank", "4", ""),
      field("rank", "%f2", ""),
      field("rank", "%rd2", "expects .b32 as operand 2, but '%rd2' is .b64 [type-mismatch]"),
      field("rank", "0, %r2", "takes 2 operands, not 3 [bad-operand]"),
      field("box_dim", "4, %r2", ""),
      field("box_dim", "5, %r2", "expects 0 to 4 as operand 2 [bad-operand]"),
      field("global_dim", "-1, %r2", "expects 0 to 4 as operand 2 [bad-operand]"),
      field("element_stride", "5, 1", "expects 0 to 4 as operand 2 [bad-operand]"),
      field("element_stride", "%r1, 1", "expects an integer constant as operand 2 [bad-operand]"),
      field("global_dim", "%r2", "takes 3 operands, not 2 [bad-operand]"),
      field("global_stride", "0, %r2", unknown),
      {kReplace + "global_stride.global.b1024.b64 [%rd1], 3, %rd2;", ""},
      {kReplace + "global_stride.global.b1024.b64 [%rd1], 5, %rd2;",
       "expects 0 to 4 as operand 2 [bad-operand]"},
      field("elemtype", "12", ""),
      field("elemtype", "16", "expects 0 to 15 as operand 2 [bad-operand]"),
      field("elemtype", "%r2", "expects an integer constant as operand 2 [bad-operand]"),
      field("interleave_layout", "2", ""),
      field("interleave_layout", "3", "expects 0 to 2 as operand 2 [bad-operand]"),
      field("swizzle_mode", "3", ""),
      field("swizzle_mode", "5", "expects 0 to 4 as operand 2 [bad-operand]"),
      field("fill_mode", "1", ""),
      field("fill_mode", "2", "expects 0 to 1 as operand 2 [bad-operand]"),
      {kPublish + "[%rd1], [%r2], 128;", ""},
      {kPublish + "[g], [s], 128;", ""},
      {kPublish + "[%rd1], [%rd2], 128;", ""},
      {kPublish + "[%rd1], [%r2], 64;",
       "expects 128, the size of a tensor map, as operand 3 [bad-operand]"},
      {kPublish + "[%rd1], [%r2], %r3;", "expects an integer constant as operand 3 [bad-operand]"},
      {kPublish + "[s], [g], 128;",
       "accesses .global, but 's' of operand 1 is in .shared [type-mismatch]"},
      {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.acq_rel.gpu.sync.aligned "
       "[%rd1], [%r2], 128;",
       unknown},
      {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu [%rd1], [%r2], "
       "128;",
       unknown},
      {"fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;", ""},
      {"fence.proxy.tensormap::generic.acquire.gpu [%rd1], 64;",
       "expects 128, the size of a tensor map, as operand 2 [bad-operand]"},
  };
}

std::vector<Group> groups() {
  const Case plain = field("rank", "0", "");
  const Case atoms = field("swizzle_atomicity", "3", "");
  const Case packed = field("elemtype", "13", "");
  const Case wide = field("swizzle_mode", "4", "");
  const auto refused = [](Case one, const std::string& text) {
    one.expected = text;
    return one;
  };
  const auto needs = [](const std::string& version) { return "needs PTX " + version; };
  std::vector<Group> all = {
      {"sm_90a", {8, 3}, operand_cases()},
      {"sm_90a", {8, 2}, {refused(plain, needs("8.3") + ", .version is 8.2 [version-too-low]")}},
      {"sm_90", {8, 6}, {refused(plain, "needs sm_90a or sm_100a or sm_100f")}},
      {"sm_90a",
       {9, 0},
       {refused(atoms, "'.swizzle_atomicity' on 'tensormap' needs sm_100a or sm_100f"),
        refused(packed, "a number of 13 to 15 of '.elemtype' on 'tensormap.replace' needs sm_100a"),
        refused(wide,
                "number 4 of '.swizzle_mode' on 'tensormap.replace' needs sm_103a, the "
                "target is sm_90a [target-lacks]")}},
      {"sm_100", {9, 0}, {refused(plain, "needs sm_90a or sm_100a or sm_100f")}},
      {"sm_100a", {8, 6}, {plain, atoms, refused(packed, needs("8.7"))}},
      {"sm_100a", {8, 8}, {plain, atoms, packed, refused(wide, "needs sm_103a")}},
      {"sm_100a",
       {9, 0},
       {field("swizzle_atomicity", "4", "expects 0 to 3 as operand 2 [bad-operand]")}},
      {"sm_100f", {8, 8}, {plain, atoms, packed}},
      {"sm_103a", {8, 8}, {plain, atoms, packed, wide}},
      {"sm_103f", {8, 8}, {plain, atoms, packed, refused(wide, "needs sm_103a")}},
      {"sm_110f", {9, 0}, {plain, atoms, packed}},
      {"sm_120a", {8, 7}, {plain, atoms, packed}},
      {"sm_120", {9, 0}, {refused(plain, "the target is sm_120 [target-lacks]")}},
      {"sm_121f", {8, 8}, {plain, atoms, packed}},
  };
  return all;
}

std::vector<OpLine> lines_of(const Group& group) {
  std::vector<OpLine> lines;
  for (const Case& one : group.cases) lines.push_back({Op::ret, one.statement});
  return lines;
}

/// The lines of a text that ptxas complains about.
std::set<std::uint32_t> refused_by_ptxas(const Assembler& assembler, const Group& group) {
  AssembleOptions options;
  options.target = group.target;
  options.optimization = 0;
  options.tool = AssemblerTool::Ptxas;
  std::set<std::uint32_t> lines;
  try {
    static_cast<void>(assembler.assemble(
        test::module_with(lines_of(group), group.target, group.version), options));
  } catch (const Error& error) {
    std::string_view rest = error.log;
    for (auto at = rest.find("line "); at != std::string_view::npos; at = rest.find("line ")) {
      rest.remove_prefix(at + 5);
      lines.insert(static_cast<std::uint32_t>(std::stoul(std::string(rest.substr(0, 9)))));
    }
  }
  return lines;
}

bool has_ptxas(const Assembler& assembler) {
  for (const AssemblerFinding& tool : assembler.tools()) {
    if (tool.tool == AssemblerTool::Ptxas) return tool.found;
  }
  return false;
}

}  // namespace

TEST_CASE("tensormap: what is refused, and the texts") {
  for (const Group& group : groups()) {
    const auto lines = lines_of(group);
    const Module module = parse(test::module_with(lines, group.target, group.version));
    std::map<std::uint32_t, std::string> found;
    for (const Finding& finding : verify(module)) found[finding.line] += to_text(finding);
    for (std::size_t i = 0; i < group.cases.size(); ++i) {
      const Case& one = group.cases[i];
      const std::string text = found[test::first_line() + static_cast<std::uint32_t>(i)];
      INFO(group.target << ": " << one.statement);
      if (one.expected.empty()) {
        CHECK(text == "");
        const auto* statement = test::statement_on(
            *module.find_function("k"), test::first_line() + static_cast<std::uint32_t>(i));
        REQUIRE(statement != nullptr);
        CHECK(print(module, *module.find_function("k"), *statement) == one.statement);
      } else {
        CHECK_THAT(text, Catch::Contains(one.expected));
      }
    }
  }
}

TEST_CASE("tensormap: ptxas refuses the same") {
  const Assembler assembler(Settings::from_environment());
  if (!has_ptxas(assembler)) return test::skip("ptxas is not installed");
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (const Group& group : groups()) {
    const auto found = refused_by_ptxas(assembler, group);
    for (std::size_t i = 0; i < group.cases.size(); ++i) {
      INFO(group.target << ": " << group.cases[i].statement);
      const bool taken = found.count(test::first_line() + static_cast<std::uint32_t>(i)) == 0;
      CHECK(taken == group.cases[i].expected.empty());
      ++(taken ? accepted : refused);
    }
  }
  CHECK(accepted > 20);
  CHECK(refused > 25);
}
