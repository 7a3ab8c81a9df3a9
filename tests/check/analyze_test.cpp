// tests/check/analyze_test.cpp - the rules of the gate analyze, one by one
#include <catch2/catch.hpp>
#include <string>

#include "rule_snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

// shared-64bit-address ------------------------------------------------------------------------

TEST_CASE("a generic address must not feed a .shared access") {
  const char* const body = R"(  mov.u64 %rd1, tile;
  cvta.shared.u64 %rd2, %rd1;
  add.s64 %rd3, %rd2, 16;
  ld.shared.f32 %f1, [%rd3];
  st.shared.f32 [%rd2+4], %f1;
  ret;
)";
  CHECK(found(body, "shared-64bit-address") ==
        "19/17: error: this .shared access takes its address from %rd3, a generic address made by "
        "cvta at line 17\n"
        "20/17: error: this .shared access takes its address from %rd2, a generic address made by "
        "cvta at line 17\n");
}

TEST_CASE("a finding of the analyzer has the construct, the rule and the cure") {
  const ptx::Module module = kernel(R"(  mov.u64 %rd1, tile;
  cvta.shared.u64 %rd2, %rd1;
  ld.shared.f32 %f1, [%rd2];
  ret;
)");
  const std::vector<Finding> findings = gates::analyze(module);
  REQUIRE(findings.size() == 1);
  CHECK(
      to_text(findings[0]) ==
      "<ptx>:18: error: this .shared access takes its address from %rd2, a generic address made by "
      "cvta at line 17 [shared-64bit-address]\n"
      "    in: ld.shared.f32 %f1, [%rd2];\n"
      "    rule: an address of a .shared access is in the shared window, which begins at 0; a "
      "generic address of the same byte is another number\n"
      "    cure: convert it with cvta.to.shared.u64, or leave .shared out");
  CHECK(findings[0].kernel == "k");
}

TEST_CASE("pointers of other memory must not feed a .shared access") {
  const char* const body = R"(  ld.param.u64 %rd1, [a];
  atom.shared.add.u32 %r1, [%rd1], 1;
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd3, %rd2, %rd4;
  st.shared.u32 [%rd3], %r1;
  ret;
)";
  CHECK(
      found(body, "shared-64bit-address") ==
      "17/16: error: this .shared access takes its address from %rd1, a pointer from the kernel's "
      "parameters loaded at line 16\n"
      "22/18: error: this .shared access takes its address from %rd3, an address outside of "
      "shared memory made at line 18\n");
}

TEST_CASE("a window address in 64 bits is legal and noted once") {
  const char* const body = R"(  mov.u64 %rd1, tile;
  st.shared.u32 [%rd1], 1;
  st.shared.u32 [%rd1+4], 2;
  mov.u64 %rd2, tile;
  cvta.shared.u64 %rd3, %rd2;
  cvta.to.shared.u64 %rd4, %rd3;
  ld.shared.u32 %r1, [%rd4];
  ret;
)";
  CHECK(found(body, "shared-64bit-address") ==
        "17: note: this .shared access is addressed through the 64-bit register %rd1; 32 bits hold "
        "every address of the window; so are 2 more in this function\n");
}

TEST_CASE("generic accesses, window offsets from parameters and 32-bit addresses are in order") {
  const char* const body = R"(  mov.u64 %rd1, tile;
  cvta.shared.u64 %rd2, %rd1;
  st.u32 [%rd2], 1;
  mov.u32 %r1, tile;
  st.shared.u32 [%r1], 1;
  st.shared.u32 [tile+8], 1;
  ret;
)";
  CHECK(found(body, "shared-64bit-address").empty());
  const char* const offset = R"(  mov.u64 %rd1, tile;
  ld.param.u64 %rd2, [a];
  add.s64 %rd3, %rd1, %rd2;
  st.shared.u32 [%rd3], 1;
  ret;
)";
  CHECK(found(offset, "shared-64bit-address").find("error") == std::string::npos);
}

TEST_CASE("a shared pointer that the kernel is given is a window address") {
  const ptx::Module module = ptx::parse(R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .shared .align 4 s, .param .u64 .ptr .global .align 4 g)
{
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [s];
  st.shared.u32 [%rd1], 1;
  ld.param.u64 %rd2, [g];
  st.shared.u32 [%rd2], 1;
  ret;
}
)");
  CHECK(summary(gates::analyze(module)) ==
        "8: note: this .shared access is addressed through the 64-bit register %rd1; 32 bits hold "
        "every address of the window\n"
        "10/9: error: this .shared access takes its address from %rd2, a pointer from the kernel's "
        "parameters loaded at line 9\n");
}

TEST_CASE("one wrong path is enough") {
  const char* const body = R"(  mov.u64 %rd1, tile;
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 cvta.shared.u64 %rd1, %rd1;
  ld.shared.u32 %r2, [%rd1];
  ret;
)";
  CHECK(found(body, "shared-64bit-address") ==
        "20/19: error: this .shared access takes its address from %rd1, a generic address made by "
        "cvta at line 19\n");
}

// self-subtract -------------------------------------------------------------------------------

TEST_CASE("a register is subtracted from itself") {
  const char* const body = R"(  ld.shared.f32 %f1, [tile];
  ld.shared.f32 %f2, [tile+4];
  max.f32 %f1, %f1, %f2;
  sub.f32 %f3, %f1, %f1;
  st.shared.f32 [tile], %f3;
  ret;
)";
  CHECK(found(body, "self-subtract") ==
        "19/18: warning: %f1 is subtracted from itself as written at line 18: the difference is "
        "always 0\n");
}

