// tests/check/analyze_control_test.cpp - the rules about loops and bounds
#include <catch2/catch.hpp>
#include <string>

#include "rule_snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string loops(std::string_view body) { return found(body, "loop-branch-direction"); }
std::string bounds(std::string_view body, std::string_view directives = {}) {
  return found(body, "unchecked-bounds", directives);
}

}  // namespace

// loop-branch-direction -----------------------------------------------------------------------

TEST_CASE("the branch of a loop leads to its end") {
  CHECK(loops(R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
k_loop:
  st.shared.u32 [tile], %r2;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra k_loop_end;
k_loop_end:
  ret;
)") == "22/18: warning: %r2 is advanced at line 20 and compared like a loop counter, but "
       "this branch leads forward to 'k_loop_end', and no branch leads back to 'k_loop' at line "
       "18\n");
}

TEST_CASE("a loop tested at its top leads to its end at its bottom too") {
  CHECK(loops(R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
TOP:
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  st.shared.u32 [tile], 1;
  add.u32 %r2, %r2, 1;
  bra DONE;
  st.shared.u32 [tile], 2;
DONE:
  ret;
)") == "23/18: warning: %r2 is advanced at line 22 and compared like a loop counter, but "
       "this branch leads forward to 'DONE', and no branch leads back to 'TOP' at line 18\n");
}

