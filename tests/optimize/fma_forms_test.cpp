// tests/optimize/fma_forms_test.cpp - forms that fma_fusion fuses
#include "fusion_cases.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string fused(std::string_view body) { return fused_body(fma_fusion(body)); }

}  // namespace

// The table of section 1 of the Tile IR facts, by its numbers. A broadcast is what brings one value
// into the shape of the other operand: here a packing move; to the same shape it is a plain move.

TEST_CASE("fma 1: the same explicit rounding") {
  CHECK(fused("mul.rz.f32 %f3, %f1, %f2; add.rz.f32 %f5, %f3, %f4;") ==
        "fma.rz.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("fma 2: rounding left out on the product, to nearest on the sum") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.rn.f32 %f5, %f3, %f4;") ==
        "fma.rn.f32 %f5, %f1, %f2, %f4;");
  CHECK(fused("mul.rn.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4;") ==
        "fma.rn.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("fma 3: rounding left out on both") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4;") == "fma.rn.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("fma 4: an addend that is spread over both lanes stays spread") {
  CHECK(fused("mul.f16x2 %r3, %r1, %r2; mov.b32 %r4, {%h1, %h1}; add.f16x2 %r5, %r3, %r4;") ==
        "mov.b32 %r4, {%h1, %h1};\nfma.rn.f16x2 %r5, %r1, %r2, %r4;");
}
TEST_CASE("fma 5: an addend after a copy") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; mov.f32 %f6, %f4; add.f32 %f5, %f3, %f6;") ==
        "mov.f32 %f6, %f4;\nfma.rn.f32 %f5, %f1, %f2, %f6;");
}
TEST_CASE("fma 6: a difference has its subtrahend negated") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; sub.f32 %f5, %f3, %f4;") ==
        "neg.f32 %opt_f32_0_0, %f4;\nfma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;");
}
TEST_CASE("fma 7: a difference with its subtrahend after a copy") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; mov.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;") ==
        "mov.f32 %f6, %f4;\nneg.f32 %opt_f32_0_0, %f6;\n"
        "fma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;");
}
TEST_CASE("fma 9: both flush to zero") {
  CHECK(fused("mul.ftz.f32 %f3, %f1, %f2; add.ftz.f32 %f5, %f3, %f4;") ==
        "fma.rn.ftz.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("fma 13: the product on the right of the sum") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.f32 %f5, %f4, %f3;") == "fma.rn.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("fma 14: the product on the right, one of the two after a copy") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; mov.f32 %f6, %f4; add.f32 %f5, %f6, %f3;") ==
        "mov.f32 %f6, %f4;\nfma.rn.f32 %f5, %f1, %f2, %f6;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; mov.b32 %f6, %f3; add.f32 %f5, %f4, %f6;") ==
        "fma.rn.f32 %f5, %f1, %f2, %f4;");
}

// Signs