TEST_CASE("a register is subtracted from its copy") {
  const char* const body = R"(  ld.shared.f32 %f1, [tile];
  mov.f32 %f2, %f1;
  mov.f32 %f4, %f2;
  sub.f32 %f3, %f4, %f1;
  st.shared.f32 [tile], %f3;
  ret;
)";
  CHECK(found(body, "self-subtract") ==
        "19/16: warning: %f1 is subtracted from %f4, a copy of the same value as written at line "
        "16: the difference is always 0\n");
}

TEST_CASE("an old value that was kept is another value") {
  const char* const body = R"(  ld.shared.f32 %f1, [tile];
  ld.shared.f32 %f2, [tile+4];
  mov.f32 %f4, %f1;
  max.f32 %f1, %f1, %f2;
  sub.f32 %f3, %f4, %f1;
  st.shared.f32 [tile], %f3;
  mov.u32 %r1, 5;
  sub.u32 %r2, 7, 7;
  ret;
)";
  CHECK(found(body, "self-subtract").empty());
}

TEST_CASE("a copy in some threads only is none") {
  const char* const body = R"(  ld.shared.f32 %f1, [tile];
  ld.shared.f32 %f2, [tile+4];
  setp.gt.f32 %p1, %f1, %f2;
  @%p1 mov.f32 %f2, %f1;
  sub.f32 %f3, %f2, %f1;
  st.shared.f32 [tile], %f3;
  ret;
)";
  CHECK(found(body, "self-subtract").empty());
}

// stale-accumulator ---------------------------------------------------------------------------

namespace {

/// A loop over n that loads %f2 from shared memory each round; `sum` is in it, `after` after.
std::string sum_loop(const std::string& sum, const std::string& after) {
  return R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
  mov.u32 %r3, tile;
  mov.f32 %f1, 0f00000000;
LOOP:
  ld.shared.f32 %f2, [%r3];
  add.u32 %r3, %r3, 4;
)" + sum +
         R"(  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra LOOP;
)" + after +
         "  ret;\n";
}

}  // namespace

TEST_CASE("a sum that begins anew in each round") {
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f2;\n", "  st.shared.f32 [other], %f3;\n"),
              "stale-accumulator") ==
        "23/19: warning: %f3 is computed in each iteration of the loop at line 20 from %f1, which "
        "keeps "
        "its value from line 19: after the loop only the last iteration counts\n");
  CHECK(found(sum_loop("  fma.rn.f32 %f3, %f2, %f2, %f1;\n", "  st.shared.f32 [other], %f3;\n"),
              "stale-accumulator") ==
        "23/19: warning: %f3 is computed in each iteration of the loop at line 20 from %f1, which "
        "keeps "
        "its value from line 19: after the loop only the last iteration counts\n");
}

TEST_CASE("a sum in several steps that begins anew in each round") {
  const std::string steps =
      "  add.f32 %f3, %f1, %f2;\n  add.f32 %f4, %f3, %f2;\n  add.f32 %f5, %f4, %f2;\n";
  CHECK(found(sum_loop(steps, "  st.shared.f32 [other], %f5;\n"), "stale-accumulator") ==
        "23/19: warning: %f3 is computed in each iteration of the loop at line 20 from %f1, which "
        "keeps "
        "its value from line 19: after the loop only the last iteration counts\n");
}

TEST_CASE("a maximum that forgets, and an integer sum") {
  CHECK(found(sum_loop("  max.f32 %f3, %f1, %f2;\n", "  st.shared.f32 [other], %f3;\n"),
              "stale-accumulator") != "");
  const std::string integers = "  mov.b32 %r5, %f2;\n  add.u32 %r6, %r7, %r5;\n";
  const std::string begun = "  mov.u32 %r7, 0;\n";
  CHECK(found(begun + sum_loop(integers, "  st.shared.u32 [other], %r6;\n"), "stale-accumulator") !=
        "");
}

TEST_CASE("sums that keep what they have") {
  const std::string store = "  st.shared.f32 [other], %f1;\n";
  // In place; by way of another register; used in the loop; not used after it.
  CHECK(found(sum_loop("  add.f32 %f1, %f1, %f2;\n", store), "stale-accumulator") == "");
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f2;\n  mov.f32 %f1, %f3;\n", store),
              "stale-accumulator") == "");
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f2;\n  st.shared.f32 [%r3], %f3;\n",
                       "  st.shared.f32 [other], %f3;\n"),
              "stale-accumulator") == "");
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f2;\n", store), "stale-accumulator") == "");
  // What is computed from the sum is no sum: the product of a round, a test of it.
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f2;\n  mul.f32 %f4, %f3, %f2;\n",
                       "  st.shared.f32 [other], %f4;\n"),
              "stale-accumulator") == "");
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f2;\n  setp.gt.f32 %p2, %f3, 0f00000000;\n",
                       "  @%p2 st.shared.f32 [other], %f1;\n"),
              "stale-accumulator") == "");
  // Nothing changes from round to round.
  CHECK(found(sum_loop("  add.f32 %f3, %f1, %f1;\n", "  st.shared.f32 [other], %f3;\n"),
              "stale-accumulator") == "");
  // What is added to is no beginning of a sum: an address.
  CHECK(found(sum_loop("  mov.u32 %r9, other;\n  add.u32 %r8, %r9, %r2;\n",
                       "  st.shared.f32 [%r8], %f2;\n"),
              "stale-accumulator") == "");
  CHECK(found(sum_loop("  @%p3 add.f32 %f3, %f1, %f2;\n", "  st.shared.f32 [other], %f3;\n"),
              "stale-accumulator") == "");
}
