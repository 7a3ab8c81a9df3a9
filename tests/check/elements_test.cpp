// tests/check/elements_test.cpp - the rules about elements at the end
#include <catch2/catch.hpp>
#include <string>

#include "ptxgen/check.hpp"
#include "rule_snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string lost(std::string_view body, std::uint64_t multiple = 1) {
  const gates::SizeDeclaration declared[] = {{"n", multiple}};
  return summary(gates::sizes(kernel(body), declared));
}
// A kernel that does something for each of %r2.
std::string loop_over(std::string_view count) {
  return "  ld.param.u32 %r1, [n];\n" + std::string(count) + R"(  mov.u32 %r3, 0;
TOP:
  st.shared.u32 [tile], %r3;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, %r2;
  @%p1 bra TOP;
  ret;
)";
}
std::string padding(std::string_view body) {
  const ptx::Module module = kernel(body);
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity == Severity::Error) FAIL(to_text(finding));
  }
  return summary(gates::analyze(module), "unmasked-padding");
}

}  // namespace

// size-rounded-down ---------------------------------------------------------------------------

TEST_CASE("a number of tiles that is rounded down loses the last elements") {
  const std::string message =
      "16: error: only multiples of 64 of n make a difference: up to 63 elements at its end are "
      "lost\n";
  CHECK(lost(loop_over("  shr.u32 %r2, %r1, 6;\n")) == message);
  CHECK(lost(loop_over("  div.u32 %r2, %r1, 64;\n")) == message);
  CHECK(lost(loop_over("  and.b32 %r2, %r1, -64;\n")) == message);
  // Through copies, a shift back, and sums with other numbers.
  CHECK(lost(loop_over("  mov.b32 %r4, %r1;\n  shr.u32 %r5, %r4, 6;\n  shl.b32 %r6, %r5, 6;\n"
                       "  cvt.u64.u32 %rd1, %r6;\n  cvt.u32.u64 %r7, %rd1;\n"
                       "  add.u32 %r2, %r7, 3;\n")) == message);
}

TEST_CASE("sizes that are rounded up, used whole, or declared multiples are no losses") {
  CHECK(lost(loop_over("  add.u32 %r4, %r1, 63;\n  shr.u32 %r2, %r4, 6;\n")) == "");
  CHECK(lost(loop_over("  mov.b32 %r2, %r1;\n")) == "");
  // The rest has code of its own.
  CHECK(lost(loop_over("  and.b32 %r2, %r1, -64;\n  and.b32 %r4, %r1, 63;\n"
                       "  st.shared.u32 [other], %r4;\n")) == "");
  CHECK(lost(loop_over("  shr.u32 %r2, %r1, 6;\n"), 64) == "");
  CHECK(lost(loop_over("  shr.u32 %r2, %r1, 6;\n"), 192) == "");
  CHECK(lost(loop_over("  shr.u32 %r2, %r1, 6;\n"), 32) ==
        "16: error: only multiples of 64 of n make a difference: up to 32 elements at its end are "
        "lost\n");
  // Division by another number, or of a signed one, which rounds to 0.
  CHECK(lost(loop_over("  div.u32 %r2, %r1, 48;\n")) == "");
  CHECK(lost(loop_over("  div.s32 %r2, %r1, 64;\n")) == "");
  // Never used, not read, not declared.
  CHECK(lost(loop_over("  mov.u32 %r2, 5;\n")) == "");
  CHECK(lost("  ret;\n") == "");
  const gates::SizeDeclaration other[] = {{"m"}};
  CHECK(gates::sizes(kernel(loop_over("  shr.u32 %r2, %r1, 6;\n")), other).empty());
}

TEST_CASE("a size that a guard decides is used whole") {
  CHECK(lost(R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 7;
  shr.u32 %r3, %r1, 6;
  setp.gt.u32 %p1, %r1, 3;
  @%p1 mov.u32 %r2, %r3;
  st.shared.u32 [tile], %r2;
  ret;
)") == "");
}

// unmasked-padding ----------------------------------------------------------------------------

namespace {

// A softmax over elements that are loaded where they exist: %p1 tells.
std::string softmax(std::string_view fill, std::string_view mask, std::string_view sum) {
  return R"(  ld.param.u64 %rd1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.lt.u32 %p1, %r2, %r1;
)" + std::string(fill) +
         R"(  @%p1 ld.global.f32 %f1, [%rd1];
  mul.f32 %f2, %f1, 0f3FB8AA3B;
)" + std::string(mask) +
         R"(  ex2.approx.f32 %f3, %f2;
)" + std::string(sum) +
         R"(  st.shared.f32 [tile], %f5;
  ret;
)";
}
constexpr const char* kSum = "  ld.shared.f32 %f4, [other];\n  add.f32 %f5, %f3, %f4;\n";
constexpr const char* kZero = "  mov.f32 %f1, 0f00000000;\n";

}  // namespace

TEST_CASE("zeros in the place of absent elements weigh in a sum of exponentials") {
  CHECK(padding(softmax(kZero, "", kSum)) ==
        "25/21: warning: a sum of exponentials counts elements beyond the end: the zeros that line "
        "21 fills in for them have a weight of their own\n");
  CHECK(padding(softmax(kZero, "", "  fma.rn.f32 %f5, %f3, %f1, %f4;\n")) != "");
}

TEST_CASE("masks, other fills, and exponentials that are not summed are no padding that weighs") {
  // -inf under a condition, or in the place of the elements.
  CHECK(padding(softmax(kZero, "  @!%p1 mov.f32 %f2, 0fFF800000;\n", kSum)) == "");
  CHECK(padding(softmax(kZero, "  selp.f32 %f2, %f2, 0fFF800000, %p1;\n", kSum)) == "");
  CHECK(padding(softmax("  mov.f32 %f1, 0fFF800000;\n", "", kSum)) == "");
  // A sigmoid adds a constant.
  CHECK(padding(softmax(kZero, "", "  add.f32 %f5, %f3, 0f3F800000;\n")) == "");
  // A sum with a term that is there is not padding.
  CHECK(padding(softmax(kZero, "  ld.shared.f32 %f6, [tile];\n  add.f32 %f2, %f2, %f6;\n", kSum)) ==
        "");
}

TEST_CASE("sums of products with nothing but padding are padding") {
  const auto with_copy = [](const char* size) {
    return std::string(
               "  ld.param.u64 %rd1, [a];\n  ld.param.u32 %r1, [n];\n  mov.u32 %r3, tile;\n"
               "  cp.async.ca.shared.global [%r3], [%rd1], 4, ") +
           size +
           ";\n  cp.async.wait_all;\n  bar.sync 0;\n  ld.shared.f32 %f1, [tile+8];\n"
           "  mov.f32 %f2, 0f00000000;\n  ld.global.f32 %f7, [%rd1];\n"
           "  fma.rn.f32 %f2, %f1, %f7, %f2;\n  fma.rn.f32 %f2, %f1, %f7, %f2;\n"
           "  ex2.approx.f32 %f3, %f2;\n  add.f32 %f5, %f3, %f7;\n"
           "  st.global.f32 [%rd1], %f5;\n  ret;\n";
  };
  CHECK(padding(with_copy("%r1")) != "");
  CHECK(padding(with_copy("4")) == "");
}