TEST_CASE("a difference with the product on the right has a factor negated") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; sub.f32 %f5, %f4, %f3;") ==
        "neg.f32 %opt_f32_0_0, %f1;\nfma.rn.f32 %f5, %opt_f32_0_0, %f2, %f4;");
}
TEST_CASE("the sign of a constant is flipped in place") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; sub.f32 %f5, %f3, 0f3F800000;") ==
        "fma.rn.f32 %f5, %f1, %f2, 0fBF800000;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; sub.f32 %f5, %f3, 0f80000000;") ==
        "fma.rn.f32 %f5, %f1, %f2, 0f00000000;");
  CHECK(fused("mul.f32 %f3, %f1, 0f40000000; sub.f32 %f5, %f4, %f3;") ==
        "fma.rn.f32 %f5, %f1, 0fC0000000, %f4;");
  CHECK(fused("mul.f32 %f3, 0f40000000, %f2; sub.f32 %f5, %f4, %f3;") ==
        "fma.rn.f32 %f5, 0fC0000000, %f2, %f4;");
  CHECK(fused("mul.f64 %fd3, %fd1, 0d4000000000000000; sub.f64 %fd5, %fd4, %fd3;") ==
        "fma.rn.f64 %fd5, %fd1, 0dC000000000000000, %fd4;");
}
TEST_CASE("a negation that is there already is taken instead of a new one") {
  SECTION("of the subtrahend") {
    CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;") ==
          "fma.rn.f32 %f5, %f1, %f2, %f4;");
  }
  SECTION("of either factor") {
    CHECK(fused("neg.f32 %f6, %f1; mul.f32 %f3, %f6, %f2; sub.f32 %f5, %f4, %f3;") ==
          "fma.rn.f32 %f5, %f1, %f2, %f4;");
    CHECK(fused("neg.f32 %f6, %f1; mul.f32 %f3, %f2, %f6; sub.f32 %f5, %f4, %f3;") ==
          "fma.rn.f32 %f5, %f2, %f1, %f4;");
  }
  SECTION("it stays for its other readers") {
    CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;"
                "sqrt.rn.f32 %f7, %f6;") ==
          "neg.f32 %f6, %f4;\nfma.rn.f32 %f5, %f1, %f2, %f4;\nsqrt.rn.f32 %f7, %f6;");
    CHECK(fused("neg.f32 %f6, %f1; mul.f32 %f3, %f6, %f6; sub.f32 %f5, %f4, %f3;") ==
          "neg.f32 %f6, %f1;\nfma.rn.f32 %f5, %f1, %f6, %f4;");
    CHECK(fused("neg.f32 %f6, %f1; mul.f32 %f3, %f6, %f2; sub.f32 %f5, %f6, %f3;") ==
          "neg.f32 %f6, %f1;\nfma.rn.f32 %f5, %f1, %f2, %f6;");
  }
  SECTION("it stays where what it writes lives on") {
    CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;"
                "@%p1 mov.f32 %f6, %f1; sqrt.rn.f32 %f7, %f6;") ==
          "neg.f32 %f6, %f4;\nfma.rn.f32 %f5, %f1, %f2, %f4;\n@%p1 mov.f32 %f6, %f1;\n"
          "sqrt.rn.f32 %f7, %f6;");
  }
  SECTION("not if what it negates has changed") {
    CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f4; mov.f32 %f4, 0f00000000;"
                "sub.f32 %f5, %f3, %f6;") ==
          "neg.f32 %f6, %f4;\nmov.f32 %f4, 0f00000000;\nneg.f32 %opt_f32_0_0, %f6;\n"
          "fma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;");
  }
  SECTION("not if it is guarded") {
    CHECK(fused("mul.f32 %f3, %f1, %f2; @%p1 neg.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;") ==
          "@%p1 neg.f32 %f6, %f4;\nneg.f32 %opt_f32_0_0, %f6;\n"
          "fma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;");
  }
  SECTION("not if it flushes subnormals that the fma keeps") {
    CHECK(fused("mul.f32 %f3, %f1, %f2; neg.ftz.f32 %f6, %f4; sub.f32 %f5, %f3, %f6;") ==
          "neg.ftz.f32 %f6, %f4;\nneg.f32 %opt_f32_0_0, %f6;\n"
          "fma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;");
    CHECK(fused("mul.ftz.f32 %f3, %f1, %f2; neg.ftz.f32 %f6, %f4; sub.ftz.f32 %f5, %f3, %f6;") ==
          "fma.rn.ftz.f32 %f5, %f1, %f2, %f4;");
  }
}
TEST_CASE("a negation between product and sum is folded") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f3; add.f32 %f5, %f6, %f4;") ==
        "neg.f32 %opt_f32_0_0, %f1;\nfma.rn.f32 %f5, %opt_f32_0_0, %f2, %f4;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f3; add.f32 %f5, %f4, %f6;") ==
        "neg.f32 %opt_f32_0_0, %f1;\nfma.rn.f32 %f5, %opt_f32_0_0, %f2, %f4;");
  CHECK(fused("mul.f32 %f3, %f1, 0f40400000; neg.f32 %f6, %f3; add.f32 %f5, %f6, %f4;") ==
        "fma.rn.f32 %f5, %f1, 0fC0400000, %f4;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f3; sub.f32 %f5, %f4, %f6;") ==
        "fma.rn.f32 %f5, %f1, %f2, %f4;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f3; neg.f32 %f7, %f6; mov.f32 %f8, %f7;"
              "add.f32 %f5, %f8, %f4;") == "fma.rn.f32 %f5, %f1, %f2, %f4;");
  // -(a*b) - c: both are negated.
  CHECK(fused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f3; sub.f32 %f5, %f6, %f4;") ==
        "neg.f32 %opt_f32_0_0, %f1;\nneg.f32 %opt_f32_0_1, %f4;\n"
        "fma.rn.f32 %f5, %opt_f32_0_0, %f2, %opt_f32_0_1;");
  CHECK(fused("mul.ftz.f32 %f3, %f1, %f2; neg.ftz.f32 %f6, %f3; sub.ftz.f32 %f5, %f4, %f6;") ==
        "fma.rn.ftz.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("of two products the one goes that needs fewer negations, else the left") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; mul.f32 %f6, %f4, %f7; add.f32 %f5, %f3, %f6;") ==
        "mul.f32 %f6, %f4, %f7;\nfma.rn.f32 %f5, %f1, %f2, %f6;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; mul.f32 %f6, %f4, 0f40000000; sub.f32 %f5, %f3, %f6;") ==
        "mul.f32 %f3, %f1, %f2;\nfma.rn.f32 %f5, %f4, 0fC0000000, %f3;");
  CHECK(fused("mul.f32 %f3, %f1, %f1; mul.f32 %f6, %f1, %f1; add.f32 %f5, %f3, %f6;") ==
        "mul.f32 %f6, %f1, %f1;\nfma.rn.f32 %f5, %f1, %f1, %f6;");
  // The left one may not.
  CHECK(fused("mul.rz.f32 %f3, %f1, %f2; mul.f32 %f6, %f4, %f7; add.f32 %f5, %f3, %f6;") ==
        "mul.rz.f32 %f3, %f1, %f2;\nfma.rn.f32 %f5, %f4, %f7, %f3;");
}

