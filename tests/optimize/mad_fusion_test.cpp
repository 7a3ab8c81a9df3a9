// tests/optimize/mad_fusion_test.cpp - integer mul and add to mad
#include "fusion_cases.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string mad_fused(std::string_view body) { return fused_body(mad_fusion(body)); }
std::string mad_refused(std::string_view body, std::string_view reason) {
  return refusal_of(mad_fusion(body), body, reason);
}

}  // namespace

TEST_CASE("mul and add of integers become mad") {
  CHECK(mad_fused("mul.lo.s32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;") ==
        "mad.lo.s32 %r5, %r1, %r2, %r4;");
  CHECK(mad_fused("mul.lo.u32 %r3, %r1, 12; add.u32 %r5, %r4, %r3;") ==
        "mad.lo.u32 %r5, %r1, 12, %r4;");
  CHECK(mad_fused("mul.lo.s64 %rd3, %rd1, %rd2; add.s64 %rd5, %rd3, -8;") ==
        "mad.lo.s64 %rd5, %rd1, %rd2, -8;");
  CHECK(mad_fused("mul.lo.u16 %h3, %h1, %h2; add.u16 %h5, %h3, %h4;") ==
        "mad.lo.u16 %h5, %h1, %h2, %h4;");
  CHECK(mad_fused("mul.wide.s32 %rd3, %r1, 4; add.s64 %rd5, %rd1, %rd3;") ==
        "mad.wide.s32 %rd5, %r1, 4, %rd1;");
  CHECK(mad_fused("mul.wide.u16 %r3, %h1, %h2; add.u32 %r5, %r3, 1;") ==
        "mad.wide.u16 %r5, %h1, %h2, 1;");
  CHECK(mad_fused("mul24.lo.s32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;") ==
        "mad24.lo.s32 %r5, %r1, %r2, %r4;");
}
TEST_CASE("the product decides about signs, the sum does not") {
  CHECK(mad_fused("mul.hi.u32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;") ==
        "mad.hi.u32 %r5, %r1, %r2, %r4;");
  CHECK(mad_fused("mul.hi.s64 %rd3, %rd1, %rd2; add.u64 %rd5, %rd3, %rd4;") ==
        "mad.hi.s64 %rd5, %rd1, %rd2, %rd4;");
  CHECK(mad_fused("mul.wide.u32 %rd3, %r1, %r2; add.s64 %rd5, %rd3, %rd4;") ==
        "mad.wide.u32 %rd5, %r1, %r2, %rd4;");
  CHECK(mad_fused("mul24.hi.u32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;") ==
        "mad24.hi.u32 %r5, %r1, %r2, %r4;");
}
TEST_CASE("a clamped sum, where mad can clamp") {
  CHECK(mad_fused("mul.hi.s32 %r3, %r1, %r2; add.sat.s32 %r5, %r3, %r4;") ==
        "mad.hi.sat.s32 %r5, %r1, %r2, %r4;");
  CHECK(mad_fused("mul24.hi.s32 %r3, %r1, %r2; add.sat.s32 %r5, %r3, %r4;") ==
        "mad24.hi.sat.s32 %r5, %r1, %r2, %r4;");
  CHECK(mad_refused("mul.lo.s32 %r3, %r1, %r2;\nadd.sat.s32 %r5, %r3, %r4;\n", "saturated") ==
        "the sum is clamped to the range of s32, which mad does for the high half of s32 only, not "
        "for 'mul.lo.s32 %r3, %r1, %r2' in line 2");
  mad_refused("mul.hi.u32 %r3, %r1, %r2; add.sat.s32 %r5, %r3, %r4;", "saturated");
}
TEST_CASE("chains of carries stay") {
  CHECK(mad_refused("mul.lo.u32 %r3, %r1, %r2;\nadd.cc.u32 %r5, %r3, %r4;\n", "carry") ==
        "the sum takes part in a chain of carries, which stays as it was written; use mad.cc or "
        "madc for 'mul.lo.u32 %r3, %r1, %r2' in line 2 and the sum to have one instruction");
  mad_refused("mul.hi.u32 %r3, %r1, %r2; addc.u32 %r5, %r3, %r4;", "carry");
}
TEST_CASE("differences, shifts and sums without a product are no candidates") {
  CHECK(mad_fusion("mul.lo.s32 %r3, %r1, %r2; sub.s32 %r5, %r3, %r4;").reasons().empty());
  CHECK(mad_fusion("shl.b32 %r3, %r1, 2; add.s32 %r5, %r3, %r4;").reasons().empty());
  CHECK(mad_fusion("mul.lo.s32 %r3, %r1, %r2; neg.s32 %r6, %r3; add.s32 %r5, %r6, %r4;")
            .reasons()
            .empty());
  CHECK(mad_fusion("mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4;").reasons().empty());
}
TEST_CASE("an address is one instruction, through a copy as well") {
  CHECK(mad_fused("mul.wide.u32 %rd3, %r1, 4; mov.b64 %rd6, %rd3; add.s64 %rd5, %rd1, %rd6;"
                  "ld.global.f32 %f1, [%rd5];") ==
        "mad.wide.u32 %rd5, %r1, 4, %rd1;\nld.global.f32 %f1, [%rd5];");
}
TEST_CASE("integers that may not be fused") {
  mad_refused("mul.lo.s32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4; st.global.u32 [%rd1], %r3;",
              "several-uses");
  mad_refused("mul.lo.s32 %r3, %r1, %r2; add.s32 %r1, %r1, 1; add.s32 %r5, %r3, %r4;",
              "operand-redefined");
  mad_refused("@%p1 mul.lo.s32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;", "guard-differs");
  mad_refused(
      "mul.lo.s32 %r3, %r1, %r2; $top: add.s32 %r5, %r3, %r5; setp.lt.s32 %p1, %r5, %r4;"
      "@%p1 bra $top;",
      "other-frequency");
}
TEST_CASE("the contract of floats does not bind integers") {
  optimize::PassOptions options;
  options.contract = false;
  CHECK(mad_fusion("mul.lo.s32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;", options).reasons() ==
        "+fused");
}
TEST_CASE("the decision of a mad") {
  CHECK(mad_fusion("mul.lo.s32 %r3, %r1, %r2;\nadd.s32 %r5, %r3, %r4;\n").message() ==
        "'mul.lo.s32 %r3, %r1, %r2' in line 2 and the sum are one 'mad.lo.s32 %r5, %r1, %r2, %r4'");
}
