// tests/optimize/loop_split_edges_test.cpp - edges of the conditions for splitting a loop
#include "loop_split_cases.hpp"
#include "ptxgen/builder.hpp"

using namespace ptxgen;
using namespace ptxgen::loop_split_cases;

namespace {

// A loop that is bounded by min(n, most) and asks whether i + plus < m.
std::string with_offset(const char* start, const char* max, const char* plus) {
  return split("mov.u32 %r3, " + std::string(start) + ";\nmin.u32 %r1, %r1, " + max + ";\n" +
               over_n("add.s32 %r5, %r3, " + std::string(plus) +
                      ";\nsetp.lt.u32 %p5, %r5, %r2;\n@%p5 st.global.u32 [%rd1], %r3;\n"))
      .reasons;
}

}  // namespace

TEST_CASE("the variable plus a constant fits up to the last number of its type") {
  CHECK(with_offset("0", "2147483649", "2147483647") == "split");
  CHECK(with_offset("0", "2147483650", "2147483647") == "may-wrap");
  CHECK(with_offset("5", "100", "-5") == "split");
  CHECK(with_offset("5", "100", "-6") == "may-wrap");
}

TEST_CASE("a step that is not known leaves no space for a constant beside the variable") {
  KernelBuilder k("k");
  const auto y = k.param<Ptr<s64>>("y");
  const auto n = k.param<s64>("n");
  const auto m = k.param<s64>("m");
  const auto s = k.param<s64>("s");
  k.for_(n, m, s, [&](Value<s64> i) { k.if_(i + 4 <= n, [&] { k.st(y, i); }); });
  CHECK(split(k.build().module()).reasons == "may-wrap");
}

TEST_CASE("a way out of an inner loop is no test of the outer one") {
  CHECK(split("TOP:\n" + std::string(kGuarded) + R"(
AGAIN:
  ld.shared.u32 %r5, [tile];
  setp.ge.u32 %p6, %r3, %r1;
  @%p6 bra END;
  setp.ne.u32 %p7, %r5, 0;
  @%p7 bra AGAIN;
  add.s32 %r3, %r3, 1;
  bra.uni TOP;
END:
  ret;
)")
            .reasons == "no-test");
}

TEST_CASE("a copy of the outcome under a guard may be older than the iteration") {
  const SplitResult result =
      split("setp.eq.u32 %p6, %r1, 7;\nsetp.eq.u32 %p8, %r1, 9;\n" +
            over_n("setp.lt.u32 %p5, %r3, %r2;\n@%p8 mov.pred %p6, %p5;\n@%p6 "
                   "st.global.u32 [%rd1], %r3;\n"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, "@%p6 st.global.u32 [%rd1], %r3;") == 2);
  CHECK(count_of(result.text, "@%p8 mov.pred %p6, %p5;") == 2);
}

TEST_CASE("an outcome that is read after the loop is there, and decides nothing there") {
  const std::string iteration =
      std::string(kGuarded) + "add.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %r1;\n@%p2 bra TOP;\n";
  const std::string after = "@%p5 st.global.u32 [%rd1+8], %r3;\nret;\n";
  const SplitResult plainly = split("TOP:\n" + iteration + after);
  CHECK(plainly.reasons == "split");
  const SplitResult around = split(
      "setp.eq.u32 %p5, %r1, 7;\nsetp.le.u32 %p1, %r1, %r3;\n@%p1 bra "
      "END;\nTOP:\n" +
      iteration + "END:\n" + after);
  CHECK(around.reasons == "split");
  for (const SplitResult* result : {&plainly, &around}) {
    CHECK(count_of(result->text, "@%p5 st.global.u32 [%rd1+8]") == 1);
    CHECK(count_of(result->text, "mov.pred %p5, -1;") == 1);
    CHECK(count_of(result->text, "mov.pred %p5, 0;") == 1);
  }
}

TEST_CASE("the last iteration of a loop that tests before it steps asks as well") {
  const auto asks = [](const char* limit) {
    return split("min.u32 %r1, %r1, 9;\nTOP:\nsetp.le.u32 %p5, %r3, " + std::string(limit) +
                 ";\n@%p5 st.global.u32 [%rd1], %r3;\nsetp.lt.u32 %p2, %r3, %r1;\nadd.s32 %r3, "
                 "%r3, 1;\n@%p2 bra TOP;\nret;\n")
        .reasons;
  };
  CHECK(asks("8") == "split");  // 9 is asked about
  CHECK(asks("9") == "decided");
}

