// tests/coverage/code_test.cpp - blocks, edges and outcomes of launches
#include <catch2/catch.hpp>

#include "coverage/covered_kernel.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

using coverage::Coverage;
using coverage::KernelCoverage;
using coverage::Share;

// Threads below n store their number; a guard skips the store of thread 0.
constexpr std::string_view kGuarded = R"(
.reg .pred %q<3>; .reg .b32 %t; .reg .b64 %a;
mov.u32 %t, %tid.x;
setp.ge.u32 %q0, %t, %n;
@%q0 bra $end;
setp.ne.u32 %q1, %t, 0;
mad.wide.u32 %a, %t, 4, %p;
@%q1 st.global.u32 [%a], %t;
$end:
ret;)";

}  // namespace

TEST_CASE("coverage: threads of each block, edge and outcome") {
  CoveredKernel kernel(kGuarded);
  const KernelCoverage found = kernel.run(20);
  const coverage::CaseCounts& counts = found.cases.front();
  // Before the branch, the store, the end.
  REQUIRE(found.blocks.size() == 3);
  CHECK(counts.blocks == std::vector<std::uint64_t>{32, 20, 32});
  REQUIRE(found.edges.size() == 4);
  CHECK(found.edges[0].to == 2);  // the target comes first
  CHECK(found.edges[1].to == 1);
  CHECK(found.edges[3].to == coverage::kExit);
  CHECK(counts.edges == std::vector<std::uint64_t>{12, 20, 20, 32});
  REQUIRE(found.conditions.size() == 2);
  CHECK(found.conditions[0].branch);
  CHECK_FALSE(found.conditions[1].branch);
  CHECK(counts.taken == std::vector<std::uint64_t>{12, 19});
  CHECK(counts.not_taken == std::vector<std::uint64_t>{20, 1});
  CHECK(coverage::missed(found, counts).empty());
  CHECK(coverage::shares(found).outcomes() == Share{4, 4});
}

TEST_CASE("coverage: what no case executes, with lines, until another case does") {
  CoveredKernel kernel(kGuarded);
  Coverage all;
  coverage::add(all, kernel.run(32, 32, "all threads"));
  REQUIRE(all.kernels.size() == 1);
  const KernelCoverage& sum = all.kernels.front();
  CHECK(coverage::shares(sum).branches == Share{1, 2});
  CHECK(coverage::shares(sum).edges == Share{3, 4});
  const auto missed = coverage::missed(sum, coverage::total(sum));
  CHECK(texts_of(missed) == std::vector<std::string>{"the branch is never taken: @%q0 bra $end;"});
  CHECK(missed.front().line == sum.conditions.front().line);

  coverage::add(all, kernel.run(0, 32, "no thread"));
  REQUIRE(all.kernels.size() == 1);
  CHECK(sum.cases.size() == 2);
  CHECK(coverage::missed(sum, coverage::total(sum)).empty());
  CHECK(coverage::shares(sum, sum.cases[1]).blocks == Share{2, 3});
  // A block that is not executed is named once, not its guard too.
  CHECK(texts_of(coverage::missed(sum, sum.cases[1])) ==
        std::vector<std::string>{"the branch is always taken: @%q0 bra $end;",
                                 "lines 15 to 17 are never executed: setp.ne.u32 %q1, %t, 0;"});

  // The same case again is added to it.
  coverage::add(all, kernel.run(0, 32, "no thread"));
  CHECK(sum.cases.size() == 2);
  CHECK(sum.cases[1].launches == 2);
  CHECK(sum.cases[1].blocks[0] == 64);
}

TEST_CASE("coverage: blocks of labels alone, loops, and called functions") {
  CoveredKernel kernel(R"(
.reg .pred %q; .reg .b32 %i;
mov.u32 %i, 0;
$loop:
$again:
add.u32 %i, %i, 1;
call helper, ();
setp.lt.u32 %q, %i, %n;
@%q bra $again;
bra $out;
$unused:
$out:
ret;)",
                       ".func helper()\n{\nret;\n}\n.func other()\n{\nret;\n}\n");
  const KernelCoverage found = kernel.run(3);
  const coverage::CaseCounts& counts = found.cases.front();
  std::uint64_t body = 0;
  bool helper = false;
  for (std::size_t b = 0; b < found.blocks.size(); ++b) {
    if (found.blocks[b].text.starts_with("add")) body = counts.blocks[b];
    helper = helper || found.blocks[b].function == "helper";
    CHECK(found.blocks[b].function != "other");
  }
  CHECK(body == 3 * 32);
  CHECK(helper);
  CHECK(coverage::missed(found, counts).empty());
  const coverage::Shares shares = coverage::shares(found);
  CHECK(shares.blocks.covered == shares.blocks.all);
  CHECK(shares.edges.covered == shares.edges.all);
}

TEST_CASE("coverage: targets of a table are counted where they have one predecessor") {
  CoveredKernel kernel(R"(
.reg .b32 %t;
min.u32 %t, %n, 2;
brx.idx %t, $targets;
$targets: .branchtargets $a, $b, $c;
$a:
mov.u32 %t, 5;
bra $c;
$b:
mov.u32 %t, 6;
$c:
ret;)");
  const KernelCoverage found = kernel.run(0);
  const coverage::CaseCounts& counts = found.cases.front();
  CHECK(std::ranges::count(found.edges, false, &coverage::Edge::counted) == 1);
  CHECK(coverage::shares(found).blocks == Share{3, 4});
  CHECK(coverage::missed(found, counts).size() == 1);  // $b
  Coverage all;
  coverage::add(all, found);
  coverage::add(all, kernel.run(1, 32, "b"));
  const KernelCoverage& sum = all.kernels.front();
  CHECK(coverage::missed(sum, coverage::total(sum)).empty());
}

TEST_CASE("coverage: several statements on a line have their own counts") {
  CoveredKernel kernel(
      ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %q, %t, %n; @%q add.u32 %t, "
      "%t, 1; @!%q add.u32 %t, %t, 2; ret;");
  const KernelCoverage found = kernel.run(10);
  REQUIRE(found.conditions.size() == 2);
  CHECK(found.cases.front().taken == std::vector<std::uint64_t>{10, 22});
  CHECK(found.cases.front().not_taken == std::vector<std::uint64_t>{22, 10});
}

TEST_CASE("coverage: kernels of other code are kept apart") {
  CoveredKernel one(kGuarded);
  CoveredKernel other("ret;");
  Coverage all;
  coverage::add(all, one.run(1));
  coverage::add(all, other.run(1));
  CHECK(all.kernels.size() == 2);
  // The same hash with other parts is a damaged file.
  KernelCoverage damaged = one.run(1);
  damaged.edges.pop_back();
  damaged.cases.front().edges.pop_back();
  CHECK_THROWS_WITH(
      coverage::add(all, damaged),
      Catch::Contains("coverage of k: code " + damaged.code) && Catch::Contains("record it again"));
}

}  // namespace ptxgen::test
