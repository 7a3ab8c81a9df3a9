// tests/optimize/pass_test.cpp - the pass manager: lists, reports, faulty passes
#include <catch2/catch.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "optimize/pass_list.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::optimize;

constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) outside(.param .b32 a);
.visible .entry first(.param .u64 out)
{
  .reg .b32 %r<3>;
  mov.u32 %r0, 1;
  add.u32 %r1, %r0, 2;
  ret;
}
.visible .entry second(.param .u64 out)
{
  .reg .b32 %r<3>;
  mov.u32 %r0, 3;
  ret;
}
)";

// Passes for the tests. How often, and for which functions, is written down here.
int calls = 0;
std::vector<std::string> visited;

void quiet(ptx::Function& function, PassContext& context) {
  visited.emplace_back(context.module().text(function.name));
  context.visit();
}

/// Changes the first number until it is 4, one step each time.
void counts_up(ptx::Function& function, PassContext& context) {
  quiet(function, context);
  ptx::Operand& number = function.operands_of(function.body[0])[1];
  if (number.value >= 4) return;
  ++number.value;
  context.changed();
  context.decide(function, 0, true, "counted", "one more", 1);
}

void never_done(ptx::Function&, PassContext& context) {
  ++calls;
  context.changed();
}

/// Leaves a sum of 64-bit registers that are none.
void breaks_types(ptx::Function& function, PassContext& context) {
  if (context.module().text(function.name) != "first") return;
  function.registers[0].type = ptx::Type::b64;
  context.changed();
}

void throws(ptx::Function& function, PassContext& context) {
  counts_up(function, context);
  throw std::runtime_error("no more");
}

/// Every name with `quiet` after it, but for one.
std::vector<PassInfo> list_with(std::string_view name, void (*run)(ptx::Function&, PassContext&)) {
  std::vector<PassInfo> list(all_passes().begin(), all_passes().end());
  for (PassInfo& pass : list) pass.run = pass.name == name ? run : quiet;
  calls = 0;
  visited.clear();
  return list;
}

std::vector<std::string> names(const PipelineReport& report) {
  std::vector<std::string> all;
  for (const PassReport& pass : report.passes) all.emplace_back(pass.name);
  return all;
}

Error error_of(ptx::Module& module, const PassOptions& options, const std::vector<PassInfo>& list) {
  try {
    run_passes(module, options, list);
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  throw std::logic_error("not reached");
}

}  // namespace

TEST_CASE("an unknown pass is refused with what there is") {
  ptx::Module module = ptx::parse(kText);
  try {
    run_passes(module, {.passes = {"dead_code", "dead-code"}});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Optimize);
    CHECK(error.code == "unknown-pass");
    CHECK(error.message ==
          "there is no pass 'dead-code'; passes: fma_fusion mad_fusion loop_split fold_constants "
          "copy_propagation dead_code branch_simplify tokens; groups: cleanup default none");
  }
  const std::vector<std::string> good{"cleanup", "loop_split", "none", "default"};
  CHECK_NOTHROW(check_pass_names(good));
}

TEST_CASE("every pass and group has a name and a line about it") {
  for (const PassInfo& pass : all_passes()) {
    CHECK(pass.run != nullptr);
    CHECK(pass.doc.size() > 10);
  }
  for (const PassGroup& group : pass_groups()) {
    CHECK_FALSE(group.doc.empty());
    const std::vector<std::string> members(group.passes.begin(), group.passes.end());
    CHECK_NOTHROW(check_pass_names(members));
  }
  CHECK(all_passes().size() == 8);
  CHECK(pass_groups().size() == 3);
}