TEST_CASE("the first value may be greater than all that follow") {
  const auto asks = [](const char* limit) {
    return split("min.u32 %r3, %r2, 50;\nmin.u32 %r1, %r1, 10;\nTOP:\nsetp.le.u32 %p5, %r3, " +
                 std::string(limit) +
                 ";\n@%p5 st.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, "
                 "%r1;\n@%p2 bra TOP;\nret;\n")
        .reasons;
  };
  CHECK(asks("20") == "split");
  CHECK(asks("50") == "decided");
}

TEST_CASE("after its test a turn of constant numbers is not asked about the last one") {
  const auto asks = [](const char* limit) {
    return split("TOP:\nsetp.ge.u32 %p2, %r3, 20;\n@%p2 bra END;\nsetp.lt.u32 %p5, %r3, " +
                 std::string(limit) +
                 ";\n@%p5 st.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, 3;\nbra.uni "
                 "TOP;\nEND:\nret;\n")
        .reasons;
  };
  CHECK(asks("19") == "decided");  // values 0 .. 18; 21 ends the loop
  CHECK(asks("18") == "split");
}

TEST_CASE("conditions that differ in one point only are two") {
  const auto two = [](const std::string& first, const std::string& second) {
    return split("min.u32 %r1, %r1, 1000;\n" +
                 over_n(first + "@%p5 st.global.u32 [%rd1], %r3;\n" + second +
                        "@%p6 st.global.u32 [%rd1+4], %r3;\n"));
  };
  const std::string plainly = "setp.lt.u32 %p5, %r3, %r2;\n";
  const SplitResult strict = two(plainly, "setp.le.u32 %p6, %r3, %r2;\n");
  CHECK(count_of(strict.reasons, "split") > 1);
  const SplitResult offset = two(plainly, "add.s32 %r5, %r3, 7;\nsetp.lt.u32 %p6, %r5, %r2;\n");
  CHECK(count_of(offset.reasons, "split") > 1);
  const SplitResult sign =
      split("TOP:\n" + std::string(kGuarded) +
            "setp.lt.s32 %p6, %r3, %r2;\n@%p6 st.global.u32 [%rd1+4], %r3;\nadd.s32 "
            "%r3, %r3, 1;\nsetp.ne.u32 %p2, %r3, 8;\n@%p2 bra TOP;\nret;\n");
  CHECK(count_of(sign.text, "@%p6 st.global") == 2);  // asked by the loops that it became
}

TEST_CASE("the conditions of a whole nest count for its growth, decided ones do not") {
  const std::string inner = R"(
  mov.u32 %r7, 0;
AGAIN:
  setp.lt.u32 %p6, %r7, %r2;
  @%p6 st.global.u32 [%rd1+4], %r7;
  add.s32 %r7, %r7, 1;
  setp.ne.s32 %p7, %r7, 8;
  @%p7 bra AGAIN;
)";
  const std::string other = "setp.le.u32 %p8, %r3, %r2;\n@%p8 st.global.u32 [%rd1+8], %r3;\n";
  CHECK(split(over_n(std::string(kGuarded) + other + inner)).reasons ==
        "growth-limit growth-limit growth-limit");
  const std::string always = "setp.ge.u32 %p8, %r3, 0;\n@%p8 st.global.u32 [%rd1+8], %r3;\n";
  CHECK(count_of(split(over_n(std::string(kGuarded) + always + inner)).reasons, "growth-limit") ==
        0);
}