TEST_CASE("a negation made for one sum serves those that it dominates") {
  const Fused result = fma_fusion(
      "mul.f32 %f3, %f1, %f2; sub.f32 %f4, %f5, %f3; mul.f32 %f6, %f4, %f1; sub.f32 %f7, %f5, %f6;"
      "@%p1 bra $end; mul.f32 %f8, %f1, %f7; sub.f32 %f9, %f5, %f8; $end:");
  CHECK(result.reasons() == "+fused +fused +fused");
  // Of two factors the one with more readers is negated.
  CHECK(result.body() ==
        "neg.f32 %opt_f32_0_0, %f1;\nfma.rn.f32 %f4, %opt_f32_0_0, %f2, %f5;\n"
        "fma.rn.f32 %f7, %f4, %opt_f32_0_0, %f5;\n@%p1 bra $end;\n"
        "fma.rn.f32 %f9, %opt_f32_0_0, %f7, %f5;\n$end:");
  // Of two products the one whose factor has more readers.
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; mul.f32 %f6, %f4, %f2; sub.f32 %f5, %f3, %f6;").body() ==
        "mul.f32 %f3, %f1, %f2;\nneg.f32 %opt_f32_0_0, %f2;\n"
        "fma.rn.f32 %f5, %f4, %opt_f32_0_0, %f3;");
  SECTION("not where it was made on one way only, under a guard, or of an older value") {
    CHECK(fma_fusion("@%p1 bra $other; mul.f32 %f3, %f1, %f2; sub.f32 %f4, %f5, %f3; $other:"
                     "mul.f32 %f6, %f1, %f2; sub.f32 %f7, %f5, %f6;")
              .body() ==
          "@%p1 bra $other;\nneg.f32 %opt_f32_0_0, %f1;\n"
          "fma.rn.f32 %f4, %opt_f32_0_0, %f2, %f5;\n$other:\nneg.f32 %opt_f32_0_1, %f1;\n"
          "fma.rn.f32 %f7, %opt_f32_0_1, %f2, %f5;");
    CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; @%p1 sub.f32 %f4, %f5, %f3;"
                     "mul.f32 %f6, %f1, %f2; sub.f32 %f7, %f5, %f6;")
              .body() ==
          "@%p1 neg.f32 %opt_f32_0_0, %f1;\n@%p1 fma.rn.f32 %f4, %opt_f32_0_0, %f2, %f5;\n"
          "neg.f32 %opt_f32_0_1, %f1;\nfma.rn.f32 %f7, %opt_f32_0_1, %f2, %f5;");
    CHECK(fma_fusion("mul.f32 %f3, %f1, 0f40000000; mul.f32 %f8, %f1, %f1; sub.f32 %f4, %f5, %f8;"
                     "add.f32 %f1, %f3, %f4; mul.f32 %f6, %f1, %f1; sub.f32 %f7, %f5, %f6;")
              .body() ==
          "neg.f32 %opt_f32_0_0, %f1;\nfma.rn.f32 %f4, %opt_f32_0_0, %f1, %f5;\n"
          "fma.rn.f32 %f1, %f1, 0f40000000, %f4;\nneg.f32 %opt_f32_0_1, %f1;\n"
          "fma.rn.f32 %f7, %opt_f32_0_1, %f1, %f5;");
  }
  SECTION("each component of a vector and each type for itself") {
    const Fused parts = fma_fusion(
        "{ .reg .v2 .f32 %v; mov.f32 %v.x, %f1; mov.f32 %v.y, %f2;\n"
        "mul.f32 %f3, %v.x, %f1; sub.f32 %f4, %f5, %f3;\n"
        "mul.f32 %f6, %v.y, %f2; sub.f32 %f7, %f5, %f6;\n"
        "mul.f32 %f8, %v.x, %f2; sub.f32 %f9, %f5, %f8; }");
    CHECK(parts.body() ==
          "{\nmov.f32 %v.x, %f1;\nmov.f32 %v.y, %f2;\nneg.f32 %opt_f32_0_0, %v.x;\n"
          "fma.rn.f32 %f4, %opt_f32_0_0, %f1, %f5;\nneg.f32 %opt_f32_0_1, %v.y;\n"
          "fma.rn.f32 %f7, %opt_f32_0_1, %f2, %f5;\n"
          "fma.rn.f32 %f9, %opt_f32_0_0, %f2, %f5;\n}");
  }
}

