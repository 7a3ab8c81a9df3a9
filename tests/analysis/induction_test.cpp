// tests/analysis/induction_test.cpp - variables, tests and trip counts of loops
#include <catch2/catch.hpp>

#include "analysis/facts.hpp"
#include "ptxgen/analysis/induction.hpp"
#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;

namespace {

std::string text_of(std::string_view body) {
  const ptx::Module module = test::kernel(body);
  Facts facts(module, module.functions[0]);
  return to_text(facts.inductions(), facts.cfg(), facts.index(), facts.versions(), module,
                 module.functions[0]);
}

}  // namespace

TEST_CASE("a guarded loop tested at its bottom") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra END;
  mov.u32 %r2, 0;
TOP:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra TOP;
END:
  ret;
)") == "loop 0: header block 2, depth 1, iterations from its test\n"
       "  %r2 from 0 by 1\n"
       "  test at block 2: goes on while %r2 + 1 < %r1, unsigned\n");
}

TEST_CASE("a loop over constants, running down, compared before the step") {
  CHECK(text_of(R"(
  mov.s32 %r2, 20;
TOP:
  setp.gt.s32 %p2, %r2, -3;
  sub.s32 %r2, %r2, 5;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, 6 iterations\n"
       "  %r2 from 20 by -5\n"
       "  test at block 1: goes on while %r2 > -3, signed\n");
}

TEST_CASE("a loop tested at its top whose variable goes through copies") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r9, 0;
  mov.u32 %r5, %r9;
  bra.uni HEAD;
HEAD:
  mov.u32 %r2, %r5;
  setp.lt.u32 %p1, %r2, %r1;
  not.pred %p2, %p1;
  @%p2 bra END;
  bra.uni BODY;
BODY:
  add.s32 %r4, %r2, 4;
  mov.u32 %r5, %r4;
  bra.uni HEAD;
END:
  ret;
)") == "loop 0: header block 1, depth 1, iterations from its test, may wrap around\n"
       "  %r5 from 0 by 4\n"
       "  test at block 1, top: goes on while %r5 < %r1, unsigned\n");
}

TEST_CASE("the bound may be on the left, and be kept in a register that is copied") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 7;
TOP:
  mov.u32 %r3, %r1;
  add.s32 %r2, %r2, -1;
  setp.le.s32 %p2, %r3, %r2;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, iterations from its test, may wrap around\n"
       "  %r2 from 7 by -1\n"
       "  test at block 1: goes on while %r2 + -1 >= %r1, signed\n");
}

TEST_CASE("the step may be an invariant") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r7, %ntid.x;
  mov.u32 %r2, %tid.x;
TOP:
  add.s32 %r2, %r2, %r7;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, iterations from its test, may wrap around\n"
       "  %r2 from %r2 by %r7\n"
       "  test at block 1: goes on while %r2 + %r7 < %r1, unsigned\n");
}

TEST_CASE("what a loop writes is no bound") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
TOP:
  ld.shared.u32 %r3, [tile];
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r3;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, iterations unknown\n"
       "  %r2 from 0 by 1\n"
       "  test at block 1: no comparison with an invariant\n");
}

TEST_CASE("a guarded step is no induction") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  setp.eq.u32 %p1, %r1, 0;
  mov.u32 %r2, 0;
TOP:
  @%p1 add.s32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, iterations unknown\n"
       "  test at block 1: no comparison with an invariant\n");
}

TEST_CASE("two steps on two ways round are no induction") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
TOP:
  and.b32 %r3, %r2, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra ODD;
  add.s32 %r2, %r2, 1;
  bra JOIN;
ODD:
  add.s32 %r2, %r2, 3;
JOIN:
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, iterations unknown\n"
       "  test at block 4: no comparison with an invariant\n");
}

TEST_CASE("two ways back with different steps are no induction") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
TOP:
  ld.shared.u32 %r3, [tile];
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra ODD;
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra TOP;
  ret;
ODD:
  add.s32 %r2, %r2, 3;
  bra TOP;
)") == "loop 0: header block 1, depth 1, iterations unknown\n"
       "  test at block 2, not in every iteration: no comparison with an invariant\n");
}

TEST_CASE("nested loops: the inner bound is invariant in the inner loop only") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
OUTER:
  mov.u32 %r3, 0;