TEST_CASE("the default passes run in their order, on every function with a body") {
  ptx::Module module = ptx::parse(kText);
  const auto list = list_with("", nullptr);
  const PipelineReport report = run_passes(module, PassOptions{}, list);
  CHECK(names(report) == std::vector<std::string>{"dead_code", "fma_fusion", "mad_fusion",
                                                  "loop_split", "fold_constants",
                                                  "copy_propagation", "branch_simplify"});
  REQUIRE(visited.size() == 14);
  CHECK(visited[0] == "first");
  CHECK(visited[1] == "second");
  CHECK_FALSE(report.changed());
}

TEST_CASE("no pass runs for none, and passes run as often as they are named") {
  ptx::Module module = ptx::parse(kText);
  const auto list = list_with("", nullptr);
  CHECK(run_passes(module, {.passes = {"none"}}, list).passes.empty());
  CHECK(run_passes(module, {.passes = {}}, list).passes.empty());
  CHECK(visited.empty());
  const PipelineReport report =
      run_passes(module, {.passes = {"dead_code", "loop_split", "dead_code"}}, list);
  CHECK(names(report) == std::vector<std::string>{"dead_code", "loop_split", "dead_code"});
}

TEST_CASE("cleanup runs until nothing changes") {
  // One pass makes odd numbers even and the other even ones odd, up to 4.
  auto list = list_with("fold_constants", [](ptx::Function& function, PassContext& context) {
    if (function.operands_of(function.body[0])[1].value % 2 == 1) counts_up(function, context);
  });
  list[5].run = [](ptx::Function& function, PassContext& context) {
    if (function.operands_of(function.body[0])[1].value % 2 == 0) counts_up(function, context);
  };
  ptx::Module module = ptx::parse(kText);
  const PipelineReport report = run_passes(module, {.passes = {"cleanup"}}, list);
  const std::string text = ptx::print(module);
  CHECK(text.find("mov.u32 %r0, 4;") != std::string::npos);
  CHECK(text.find("mov.u32 %r0, 3;") == std::string::npos);
  // first: 1, 2, 3, 4; second: 3, 4. Then everybody else has a look.
  std::vector<std::string> changing;
  for (const PassReport& pass : report.passes) {
    if (pass.changed) changing.emplace_back(pass.name);
  }
  CHECK(changing == std::vector<std::string>{"fold_constants", "dead_code", "fold_constants"});
  CHECK(names(report) == std::vector<std::string>{
                             "fold_constants", "copy_propagation", "dead_code", "branch_simplify",
                             "fold_constants", "copy_propagation", "dead_code", "branch_simplify"});
  CHECK(report.passes[3].visits == 2);
}

TEST_CASE("a pass is not run again on a function that no other pass has changed") {
  ptx::Module module = ptx::parse(kText);
  auto list = list_with("", nullptr);
  list[5].run = [](ptx::Function& function, PassContext& context) {
    if (context.module().text(function.name) == "first") counts_up(function, context);
  };
  run_passes(module, {.passes = {"loop_split", "loop_split", "dead_code", "loop_split"}}, list);
  CHECK(visited == std::vector<std::string>{"first", "second", "first", "first"});
}

TEST_CASE("passes that undo each other's work do not run for ever") {
  ptx::Module module = ptx::parse(kText);
  auto list = list_with("fold_constants", never_done);
  list[5].run = never_done;
  const PipelineReport report = run_passes(module, {.passes = {"cleanup"}}, list);
  CHECK(report.passes.size() == 64 * 4);
  CHECK(calls == 64 * 2 * 2);
}