// Types

TEST_CASE("every type of floats") {
  CHECK(fused("mul.f64 %fd3, %fd1, %fd2; add.f64 %fd5, %fd3, %fd4;") ==
        "fma.rn.f64 %fd5, %fd1, %fd2, %fd4;");
  CHECK(fused("mul.rp.f64 %fd3, %fd1, %fd2; sub.rp.f64 %fd5, %fd3, %fd4;") ==
        "neg.f64 %opt_f64_0_0, %fd4;\nfma.rp.f64 %fd5, %fd1, %fd2, %opt_f64_0_0;");
  CHECK(fused("mul.f16 %h3, %h1, %h2; add.f16 %h5, %h3, %h4;") == "fma.rn.f16 %h5, %h1, %h2, %h4;");
  CHECK(fused("mul.ftz.f16 %h3, %h1, %h2; sub.ftz.f16 %h5, %h4, %h3;") ==
        "neg.f16 %opt_b16_0_0, %h1;\nfma.rn.ftz.f16 %h5, %opt_b16_0_0, %h2, %h4;");
  CHECK(fused("mul.f16x2 %r3, %r1, %r2; sub.f16x2 %r5, %r3, %r4;") ==
        "neg.f16x2 %opt_b32_0_0, %r4;\nfma.rn.f16x2 %r5, %r1, %r2, %opt_b32_0_0;");
  CHECK(fused("mul.bf16 %h3, %h1, %h2; add.bf16 %h5, %h4, %h3;") ==
        "fma.rn.bf16 %h5, %h1, %h2, %h4;");
  CHECK(fused("mul.bf16 %h3, %h1, %h2; sub.bf16 %h5, %h3, %h4;") ==
        "neg.bf16 %opt_b16_0_0, %h4;\nfma.rn.bf16 %h5, %h1, %h2, %opt_b16_0_0;");
  CHECK(fused("mul.bf16x2 %r3, %r1, %r2; sub.bf16x2 %r5, %r4, %r3;") ==
        "neg.bf16x2 %opt_b32_0_0, %r1;\nfma.rn.bf16x2 %r5, %opt_b32_0_0, %r2, %r4;");
  CHECK(fused("mul.rz.ftz.f32x2 %q3, %q1, %q2; add.rz.ftz.f32x2 %q5, %q3, %q4;") ==
        "fma.rz.ftz.f32x2 %q5, %q1, %q2, %q4;");
}
TEST_CASE("products that are read as something else are no candidates") {
  CHECK(fma_fusion("mul.f16x2 %r3, %r1, %r2; add.bf16x2 %r5, %r3, %r4;").reasons().empty());
  CHECK(fma_fusion("mul.f16x2 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;").reasons().empty());
  CHECK(fma_fusion("mul.lo.s32 %r3, %r1, %r2; add.s32 %r5, %r3, %r4;").reasons().empty());
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; abs.f32 %f6, %f3; add.f32 %f5, %f6, %f4;")
            .reasons()
            .empty());
  CHECK(fma_fusion("neg.f16x2 %r3, %r1; mul.bf16x2 %r4, %r3, %r2; sub.bf16x2 %r5, %r6, %r4;")
            .body() ==
        "neg.f16x2 %r3, %r1;\nneg.bf16x2 %opt_b32_0_0, %r3;\n"
        "fma.rn.bf16x2 %r5, %opt_b32_0_0, %r2, %r6;");
}

