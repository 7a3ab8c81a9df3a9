// tests/ptx/source_map_test.cpp - source lines of inlined code, groups of findings
#include <catch2/catch.hpp>

#include "ptxgen/ptx/groups.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/source_map.hpp"

using namespace ptxgen;

namespace {

// As nvcc -lineinfo prints it: `outer` inlined in the kernel, `inner` in it, and an intrinsic.
constexpr std::string_view kText = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
.reg .f32 %f<9>;
mov.f32 %f1, 0f00000000;
.loc 1 9 3
mov.f32 %f2, %f1;
.loc 1 13 3
.loc 1 6 3, function_name $L__info_string0, inlined_at 1 13 3
.loc 1 4 73, function_name $L__info_string1, inlined_at 1 6 3
min.f32 %f3, %f1, %f2;
.loc 1 6 3, function_name $L__info_string0, inlined_at 1 13 3
add.f32 %f4, %f3, %f3;
.loc 1 14 3
.loc 3 2504 1, function_name $L__info_string0+3, inlined_at 1 14 3
add.f32 %f5, %f4, %f4;
.loc 3 7 1, function_name $L__info_string9, inlined_at 1 99 1
add.f32 %f6, %f4, %f4;
.loc 1 0 0
ret;
}
.file 1 "/src/um.cu"
.file 3 "/cuda/half.hpp"
.section .debug_str
{
$L__info_string0:
.b8 95,90,53,111,117,116,101,114,102
.b8 102,0
$L__info_string1:
.b8 105,110,110,101,114,0
}
)";

std::string stack_text(const ptx::SourceMap& map, std::size_t statement) {
  std::string text;
  for (const SourcePosition& at : map.stack(statement)) {
    text += at.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + "(" +
            at.function + ") ";
  }
  return text;
}

std::size_t statement_of(const ptx::Module& module, std::string_view instruction) {
  const ptx::Function& function = module.functions[0];
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    if (function.body[i].kind != ptx::StatementKind::Instruction) continue;
    if (ptx::print(module, function, function.body[i]).starts_with(instruction)) return i;
  }
  FAIL("no statement " << instruction);
  return 0;
}

}  // namespace

TEST_CASE("the stack of inlined code goes outwards to the kernel") {
  const ptx::Module module = ptx::parse(kText, "k.ptx");
  const ptx::SourceMap map(module, module.functions[0]);
  const auto text = [&](std::string_view s) { return stack_text(map, statement_of(module, s)); };
  CHECK(text("mov.f32 %f1") == "");
  CHECK(text("mov.f32 %f2") == "/src/um.cu:9:3() ");
  CHECK(text("min") ==
        "/src/um.cu:4:73(inner) /src/um.cu:6:3(outer(float, float)) /src/um.cu:13:3() ");
  CHECK(text("add.f32 %f4") == "/src/um.cu:6:3(outer(float, float)) /src/um.cu:13:3() ");
  CHECK(text("add.f32 %f5") == "/cuda/half.hpp:2504:1(outerff) /src/um.cu:14:3() ");
  // The caller's own `.loc` is not there, and a label names no string.
  CHECK(text("add.f32 %f6") == "/cuda/half.hpp:7:1() /src/um.cu:99:1() ");
  CHECK(text("ret") == "");
}

TEST_CASE("a finding in inlined code shows the line of the kernel's own file") {
  const ptx::Module module = ptx::parse(kText, "k.ptx");
  const ptx::SourceMap map(module, module.functions[0]);
  Finding finding;
  finding.rule = "r";
  finding.message = "m";
  finding.file = "k.ptx";
  map.fill(finding, statement_of(module, "add.f32 %f5"));
  CHECK(to_text(finding) ==
        "k.ptx: error: m [r]\n"
        "    source /src/um.cu:14\n"
        "    inlined: /cuda/half.hpp:2504 in 'outerff', called at /src/um.cu:14");
  Finding plain;
  map.fill(plain, statement_of(module, "mov.f32 %f2"));
  CHECK(plain.source_line == 9);
  CHECK(plain.inlined.empty());
  Finding inner;
  map.fill(inner, statement_of(module, "min"));
  CHECK(inner.source_line == 4);
  CHECK(inner.inlined.size() == 3);
}

namespace {

Finding at(std::string rule, std::uint32_t line, std::uint32_t source = 0,
           std::string subject = {}) {
  Finding result;
  result.rule = std::move(rule);
  result.line = line;
  result.file = "k.ptx";
  if (source != 0) result.source_file = "k.cu";
  result.source_line = source;
  result.subject = std::move(subject);
  return result;
}

std::vector<std::vector<std::size_t>> members(const std::vector<FindingGroup>& groups) {
  std::vector<std::vector<std::size_t>> all;
  for (const FindingGroup& group : groups) all.push_back(group.members);
  return all;
}

}  // namespace

TEST_CASE("findings of one source line and cause are one group") {
  // An unrolled loop: one source line, four PTX lines, two buffers.
  std::vector<Finding> findings = {at("oob", 10, 5, "x"), at("oob", 12, 5, "y"),
                                   at("oob", 14, 5, "x"), at("race", 14, 5, "x"),
                                   at("oob", 20, 6, "x"), at("oob", 10, 5, "x")};
  const auto groups = group_findings(findings, std::vector<std::uint64_t>{3, 1, 4, 1, 1, 2});
  CHECK(members(groups) == std::vector<std::vector<std::size_t>>{{0, 2, 5}, {1}, {3}, {4}});
  CHECK(groups[0].example == 0);
  CHECK(groups[0].count == 9);
  CHECK(more_of(groups[0], findings) == "3 findings of this cause, at PTX lines 10, 14");
  CHECK(more_of(groups[1], findings) == "");
  // The other party's line is part of the cause.
  findings[2].other_line = 99;
  CHECK(members(group_findings(findings)) ==
        std::vector<std::vector<std::size_t>>{{0, 5}, {1}, {2}, {3}, {4}});
  // Severities do not mix: an error must not hide in a group of warnings.
  findings[5].severity = Severity::Warning;
  CHECK(group_findings(findings)[0].members.size() == 1);
}

TEST_CASE("without source lines the builder call or the PTX line groups") {
  std::vector<Finding> findings = {at("oob", 10), at("oob", 12), at("oob", 10)};
  CHECK(members(group_findings(findings)) == std::vector<std::vector<std::size_t>>{{0, 2}, {1}});
  for (Finding& finding : findings) {
    finding.cpp.file = "build.cpp";
    finding.cpp.line = 3;
  }
  CHECK(members(group_findings(findings)) == std::vector<std::vector<std::size_t>>{{0, 1, 2}});
}

TEST_CASE("the line about a group names some PTX lines") {
  std::vector<Finding> findings;
  for (std::uint32_t line = 20; line > 10; --line) findings.push_back(at("oob", line, 5));
  const auto groups = group_findings(findings);
  REQUIRE(groups.size() == 1);
  CHECK(more_of(groups[0], findings) ==
        "10 findings of this cause, at PTX lines 11, 12, 13, 14, 15, 16 and 4 more");
}
