// tests/optimize/fma_refusals_test.cpp - refusals of fma_fusion and their messages
#include "fusion_cases.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string refused(std::string_view body, std::string_view reason) {
  return refusal_of(fma_fusion(body), body, reason);
}

}  // namespace

// By the numbers of the table of section 1 of the Tile IR facts.

TEST_CASE("fma 8: the rounding differs") {
  CHECK(refused("mul.rz.f32 %f3, %f1, %f2;\nadd.rn.f32 %f5, %f3, %f4;\n", "rounding-differs") ==
        "'mul.rz.f32 %f3, %f1, %f2' in line 2 rounds by .rz and the sum by .rn, a fused operation "
        "rounds once; give both the same rounding to have them fused");
  refused("mul.f32 %f3, %f1, %f2; add.rp.f32 %f5, %f3, %f4;", "rounding-differs");
  refused("mul.rm.f64 %fd3, %fd1, %fd2; add.rp.f64 %fd5, %fd3, %fd4;", "rounding-differs");
}
TEST_CASE("fma 10: one of the two flushes to zero") {
  CHECK(refused("mul.ftz.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;\n", "ftz-differs") ==
        "'mul.ftz.f32 %f3, %f1, %f2' in line 2 flushes subnormals to zero and the sum does not; "
        "give both .ftz or neither to have them fused");
  CHECK(refused("mul.f32 %f3, %f1, %f2;\nadd.ftz.f32 %f5, %f3, %f4;\n", "ftz-differs") ==
        "'mul.f32 %f3, %f1, %f2' in line 2 keeps subnormals and the sum flushes them; give both "
        ".ftz or neither to have them fused");
}
TEST_CASE("fma 11: both differ") {
  refused("mul.rz.ftz.f32 %f3, %f1, %f2; add.rn.f32 %f5, %f3, %f4;", "rounding-differs");
}
TEST_CASE("fma 12: a product with two readers") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;\nsqrt.rn.f32 %f6, %f3;\n",
                "several-uses") ==
        "%f3, the result of 'mul.f32 %f3, %f1, %f2' in line 2, is read by 'sqrt.rn.f32 %f6, %f3' "
        "in line 4 too: the multiplication would stay, and be done twice; multiply once for each "
        "sum to have them fused");
}
TEST_CASE("fma 15 and 16: the product on the right, rounding or flushing differs") {
  refused("mul.rz.f32 %f3, %f1, %f2; add.rn.f32 %f5, %f4, %f3;", "rounding-differs");
  refused("mul.ftz.f32 %f3, %f1, %f2; add.f32 %f5, %f4, %f3;", "ftz-differs");
}

// Readers