TEST_CASE("a table in front of the loop names labels of both loops") {
  const SplitResult result =
      split("TABLE: .branchtargets EVEN, ODD;\n" + over_n(std::string(kGuarded) + R"(
  and.b32 %r8, %r3, 1;
  brx.idx %r8, TABLE;
EVEN:
  st.global.u32 [%rd1+12], %r3;
ODD:
)"));
  CHECK(result.reasons == "split");
  CHECK(count_of(result.text, ".branchtargets") == 2);
}

TEST_CASE("a loop that falls into its start reaches the second loop there, not the first") {
  const SplitResult result = split(
      "bra.uni HEAD;\nNEXT:\nadd.s32 %r3, %r3, 1;\nHEAD:\nsetp.ge.u32 %p2, %r3, "
      "%r1;\n@%p2 bra END;\n" +
      std::string(kGuarded) + "bra.uni NEXT;\nEND:\nret;\n");
  CHECK(result.reasons == "split");
  const std::size_t head = result.text.find("\nHEAD:");
  REQUIRE(head != std::string::npos);
  const std::size_t jump = result.text.rfind("bra $opt_", head);
  REQUIRE(jump != std::string::npos);
  CHECK(jump > result.text.rfind("add.s32 %r3", head));
}

TEST_CASE("an outcome that only ends the loop decides nothing in it, whatever reads it") {
  CHECK(split("TOP:\nst.global.u32 [%rd1], %r3;\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, "
              "%r1;\n@%p2 bra TOP;\n@%p2 st.global.u32 [%rd1+8], %r3;\nret;\n")
            .reasons == "");
}

TEST_CASE("an outcome that only chooses between inner loops decides nothing") {
  const auto inner = [](const std::string& name) {
    return name + ":\nld.shared.u32 %r5, [tile];\nsetp.ne.u32 %p6, %r5, 0;\n@%p6 bra " + name +
           ";\n";
  };
  CHECK(split(over_n("setp.lt.u32 %p5, %r3, %r2;\n@%p5 bra TWO;\n" + inner("ONE") +
                     "bra.uni NEXT;\n" + inner("TWO") + "NEXT:\n"))
            .reasons == "");
}

TEST_CASE(
    "braces that one iteration does not close, that contain other blocks, or around the test") {
  const auto reasons = [](const std::string& body) {
    return split("TOP:\n" + std::string(kGuarded) + body + "END:\nret;\n").reasons;
  };
  const std::string step = "add.s32 %r3, %r3, 1;\n";
  const std::string test = "setp.ge.u32 %p2, %r3, %r1;\n@%p2 bra END;\n";
  CHECK(reasons(test + step + "{\n.reg .b32 t;\nmov.u32 t, %r3;\n}\nbra.uni TOP;\n") == "split");
  CHECK(reasons(test + step + "{\n.reg .b32 t;\nmov.u32 t, %r3;\nbra.uni TOP;\n}\n") == "scopes");
  CHECK(reasons("{\n.reg .pred q;\n" + step + "setp.ge.u32 q, %r3, %r1;\n@q bra END;\n}\n" +
                "bra.uni TOP;\n") == "scopes");
  CHECK(reasons(test + step +
                "{\nld.shared.u32 %r5, [tile];\nsetp.ne.u32 %p6, %r5, 0;\n@%p6 bra IN;\n"
                "st.global.u32 [%rd1+4], %r5;\nret;\nIN:\nst.global.u32 [%rd1+8], %r5;\n}\n"
                "bra.uni TOP;\n") == "scopes");
}

TEST_CASE("a test whose operands are others by the branch is kept in the first loop as well") {
  const auto tests = [](const std::string& body, const std::string& test) {
    const SplitResult result = split("setp.le.u32 %p1, %r1, %r3;\n@%p1 bra END;\nTOP:\n" + body);
    CHECK(result.reasons == "split");
    CHECK(count_of(result.text, "sub") == 0);
    return count_of(result.text, test);
  };
  const std::string ask(kGuarded);
  const std::string end = "@%p2 bra TOP;\nEND:\nret;\n";
  // The next value, which the variable's own register is not a step after.
  CHECK(tests(ask +
                  "add.s32 %r5, %r3, 1;\nsetp.lt.u32 %p2, %r5, %r1;\nadd.s32 %r3, %r3, 1;\n"
                  "mov.u32 %r5, 0;\n" +
                  end,
              "setp.lt.u32 %p2, %r5, %r1;") == 2);
  // This value, which the variable's register still holds.
  CHECK(tests("mov.u32 %r5, %r3;\nsetp.ge.u32 %p2, %r5, %r1;\nmov.u32 %r5, 0;\n@%p2 bra END;\n" +
                  ask + "add.s32 %r3, %r3, 1;\nbra.uni TOP;\nEND:\nret;\n",
              "setp.ge.u32 %p2, %r5, %r1;") == 2);
  // The bound.
  CHECK(tests(ask +
                  "add.s32 %r3, %r3, 1;\nmov.u32 %r6, %r1;\nsetp.lt.u32 %p2, %r3, %r6;\n"
                  "mov.u32 %r6, 0;\n" +
                  end,
              "setp.lt.u32 %p2, %r3, %r6;") == 2);
}
