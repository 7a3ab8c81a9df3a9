// tests/optimize/cleanup_test.cpp - rules of the cleanup passes, one by one
#include <catch2/catch.hpp>

#include "analysis/snippets.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using optimize::PassOptions;
using optimize::PipelineReport;

namespace {

std::string statements(const ptx::Module& module, const ptx::Function& function) {
  std::string text;
  for (const ptx::Instruction& s : function.body) {
    if (s.kind != ptx::StatementKind::Variable) text += ptx::print(module, function, s) + "\n";
  }
  return text;
}

PipelineReport run(ptx::Module& module, const char* pass) {
  PassOptions options;
  options.passes = {pass};
  options.explain = true;
  return optimize::run_passes(module, options);
}

// The body after the pass. A second run must change nothing.
std::string after(const char* pass, std::string_view body) {
  ptx::Module module = test::kernel(body);
  run(module, pass);
  const std::string text = statements(module, module.functions[0]);
  CHECK_FALSE(run(module, pass).changed());
  CHECK(statements(module, module.functions[0]) == text);
  return text;
}

// What the pass says of each candidate: "[reason] message", `-` in front of refusals.
std::string reported(const char* pass, std::string_view body) {
  ptx::Module module = test::kernel(body);
  std::string text;
  for (const optimize::PassReport& report : run(module, pass).passes) {
    for (const optimize::Decision& d : report.decisions) {
      text += (d.fired ? "" : "-") + ("[" + std::string(d.reason)) + "] " + d.message + "\n";
    }
  }
  return text;
}

constexpr const char* kFold = "fold_constants";
constexpr const char* kCopy = "copy_propagation";
constexpr const char* kDead = "dead_code";
constexpr const char* kBranch = "branch_simplify";

}  // namespace

TEST_CASE("constants are computed and carried on") {
  CHECK(after(kFold, "mov.u32 %r1, 6; mul.lo.u32 %r2, %r1, 7; st.shared.u32 [tile], %r2;") ==
        "mov.u32 %r1, 6;\nmov.b32 %r2, 42;\nst.shared.u32 [tile], %r2;\n");
  CHECK(after(kFold, "setp.lt.s32 %p1|%p2, -1, 1;") == "mov.pred %p1, 1;\nmov.pred %p2, 0;\n");
  // The move that changes the guard comes last.
  CHECK(after(kFold, "@%p1 setp.lt.s32 %p1|%p2, -1, 1;") ==
        "@%p1 mov.pred %p2, 0;\n@%p1 mov.pred %p1, 1;\n");
  CHECK(after(kFold, "shl.b32 %r1, 1, 32; shr.s32 %r2, -8, 77;") ==
        "mov.b32 %r1, 0;\nmov.b32 %r2, -1;\n");
  CHECK(after(kFold, "cvt.s64.s32 %rd1, -5; cvt.u64.u32 %rd2, -5;") ==
        "mov.b64 %rd1, -5;\nmov.b64 %rd2, 4294967291;\n");
  // A conversion extends in a register that is wider than its type.
  CHECK(after(kFold, "cvt.s8.u32 %r1, 255; cvt.u8.u32 %r2, 511;") ==
        "mov.b32 %r1, -1;\nmov.b32 %r2, 255;\n");
  CHECK(after(kFold, "mov.b32 %r1, 0f3F800000; set.eq.f32.u32 %f1, 1, 1;") ==
        "mov.b32 %r1, 0f3F800000;\nmov.f32 %f1, 0f3F800000;\n");
}