TEST_CASE("what a pass decided is counted, and kept in words on request") {
  const auto list = list_with("dead_code", counts_up);
  ptx::Module module = ptx::parse(kText, "two.ptx");
  const PipelineReport silent = run_passes(module, {.passes = {"dead_code"}}, list);
  REQUIRE(silent.passes.size() == 1);
  CHECK(silent.passes[0].decisions.empty());
  REQUIRE(silent.passes[0].counts.size() == 1);
  CHECK(silent.passes[0].counts[0].reason == "counted");
  CHECK(silent.passes[0].counts[0].count == 2);
  CHECK(silent.passes[0].fired() == 2);
  CHECK(silent.passes[0].refused() == 0);
  CHECK(silent.passes[0].statements_before == 5);
  CHECK(silent.passes[0].statements_after == 5);
  CHECK(silent.passes[0].before.empty());
  CHECK(silent.passes[0].after.empty());

  PassOptions options{.passes = {"dead_code"}, .explain = true, .dump = true};
  const std::string before = ptx::print(module);
  const PipelineReport report = run_passes(module, options, list);
  const PassReport& pass = report.passes.at(0);
  REQUIRE(pass.decisions.size() == 1);  // `second` was done after the first run
  CHECK(pass.decisions[0].kernel == "first");
  CHECK(pass.decisions[0].line == 8);
  CHECK(pass.decisions[0].statement == 0);
  CHECK(pass.decisions[0].other == 1);
  CHECK(pass.decisions[0].message == "one more");
  CHECK(pass.before == before);
  CHECK(pass.after == ptx::print(module));
  CHECK(pass.before != pass.after);

  // Then nothing changes any more, and there is nothing to keep.
  run_passes(module, options, list);
  const PipelineReport idle = run_passes(module, options, list);
  CHECK_FALSE(idle.passes.at(0).changed);
  CHECK(idle.passes.at(0).before.empty());
  CHECK(idle.passes.at(0).after.empty());
  CHECK(idle.passes.at(0).verify_microseconds == 0);
}

TEST_CASE("a reason is counted apart where it fired and where it prevented a rewrite") {
  ptx::Module module = ptx::parse(kText);
  const auto list = list_with("dead_code", [](ptx::Function& function, PassContext& context) {
    const bool fires = context.module().text(function.name) == "first";
    context.decide(function, 0, fires, "asked");
    context.visit(3);
  });
  const PassReport pass = run_passes(module, {.passes = {"dead_code"}}, list).passes.at(0);
  CHECK(pass.fired() == 1);
  CHECK(pass.refused() == 1);
  CHECK(pass.counts.size() == 2);
  CHECK(pass.visits == 6);
}

TEST_CASE("warnings of the verifier are no obstacle") {
  std::string text = kText;
  text.insert(text.find("  ret;"), "  fancy.u32 %r1, %r0;\n");
  ptx::Module module = ptx::parse(text);
  const auto list = list_with("dead_code", counts_up);
  const PipelineReport report = run_passes(module, {.passes = {"dead_code"}}, list);
  CHECK(report.passes.at(0).fired() == 2);
}

TEST_CASE("the report in words") {
  PassReport pass;
  pass.name = "loop_split";
  pass.changed = true;
  pass.counts = {{"split", true, 1}, {"not-profitable", false, 2}};
  pass.statements_before = 20;
  pass.statements_after = 31;
  pass.microseconds = 12.34;
  Decision fired;
  fired.fired = true;
  fired.reason = "split";
  fired.message = "the loop is two";
  fired.kernel = "k";
  fired.line = 7;
  fired.cpp.file = "made.cpp";
  fired.cpp.line = 70;
  Decision refused;
  refused.reason = "not-profitable";
  refused.message = "the region has no statement";
  refused.kernel = "k";
  pass.decisions = {fired, refused};
  PassReport idle;
  idle.name = "dead_code";
  PipelineReport report;
  report.passes = {pass, idle};
  CHECK(to_text(report, ptx::Module{}) ==
        "loop_split: changed, 1 split, refused 2 not-profitable, 20 statements to 31, 12.3 us\n"
        "    k:7: the loop is two [split]\n"
        "      built at made.cpp:70\n"
        "    k: refused: the region has no statement [not-profitable]\n"
        "dead_code: nothing changed, 0.0 us\n");
}