TEST_CASE("a product that both operands of the sum are") {
  CHECK(refused("mul.f32 %f3, %f1, %f1;\nadd.f32 %f5, %f3, %f3;\n", "several-uses") ==
        "%f3, the result of 'mul.f32 %f3, %f1, %f1' in line 2, is read twice by the sum: the "
        "multiplication would stay, and be done twice; multiply once for each sum to have them "
        "fused");
}
TEST_CASE("a product that two sums read") {
  const Fused result =
      fma_fusion("mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; add.f32 %f6, %f3, %f4;");
  CHECK(result.reasons() == "several-uses several-uses");
  CHECK_FALSE(result.report.changed);
}
TEST_CASE("a copy or negation in between that another statement reads") {
  refused("mul.f32 %f3, %f1, %f2; mov.f32 %f6, %f3; add.f32 %f5, %f6, %f4; sqrt.rn.f32 %f7, %f6;",
          "several-uses");
  refused("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f3; add.f32 %f5, %f6, %f4; sqrt.rn.f32 %f7, %f3;",
          "several-uses");
}
TEST_CASE("a product that is read where paths join") {
  CHECK(refused("mov.f32 %f3, 0f00000000;\n@%p1 bra $join;\nmul.f32 %f3, %f1, %f2;\n"
                "add.f32 %f5, %f3, %f4;\n$join:\nst.global.f32 [%rd1], %f3;\n",
                "several-uses") ==
        "%f3, the result of 'mul.f32 %f3, %f1, %f2' in line 4, is read later on too, where paths "
        "join or a guard keeps it: the multiplication would stay, and be done twice; multiply once "
        "for each sum to have them fused");
  // As what a guarded write keeps.
  refused(
      "mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; @%p1 mov.f32 %f3, 0f00000000;"
      "st.global.f32 [%rd1], %f3;",
      "several-uses");
  // Through one meeting of paths to the next.
  refused(
      "mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; @%p1 bra $a; mov.f32 %f3, %f1; $a:"
      "@%p2 bra $b; mov.f32 %f3, %f2; $b: st.global.f32 [%rd1], %f3;",
      "several-uses");
  // By threads that a guarded write leaves alone: under its opposite, under an older one.
  refused(
      "mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; @%p1 mov.f32 %f3, 0f00000000;"
      "@!%p1 st.global.f32 [%rd1], %f3;",
      "several-uses");
  refused(
      "mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; @%p1 mov.f32 %f3, 0f00000000;"
      "setp.lt.f32 %p1, %f1, %f2; @%p1 st.global.f32 [%rd1], %f3;",
      "several-uses");
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; @%p1 mov.f32 %f3, 0f00000000;"
                   "@%p1 st.global.f32 [%rd1], %f3;")
            .reasons() == "+fused");
  // In the next iteration of the loop.
  CHECK(fma_fusion("$top: add.f32 %f6, %f6, %f3; mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4;"
                   "setp.lt.f32 %p1, %f5, %f6; @%p1 bra $top;")
            .reasons() == "several-definitions several-uses");
}
TEST_CASE("a product that the caller gets") {
  const Fused result =
      run_pass(ptx::parse(".version 8.7 .target sm_90 .address_size 64\n"
                          ".func (.reg .f32 %r) f(.reg .f32 %a, .reg .f32 %b) {\n.reg .f32 %s;\n"
                          "mul.f32 %r, %a, %b;\nadd.f32 %s, %r, %a;\nret;\n}\n"),
               "fma_fusion");
  CHECK(result.reasons() == "several-uses");
  CHECK(result.message() ==
        "%r, the result of 'mul.f32 %r, %a, %b' in line 4, is read by the caller too: the "
        "multiplication would stay, and be done twice; multiply once for each sum to have them "
        "fused");
  // On one of the ways out.
  CHECK(run_pass(ptx::parse(".version 8.7 .target sm_90 .address_size 64\n"
                            ".func (.reg .f32 %r) f(.reg .f32 %a, .reg .f32 %b) {\n"
                            ".reg .f32 %s; .reg .pred %p; mul.f32 %r, %a, %b;"
                            "add.f32 %s, %r, %a; setp.lt.f32 %p, %s, %a; @%p ret;"
                            "mov.f32 %r, %s; ret; }\n"),
                 "fma_fusion")
            .reasons() == "several-uses");
}

// Which product

TEST_CASE("a product on one of two ways is not the last that was written") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\n@%p1 bra $join;\nmov.f32 %f3, 0f00000000;\n$join:\n"
                "add.f32 %f5, %f3, %f4;\n",
                "several-definitions") ==
        "%f3 comes from 'mul.f32 %f3, %f1, %f2' in line 2 on one way to the sum and from elsewhere "
        "on another; add on each way to have the product fused");
}
TEST_CASE("a product after the sum in a loop is another iteration's") {
  refused(
      "mov.f32 %f3, 0f00000000; $top: add.f32 %f5, %f3, %f4; mul.f32 %f3, %f1, %f2;"
      "setp.lt.f32 %p1, %f5, %f4; @%p1 bra $top;",
      "several-definitions");
}
TEST_CASE("a product whose register was written again is none") {
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; mov.f32 %f3, 0f3F800000; add.f32 %f5, %f3, %f4;")
            .reasons()
            .empty());
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; ld.global.f32 %f3, [%rd1]; add.f32 %f5, %f3, %f4;")
            .reasons()
            .empty());
}

// Operands