TEST_CASE("names of labels mean nothing") {
  // Branches forward over work; labels that nothing needs; a counter that is used.
  CHECK(loops(R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
loop_end:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra loop;
  st.shared.u32 [tile], %r2;
loop:
  ret;
)") == "");
  CHECK(loops(R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
loop_end:
  st.shared.u32 [tile], %r2;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra loop_end;
  ret;
)") == "");
}

TEST_CASE("after a label that something branches to, no loop was lost") {
  CHECK(loops(R"(  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
  setp.eq.u32 %p2, %r1, 7;
  @%p2 bra BOTH;
  st.shared.u32 [tile], 1;
BOTH:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  st.shared.u32 [tile], 2;
DONE:
  ret;
)") == "");
}

TEST_CASE("a loop without a way out") {
  CHECK(loops(R"(  mov.u32 %r2, 0;
L:
  add.u32 %r2, %r2, 1;
  st.shared.u32 [tile], %r2;
  bra L;
)") == "20/17: warning: no path leaves the loop that this branch closes; the loop begins at line "
       "17\n");
  CHECK(loops(R"(L:
  trap;
  bra L;
)") == "");
  CHECK(loops(R"(  ld.param.u32 %r1, [n];
L:
  add.u32 %r1, %r1, 1;
  setp.eq.u32 %p1, %r1, 7;
  @%p1 ret;
  bra L;
)") == "");
}

namespace {

std::string counted(const std::string& start, const std::string& step, const std::string& compare,
                    const std::string& branch) {
  return "  ld.param.u32 %r1, [n];\n  mov.u32 %r2, " + start +
         ";\nL:\n  st.shared.u32 [tile], %r2;\n  " + step + ";\n  " + compare + ";\n  " + branch +
         " bra L;\n  ret;\n";
}

}  // namespace

TEST_CASE("a counter that runs away from its bound") {
  CHECK(loops(counted("0", "add.u32 %r2, %r2, 1", "setp.ge.u32 %p1, %r2, %r1", "@%p1")) ==
        "22/18: warning: the loop continues while %r2 is not below %r1, but each iteration adds 1: "
        "it ends after its first iteration or runs far too long\n");
  CHECK(loops(counted("0", "add.s32 %r2, %r2, 4", "setp.lt.s32 %p1, %r2, %r1", "@!%p1")) ==
        "22/18: warning: the loop continues while %r2 is not below %r1, but each iteration adds 4: "
        "it ends after its first iteration or runs far too long\n");
  CHECK(loops(counted("100", "sub.s32 %r2, %r2, 2", "setp.gt.s32 %p1, %r1, %r2", "@%p1")) ==
        "22/18: warning: the loop continues while %r2 is below %r1, but each iteration subtracts "
        "2: it ends after its first iteration or runs far too long\n");
  CHECK(loops(counted("0", "add.s32 %r2, %r2, 1", "setp.le.s32 %p1, %r2, 10", "@!%p1")) ==
        "22/18: warning: the loop continues while %r2 is above 10, but each iteration adds 1: it "
        "ends after its first iteration or runs far too long\n");
}

TEST_CASE("counters that reach their bound") {
  CHECK(loops(counted("0", "add.u32 %r2, %r2, 1", "setp.lt.u32 %p1, %r2, %r1", "@%p1")) == "");
  CHECK(loops(counted("0", "add.u32 %r2, %r2, 1", "setp.ge.u32 %p1, %r2, %r1", "@!%p1")) == "");
  CHECK(loops(counted("9", "add.s32 %r2, %r2, -1", "setp.ge.s32 %p1, %r2, 0", "@%p1")) == "");
  CHECK(loops(counted("9", "sub.s32 %r2, %r2, 1", "setp.gt.s32 %p1, %r2, %r1", "@%p1")) == "");
  CHECK(loops(counted("0", "add.u32 %r2, %r2, 1", "setp.ne.u32 %p1, %r2, %r1", "@%p1")) == "");
  // Unsigned and downwards, below zero is above every bound.
  CHECK(loops(counted("9", "add.u32 %r2, %r2, -1", "setp.lt.u32 %p1, %r2, %r1", "@%p1")) == "");
  // Another step than a constant, or a bound that moves, says nothing.
  CHECK(loops(counted("9", "add.u32 %r2, %r2, %r1", "setp.gt.u32 %p1, %r2, %r1", "@%p1")) == "");
  CHECK(loops(counted("9", "add.u32 %r2, %r2, 1;\n  add.u32 %r1, %r1, 2",
                      "setp.gt.u32 %p1, %r2, %r1", "@%p1")) == "");
}

// unchecked-bounds ----------------------------------------------------------------------------

namespace {

/// Element `ctaid.x * ntid.x + tid.x` of a: %r4 the index, %rd3 its address. `before` is
/// between the index and the address.
std::string element(const std::string& before, const std::string& after) {
  return R"(  ld.param.u32 %r1, [n];
  ld.param.u64 %rd1, [a];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r4, %r2, %r3, %r5;
)" + before +
         R"(  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
)" + after +
         "DONE:\n  ret;\n";
}
const std::string kStore = "  st.global.u32 [%rd3], 1;\n";

}  // namespace

TEST_CASE("an index over the grid that nothing compares") {
  CHECK(
      bounds(element("", kStore)) ==
      "25: warning: the address %rd3 depends on the thread's index, which nothing compares with a "
      "bound\n");
  CHECK(
      bounds(
          element("", "  ld.global.u32 %r6, [%rd3];\n  ld.global.u32 %r7, [%rd3+4];\n" + kStore)) ==
      "25: warning: the address %rd3 depends on the thread's index, which nothing compares with a "
      "bound; so do those of 2 more accesses of this kernel\n");
}

TEST_CASE("what guards an access") {
  const std::string compare = "  setp.ge.u32 %p1, %r4, %r1;\n";
  CHECK(bounds(element(compare + "  @%p1 bra DONE;\n", kStore)) == "");
  CHECK(bounds(element(compare + "  @%p1 ret;\n", kStore)) == "");
  CHECK(bounds(element(compare, "  @!%p1 st.global.u32 [%rd3], 1;\n")) == "");
  const std::string both = "  setp.ne.u32 %p2, %r1, 0;\n  or.pred %p1, %p1, %p2;\n";
  CHECK(bounds(element(compare + both, "  @!%p1 st.global.u32 [%rd3], 1;\n")) == "");
  const std::string and_both =
      "  setp.lt.u32 %p1, %r4, %r1;\n  setp.ne.u32 %p2, %r1, 0;\n"
      "  and.pred %p1, %p1, %p2;\n";
  CHECK(bounds(element(and_both, "  @%p1 st.global.u32 [%rd3], 1;\n")) == "");
  CHECK(bounds(element("  min.u32 %r4, %r4, %r1;\n", kStore)) == "");
  CHECK(bounds(element("  rem.u32 %r4, %r4, %r1;\n", kStore)) == "");
  CHECK(bounds(element("  and.b32 %r4, %r4, 1023;\n", kStore)) == "");
  CHECK(bounds(element(compare + "  selp.b32 %r4, 0, %r4, %p1;\n", kStore)) == "");
  // One block for each row: the launch says how many; the threads of a block share the row.
  CHECK(bounds(element("  setp.ge.u32 %p1, %r5, %r1;\n  @%p1 bra DONE;\n", kStore)) == "");
}

TEST_CASE("what does not guard an access") {
  // A comparison of something else; one that both ways come together after; one after it.
  CHECK(bounds(element("  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra DONE;\n", kStore)) != "");
  CHECK(bounds(element("  setp.lt.u32 %p1, %r4, %r1;\n  @%p1 bra NEXT;\n"
                       "  st.shared.u32 [tile], 1;\nNEXT:\n",
                       kStore)) != "");
  CHECK(bounds(element("  setp.eq.u32 %p1, %r1, 0;\n", "  @!%p1 st.global.u32 [%rd3], 1;\n")) !=
        "");
  // A part of the index is cut, not all of it.
  CHECK(bounds(element("  and.b32 %r5, %r5, 31;\n  mad.lo.u32 %r4, %r2, 32, %r5;\n", kStore)) !=
        "");
}

TEST_CASE("the number of the thread alone") {
  const char* const body = R"(  ld.param.u64 %rd1, [a];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], 1;
  ret;
)";
  CHECK(
      bounds(body) ==
      "20: warning: the address %rd3 depends on the thread's index, which nothing compares with a "
      "bound\n");
  CHECK(bounds(body, ".reqntid 64, 1, 1") == "");
  CHECK(bounds(body, ".maxntid 64, 1, 1") == "");
  const ptx::Module module = kernel(body);
  CHECK(summary(gates::analyze(module, {.target = {}, .entry = {}, .block = {64, 1, 1}})) == "");
}

TEST_CASE("one element for each block, and indices from memory, are not reported") {
  CHECK(bounds(R"(  ld.param.u64 %rd1, [a];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], 1;
  ld.global.u32 %r2, [%rd1];
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd5, %rd1, %rd4;
  st.global.u32 [%rd5], 1;
  ret;
)") == "");
}

TEST_CASE("the analyzer takes bodies that the verifier refuses") {
  const ptx::Module full = kernel(element("  setp.ge.u32 %p1, %r4, %r1;\n  @%p1 bra DONE;\n",
                                          "LOOP:\n  ld.shared.u32 %r6, [%rd3];\n"
                                          "  sub.u32 %r6, %r6, %r6;\n  @%p1 bra LOOP;\n" +
                                              kStore));
  for (std::size_t i = 0; i < full.functions[0].operands.size(); ++i) {
    ptx::Module module = full;
    ptx::Operand& operand = module.functions[0].operands[i];
    operand.id = 1000;
    CHECK_NOTHROW(gates::analyze(module));
    operand = ptx::Operand::integer(3);
    CHECK_NOTHROW(gates::analyze(module));
    operand = ptx::Operand::label({77});
    CHECK_NOTHROW(gates::analyze(module));
  }
  for (std::size_t i = 0; i < full.functions[0].body.size(); ++i) {
    ptx::Module module = full;
    if (module.functions[0].body[i].kind != ptx::StatementKind::Instruction) continue;
    module.functions[0].body[i].operand_count = 0;
    CHECK_NOTHROW(gates::analyze(module));
  }
}