TEST_CASE("a pass that leaves what the verifier refuses is undone, and named") {
  ptx::Module module = ptx::parse(kText, "two.ptx");
  const std::string before = ptx::print(module);
  // A change of an earlier pass is undone too.
  auto list = list_with("dead_code", breaks_types);
  list[3].run = counts_up;
  const PassOptions options{.passes = {"fold_constants", "dead_code"}};
  const Error error = error_of(module, options, list);
  CHECK(ptx::print(module) == before);
  CHECK(error.stage == Stage::Optimize);
  CHECK(error.code == "type-mismatch");
  CHECK(error.kernel == "first");
  CHECK(error.file == "two.ptx");
  CHECK(error.line == 8);
  CHECK(error.target == "sm_80");
  CHECK(
      error.message ==
      "the pass dead_code left PTX that the verifier refuses: 'mov.u32' expects .u32 as operand 1, "
      "but '%r0' is .b64; this is a fault of the library: leave the pass out and report it");
}

namespace {

// What the verifier need not look at again, because it is where it was, must be just that.
constexpr const char* kSound = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 16 .u32 counter[4];
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .pred %p<2>;
  .reg .v2 .u32 pair;
  .shared .align 16 .u32 box[4];
  .local .align 16 .u32 own[4];
  mov.u32 %r0, 1;
  add.u32 %r1, %r0, 2;
  @%p0 bra $L;
  ld.shared::cta.u32 %r2, [box];
  ld.global.u32 %r3, [counter];
  ld.shared.v2.u32 pair, [box];
  redux.sync.add.s32 %r4, %r1, -1;
$L:
  ret;
}
)";

using Change = void (*)(ptx::Module&, ptx::Function&);
Change change = nullptr;
void makes_change(ptx::Function& function, PassContext& context) {
  change(context.module(), function);
  context.changed();
}

ptx::Instruction& first(ptx::Function& function, ptx::Op op) {
  return *std::find_if(function.body.begin(), function.body.end(),
                       [&](const ptx::Instruction& s) { return s.is(op); });
}
ptx::Symbol& symbol(ptx::Module& module, std::string_view name) {
  return *std::find_if(module.symbols.begin(), module.symbols.end(),
                       [&](const ptx::Symbol& s) { return module.text(s.name) == name; });
}

/// The rule for which the verifier refuses what the change leaves; empty if it does not.
std::string rule_of(Change result) {
  change = result;
  ptx::Module module = ptx::parse(kSound);
  try {
    run_passes(module, {.passes = {"dead_code"}}, list_with("dead_code", makes_change));
  } catch (const Error& error) {
    return error.code;
  }
  return {};
}

}  // namespace

