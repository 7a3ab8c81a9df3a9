// tests/optimize/loop_split_test.cpp - loops that are split and loops that are not
#include "loop_split_cases.hpp"
#include "ptxgen/builder.hpp"

using namespace ptxgen;
using namespace ptxgen::loop_split_cases;

TEST_CASE("a guarded store in a loop: the text before and after") {
  const SplitResult result = split(over_n(kGuarded));
  CHECK(result.reasons == "split");
  CHECK(
      result.messages ==
      "the loop at line 18 became two, the condition true in the first and false in the second\n");
  const auto body = result.text.substr(result.text.find("TOP:"));
  CHECK(body == R"(TOP:
    min.u32 %opt_b32_0_0, %r1, %r2;
    setp.lt.u32 %opt_pred_0_0, %r3, %r2;
    @!%opt_pred_0_0 bra $opt_0;
$opt_1:
    st.global.u32 [%rd1], %r3;
    add.s32 %r3, %r3, 1;
    setp.lt.u32 %opt_pred_0_1, %r3, %opt_b32_0_0;
    @%opt_pred_0_1 bra $opt_1;
    setp.lt.u32 %opt_pred_0_2, %r3, %r1;
    @%opt_pred_0_2 bra $opt_0;
    bra END;
$opt_0:
    add.s32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, %r1;
    @%p2 bra $opt_0;
END:
    ret;
}

)");
}

TEST_CASE("a comparison of something else than the loop's variable") {
  const SplitResult result =
      split(over_n("ld.shared.u32 %r5, [tile];\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 "
                   "st.global.u32 [%rd1], %r3;\n"));
  CHECK(result.reasons == "not-an-induction-variable");
  CHECK(result.messages ==
        "neither side of '%r5 lt %r2' is a register that the loop changes by the same step in "
        "every iteration: only such a condition changes once\n");
}

TEST_CASE("a bound that the loop computes") {
  const SplitResult result =
      split(over_n("ld.shared.u32 %r5, [tile];\nsetp.lt.u32 %p5, %r3, %r5;\n@%p5 "
                   "st.global.u32 [%rd1], %r3;\n"));
  CHECK(result.reasons == "bound-not-invariant");
  CHECK(result.messages ==
        "the loop itself computes %r5, which %r3 is compared with: compute it before the loop\n");
}

TEST_CASE("a bound that is carried around the loop") {
  // It has no writer in the text of the loop's body that is before its use.
  const SplitResult result = split(over_n(
      "setp.lt.u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\nadd.u32 %r2, %r2, %r2;\n"));
  CHECK(result.reasons == "bound-not-invariant");
}