TEST_CASE("constants through branches: ways that are never taken do not count") {
  const char* body = R"(
  mov.u32 %r1, 3;
  setp.eq.u32 %p1, %r1, 3;
  @%p1 bra L;
  mov.u32 %r1, 4;
L:
  add.u32 %r2, %r1, 1;
  st.shared.u32 [tile], %r2;
)";
  CHECK(after(kFold, body).find("mov.b32 %r2, 4;") != std::string::npos);
  CHECK(after("cleanup", body) == "st.shared.u32 [tile], 4;\n");
  // A loop that runs once.
  CHECK(after("cleanup", R"(
  mov.u32 %r1, 0;
L:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 1;
  @%p1 bra L;
  st.shared.u32 [tile], %r1;
)") == "st.shared.u32 [tile], 1;\n");
  // Written under a guard it is both.
  CHECK(after(kFold, "mov.u32 %r1, 3; @%p1 mov.u32 %r1, 4; add.u32 %r2, %r1, 1;")
            .find("add.u32 %r2, %r1, 1;") != std::string::npos);
  CHECK(after(kFold, "mov.u32 %r1, 3; @%p1 mov.u32 %r1, 3; add.u32 %r2, %r1, 1;")
            .find("mov.b32 %r2, 4;") != std::string::npos);
  // A guard that never holds lets nothing be written.
  CHECK(after(kFold, "mov.pred %p1, 0; mov.u32 %r1, 3; @%p1 mov.u32 %r1, 4; add.u32 %r2, %r1, 1;")
            .find("mov.b32 %r2, 4;") != std::string::npos);
  CHECK(after(kFold, "cvt.s8.u32 %r1, 255; add.u32 %r2, %r1, 1;").find("mov.b32 %r2, 0;") !=
        std::string::npos);
  // Nothing wrote it: anything.
  CHECK(after(kFold, "@%p1 mov.u32 %r1, 3; add.u32 %r2, %r1, 1;").find("add.u32") !=
        std::string::npos);
  CHECK(after("cleanup", R"(
  mov.u32 %r1, 1;
T: .branchtargets A, B;
  brx.idx %r1, T;
A:
  st.shared.u32 [tile], 1;
  ret;
B:
  st.shared.u32 [tile], 2;
  ret;
)") == "st.shared.u32 [tile], 2;\nret;\n");
}

TEST_CASE("identities become moves") {
  const auto one = [](const char* text) { return after(kFold, text); };
  CHECK(one("add.u32 %r1, %r2, 0;") == "mov.b32 %r1, %r2;\n");
  CHECK(one("mul.lo.s32 %r1, 1, %r2;") == "mov.b32 %r1, %r2;\n");
  CHECK(one("mul.lo.s32 %r1, %r2, 0;") == "mov.b32 %r1, 0;\n");
  CHECK(one("mad.lo.s32 %r1, %r2, 0, %r3;") == "mov.b32 %r1, %r3;\n");
  CHECK(one("mad.lo.s32 %r1, %r2, 1, %r3;") == "add.s32 %r1, %r2, %r3;\n");
  CHECK(one("mad.lo.s32 %r1, 1, %r2, %r3;") == "add.s32 %r1, %r2, %r3;\n");
  CHECK(one("mad.hi.s32 %r1, 1, %r2, %r3;") == "mad.hi.s32 %r1, 1, %r2, %r3;\n");
  CHECK(one("sub.s32 %r1, %r2, %r2;") == "mov.b32 %r1, 0;\n");
  CHECK(one("and.b32 %r1, %r2, -1;") == "mov.b32 %r1, %r2;\n");
  CHECK(one("selp.b32 %r1, %r2, %r2, %p1;") == "mov.b32 %r1, %r2;\n");
  CHECK(one("mov.pred %p1, 1; selp.f32 %f1, %f2, %f3, %p1;") ==
        "mov.pred %p1, 1;\nmov.f32 %f1, %f2;\n");
  CHECK(one("cvt.u32.s32 %r1, %r2;") == "mov.b32 %r1, %r2;\n");
  CHECK(one("cvt.u16.u16 %r1, %r2;") == "cvt.u16.u16 %r1, %r2;\n");  // cuts and extends
  CHECK(one("add.u32 %r1, %r1, 0;").empty());
  CHECK(one("@%p1 mov.u32 %r1, %r1;").empty());
  CHECK(one("mov.pred %p1, 1; setp.lt.and.s32 %p2, %r1, %r2, %p1;") ==
        "mov.pred %p1, 1;\nsetp.lt.s32 %p2, %r1, %r2;\n");
  CHECK(one("mov.pred %p1, 1; setp.lt.or.s32 %p2, %r1, %r2, %p1;") ==
        "mov.pred %p1, 1;\nmov.pred %p2, 1;\n");
  CHECK(one("mov.pred %p1, 1; setp.lt.xor.s32 %p2, %r1, %r2, %p1;") ==
        "mov.pred %p1, 1;\nsetp.lt.xor.s32 %p2, %r1, %r2, %p1;\n");
  CHECK(one("mov.pred %p1, 1; selp.b32 %r1, %r2, %r3, !%p1;") ==
        "mov.pred %p1, 1;\nmov.b32 %r1, %r3;\n");
  CHECK(one("setp.eq.and.s32 %p2, 1, 1, %p1;") == "mov.pred %p2, %p1;\n");
  CHECK(one("setp.eq.and.s32 %p2, 1, 1, !%p1;") == "not.pred %p2, %p1;\n");
  // Floats keep what NaN, -0 and infinity make of them.
  CHECK(one("add.f32 %f1, %f2, 0f00000000;") == "add.f32 %f1, %f2, 0f00000000;\n");
  CHECK(one("mul.f32 %f1, %f2, 0f00000000;") == "mul.f32 %f1, %f2, 0f00000000;\n");
  CHECK(one("add.cc.u32 %r1, 1, 2; addc.u32 %r2, 0, 0;") ==
        "add.cc.u32 %r1, 1, 2;\naddc.u32 %r2, 0, 0;\n");
}

TEST_CASE("what the folding says") {
  CHECK(reported(kFold, "add.u32 %r1, 2, 3;") ==
        "[constant] 'add.u32 %r1, 2, 3' became 'mov.b32 %r1, 5'\n");
  CHECK(reported(kFold, "sub.u32 %r1, %r2, 0;") ==
        "[identity] 'sub.u32 %r1, %r2, 0' became 'mov.b32 %r1, %r2'\n");
  CHECK(reported(kFold, "mov.u32 %r1, %r1;") == "[self-copy] 'mov.u32 %r1, %r1' does nothing\n");
  CHECK(reported(kFold, "div.u32 %r1, 7, 0;") ==
        "-[division-by-zero] 'div.u32 %r1, 7, 0' divides by zero, and PTX does not say what that "
        "gives, so it stays\n");
}

TEST_CASE("reads of a copy read what was copied") {
  CHECK(after(kCopy, "mov.u32 %r2, %r1; mov.u32 %r3, %r2; st.shared.u32 [tile], %r3;") ==
        "mov.u32 %r2, %r1;\nmov.u32 %r3, %r1;\nst.shared.u32 [tile], %r1;\n");
  CHECK(after(kCopy, "mov.pred %p2, %p1; @!%p2 st.shared.u32 [tile], %r1;") ==
        "mov.pred %p2, %p1;\n@!%p1 st.shared.u32 [tile], %r1;\n");
  CHECK(after(kCopy, "mov.u64 %rd2, %rd1; ld.global.u32 %r1, [%rd2+4];") ==
        "mov.u64 %rd2, %rd1;\nld.global.u32 %r1, [%rd1+4];\n");
  CHECK(after(kCopy, "mov.u32 %r2, %r1; st.shared.v2.u32 [tile], {%r2, %r3};") ==
        "mov.u32 %r2, %r1;\nst.shared.v2.u32 [tile], {%r1, %r3};\n");
  CHECK(after(kCopy, "add.u32 %r2, %r1, 0; st.shared.u32 [tile], %r2;") ==
        "add.u32 %r2, %r1, 0;\nst.shared.u32 [tile], %r1;\n");
  CHECK(after(kCopy,
              "mov.u32 %r1, 9; setp.lt.u32 %p1, %r2, %r1; mov.f32 %f1, 0f40000000; "
              "add.f32 %f2, %f3, %f1;") ==
        "mov.u32 %r1, 9;\nsetp.lt.u32 %p1, %r2, 9;\nmov.f32 %f1, 0f40000000;\nadd.f32 %f2, %f3, "
        "0f40000000;\n");
}

TEST_CASE("copies that are none, or not any more") {
  // The source was written again: here, in a loop, on one of two ways.
  CHECK(reported(kCopy,
                 "mov.u32 %r2, %r1; add.u32 %r1, %r3, 1; st.shared.v2.u32 [tile], {%r2, %r1};") ==
        "-[source-changed] 'st.shared.v2.u32 [tile], {%r2, %r1}' goes on reading '%r2', a copy of "
        "'%r1', which may hold another value by then\n");
  CHECK(after(kCopy, R"(
L:
  mov.u32 %r2, %r1;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r2, %r3;
  @%p1 bra L;
  st.shared.u32 [tile], %r2;
)")
            .find("[tile], %r2") != std::string::npos);
  CHECK(after(kCopy, R"(
  mov.u32 %r2, %r1;
  @%p1 bra L;
  mov.u32 %r1, %r4;
L:
  st.shared.v2.u32 [tile], {%r2, %r1};
)")
            .find("{%r2, %r1}") != std::string::npos);
  // Some threads keep what they had.
  CHECK(after(kCopy, "mov.u32 %r2, %r3; @%p1 mov.u32 %r2, %r1; st.shared.u32 [tile], %r2;")
            .find("[tile], %r2") != std::string::npos);
  // Other types, and conversions that cut.
  CHECK(reported(kCopy, ".reg .s32 %i; mov.b32 %f1, %i; add.f32 %f2, %f1, %f1;")
            .find("-[type-mismatch] 'add.f32 %f2, %f1, %f1' goes on reading '%f1', a copy of '%i', "
                  "which has a type that the instruction does not take there\n") !=
        std::string::npos);
  CHECK(after(kCopy, "cvt.u8.u8 %r2, %r1; st.shared.u32 [tile], %r2;").find("[tile], %r2") !=
        std::string::npos);
  CHECK(after(kCopy, "cvt.u32.u32 %r1, %rd1; st.shared.u32 [%r1], 5;").find("[%r1]") !=
        std::string::npos);
  // A register that cannot be named, or whose name means another one there.
  CHECK(reported(kCopy, R"(
  {
  .reg .b32 %inner;
  mov.u32 %inner, %r5;
  mov.u32 %r1, %inner;
  add.u32 %r5, %r5, 1;
  }
  st.shared.v2.u32 [tile], {%r1, %r5};
)")
            .find("cannot be named there") == std::string::npos);
  CHECK(reported(kCopy, R"(
  {
  .reg .b32 %inner;
  ld.shared.u32 %inner, [tile];
  mov.u32 %r1, %inner;
  }
  st.shared.u32 [tile], %r1;
)") == "-[out-of-scope] 'st.shared.u32 [tile], %r1' goes on reading '%r1', a copy of '%inner', "
       "which cannot be named there\n");
  CHECK(reported(kCopy, R"(
  ld.shared.u32 %r7, [tile];
  mov.u32 %r1, %r7;
  {
  .reg .b32 %r7, x;
  st.shared.u32 [tile], %r1;
  }
)")
            .find("-[out-of-scope]") == 0);
}

TEST_CASE("a numbered declaration hides names as well") {
  const char* body = R"(
  ld.shared.u32 %r7, [tile];
  DECLARED
  mov.u32 %r1, %r7;
  {
  .reg .b32 %r<COUNT>;
  st.shared.u32 [tile], x;
  }
)";
  const auto with = [&](const char* count) {
    std::string text = body;
    text.replace(text.find("DECLARED"), 8, ".reg .b32 x; mov.u32 x, %r7;");
    text.replace(text.find("COUNT"), 5, count);
    return after(kCopy, text);
  };
  CHECK(with("8").find("[tile], x;") != std::string::npos);
  CHECK(with("7").find("[tile], %r7;") != std::string::npos);
}