TEST_CASE("a factor that is written before the sum") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\nmov.f32 %f1, %f6;\nadd.f32 %f5, %f3, %f4;\n",
                "operand-redefined") ==
        "%f1, an operand of 'mul.f32 %f3, %f1, %f2' in line 2, is written again by 'mov.f32 %f1, "
        "%f6' in line 3 before the sum: a fused operation would read the new value; write to "
        "another register to have them fused");
  refused("mul.f32 %f3, %f1, %f2; mov.f32 %f2, %f6; add.f32 %f5, %f3, %f4;", "operand-redefined");
  // Under a guard, in part of a vector, or by a load.
  refused("mul.f32 %f3, %f1, %f2; @%p1 mov.f32 %f1, %f6; add.f32 %f5, %f3, %f4;",
          "operand-redefined");
  refused("mul.f32 %f3, %f1, %f2; ld.global.v2.f32 {%f1, %f6}, [%rd1]; add.f32 %f5, %f3, %f4;",
          "operand-redefined");
}
TEST_CASE("a product in place of its factor") {
  CHECK(refused("mul.f32 %f3, %f3, %f2;\nadd.f32 %f5, %f3, %f4;\n", "operand-redefined") ==
        "%f3, an operand of 'mul.f32 %f3, %f3, %f2' in line 2, is written again by its own result: "
        "a fused operation would read the new value; write to another register to have them fused");
  refused("mul.f32 %f3, %f3, %f2; @%p1 bra $end; add.f32 %f5, %f3, %f4; $end:",
          "operand-redefined");
}
TEST_CASE("a factor that is written on one way between the blocks of the two") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\n@%p1 bra $join;\nmov.f32 %f1, %f6;\n$join:\n"
                "add.f32 %f5, %f3, %f4;\n",
                "operand-redefined") ==
        "%f1, an operand of 'mul.f32 %f3, %f1, %f2' in line 2, is written again by 'mov.f32 %f1, "
        "%f6' in line 4 before the sum: a fused operation would read the new value; write to "
        "another register to have them fused");
  // Further away than the blocks before the sum's.
  refused(
      "mul.f32 %f3, %f1, %f2; @%p1 bra $join; mov.f32 %f1, %f6; $join: @%p2 bra $end;"
      "@%p3 bra $end; add.f32 %f5, %f3, %f4; $end:",
      "operand-redefined");
  // In the sum's own block, and after the product in its own.
  refused(
      "mul.f32 %f3, %f1, %f2; @%p1 bra $end; mov.f32 %f1, %f6; mov.f32 %f6, %f1;"
      "add.f32 %f5, %f3, %f4; $end: mov.f32 %f1, %f5;",
      "operand-redefined");
  refused(
      "mov.f32 %f1, %f6; mul.f32 %f3, %f1, %f2; mov.f32 %f1, %f7; @%p1 bra $end;"
      "add.f32 %f5, %f3, %f4; $end:",
      "operand-redefined");
  // The sum itself reads the new value.
  refused(
      "mul.f32 %f3, %f1, %f2; @%p1 bra $join; mov.f32 %f1, %f6; $join:"
      "add.f32 %f5, %f3, %f1;",
      "operand-redefined");
  // A write that no way to the sum meets does not matter.
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; @%p1 bra $other; add.f32 %f5, %f3, %f4; bra $end;"
                   "$other: mov.f32 %f1, %f6; mov.f32 %f2, %f1; $end:")
            .reasons() == "+fused");
}
TEST_CASE("a factor that many blocks on the way might write") {
  // The factor is written elsewhere, so that each block must be looked at.
  std::string body = "mov.f32 %f1, 0f3F800000; @%p2 bra $end; mul.f32 %f3, %f1, %f2;";
  for (int i = 0; i < 40; ++i) {
    const std::string label = "$l" + std::to_string(i);
    body += "@%p1 bra " + label + "; mov.f32 %f6, %f4; " + label + ":";
  }
  body += "add.f32 %f5, %f3, %f6; $end: mov.f32 %f1, 0f40000000;";
  CHECK(refused(body, "too-far") ==
        "more than 64 blocks are between 'mul.f32 %f3, %f1, %f2' in line 2 and the sum, too many "
        "to see whether %f1 is written there; multiply nearer to the sum to have them fused");
}

// Words

TEST_CASE("a product that is clamped") {
  CHECK(refused("mul.sat.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;\n", "saturated") ==
        "'mul.sat.f32 %f3, %f1, %f2' in line 2 clamps the product to [0, 1], a fused operation "
        "only the sum; leave .sat out of it to have them fused");
  refused("mul.sat.f16x2 %r3, %r1, %r2; add.sat.f16x2 %r5, %r3, %r4;", "saturated");
}
TEST_CASE("a negation in between that flushes what the two keep") {
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; neg.ftz.f32 %f6, %f3; add.f32 %f5, %f6, %f4;")
            .reasons()
            .empty());
}
TEST_CASE("a difference of a type without negation") {
  CHECK(refused("mul.f32x2 %q3, %q1, %q2;\nsub.f32x2 %q5, %q3, %q4;\n", "no-negation") ==
        "PTX has no neg.f32x2 for the sign of what is subtracted; write the difference as a sum to "
        "have it fused");
  CHECK(refused("mul.f32x2 %q3, %q1, %q2;\nsub.f32x2 %q5, %q4, %q3;\n", "no-negation") ==
        "PTX has no neg.f32x2 for the sign of the product; write the difference as a sum to have "
        "it fused");
}