TEST_CASE("no change hides from the verifier after what was there before") {
  using ptx::Function;
  using ptx::Module;
  using ptx::Op;
  using ptx::Operand;
  // What only went, or was added, and nothing at all.
  CHECK(rule_of([](Module&, Function&) {}).empty());
  CHECK(rule_of([](Module&, Function& f) { f.body.erase(f.body.begin() + 2); }).empty());
  CHECK(rule_of([](Module&, Function& f) { f.body.push_back(f.body.back()); }).empty());
  // The statement itself.
  CHECK(rule_of([](Module&, Function& f) { first(f, Op::add).op = Op::mov; }) == "bad-operand");
  CHECK(rule_of([](Module&, Function& f) {
          first(f, Op::mov).set(ptx::Field::Type, ptx::as_modifier(ptx::Type::f32));
        }) == "type-mismatch");
  CHECK(rule_of([](Module&, Function& f) { --first(f, Op::add).operand_count; }) == "bad-operand");
  CHECK(rule_of([](Module&, Function& f) {
          first(f, Op::add).first_operand = first(f, Op::ld).first_operand;
        }) == "bad-operand");
  CHECK(rule_of([](Module&, Function& f) {
          first(f, Op::bra).guard.predicate = {{0}, 0};
        }) == "type-mismatch");
  CHECK(rule_of([](Module&, Function& f) {
          f.operands_of(first(f, Op::add))[1] = Operand::f32(1.0f);
        }) == "type-mismatch");
  // One after those that are the same.
  CHECK(rule_of([](Module&, Function& f) {
          f.body.push_back(first(f, Op::add));
          --f.body.back().operand_count;
        }) == "bad-operand");
  // What it leads to.
  CHECK(rule_of([](Module&, Function& f) {
          std::erase_if(f.body, [](const ptx::Instruction& s) {
            return s.kind == ptx::StatementKind::Label;
          });
        }) == "undefined-symbol");
  CHECK(rule_of([](Module&, Function& f) { f.registers[0].type = ptx::Type::b64; }) ==
        "type-mismatch");
  CHECK(rule_of([](Module&, Function& f) { f.registers[2].vector = 4; }) == "bad-operand");
  CHECK(rule_of([](Module&, Function& f) { f.variables[0].space = ptx::Space::Local; }) ==
        "type-mismatch");
  CHECK(rule_of([](Module& m, Function&) { m.variables[0].space = ptx::Space::Const; }) ==
        "type-mismatch");
  CHECK(rule_of([](Module& m, Function&) {
          symbol(m, "box").kind = ptx::SymbolKind::Unresolved;
        }) == "undefined-symbol");
  CHECK(rule_of([](Module& m, Function&) { symbol(m, "box").index = 1; }) == "type-mismatch");
  // What the module is for.
  CHECK(rule_of([](Module& m, Function&) { m.version = {7, 0}; }) == "version-too-low");
  CHECK(rule_of([](Module& m, Function&) { m.target = "sm_52"; }) == "target-lacks");
}

TEST_CASE("to have erased something is a change") {
  ptx::Module module = ptx::parse(kText);
  const auto list = list_with("dead_code", [](ptx::Function& function, PassContext& context) {
    const std::uint32_t first = 0;
    function.body.erase(function.body.begin());
    context.erased({&first, 1});
  });
  CHECK(run_passes(module, {.passes = {"dead_code"}}, list).changed());
}

TEST_CASE("a pass that throws is undone") {
  ptx::Module module = ptx::parse(kText);
  const std::string before = ptx::print(module);
  const auto list = list_with("dead_code", throws);
  CHECK_THROWS_AS(run_passes(module, PassOptions{}, list), std::runtime_error);
  CHECK(ptx::print(module) == before);
}

TEST_CASE("without the verifier a fault stays") {
  ptx::Module module = ptx::parse(kText);
  const auto list = list_with("dead_code", breaks_types);
  const PassOptions options{.passes = {"dead_code"}, .verify = false};
  const PipelineReport report = run_passes(module, options, list);
  CHECK(report.passes.at(0).changed);
  CHECK(ptx::print(module).find(".reg .b64 %r<3>;") != std::string::npos);
}

TEST_CASE("functions that the verifier refuses are left alone, and no pass is blamed for them") {
  std::string text = kText;
  text.replace(text.find("mov.u32 %r0, 3"), 14, "mov.u64 %r0, 3");
  ptx::Module module = ptx::parse(text);
  const auto list = list_with("dead_code", counts_up);
  const PipelineReport report = run_passes(module, {.passes = {"dead_code"}}, list);
  CHECK(report.passes.at(0).fired() == 1);
  CHECK(visited == std::vector<std::string>{"first"});
  CHECK(ptx::print(module).find("mov.u64 %r0, 3;") != std::string::npos);
}

TEST_CASE("no pass is blamed for what is wrong with the module itself") {
  std::string text = kText;
  text.replace(text.find("8.0"), 3, "6.0");
  ptx::Module module = ptx::parse(text);
  const std::vector<Finding> before = ptx::verify(module);
  REQUIRE(before.size() == 1);
  CHECK(before[0].rule == "version-too-low");
  const auto list = list_with("dead_code", counts_up);
  const PipelineReport report = run_passes(module, {.passes = {"dead_code"}}, list);
  CHECK(report.passes.at(0).fired() == 2);
}
