// tests/optimize/shared_facts_test.cpp - analyses that passes share are never out of date
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "optimize/function_facts.hpp"
#include "optimize/pass_list.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "random_program.hpp"
#include "support/harness.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::optimize;

constexpr const char* kText = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<3>;
  mov.u32 %r0, 1;
  add.u32 %r1, %r0, 2;
  ret;
}
)";

void asks_for_all(ptx::Function& function, PassContext& context) {
  FunctionFacts& facts = context.facts(function);
  static_cast<void>(facts.inductions());
  static_cast<void>(facts.uniformity());
  static_cast<void>(facts.constants());
}
void asks_for_constants(ptx::Function& function, PassContext& context) {
  static_cast<void>(context.facts(function).constants());
}
void asks_for_blocks(ptx::Function& function, PassContext& context) {
  static_cast<void>(context.facts(function).cfg());
}
void quiet(ptx::Function&, PassContext&) {}

// Changes the sum, and says so or not.
void other_number(ptx::Function& function, PassContext&) {
  function.operands_of(function.body[1])[2].value = 3;
}
void other_number_told(ptx::Function& function, PassContext& context) {
  other_number(function, context);
  context.changed();
}
void other_source(ptx::Function& function, PassContext&) {
  function.operands_of(function.body[1])[1] = ptx::Operand::integer(1);
}
void without_end(ptx::Function& function, PassContext&) { function.body.pop_back(); }

// Erases the sum, and tells of it or of its neighbour.
void erases(ptx::Function& function, PassContext& context, std::uint32_t told) {
  static_cast<void>(context.facts(function).constants());
  function.body.erase(function.body.begin() + 1);
  context.erased({&told, 1});
}
void without_sum(ptx::Function& function, PassContext& context) { erases(function, context, 1); }
void other_told(ptx::Function& function, PassContext& context) { erases(function, context, 0); }
void without_sum_after_change(ptx::Function& function, PassContext& context) {
  static_cast<void>(context.facts(function).index());
  other_source(function, context);
  context.changed();
  without_sum(function, context);
}

using Run = void (*)(ptx::Function&, PassContext&);

// What fold_constants finds after a pass that changed something, in a list of three.
std::string message_of(Run first, Run second) {
  std::vector<PassInfo> list(all_passes().begin(), all_passes().end());
  for (PassInfo& pass : list) pass.run = quiet;
  list[0].run = first;
  list[1].run = second;
  list[3].run = asks_for_all;
  ptx::Module module = ptx::parse(kText);
  try {
    run_passes(module, {.passes = {"fma_fusion", "mad_fusion", "fold_constants"}, .verify = false},
               list, true);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return {};
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs lists of passes with the facts compared each time they are handed out again. Returns how
// many runs changed something.
std::size_t run_checked(const std::string& text) {
  std::size_t changed = 0;
  const std::vector<std::vector<std::string>> lists = {
      {"default"},
      {"cleanup", "mad_fusion", "cleanup"},
      {"copy_propagation", "branch_simplify", "loop_split", "fma_fusion", "dead_code"}};
  for (const auto& passes : lists) {
    ptx::Module module = ptx::parse(text), explained = module;
    const PipelineReport report = run_passes(module, {.passes = passes}, all_passes(), true);
    // dead_code takes a shorter way where nothing needs to read its decisions.
    run_passes(explained, {.passes = passes, .explain = true}, all_passes(), true);
    CHECK(ptx::difference(module, explained).empty());
    changed += static_cast<std::size_t>(
        std::count_if(report.passes.begin(), report.passes.end(),
                      [](const PassReport& pass) { return pass.changed; }));
  }
  return changed;
}

}  // namespace

TEST_CASE("a change that no analysis was told of is found") {
  CHECK(message_of(asks_for_constants, other_number) == "a pass left outdated facts: constants");
  CHECK(message_of(asks_for_all, other_source) == "a pass left outdated facts: versions");
  CHECK(message_of(asks_for_blocks, without_end) == "a pass left outdated facts: cfg");
}

TEST_CASE("a change that was told of makes facts new, and none leaves them") {
  CHECK(message_of(asks_for_all, other_number_told).empty());
  CHECK(message_of(asks_for_all, quiet).empty());
}

TEST_CASE("facts outlive what was only erased, if it was that") {
  CHECK(message_of(without_sum, quiet).empty());
  CHECK(message_of(other_told, quiet) == "a pass left outdated facts: registers");
  CHECK(message_of(without_sum_after_change, quiet).empty());
  // The numbers of registers are those of the function as it is now.
  ptx::Module module = ptx::parse(kText);
  const PassOptions options;
  PassReport report;
  SharedFacts shared;
  PassContext context(module, options, report, shared);
  CHECK(context.facts(module.functions[0]).index().size() == 2);
  without_sum(module.functions[0], context);
  CHECK(report.changed);
  CHECK_FALSE(context.outdated());
  CHECK(context.facts(module.functions[0]).index().size() == 1);
  CHECK(context.facts(module.functions[0]).outdated().empty());
}

TEST_CASE("a pass that asks again after its change finds it") {
  ptx::Module module = ptx::parse(kText);
  ptx::Function& function = module.functions[0];
  const PassOptions options;
  PassReport report;
  SharedFacts shared(true);
  PassContext context(module, options, report, shared);
  CHECK(context.facts(function).constants().source(1, 2) == std::uint64_t{2});
  other_number_told(function, context);
  CHECK(context.facts(function).constants().source(1, 2) == std::uint64_t{3});
  CHECK(context.facts(function).outdated().empty());
}

TEST_CASE("constants are found twice only where names make a difference") {
  ptx::Module plain = ptx::parse(kText);
  FunctionFacts facts(plain, plain.functions[0]);
  CHECK(&facts.constants(false) == &facts.constants());
  std::string text = kText;
  text.replace(text.find("%r0, 2"), 6, "%r0, %r0;\n  xor.b32 %r2, %r1, %r1");
  text.replace(text.find("mov.u32 %r0, 1"), 14, "mov.u32 %r0, %tid.x");
  ptx::Module twice = ptx::parse(text);
  FunctionFacts other(twice, twice.functions[0]);
  CHECK(&other.constants(false) != &other.constants());
  CHECK(other.constants().outcome(2).kind == analysis::Outcome::Kind::Values);
  CHECK(other.constants(false).outcome(2, false).kind == analysis::Outcome::Kind::Unknown);
}

TEST_CASE("passes share no outdated facts: the corpus") {
  std::size_t changed = 0;
  for (const char* folder : {"stored", "passes", "foreign"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(PTXGEN_CORPUS) / folder)) {
      if (entry.path().extension() != ".ptx") continue;
      INFO(entry.path().filename().string());
      changed += run_checked(read(entry.path()));
    }
  }
  CHECK(changed > 50);
}

TEST_CASE("passes share no outdated facts: random programs") {
  std::size_t changed = 0;
  const int programs = test::count(60, 3000);
  for (int i = 0; i < programs; ++i) {
    const std::uint64_t number = test::seed() * 1'000'000 + static_cast<std::uint64_t>(i);
    const test::RandomProgram program =
        test::random_program(number, static_cast<test::Flavour>(i % 6));
    INFO("program " << number << "\n" << program.ptx);
    changed += run_checked(program.ptx);
  }
  CHECK(changed > static_cast<std::size_t>(programs) * 3);
}