// Guards

TEST_CASE("guards that differ") {
  CHECK(refused("@%p1 mul.f32 %f3, %f1, %f2;\n@%p2 add.f32 %f5, %f3, %f4;\n", "guard-differs") ==
        "'@%p1 mul.f32 %f3, %f1, %f2' in line 2 is guarded, and the sum is not under the same "
        "guard: where only the latter is executed it reads an older %f3; put both under one guard "
        "to have them fused");
  refused("@%p1 mul.f32 %f3, %f1, %f2; @!%p1 add.f32 %f5, %f3, %f4;", "guard-differs");
  refused("@%p1 mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4;", "guard-differs");
}
TEST_CASE("a guard that is written in between") {
  CHECK(refused("@%p1 mul.f32 %f3, %f1, %f2;\nsetp.lt.f32 %p1, %f1, %f2;\n"
                "@%p1 add.f32 %f5, %f3, %f4;\n",
                "guard-redefined") ==
        "%p1, the guard of '@%p1 mul.f32 %f3, %f1, %f2' in line 2, is written again before the "
        "sum, which other threads may make; write to another predicate to have them fused");
}
TEST_CASE("a guard between that the outer two do not have") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\n@%p1 neg.f32 %f3, %f3;\nadd.f32 %f5, %f3, %f4;\n",
                "guard-differs") ==
        "'@%p1 neg.f32 %f3, %f3' in line 3 is guarded, and the sum is not under the same guard: "
        "where only the latter is executed it reads an older %f3; put both under one guard to have "
        "them fused");
  CHECK(refused("@%p1 mul.f32 %f3, %f1, %f2;\nneg.f32 %f6, %f3;\n@%p1 add.f32 %f5, %f6, %f4;\n",
                "guard-differs") ==
        "'@%p1 mul.f32 %f3, %f1, %f2' in line 2 is guarded, and 'neg.f32 %f6, %f3' in line 3 is "
        "not under the same guard: where only the latter is executed it reads an older %f3; put "
        "both under one guard to have them fused");
}
TEST_CASE("what a guarded product leaves, read by other threads") {
  // The second product is fused; of the first, lanes without %p2 are stored.
  const Fused result = fma_fusion(
      "@%p1 mul.f32 %f3, %f1, %f2; @%p1 add.f32 %f5, %f3, %f4; @%p2 mov.f32 %f3, %f6;"
      "st.global.f32 [%rd1], %f3;");
  CHECK(result.reasons() == "several-uses");
}

// Loops

TEST_CASE("a product outside of the sum's loop") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\n$top:\nadd.f32 %f5, %f5, %f3;\n"
                "setp.lt.f32 %p1, %f5, %f4;\n@%p1 bra $top;\n",
                "other-frequency") ==
        "'mul.f32 %f3, %f1, %f2' in line 2 and the sum are not in the same loop, and a fused "
        "operation would multiply as often as the sum is made; write the product next to the sum "
        "if that is wanted");
  // Out of a loop as well.
  refused(
      "$top: mul.f32 %f3, %f1, %f2; setp.lt.f32 %p1, %f5, %f4; @%p1 bra $top;"
      "add.f32 %f5, %f3, %f4;",
      "other-frequency");
}

// Opt-out

TEST_CASE("contraction forbidden by an operation, a function, the options") {
  const std::string_view body = "mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;\n";
  const auto with = [&](ptx::Contract mul, ptx::Contract add, ptx::Contract function, bool option) {
    ptx::Module module = ptx::parse(fusion_kernel(body));
    module.functions[0].contract = function;
    for (ptx::Instruction& s : module.functions[0].body) {
      if (s.is(ptx::Op::mul_f32)) s.contract = mul;
      if (s.is(ptx::Op::add_f32)) s.contract = add;
    }
    optimize::PassOptions options;
    options.contract = option;
    const Fused result = run_pass(std::move(module), "fma_fusion", options);
    return result.reasons() == "+fused" ? std::string("fused") : result.message();
  };
  using enum ptx::Contract;
  const std::string tail = ": product and sum are rounded one after the other";
  const std::string mul = " forbids to contract 'mul.f32 %f3, %f1, %f2' in line 2" + tail;
  const std::string add = " forbids to contract 'add.f32 %f5, %f3, %f4' in line 3" + tail;
  CHECK(with(Default, Default, Default, true) == "fused");
  CHECK(with(Forbid, Default, Default, true) == "the operation itself" + mul);
  CHECK(with(Default, Forbid, Default, true) == "the operation itself" + add);
  CHECK(with(Default, Default, Forbid, true) == "the function" + mul);
  CHECK(with(Default, Default, Default, false) == "the options of the passes" + mul);
  // The nearer word counts.
  CHECK(with(Allow, Allow, Forbid, false) == "fused");
  CHECK(with(Default, Default, Allow, false) == "fused");
  CHECK(with(Forbid, Allow, Allow, true) == "the operation itself" + mul);
  CHECK(with(Allow, Default, Forbid, true) == "the function" + add);
  // It is the first thing said.
  optimize::PassOptions options;
  options.contract = false;
  CHECK(fma_fusion("mul.rz.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4;", options).reasons() ==
        "contract-forbidden");
}