INNER:
  add.s32 %r3, %r3, 1;
  setp.ne.s32 %p1, %r3, 256;
  @%p1 bra INNER;
  add.s32 %r2, %r2, 256;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra OUTER;
  ret;
)") == "loop 0: header block 1, depth 1, iterations from its test, may wrap around\n"
       "  %r2 from 0 by 256\n"
       "  test at block 3: goes on while %r2 + 256 < %r1, unsigned\n"
       "loop 1: header block 2, depth 2, 256 iterations\n"
       "  %r3 from 0 by 1\n"
       "  test at block 2: goes on while %r3 + 1 != 256\n");
}

TEST_CASE("a loop with a second way out has no trip count, its test is still read") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
TOP:
  ld.shared.u32 %r3, [tile];
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra END;
  add.s32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 10;
  @%p2 bra TOP;
END:
  ret;
)") == "loop 0: header block 1, depth 1, iterations unknown\n"
       "  %r2 from 0 by 1\n"
       "  test at block 1, top: no comparison with an invariant\n"
       "  test at block 2: goes on while %r2 + 1 < 10, unsigned\n");
}

TEST_CASE("irreducible loops have no variables") {
  CHECK(text_of(R"(
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra MIDDLE;
TOP:
  add.s32 %r2, %r2, 1;
MIDDLE:
  setp.lt.u32 %p2, %r2, 10;
  @%p2 bra TOP;
  ret;
)") == "loop 0: header block 2, depth 1, irreducible\n");
}

// Wrap-around ---------------------------------------------------------------------------------

namespace {

bool wraps(const std::string& body) {
  const std::string text =
      text_of("  ld.param.u32 %r1, [n];\n  mov.u32 %r9, %ctaid.x;\n  mov.u32 %r8, %ctaid.y;\n" +
              body + "END:\n  ret;\n");
  INFO(text);
  REQUIRE(text.find("iterations from its test") != std::string::npos);
  return text.find("may wrap around") != std::string::npos;
}

// A loop of %r2 that goes on while it compares as `goes_on` says with %r5, before or after a step.
std::string before(const std::string& goes_on, const std::string& step) {
  return "TOP:\n  setp." + goes_on + " %p1, %r2, %r5;\n  @!%p1 bra END;\n  add.s32 %r2, %r2, " +
         step + ";\n  bra TOP;\n";
}
std::string after(const std::string& goes_on, const std::string& step) {
  return "TOP:\n  add.s32 %r2, %r2, " + step + ";\n  setp." + goes_on +
         " %p1, %r2, %r5;\n  @%p1 bra TOP;\n";
}
std::string unless(const std::string& comparison) {
  return "  setp." + comparison + ";\n  @%p2 bra END;\n";
}

}  // namespace

TEST_CASE("a step that is not known wraps unless the bound leaves space for it") {
  // %r5 = start + (length - min(length, step)), from %r9 to %r1 by %r7.
  const auto space = [](const std::string& length, const std::string& min, const std::string& guard,
                        const std::string& loop) {
    return wraps("  mov.u32 %r7, %ntid.x;\n" + guard + "  mov.u32 %r2, %r9;\n  sub.s32 %r3, " +
                 length + ";\n  min.u32 %r4, " + min +
                 ", %r7;\n  sub.s32 %r4, %r3, %r4;\n  add.s32 %r5, %r9, %r4;\n" + loop);
  };
  const std::string length = "%r1, %r9", guard = unless("gt.u32 %p2, %r9, %r1");
  const std::string loop = before("lt.u32", "%r7");
  CHECK_FALSE(space(length, "%r3", guard, loop));
  CHECK(space(length, "%r3", guard, after("lt.u32", "%r7")));
  CHECK(space(length, "%r3", guard, before("le.u32", "%r7")));
  CHECK(space(length, "%r8", guard, loop));
  CHECK(space(length, "%r3", "", loop));
  CHECK(space("%r1, %r8", "%r3", guard, loop));
  CHECK(wraps("  mov.u32 %r7, %ntid.x;\n  mov.u32 %r2, 0;\n  mov.u32 %r5, %r1;\n" + loop));
}

TEST_CASE("a signed length from 0 has to be one") {
  const auto length = [](const std::string& guard) {
    return wraps("  mov.u32 %r7, %ntid.x;\n" + guard +
                 "  mov.u32 %r2, 0;\n  min.u32 %r4, %r1, %r7;\n  sub.s32 %r5, %r1, %r4;\n" +
                 before("lt.s32", "%r7"));
  };
  CHECK_FALSE(length(unless("lt.s32 %p2, %r1, 0")));
  CHECK(length(""));
}

TEST_CASE("a bound that is a multiple of the step is hit") {
  const auto until = [](const std::string& bound, const std::string& step, bool some = true) {
    return wraps("  mov.u32 %r2, 0;\n" + bound + (some ? unless("eq.u32 %p2, %r5, 0") : "") +
                 after("ne.u32", step));
  };
  CHECK_FALSE(until("  and.b32 %r5, %r1, -4;\n", "4"));
  CHECK(until("  and.b32 %r5, %r1, -4;\n", "4", false));  // 0 is passed by
  CHECK(until("  and.b32 %r5, %r1, -2;\n", "4"));
  CHECK(until("  and.b32 %r5, %r1, -8;\n", "6"));
  const std::string rest = "  rem.u32 %r4, %r1, 6;\n  sub.s32 %r5, %r1, %r4;\n";
  CHECK_FALSE(until(rest, "6"));
  CHECK(until(rest, "4"));
  // Below any bound there is a way past it.
  CHECK(until("  mov.u32 %r5, %r1;\n", "4"));
  CHECK_FALSE(until("  mov.u32 %r5, %r1;\n", "1"));
}

TEST_CASE("what bounds a bound holds in its own order of numbers") {
  const auto up_to = [](const std::string& bound, const std::string& type) {
    return wraps("  mov.u32 %r2, 0;\n" + bound + before("lt." + type, "4"));
  };
  CHECK_FALSE(up_to("  and.b32 %r5, %r1, 1022;\n", "s32"));
  CHECK(up_to("  and.b32 %r5, %r1, -2;\n", "s32"));
  const std::string same = "  mov.u32 %r5, %r1;\n";
  CHECK_FALSE(up_to(same + unless("gt.u32 %p2, %r1, 100"), "u32"));
  CHECK(up_to(same + unless("gt.s32 %p2, %r1, 100"), "u32"));
}

TEST_CASE("that the variable plus a constant is below a bound says nothing about the variable") {
  CHECK(
      wraps("  mov.u32 %r2, %r9;\nTOP:\n  add.s32 %r3, %r2, 8;\n  setp.ge.u32 %p1, %r3, %r1;\n"
            "  @%p1 bra END;\n  add.s32 %r2, %r2, 1;\n  bra TOP;\n"));
  CHECK_FALSE(
      wraps("  mov.u32 %r2, %r9;\nTOP:\n  setp.ge.u32 %p1, %r2, %r1;\n"
            "  @%p1 bra END;\n  add.s32 %r2, %r2, 1;\n  bra TOP;\n"));
}

TEST_CASE("a step of 0 is none") {
  CHECK(text_of(R"(
  mov.u32 %r2, 5;
TOP:
  add.s32 %r2, %r2, 0;
  setp.lt.u32 %p1, %r2, 3;
  @%p1 bra TOP;
  ret;
)") == "loop 0: header block 1, depth 1, 1 iteration\n"
       "  %r2 from 5 by 0\n"
       "  test at block 1: goes on while %r2 < 3, unsigned\n");
}

TEST_CASE("iteration_count at the ends of a type") {
  CHECK(iteration_count(0, 1, Relation::Lt, 10, false, 32) == 11);
  CHECK(iteration_count(0, 1, Relation::Lt, 0, false, 32) == 1);
  CHECK(iteration_count(0xffffffffu, 1, Relation::Ne, 0, false, 32) == std::nullopt);
  CHECK(iteration_count(0xffffffffu, 1, Relation::Ne, 0, true, 32) == 2);
  CHECK(iteration_count(0xfffffff0u, 3, Relation::Lt, 0xffffffffu, false, 32) == 6);
  CHECK(iteration_count(0xfffffff0u, 4, Relation::Lt, 0xffffffffu, false, 32) == std::nullopt);
  CHECK(iteration_count(5, 0xffffffffu, Relation::Ge, 0, true, 32) == 7);
  CHECK(iteration_count(5, 0xffffffffu, Relation::Ge, 0, false, 32) == std::nullopt);
  CHECK(iteration_count(3, 5, Relation::Eq, 3, false, 64) == 2);
  CHECK(iteration_count(3, 0, Relation::Lt, 4, false, 64) == std::nullopt);
  CHECK(iteration_count(9, 2, Relation::Gt, 4, false, 32) == std::nullopt);
  CHECK(iteration_count(0, 3, Relation::Ne, 10, false, 32) == std::nullopt);
}