// Words, places

TEST_CASE("a clamped sum becomes a clamped fma") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.sat.f32 %f5, %f3, %f4;") ==
        "fma.rn.sat.f32 %f5, %f1, %f2, %f4;");
  CHECK(fused("mul.f16 %h3, %h1, %h2; add.sat.f16 %h5, %h3, %h4;") ==
        "fma.rn.sat.f16 %h5, %h1, %h2, %h4;");
}
TEST_CASE("chains are fused sum by sum") {
  const Fused result = fma_fusion(
      "mul.f32 %f4, %f1, %f2; add.f32 %f5, %f4, %f3; mul.f32 %f6, %f5, %f7;"
      "add.f32 %f8, %f6, %f9;");
  CHECK(result.reasons() == "+fused +fused");
  CHECK(result.body() == "fma.rn.f32 %f5, %f1, %f2, %f3;\nfma.rn.f32 %f8, %f5, %f7, %f9;");
}
TEST_CASE("sums in place and products in place of other registers") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.f32 %f5, %f5, %f3;") == "fma.rn.f32 %f5, %f1, %f2, %f5;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.f32 %f3, %f3, %f4;") == "fma.rn.f32 %f3, %f1, %f2, %f4;");
  CHECK(fused("mul.f32 %f3, %f1, %f2; add.f32 %f1, %f3, %f4;") == "fma.rn.f32 %f1, %f1, %f2, %f4;");
}
TEST_CASE("a product in a dominating block") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; @%p1 bra $end; add.f32 %f5, %f3, %f4; $end:") ==
        "@%p1 bra $end;\nfma.rn.f32 %f5, %f1, %f2, %f4;\n$end:");
  // Past a branch whose two ways leave the factors alone, though they are written elsewhere.
  CHECK(fused("mov.f32 %f1, 0f3F800000; mul.f32 %f3, %f1, %f2; @%p1 bra $else;"
              "mov.f32 %f6, 0f00000000; bra $join; $else: mov.f32 %f6, 0f3F800000; $join:"
              "add.f32 %f5, %f3, %f6; mov.f32 %f1, 0f40000000; mov.f32 %f2, %f1;") ==
        "mov.f32 %f1, 0f3F800000;\n@%p1 bra $else;\nmov.f32 %f6, 0f00000000;\nbra $join;\n"
        "$else:\nmov.f32 %f6, 0f3F800000;\n$join:\nfma.rn.f32 %f5, %f1, %f2, %f6;\n"
        "mov.f32 %f1, 0f40000000;\nmov.f32 %f2, %f1;");
}
TEST_CASE("both in one loop, the product's register used again and again") {
  CHECK(fused("$top: ld.global.f32 %f1, [%rd1]; mul.f32 %f3, %f1, %f2; add.f32 %f5, %f5, %f3;"
              "add.s64 %rd1, %rd1, 4; setp.lt.s64 %p1, %rd1, %rd2; @%p1 bra $top;") ==
        "$top:\nld.global.f32 %f1, [%rd1];\nfma.rn.f32 %f5, %f1, %f2, %f5;\n"
        "add.s64 %rd1, %rd1, 4;\nsetp.lt.s64 %p1, %rd1, %rd2;\n@%p1 bra $top;");
}

// Guards

