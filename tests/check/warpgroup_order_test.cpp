// tests/check/warpgroup_order_test.cpp - the gate warpgroup_order
#include <catch2/catch.hpp>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"

using namespace ptxgen;
using namespace ptxgen::gates;
using Catch::Contains;

namespace {

const std::string kFence = "wgmma.fence.sync.aligned;\n";
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
const std::string kWait = "wgmma.wait_group.sync.aligned 0;\n";
const std::string kProduct =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, "
    "0, 0;\n";
const std::string kFragments =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, "
    "%rd2, 1, 1, 1, 0;\n";
const std::string kZero = "mov.f32 %f0, 0f00000000;\n";
const std::string kStore = "st.global.f32 [%rd3], %f0;\n";

/// The body begins in line 9.
std::string found(const std::string& body) {
  std::string all;
  const ptx::Module module = ptx::parse(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>; .reg .f32 %f<8>;\n" +
          body + "ret;\n}\n",
      "k.ptx");
  for (const Finding& finding : warpgroup_order(module)) {
    CHECK(finding.rule == "warpgroup-order");
    all += to_text(finding) + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("wgmma that is fenced and waited for is not reported") {
  CHECK(found(kZero + kFence + kProduct + kCommit + kWait + kStore) == "");
  CHECK(found(kZero + kFence + kProduct + kProduct + kCommit + kProduct + kCommit + kWait +
              kStore) == "");
  CHECK(found("mov.b32 %r0, 1;\n" + kFence + kFragments + kCommit + kWait + "mov.b32 %r0, 2;\n" +
              kFence + kFragments + kCommit + kWait + kStore) == "");
  // A pipelined loop: one group stays pending.
  CHECK(found(kZero + kFence + "loop:\n" + kProduct + kCommit +
              "wgmma.wait_group.sync.aligned 1;\nadd.u32 %r5, %r5, 1;\n"
              "setp.lt.u32 %p1, %r5, 9;\n@%p1 bra loop;\n" +
              kWait + kStore) == "");
  CHECK(found("add.u32 %r5, %r5, 1;\n") == "");
}

TEST_CASE("wgmma without a fence before its registers") {
  CHECK(found(kProduct + kCommit + kWait) ==
        "k.ptx:9: error: no wgmma.fence comes before this wgmma [warpgroup-order]\n"
        "    in: " +
            kProduct.substr(0, kProduct.size() - 1) +
            "\n"
            "    rule: wgmma.fence orders ordinary accesses to the accumulators and to fragments "
            "of a "
            "before the wgmma that has them\n"
            "    cure: put wgmma.fence.sync.aligned before the first wgmma, on every path\n");
  CHECK_THAT(found(kFence + kZero + kProduct + kCommit + kWait),
             Contains("k.ptx:11: error: the accumulator %f0 is accessed in line 10, with no "
                      "wgmma.fence between that and this wgmma"));
  CHECK_THAT(found(kFence + "mov.b32 %r2, 1;\n" + kFragments + kCommit + kWait),
             Contains("error: the fragment %r2 is accessed in line 10"));
  // On one of two paths only.
  CHECK_THAT(found(kFence + "@%p1 bra on;\n" + kZero + "on:\n" + kProduct + kCommit + kWait),
             Contains("k.ptx:13: warning: the accumulator %f0 is accessed in line 11"));
  CHECK_THAT(found("@%p1 bra on;\n" + kFence + "on:\n" + kProduct + kCommit + kWait),
             Contains("warning: a path leads to this wgmma without a wgmma.fence"));
  // In the second iteration: the accumulator was read at the end of the first.
  CHECK_THAT(found(kFence + "loop:\n" + kProduct + kCommit + kWait + kStore + "@%p1 bra loop;\n"),
             Contains("k.ptx:11: warning: the accumulator %f0 is accessed in line 14"));
}

TEST_CASE("registers of a wgmma in flight") {
  CHECK_THAT(found(kFence + kProduct + kCommit + kStore + kWait),
             Contains("k.ptx:12: error: reads %f0, an accumulator of the wgmma in line 10, which "
                      "no wgmma.wait_group has waited for"));
  CHECK_THAT(found(kFence + kProduct + kCommit + kZero + kWait),
             Contains("error: writes %f0, an accumulator of the wgmma in line 10"));
  CHECK_THAT(found(kFence + kFragments + kCommit + "mov.b32 %r3, 0;\n" + kWait),
             Contains("error: writes %r3, a fragment of a of the wgmma in line 10"));
  // No group, or one too few.
  CHECK_THAT(found(kFence + kProduct + kWait + kStore), Contains("error: reads %f0"));
  CHECK_THAT(
      found(kFence + kProduct + kCommit + "wgmma.wait_group.sync.aligned 1;\n" + kStore + kWait),
      Contains("error: reads %f0"));
  CHECK(found(kFence + kProduct + kCommit + kCommit + "wgmma.wait_group.sync.aligned 1;\n" +
              kStore) == "");
  CHECK_THAT(found(kFence + kProduct + kCommit + "@%p1 bra on;\n" + kWait + "on:\n" + kStore),
             Contains("warning: reads %f0, an accumulator of the wgmma in line 10, for which a "
                      "path has no wgmma.wait_group"));
  CHECK_THAT(found(kFence + kProduct + kCommit + "@%p1 mov.f32 %f1, 0f00000000;\n" + kWait),
             Contains("warning: writes %f1"));
  // The accumulator of one is the fragment of the next.
  const std::string chained =
      "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r0, %r1}, %rd1, %rd2, 1, 1, 1, 0, 0;\n";
  CHECK_THAT(found(kFence + chained + kCommit + kFragments + kCommit + kWait),
             Contains("error: %r0 is a fragment of a of this wgmma while it is an accumulator of "
                      "the one in line 10, which no wgmma.wait_group has waited for"));
  CHECK(found(kFence + chained + kCommit + kWait + kFragments + kCommit + kWait) == "");
}