// Targets

TEST_CASE("what the target lacks") {
  const auto with = [](std::string_view head, std::string_view body) {
    std::string text(head);
    text += " .entry k() {\n.reg .f32 %f<9>; .reg .b16 %h<9>;\n";
    text += body;
    text += "}\n";
    return run_pass(ptx::parse(text), "fma_fusion");
  };
  CHECK(with(".version 1.4\n.target sm_13\n", "mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;\n")
            .message() ==
        "'fma.rn.f32' needs sm_20 or newer, the target is sm_13; ask for that much by .target and "
        ".version to have them fused");
  CHECK(with(".version 4.2\n.target sm_53\n", "mul.f16 %h3, %h1, %h2;\nsub.f16 %h5, %h3, %h4;\n")
            .message() ==
        "'neg.f16' needs PTX 6.0, .version is 4.2; ask for that much by .target and "
        ".version to have them fused");
  CHECK(with(".version 4.2\n.target sm_53\n", "mul.f16 %h3, %h1, %h2;\nadd.f16 %h5, %h3, %h4;\n")
            .reasons() == "+fused");
}

// Scopes

TEST_CASE("a factor that is not known at the sum") {
  CHECK(refused("{\n.reg .f32 %x;\nld.global.f32 %x, [%rd1];\nmul.f32 %f3, %x, %f2;\n}\n"
                "add.f32 %f5, %f3, %f4;\n",
                "not-visible") ==
        "%x, an operand of 'mul.f32 %f3, %x, %f2' in line 5, is declared in braces that do not "
        "reach to the sum; declare it outside of them");
  CHECK(fma_fusion("{ .reg .f32 %x; ld.global.f32 %x, [%rd1]; mul.f32 %f3, %x, %f2;"
                   "{ add.f32 %f5, %f3, %f4; } }")
            .reasons() == "+fused");
}

// Instructions outside the table

TEST_CASE("registers that an unknown instruction names") {
  CHECK(refused("mul.f32 %f3, %f1, %f2;\nfrob.f32 %f6, %f3;\nadd.f32 %f5, %f3, %f4;\n",
                "unknown-instruction") ==
        "%f3, the result of 'mul.f32 %f3, %f1, %f2' in line 2, is named by an instruction that is "
        "not in the op table and may read it");
  CHECK(refused("mul.f32 %f3, %f1, %f2;\nfrob.f32 %f1;\nadd.f32 %f5, %f3, %f4;\n",
                "unknown-instruction") ==
        "%f1, an operand of 'mul.f32 %f3, %f1, %f2' in line 2, is named by an instruction that is "
        "not in the op table and may write it");
  CHECK(refused("@%p1 mul.f32 %f3, %f1, %f2;\nfrob.pred %p1;\n@%p1 add.f32 %f5, %f3, %f4;\n",
                "unknown-instruction") ==
        "%p1, the guard of '@%p1 mul.f32 %f3, %f1, %f2' in line 2, is named by an instruction that "
        "is not in the op table and may write it");
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; frob.f32 %f6, %f4, %f13; add.f32 %f5, %f3, %f4;")
            .reasons() == "+fused");
  // A negation that it reads stays.
  CHECK(fma_fusion("mul.f32 %f3, %f1, %f2; neg.f32 %f6, %f4; sub.f32 %f5, %f3, %f6; frob %f6;")
            .body() ==
        "neg.f32 %f6, %f4;\nneg.f32 %opt_f32_0_0, %f6;\n"
        "fma.rn.f32 %f5, %f1, %f2, %opt_f32_0_0;\nfrob %f6;");
}

TEST_CASE("code that control never reaches is left alone") {
  CHECK(fma_fusion("bra $end; mul.f32 %f3, %f1, %f2; add.f32 %f5, %f3, %f4; $end:")
            .reasons()
            .empty());
}