TEST_CASE("pairs under one guard") {
  CHECK(fused("@%p1 mul.f32 %f3, %f1, %f2; @%p1 add.f32 %f5, %f3, %f4;") ==
        "@%p1 fma.rn.f32 %f5, %f1, %f2, %f4;");
  CHECK(fused("@!%p1 mul.f32 %f3, %f1, %f2; @!%p1 sub.f32 %f5, %f3, %f4;") ==
        "@!%p1 neg.f32 %opt_f32_0_0, %f4;\n@!%p1 fma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;");
  CHECK(
      fused("@%p1 mul.f32 %f3, %f1, %f2; @%p1 neg.f32 %f3, %f3; @%p1 add.f32 %f5, %f3, 0f00000000;"
            "setp.eq.f32 %p1, %f5, %f5;") ==
      "@%p1 neg.f32 %opt_f32_0_0, %f1;\n@%p1 fma.rn.f32 %f5, %opt_f32_0_0, %f2, 0f00000000;\n"
      "setp.eq.f32 %p1, %f5, %f5;");
}
TEST_CASE("a product without a guard for a sum under one") {
  CHECK(fused("mul.f32 %f3, %f1, %f2; @%p1 add.f32 %f5, %f3, %f4;") ==
        "@%p1 fma.rn.f32 %f5, %f1, %f2, %f4;");
}
TEST_CASE("pairs under one guard that use one register for all products") {
  const Fused result = fma_fusion(
      "$top: @%p1 mul.f32 %f3, %f1, %f2; @%p1 add.f32 %f5, %f3, %f4;"
      "@%p2 mul.f32 %f3, %f6, %f7; @%p2 add.f32 %f8, %f3, %f4;"
      "setp.lt.f32 %p1, %f5, %f6; setp.lt.f32 %p2, %f5, %f7; @%p1 bra $top;");
  CHECK(result.reasons() == "+fused +fused");
  CHECK(result.body() ==
        "$top:\n@%p1 fma.rn.f32 %f5, %f1, %f2, %f4;\n@%p2 fma.rn.f32 %f8, %f6, %f7, %f4;\n"
        "setp.lt.f32 %p1, %f5, %f6;\nsetp.lt.f32 %p2, %f5, %f7;\n@%p1 bra $top;");
}

// More than one round

TEST_CASE("what one fusion makes way for is fused in the same run") {
  // %f1 is written between the second pair only by the product of the third.
  const Fused result = fma_fusion(
      "mul.f32 %f13, %f14, %f14;\nadd.f32 %f15, %f13, %f9;\nmul.f32 %f3, %f1, %f2;\n"
      "mul.f32 %f1, %f6, %f7;\nadd.f32 %f5, %f3, %f4;\nadd.f32 %f8, %f1, %f9;\n");
  CHECK(result.reasons() == "+fused +fused +fused");
  CHECK(result.body() ==
        "fma.rn.f32 %f15, %f14, %f14, %f9;\nfma.rn.f32 %f5, %f1, %f2, %f4;\n"
        "fma.rn.f32 %f8, %f6, %f7, %f9;");
  // Decisions count statements as the pass found them.
  const std::uint32_t first = result.report.decisions[0].other;
  const std::uint32_t expected[][2] = {
      {first + 1, first}, {first + 4, first + 2}, {first + 5, first + 3}};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(result.report.decisions[i].statement == expected[i][0]);
    CHECK(result.report.decisions[i].other == expected[i][1]);
  }
  CHECK(result.report.decisions[1].line == 6);
  CHECK(result.report.decisions[2].line == 7);
}
TEST_CASE("what stays refused is told once, beside what later rounds fused") {
  const Fused result = fma_fusion(
      "mul.rz.f32 %f10, %f1, %f2;\nadd.f32 %f11, %f10, %f4;\n"
      "mul.f32 %f3, %f1, %f2;\nmul.f32 %f1, %f6, %f7;\nadd.f32 %f5, %f3, %f4;\n"
      "add.f32 %f8, %f1, %f9;\n");
  CHECK(result.reasons() == "rounding-differs +fused +fused");
  CHECK(result.report.decisions[0].line == 3);
  CHECK(result.report.refused() == 1);
}

TEST_CASE("the decision of a pair that was fused") {
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;\n").message() ==
        "'mul.f32 %f3, %f1, %f2' in line 2 and the sum are one "
        "'fma.rn.f32 %f5, %f1, %f2, %f4'");
}