TEST_CASE("what nothing reads goes, and chains that feed only themselves") {
  CHECK(after(kDead, "add.u32 %r1, %r2, 1; ld.shared.u32 %r3, [tile]; mul.f32 %f1, %f2, %f3;")
            .empty());
  CHECK(after(kDead, R"(
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
L:
  add.u32 %r1, %r1, 1;
  add.u32 %r2, %r2, %r1;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, 9;
  @%p1 bra L;
)") == "L:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 9;\n@%p1 bra L;\n");
  // A branch that skips only such goes with it, and so do the branches around it.
  CHECK(after(kDead, R"(
  setp.lt.u32 %p1, %r1, 1;
  @%p1 bra A;
  setp.lt.u32 %p2, %r2, 1;
  @%p2 bra A;
  add.u32 %r3, %r3, 1;
A:
  ret;
)") == "A:\nret;\n");
  CHECK(after(kDead, R"(
  @%p1 bra A;
  @%p2 bra B;
  st.shared.u32 [tile], 1;
B:
  add.u32 %r3, %r3, 1;
A:
  @%p3 bra C;
  mov.u32 %r1, 1;
C:
  ret;
)") == "@%p1 bra A;\n@%p2 bra B;\nst.shared.u32 [tile], 1;\nB:\nA:\nC:\nret;\n");
  CHECK(reported(kDead, "@%p1 bra A; mov.u32 %r1, 1; A: ret;") ==
        "[skips-nothing] nothing stays of what is skipped by '@%p1 bra A'\n"
        "[unread] nothing reads what is written by 'mov.u32 %r1, 1'\n");
  CHECK(after(kDead, "mov.u32 %r1, 1; mov.u32 %r1, 2; st.shared.u32 [tile], %r1;") ==
        "mov.u32 %r1, 2;\nst.shared.u32 [tile], %r1;\n");
  // Where a guard leaves the old value, that is read.
  CHECK(after(kDead, "mov.u32 %r1, 1; @%p1 mov.u32 %r1, 2; st.shared.u32 [tile], %r1;") ==
        "mov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;\nst.shared.u32 [tile], %r1;\n");
  CHECK(after(kDead, "bra L; add.u32 %r1, %r1, 1; st.shared.u32 [tile], %r1; L: ret;") ==
        "bra L;\nL:\nret;\n");
  CHECK(after(kDead,
              "mov.pred %p1, 0; @%p1 st.shared.u32 [tile], 1; @!%p1 st.shared.u32 [tile], 2;") ==
        "mov.pred %p1, 0;\n@!%p1 st.shared.u32 [tile], 2;\n");
}

TEST_CASE("what has an effect stays though nothing reads it, and why") {
  const auto stays = [](const char* text) {
    return after(kDead, text) == text + std::string("\n");
  };
  CHECK(stays("ld.volatile.global.u32 %r1, [%rd1];"));
  CHECK(stays("ld.relaxed.gpu.global.u32 %r1, [%rd1];"));
  CHECK(stays("ld.acquire.gpu.global.u32 %r1, [%rd1];"));
  CHECK(stays("atom.global.add.u32 %r1, [%rd1], 1;"));
  CHECK(stays("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"));
  CHECK(stays("vote.sync.any.pred %p1, %p2, -1;"));
  CHECK(stays("activemask.b32 %r1;"));
  CHECK(stays("bar.red.popc.u32 %r1, 0, %p1;"));
  CHECK(stays("bar.sync 0;"));
  CHECK(stays("fence.acq_rel.gpu;"));
  CHECK(stays("st.shared.u32 [tile], 1;"));
  CHECK(stays("add.cc.u32 %r1, %r2, %r3;"));
  CHECK(stays("trap;"));
  CHECK(stays("prefetch.global.L2 [%rd1];"));
  CHECK(stays("ld.global.cv.u32 %r1, [%rd1];"));
  const auto why = [](const char* text) { return reported(kDead, text); };
  const auto sentence = [](const char* reason, const char* text, const char* words) {
    return "-[" + std::string(reason) + "] nothing reads what is written by '" + text + "', but " +
           words + "\n";
  };
  CHECK(why("ld.volatile.global.u32 %r1, [%rd1];") ==
        sentence("volatile", "ld.volatile.global.u32 %r1, [%rd1]",
                 "it does more than its operands show, or must happen as written"));
  CHECK(why("ld.acquire.gpu.global.u32 %r1, [%rd1];") ==
        sentence("ordered", "ld.acquire.gpu.global.u32 %r1, [%rd1]", "it orders memory accesses"));
  CHECK(why("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;") ==
        sentence("convergent", "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1",
                 "lanes execute it together and the others may need this one"));
  CHECK(why("bar.red.popc.u32 %r1, 0, %p1;") ==
        sentence("barrier", "bar.red.popc.u32 %r1, 0, %p1", "other threads wait for it"));
  CHECK(why("ld.global.cv.u32 %r1, [%rd1];") == sentence("fetched-again",
                                                         "ld.global.cv.u32 %r1, [%rd1]",
                                                         "`.cv` asks for the memory to be read"));
  CHECK(why("bra L; add.u32 %r1, %r1, 1; L: mov.pred %p1, 0; @%p1 bar.sync 0;") ==
        "[unreachable] control never reaches 'add.u32 %r1, %r1, 1'\n"
        "[unread] nothing reads what is written by 'mov.pred %p1, 0'\n"
        "[guard-false] the guard never holds of '@%p1 bar.sync 0'\n");
}

TEST_CASE("decided guards and branches go") {
  CHECK(after(kBranch, "mov.pred %p1, 1; @%p1 st.shared.u32 [tile], 1; @!%p1 exit; @%p1 exit;") ==
        "mov.pred %p1, 1;\nst.shared.u32 [tile], 1;\nexit;\n");
  CHECK(after(kBranch, "@%p1 bra L; L: ret;") == "ret;\n");
  CHECK(after(kBranch, "bra.uni L; .loc 1 2 3\nL: ret;").find("bra") == std::string::npos);
  CHECK(after(kBranch,
              "@%p1 bra A; st.shared.u32 [tile], 1; A: bra B; B: bra C; add.u32 %r1, %r1, 1; "
              "C: ret;") ==
        "@%p1 bra C;\nst.shared.u32 [tile], 1;\nbra C;\nbra C;\nadd.u32 %r1, %r1, 1;\nC:\nret;\n");
  CHECK(after(kBranch, "@%p1 bra A; bra B; A: st.shared.u32 [tile], 1; B: ret;") ==
        "@!%p1 bra B;\nst.shared.u32 [tile], 1;\nB:\nret;\n");
  CHECK(after(kBranch, "@%p1 bra B; bra B; A: st.shared.u32 [tile], 1; B: ret;") ==
        "bra B;\nst.shared.u32 [tile], 1;\nB:\nret;\n");
  // Circles of jumps.
  CHECK(after(kBranch, "@%p1 bra A; ret; A: bra B; C: bra A; B: bra C;").find("bra") !=
        std::string::npos);
  CHECK(after(kBranch, "A: bra A;") == "A:\nbra A;\n");
  // A second branch back to the head of a loop is not made.
  CHECK(reported(kBranch, R"(
H:
  @%p1 bra N;
  st.shared.u32 [tile], 1;
N:
  bra H;
)") == "-[loop-latch] '@%p1 bra N' leads to the branch that closes its loop, and lanes may meet "
       "there\n");
  CHECK(after(kBranch, R"(
T: .branchtargets A, B;
  brx.idx 1, T;
A:
  ret;
B:
  exit;
)")
            .find("brx") == std::string::npos);
}

TEST_CASE("branches that must stay as they are") {
  // Another branch reaches the branch that is skipped.
  CHECK(after(kBranch, "@%p1 bra A; C: bra B; A: st.shared.u32 [tile], 1; B: @%p2 bra C; ret;")
            .find("C:\nbra B;\n") != std::string::npos);
  CHECK(reported(kBranch, "brx.idx 1, T; T: .branchtargets A; A: ret;").find("-[index-beyond") ==
        0);
  // The label at the end of the chain belongs to an inner scope.
  CHECK(reported(kBranch, R"(
  @%p1 bra A;
  st.shared.u32 [tile], 1;
A:
  {
  bra L;
  st.shared.u32 [tile], 2;
L:
  st.shared.u32 [tile], 3;
  }
)") == "-[out-of-scope] '@%p1 bra A' leads to a branch whose label cannot be named here\n");
  // Debug sections may name any label.
  ptx::Module module = ptx::parse(R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k()
{
$L__begin:
  ret;
}
.section .debug_info
{
.b64 $L__begin
}
)");
  CHECK_FALSE(run(module, kBranch).changed());
}

TEST_CASE("what the branches say") {
  CHECK(reported(kBranch, "mov.pred %p1, 1; @%p1 st.shared.u32 [tile], 1;") ==
        "[guard-true] '@%p1 st.shared.u32 [tile], 1' had a guard that always holds\n");
  CHECK(reported(kBranch, "mov.pred %p1, 0; @%p1 exit;") ==
        "[never-taken] '@%p1 exit' had a guard that never holds, and went\n");
  CHECK(reported(kBranch, "@%p1 bra L; L: ret;") ==
        "[to-next] '@%p1 bra L' leads to what comes next\n"
        "[unnamed] 'L:' is named by no branch\n");
  CHECK(reported(kBranch, "brx.idx 7, T; T: .branchtargets A; A: ret;")
            .find("-[index-beyond-table] 'brx.idx 7, T' has an index beyond its table, and PTX "
                  "does not "
                  "say where that leads\n") == 0);
}

TEST_CASE("barriers, memory orders and what is not understood stay") {
  const std::string text =
      "st.release.gpu.global.u32 [%rd1], %r1;\nfence.acq_rel.gpu;\n"
      "ld.acquire.gpu.global.u32 %r2, [%rd1];\nbar.sync 0;\nbar.warp.sync -1;\n";
  CHECK(after("cleanup", text) == text);
  ptx::Module module =
      test::kernel("frobnicate.u32 %r1, %r2;\nmov.u32 %r3, 1;\nmov.u32 %r4, %r3;\n");
  const PipelineReport report = run(module, "cleanup");
  CHECK_FALSE(report.changed());
  REQUIRE(report.passes[0].decisions.size() == 1);
  CHECK(report.passes[0].decisions[0].reason == "unknown-instruction");
  CHECK(report.passes[0].decisions[0].message ==
        "'frobnicate.u32 %r1, %r2' is not in the table of instructions and may read or write any "
        "register, so the function stays as it is");
}

TEST_CASE("a call stays though nothing reads its result") {
  ptx::Module module = ptx::parse(R"(.version 8.7
.target sm_90
.address_size 64
.func (.reg .b32 q) f(.reg .b32 x)
{
  mov.u32 q, x;
  ret;
}
.visible .entry k()
{
  .reg .b32 %r<3>;
  mov.u32 %r1, 3;
  call (%r2), f, (%r1);
  ret;
}
)");
  const PipelineReport report = run(module, kDead);
  CHECK_FALSE(report.changed());
  REQUIRE(report.passes[0].decisions.size() == 1);
  CHECK(report.passes[0].decisions[0].reason == "call");
  CHECK(report.passes[0].decisions[0].message ==
        "nothing reads what is written by 'call (%r2), f, (%r1)', but the function that it calls "
        "may do more");
}

TEST_CASE("results of a function in registers are read") {
  ptx::Module module = ptx::parse(R"(.version 8.7
.target sm_90
.address_size 64
.func (.reg .b32 q) f(.reg .b32 x)
{
  .reg .b32 y;
  mov.u32 q, x;
  mov.u32 y, x;
  ret;
}
)");
  run(module, "cleanup");
  CHECK(statements(module, module.functions[0]) == "mov.u32 q, x;\nret;\n");
}