TEST_CASE("each ordering, signed and unsigned, on either side") {
  for (const char* type : {"s32", "u32"}) {
    for (const char* word : {"lt", "le", "gt", "ge"}) {
      for (const char* sides : {"%r3, %r2", "%r2, %r3"}) {
        CAPTURE(type, word, sides);
        const SplitResult result =
            split(over_n("setp." + std::string(word) + "." + type + " %p5, " + sides +
                             ";\n@%p5 st.global.u32 [%rd1], %r3;\n",
                         type));
        CHECK(result.reasons == "split");
        CHECK(count_of(result.text, "%p5") == 0);
      }
    }
  }
  const SplitResult other =
      split(over_n("setp.lo.u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
  CHECK(other.reasons == "split");
}

TEST_CASE("equality is refused") {
  for (const char* word : {"eq", "ne"}) {
    const SplitResult result = split(over_n(
        "setp." + std::string(word) + ".u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
    CHECK(result.reasons == "equality-comparison");
    CHECK(result.messages == "'%r3 " + std::string(word) +
                                 " %r2' changes twice while the loop runs: only <, <=, > and >= "
                                 "split it\n");
  }
}

TEST_CASE("an unsigned comparison in a signed loop") {
  const SplitResult result = split(over_n(kGuarded, "s32"));
  CHECK(result.reasons == "signedness-differs");
  CHECK(result.messages ==
        "'%r3 lt %r2' is an unsigned comparison, the loop test is a signed one: use one type "
        "for both\n");
}

TEST_CASE("any other reader of the predicate gets a constant") {
  const SplitResult result = split(over_n(
      "setp.lt.u32 %p5, %r3, %r2;\nselp.u32 %r6, 3, 4, %p5;\n@%p5 st.global.u32 [%rd1], %r6;\n"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "mov.pred %p5, -1;") == 1);
  CHECK(count_of(result.text, "mov.pred %p5, 0;") == 1);
  CHECK(count_of(result.text, "@%p5") == 0);
}

TEST_CASE("a predicate that is negated and copied on its way") {
  const SplitResult result =
      split(over_n("setp.lt.u32 %p5, %r3, %r2;\nnot.pred %p6, %p5;\nmov.pred %p7, %p6;\n"
                   "@!%p7 st.global.u32 [%rd1], %r3;\n@%p6 st.global.u32 [%rd1+4], %r3;\n"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "[%rd1]") == 1);
  CHECK(count_of(result.text, "[%rd1+4]") == 1);
  for (const char* p : {"%p5", "%p6", "%p7"}) CHECK(count_of(result.text, p) == 0);
}

TEST_CASE("the second predicate of a comparison is its opposite") {
  const SplitResult result = split(
      over_n("setp.lt.u32 %p5|%p6, %r3, %r2;\n@%p6 st.global.u32 [%rd1], %r3;\n@!%p5 st.global.u32 "
             "[%rd1+4], %r3;\n"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "[%rd1]") == 1);
  CHECK(count_of(result.text, "[%rd1+4]") == 1);
}

TEST_CASE("a condition in another one, or in an inner loop, is decided where it is") {
  const SplitResult nested = split(over_n(R"(
  ld.shared.u32 %r5, [tile];
  setp.eq.u32 %p6, %r5, 0;
  @%p6 bra SKIP;
  setp.lt.u32 %p5, %r3, %r2;
  @!%p5 bra SKIP;
  st.global.u32 [%rd1], %r3;
SKIP:
)"));
  CHECK(nested.reasons == "split not-an-induction-variable");
  CHECK(count_of(nested.text, "st.global") == 1);
  const SplitResult looping = split(over_n(R"(
  setp.lt.u32 %p5, %r3, %r2;
AGAIN:
  ld.shared.u32 %r5, [tile];
  @!%p5 bra SKIP;
  st.global.u32 [%rd1], %r3;
SKIP:
  setp.ne.u32 %p6, %r5, 0;
  @%p6 bra AGAIN;
)"));
  CHECK(looping.reasons == "split");
  CHECK(count_of(looping.text, "st.global") == 1);
  CHECK(count_of(looping.text, "ld.shared.u32") == 2);
}

TEST_CASE("a loop inside tests the outer variable: the outer loop is split") {
  const SplitResult result = split(over_n(R"(
  mov.u32 %r7, 0;
AGAIN:
  setp.lt.u32 %p5, %r3, %r2;
  @%p5 st.global.u32 [%rd1], %r7;
  add.s32 %r7, %r7, 1;
  setp.ne.s32 %p6, %r7, 8;
  @%p6 bra AGAIN;
)"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "setp.ne.s32 %p6") == 2);
}

TEST_CASE("a condition that never changes takes no second loop") {
  const SplitResult low =
      split(over_n("setp.ge.u32 %p5, %r3, 0;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
  CHECK(low.reasons == "decided");
  CHECK(low.messages ==
        "the loop at line 18 never changes the outcome: the condition always holds\n");
  CHECK(count_of(low.text, "add.s32 %r3") == 1);
  CHECK(count_of(low.text, "\n    st.global") == 1);
  const auto constant = [](const char* bound) {
    return split("TOP:\nsetp.lt.u32 %p5, %r3, " + std::string(bound) +
                 ";\n@%p5 st.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, 3;\nsetp.lt.u32 %p2, "
                 "%r3, 20;\n@%p2 bra TOP;\nret;\n");
  };
  CHECK(constant("19").reasons == "decided");  // values 0 .. 18
  CHECK(constant("18").reasons == "split");
  CHECK(constant("1").reasons == "split");
  CHECK(split("TOP:\nsetp.le.u32 %p5, %r3, 0;\n@%p5 st.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, "
              "3;\nsetp.lt.u32 %p2, %r3, 20;\n@%p2 bra TOP;\nret;\n")
            .reasons == "split");
  CHECK(constant("0").messages ==
        "the loop at line 16 never changes the outcome: the condition always fails\n");
}

TEST_CASE("a variable that may wrap around is refused") {
  const SplitResult unchecked = split(
      "mov.u32 %r3, %r2;\nTOP:\nsetp.lt.u32 %p5, %r3, 9;\n@%p5 st.global.u32 [%rd1], %r3;\n"
      "add.s32 %r3, %r3, 4;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(unchecked.reasons == "may-wrap");
  CHECK(unchecked.messages ==
        "%r3 may wrap around while the loop runs, and '%r3 lt 9' may then change more than once: "
        "enter the loop only if its first value is within the bound, and test before the step is "
        "added if the step is not 1\n");
  const SplitResult clamped =
      split("min.u32 %r1, %r1, 1000;\nTOP:\n" + std::string(kGuarded) +
            "add.s32 %r3, %r3, 4;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(clamped.reasons == "split");
  const SplitResult not_equal = split(
      "mov.u32 %r3, %r2;\nTOP:\nsetp.lt.u32 %p5, %r3, 9;\n@%p5 st.global.u32 [%rd1], "
      "%r3;\nadd.s32 %r3, %r3, 1;\nsetp.ne.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(not_equal.reasons == "may-wrap");
}

TEST_CASE("a step other than 1 and a bound near which the variable wraps: a guard on the bound") {
  const SplitResult result =
      split("TOP:\n" + std::string(kGuarded) +
            "add.s32 %r3, %r3, 4;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nEND:\nret;\n");
  CHECK(result.reasons == "guarded split beyond-guard");
  CHECK(result.messages ==
        "the loop at line 16 was copied after a branch on its bound, so that in the copy its "
        "variable never wraps around and the condition can split it\n"
        "the loop at line 16 became two, the condition true in the first and false in the second\n"
        "the loop runs only if %r1 is beyond -4, and then %r3 may wrap around: this copy of it "
        "keeps the condition\n");
  CHECK(result.text.substr(result.text.find("TOP:")) == R"(TOP:
    setp.gt.u32 %opt_pred_0_0, %r1, -4;
    @%opt_pred_0_0 bra $opt_0;
$opt_1:
    min.u32 %opt_b32_0_0, %r1, %r2;
    setp.lt.u32 %opt_pred_1_0, %r3, %r2;
    @!%opt_pred_1_0 bra $opt_2;
$opt_3:
    st.global.u32 [%rd1], %r3;
    add.s32 %r3, %r3, 4;
    setp.lt.u32 %opt_pred_1_1, %r3, %opt_b32_0_0;
    @%opt_pred_1_1 bra $opt_3;
    setp.lt.u32 %opt_pred_1_2, %r3, %r1;
    @%opt_pred_1_2 bra $opt_2;
    bra $opt_4;
$opt_2:
    add.s32 %r3, %r3, 4;
    setp.lt.u32 %p2, %r3, %r1;
    @%p2 bra $opt_2;
$opt_4:
    bra END;
$opt_0:
    setp.lt.u32 %p5, %r3, %r2;
    @%p5 st.global.u32 [%rd1], %r3;
    add.s32 %r3, %r3, 4;
    setp.lt.u32 %p2, %r3, %r1;
    @%p2 bra $opt_0;
END:
    ret;
}

)");
}

TEST_CASE("guards of every relation, direction, sign and width") {
  for (const char* word : {"lt", "le", "gt", "ge"}) {
    for (const char* type : {"s32", "u32"}) {
      const bool down = word[0] == 'g';
      CAPTURE(word, type);
      const std::string w(word), t(type);
      const SplitResult result =
          split("setp." + std::string(down ? "le." : "ge.") + t +
                " %p1, %r2, %r1;\n@%p1 bra END;\nmov.u32 %r3, %r2;\nTOP:\nsetp.lt." + t +
                " %p5, %r3, 99;\n@%p5 st.global.u32 [%rd1], %r3;\nadd.s32 %r3, " + "%r3, " +
                (down ? "-3" : "3") + ";\nsetp." + w + "." + t +
                " %p2, %r3, %r1;\n@%p2 bra TOP;\nEND:\nret;\n");
      CHECK(result.reasons == "guarded split beyond-guard");
    }
  }
}

TEST_CASE("a guard on the bound does not keep a sum with the variable from wrapping") {
  const SplitResult result = split(
      "TOP:\nadd.s32 %r5, %r3, 7;\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"
      "add.s32 %r3, %r3, 4;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(result.reasons == "may-wrap");
}

TEST_CASE("threads that reconverge in the loop must take the same side of its guard") {
  const std::string loop =
      "setp.lt.u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"
      "bar.warp.sync -1;\nadd.s32 %r3, %r3, 4;\n"
      "setp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n";
  CHECK(split("TOP:\n" + loop).reasons == "guarded split beyond-guard");
  CHECK(split("mov.u32 %r1, %tid.x;\nadd.u32 %r1, %r1, -9;\nTOP:\n" + loop).reasons == "may-wrap");
}

TEST_CASE("the loop beside its guarded copy counts for the growth limit") {
  const std::string body =
      "setp.lt.u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"
      "setp.lt.u32 %p6, %r3, 50;\n@%p6 st.global.u32 [%rd1+4], %r3;\n"
      "add.s32 %r3, %r3, 4;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n";
  optimize::PassOptions options = plain();
  CHECK(split("TOP:\n" + body, options).reasons == "growth-limit growth-limit");
  options.growth_limit = 8;
  CHECK(split("TOP:\n" + body, options).reasons.find("guarded") == 0);
}

TEST_CASE("a step that is no constant, in a form that does not keep it in bounds") {
  const SplitResult result = split("TOP:\n" + std::string(kGuarded) +
                                   "add.s32 %r3, %r3, %r2;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra "
                                   "TOP;\nret;\n");
  CHECK(result.reasons == "step-unknown");
  CHECK(result.messages ==
        "the step of %r3 is not a constant, and its test does not exclude that a step passes the "
        "end of the type: use a constant step\n");
}

TEST_CASE("the variable plus a constant, where it may pass the end of its type") {
  const SplitResult result = split(over_n(
      "add.s32 %r5, %r3, 7;\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
  CHECK(result.reasons == "may-wrap");
  CHECK(result.messages ==
        "%r5 is the loop's variable plus a constant, and may pass the end of its type: compare the "
        "variable itself\n");
  const SplitResult next = split(over_n(
      "add.s32 %r5, %r3, 1;\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
  CHECK(next.reasons == "split");
}

TEST_CASE("the variable plus a number that all threads agree on") {
  const SplitResult result = split(over_n(
      "add.s32 %r5, %r3, %r1;\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
  CHECK(result.reasons == "may-wrap");
  CHECK(result.messages ==
        "'%r5 lt %r2' compares the sum of a loop's variable and another number, which may pass the "
        "end of its type: compare the variable itself with the difference, computed before the "
        "loop\n");
}

TEST_CASE("a condition that depends on the thread is refused") {
  const std::string depends =
      "'%r5 lt %r2' depends on the thread: the threads of a warp would leave the first of two "
      "loops at different iterations; compare what all threads agree on, and leave the rest to a "
      "predicate\n";
  const SplitResult sum = split("mov.u32 %r4, %tid.x;\n" +
                                over_n("add.s32 %r5, %r3, %r4;\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 "
                                       "st.global.u32 [%rd1], %r3;\n"));
  CHECK(sum.reasons == "lane-dependent");
  CHECK(sum.messages == depends);
  const SplitResult bound =
      split("mov.u32 %r4, %tid.x;\n" +
            over_n("setp.lt.u32 %p5, %r3, %r4;\n@%p5 st.global.u32 [%rd1], %r3;\n"));
  CHECK(bound.reasons == "lane-dependent");
}

TEST_CASE("a barrier in the body: the whole block must agree") {
  const std::string body = std::string(kGuarded) + "bar.sync 0;\n";
  const SplitResult uniform = split(over_n(body));
  CHECK(uniform.reasons == "split");
  CHECK(count_of(uniform.text, "bar.sync") == 2);
  // The lanes of a warp agree, warps may not.
  const std::string warps =
      "mov.u32 %r4, %tid.x;\nmov.u32 %r5, 0;\nsetp.lt.u32 %p6, %r4, 7;\n"
      "vote.sync.ballot.b32 %r2, %p6, -1;\n";
  const SplitResult divergent = split(warps + over_n(body));
  CHECK(divergent.reasons == "lane-dependent");
  CHECK(divergent.messages ==
        "the loop contains a barrier, and its threads may disagree about '%r3 lt %r2': "
        "some would wait in the first of two loops, others in the second; compare a value that is "
        "uniform in the block\n");
  CHECK(split(warps + over_n(kGuarded)).reasons == "split");
  CHECK(split(warps + over_n(std::string(kGuarded) + "bar.warp.sync -1;\n")).reasons == "split");
}

TEST_CASE("a guarded comparison is refused") {
  const SplitResult result =
      split("setp.eq.u32 %p5, %r1, 0;\nsetp.eq.u32 %p6, %r1, 7;\n" +
            over_n("@%p6 setp.lt.u32 %p5, %r3, %r2;\n@%p5 st.global.u32 [%rd1], "
                   "%r3;\n"));
  CHECK(result.reasons == "predicated-compare");
  CHECK(result.messages ==
        "the comparison is guarded, so its predicate may be older than the iteration: compare "
        "without a "
        "guard\n");
}

TEST_CASE("a loop without a test of its variable is refused") {
  const SplitResult result =
      split("TOP:\n" + std::string(kGuarded) +
            "add.s32 %r3, %r3, 1;\nld.shared.u32 %r5, [tile];\nsetp.ne.u32 %p2, %r5, "
            "0;\n@%p2 bra TOP;\nret;\n");
  CHECK(result.reasons == "no-test");
  CHECK(result.messages ==
        "no test of every iteration bounds %r3 by a loop invariant: "
        "end the loop by comparing it with one\n");
}

TEST_CASE("a test that goes on beyond a number is no bound, and another one may be") {
  const std::string ask = "TOP:\n" + std::string(kGuarded) + "add.s32 %r3, %r3, 1;\n";
  const SplitResult alone = split(ask + "setp.gt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(alone.reasons == "no-test");
  const SplitResult both = split("ld.shared.u32 %r7, [tile];\n" + ask +
                                 "setp.lt.u32 %p6, %r3, %r7;\n@%p6 bra END;\nsetp.lt.u32 %p2, %r3, "
                                 "%r1;\n@%p2 bra TOP;\nEND:\nret;\n");
  CHECK(both.reasons == "split");
}

TEST_CASE("a test that some iterations skip, or of another variable, is no bound") {
  const SplitResult passed_by =
      split("TOP:\n" + std::string(kGuarded) +
            "add.s32 %r3, %r3, 1;\nld.shared.u32 %r5, [tile];\nsetp.eq.u32 "
            "%p6, %r5, 0;\n@%p6 bra TOP;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra "
            "TOP;\nret;\n");
  CHECK(passed_by.reasons == "no-test not-an-induction-variable");
  const SplitResult other =
      split("mov.u32 %r7, 0;\nTOP:\n" + std::string(kGuarded) +
            "add.s32 %r3, %r3, 1;\nadd.s32 %r7, %r7, 1;\nsetp.lt.u32 %p2, %r7, "
            "%r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(other.reasons == "no-test");
}

TEST_CASE("a guard of the other sign says nothing about the loop") {
  const auto guarded = [](const std::string& type) {
    return split("mov.u32 %r3, %r2;\nsetp.ge." + type +
                 " %p1, %r3, %r1;\n@%p1 bra END;\nTOP:\nsetp.lt.u32 %p5, %r3, 9;\n@%p5 "
                 "st.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, "
                 "%r1;\n@%p2 bra TOP;\nEND:\nret;\n");
  };
  CHECK(guarded("u32").reasons == "split");
  CHECK(guarded("s32").reasons == "may-wrap");
}

TEST_CASE("a loop that others ask about, and one with a second way out") {
  const SplitResult asked =
      split("setp.le.u32 %p1, %r1, %r3;\n@%p1 bra END;\nTOP:\n" + std::string(kGuarded) +
            "add.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 st.global.u32 "
            "[%rd1+4], %r3;\n@%p2 bra TOP;\nEND:\nret;\n");
  // The first loop has a test of its own; there the old one is a condition like any other.
  CHECK(asked.reasons == "split loop-test split");
  CHECK(count_of(asked.text, "[%rd1+4]") == 2);
  const SplitResult left =
      split(over_n(std::string(kGuarded) +
                   "ld.shared.u32 %r5, [tile];\nsetp.eq.u32 %p6, %r5, 0;\n@%p6 bra "
                   "END;\n"));
  CHECK(left.reasons == "split");
  CHECK(count_of(left.text, "@%p6 bra END;") == 2);
}

TEST_CASE("conditions of an outer and an inner loop, the inner one first") {
  const SplitResult result = split(over_n(std::string(kGuarded) + R"(
  mov.u32 %r7, 0;
AGAIN:
  setp.lt.u32 %p6, %r7, %r2;
  @%p6 st.global.u32 [%rd1+4], %r7;
  add.s32 %r7, %r7, 1;
  setp.ne.s32 %p7, %r7, 8;
  @%p7 bra AGAIN;
)"));
  CHECK(result.reasons == "split split");
  CHECK(count_of(result.text, "add.s32 %r7") == 4);
  CHECK(count_of(result.text, "add.s32 %r3") == 2);
  CHECK(count_of(result.text, "[%rd1+4]") == 2);
}

TEST_CASE("a comparison that the loop goes on by as well is refused") {
  const SplitResult result = split(
      "setp.le.u32 %p1, %r1, %r3;\n@%p1 bra END;\nTOP:\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, "
      "%r3, %r1;\n@%p2 st.global.u32 [%rd1], %r3;\n@%p2 bra TOP;\nEND:\nret;\n");
  CHECK(result.reasons == "loop-test");
  CHECK(result.messages ==
        "'%r3 lt %r1' is also the loop test: compare a second time for the "
        "condition\n");
}

TEST_CASE("a loop with two entries is refused") {
  const SplitResult result = split(
      "setp.eq.u32 %p1, %r1, 0;\n@%p1 bra MIDDLE;\nTOP:\nadd.s32 %r3, %r3, "
      "1;\nMIDDLE:\n" +
      std::string(kGuarded) + "setp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\nret;\n");
  CHECK(result.reasons == "irreducible");
  CHECK(result.messages ==
        "the loop is entered at more than one place, so no register has one value at its start: "
        "give it one entry\n");
}

TEST_CASE("what cannot be written twice") {
  const SplitResult unknown = split(over_n(std::string(kGuarded) + "frobnicate.u32 %r9, %r8;\n"));
  CHECK(unknown.reasons == "uniformity-unknown");
  const SplitResult braces = split(
      "setp.le.u32 %p1, %r1, %r3;\n@%p1 bra END;\nTOP:\n{\n.reg .pred q;\nsetp.lt.u32 q, %r3, "
      "%r2;\n@q st.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 "
      "bra TOP;\n}\nEND:\nret;\n");
  CHECK(braces.reasons == "scopes");
  CHECK(braces.messages ==
        "braces around a part of the loop only, or in pieces of it, keep registers from being "
        "named in a second copy: open and close braces within one iteration\n");
  const SplitResult memory = split(
      over_n(std::string(kGuarded) + "{\n.shared .b32 own[4];\nst.shared.u32 [own], %r3;\n}\n"));
  CHECK(memory.reasons == "declares-memory");
  CHECK(memory.messages ==
        "the loop declares a variable in memory, of which there would be two: declare it before "
        "the loop\n");
  const SplitResult table =
      split("TABLE: .branchtargets TOP, END;\nTOP:\n" + std::string(kGuarded) +
            "setp.lt.u32 %p2, %r3, %r1;\nadd.s32 %r3, %r3, 1;\n@!%p2 bra END;\nmov.u32 "
            "%r8, 0;\nbrx.idx %r8, TABLE;\nEND:\nret;\n");
  CHECK(table.reasons == "indirect-branch");
  CHECK(table.messages == "a brx.idx leads back to the loop's start through a table of labels\n");
}

TEST_CASE("braces, calls and tables inside an iteration are written twice under new names") {
  const SplitResult result = split(over_n(std::string(kGuarded) + R"({
  .reg .b32 t;
  .param .b32 x;
  .param .b32 y;
  st.param.b32 [x], %r3;
  call.uni (y), helper, (x);
  ld.param.b32 t, [y];
  st.global.u32 [%rd1+8], t;
  }
  and.b32 %r8, %r3, 1;
  TABLE: .branchtargets EVEN, ODD;
  brx.idx %r8, TABLE;
EVEN:
  st.global.u32 [%rd1+12], %r3;
ODD:
)"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "call.uni") == 2);
  CHECK(count_of(result.text, ".branchtargets") == 2);
  CHECK(count_of(result.text, ".reg .b32 t;") == 2);
}

TEST_CASE("two comparisons of the same numbers are one condition") {
  const SplitResult result = split(over_n(
      std::string(kGuarded) + "setp.ge.u32 %p6, %r3, %r2;\n@%p6 st.global.u32 [%rd1+4], %r3;\n"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "st.global") == 2);
  CHECK(count_of(result.text, "setp") == 5);
}

TEST_CASE("several conditions are split one after the other, as far as the function may grow") {
  const auto conditions = [](int count) {
    std::string text = "mov.u32 %r10, 5;\n";
    std::string body;
    for (int i = 0; i < count; ++i) {
      const std::string r = "%r" + std::to_string(11 + i);
      text += "add.u32 " + r + ", %r2, " + std::to_string(i) + ";\n";
      body += "setp.lt.u32 %p5, %r3, " + r + ";\n@%p5 st.global.u32 [%rd1+" +
              std::to_string(4 * i) + "], %r3;\n";
    }
    return text + over_n(body);
  };
  const SplitResult two = split(conditions(2));
  CHECK(two.reasons == "split split split");
  CHECK(count_of(two.text, "add.s32 %r3") == 4);
  CHECK(count_of(two.text, "%p5") == 0);
  const SplitResult three = split(conditions(3));
  CHECK(three.reasons == "growth-limit growth-limit growth-limit");
  CHECK(three.messages.substr(0, three.messages.find('\n')) ==
        "the 3 conditions of this loop nest would copy its inner statements 8 times, the limit is "
        "4: raise it, or give the hint 0 to less important conditions");
  optimize::PassOptions wide = plain();
  wide.growth_limit = 8;
  CHECK(count_of(split(conditions(3), wide).text, "add.s32 %r3") == 7);
  wide.growth_limit = 1;
  CHECK(split(conditions(1), wide).reasons == "growth-limit");
}

TEST_CASE("the threshold: never, always, or so many instructions") {
  const std::string body =
      "setp.lt.u32 %p5, %r3, %r2;\n@!%p5 bra SKIP;\nadd.u32 %r6, %r6, 1;\nxor.b32 %r6, %r6, "
      "%r3;\nadd.u32 %r6, %r6, 5;\nSKIP:\n";
  const auto with = [&](std::int16_t threshold, const std::string& more = {}) {
    optimize::PassOptions options = plain();
    options.split_threshold = threshold;
    return split(over_n(body + more), options);
  };
  CHECK(with(0).reasons == "hint-zero");
  CHECK(with(0).messages == "the hint of the condition, its loop or its kernel is 0: no split\n");
  CHECK(with(1).reasons == "split");
  CHECK(with(3).reasons == "split");
  CHECK(with(4).reasons == "unprofitable");
  CHECK(with(4).messages ==
        "the condition guards at most 3 instructions, none of which accesses memory, synchronizes "
        "or branches, and the threshold is 4\n");
  optimize::PassOptions options = plain();
  options.split_threshold = 100;
  CHECK(split(over_n(kGuarded), options).reasons == "split");  // it stores
}

namespace {

// A loop with hints on its condition, itself and its kernel; -1 for none.
std::string hinted(std::int16_t condition, std::int16_t loop, std::int16_t kernel,
                   std::int16_t option) {
  KernelBuilder k("k");
  const auto y = k.param<Ptr<u32>>("y");
  const auto n = k.param<u32>("n");
  const auto m = k.param<u32>("m");
  k.loop_split(Split{kernel});
  k.for_(
      0, n, 1,
      [&](Value<u32> i) {
        k.if_(
            i < m, [&] { k.st(y, i); }, Split{condition});
      },
      Unroll{}, Split{loop});
  optimize::PassOptions options = plain();
  options.split_threshold = option;
  ptx::Module module = k.build().module();
  const auto report = optimize::run_passes(module, options);
  REQUIRE(report.passes[0].decisions.size() == 1);
  return std::string(report.passes[0].decisions[0].reason);
}

}  // namespace

TEST_CASE("hints of the condition, the loop, the kernel, the options: the first one counts") {
  CHECK(hinted(-1, -1, -1, 1) == "split");
  CHECK(hinted(-1, -1, -1, 0) == "hint-zero");
  CHECK(hinted(0, -1, -1, 1) == "hint-zero");
  CHECK(hinted(-1, 0, -1, 1) == "hint-zero");
  CHECK(hinted(-1, -1, 0, 1) == "hint-zero");
  CHECK(hinted(-1, 1, 0, 0) == "split");
  CHECK(hinted(1, 0, 0, 0) == "split");
  CHECK(hinted(0, 1, 1, 1) == "hint-zero");
  CHECK(hinted(-1, -1, 1, 0) == "split");
}

TEST_CASE("loops of the builder, whatever their step") {
  for (const unsigned unroll : {1u, 4u}) {
    for (const int step : {1, 3, 8}) {
      KernelBuilder k("k");
      const auto y = k.param<Ptr<u32>>("y");
      const auto n = k.param<u32>("n");
      const auto m = k.param<u32>("m");
      k.for_(
          0, n, step, [&](Value<u32> i) { k.if_(i < m, [&] { k.st(y + i, i); }); }, Unroll{unroll});
      const SplitResult result = split(k.build().module());
      CAPTURE(unroll, step, result.messages);
      if (unroll == 1) CHECK(result.reasons == "split");
    }
  }
  KernelBuilder k("k");
  const auto y = k.param<Ptr<s64>>("y");
  const auto n = k.param<s64>("n");
  const auto m = k.param<s64>("m");
  const auto s = k.param<s64>("s");
  k.for_(n, m, s, [&](Value<s64> i) { k.if_(i <= n, [&] { k.st(y, i); }); });
  CHECK(split(k.build().module()).reasons == "split");
}
