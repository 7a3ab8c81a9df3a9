// tests/check/race_emulated_test.cpp - small kernels that shared_race and the emulator both
// judge
#include <catch2/catch.hpp>
#include <string>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"
#include "race_generator.hpp"
#include "race_snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// A kernel of 64 threads around a body: %r1 the number of the thread, %r2 the address of its word
/// of `tile` (256 words, all written), %r3 that of `tile`, %r9 is n, %rd1 a word of its own of the
/// input; %p1 whether it is in the first warp.
std::string text_around(const std::string& body) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
.reqntid 64, 1, 1
{
  .reg .pred %p<20>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  .shared .align 16 .b32 tile[256];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, tile;
  mad.lo.u32 %r2, %r1, 4, %r3;
  ld.param.u32 %r9, [n];
  ld.param.u64 %rd1, [in];
  cvta.to.global.u64 %rd1, %rd1;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  setp.lt.u32 %p1, %r1, 32;
  st.shared.u32 [%r2], %r1;
  st.shared.u32 [%r2+256], %r1;
  st.shared.u32 [%r2+512], %r1;
  st.shared.u32 [%r2+768], %r1;
  bar.sync 0;
)" + body +
         "  ret;\n}\n";
}

std::string gate(const std::string& body) {
  const ptx::Module module = ptx::parse(text_around(body));
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity == Severity::Error) FAIL(to_text(finding));
  }
  return summary(gates::shared_race(module));
}

/// Whether a launch of one block with that n races.
bool raced(const std::string& body, std::uint32_t n) {
  return !emulated_races({text_around(body), {64, 1, 1}, n}, 5).empty();
}

}  // namespace

TEST_CASE("where some only arrive at a barrier, those who wait there meet no one after it") {
  const auto handed_over = [](const std::string& first) {
    return "  @%p1 bra FIRST;\n  bar.sync 1, 64;\n  ld.shared.u32 %r4, [%r2+-128];\n  bra END;\n"
           "FIRST:\n" +
           first + "END:\n";
  };
  const std::string late = handed_over("  bar.arrive 1, 64;\n  st.shared.u32 [%r2], %r9;\n");
  CHECK(raced(late, 5));
  CHECK_FALSE(gate(late).empty());
  const std::string waits = handed_over("  st.shared.u32 [%r2], %r9;\n  bar.sync 1, 64;\n");
  CHECK_FALSE(raced(waits, 5));
  CHECK(gate(waits).empty());
}

TEST_CASE("threads that left different barriers may meet") {
  const std::string arms =
      "  @%p1 bra FIRST;\n  bar.sync 0;\n  ld.shared.u32 %r4, [%r2+-128];\n  bra END;\n"
      "FIRST:\n  bar.sync 0;\n  st.shared.u32 [%r2], %r9;\nEND:\n";
  CHECK(raced(arms, 5));
  CHECK_FALSE(gate(arms).empty());
}

TEST_CASE("what each thread loaded shifts the words of each by something else") {
  const std::string shifted =
      "  ld.global.u32 %r5, [%rd1];\n  and.b32 %r5, %r5, 63;\n  mad.lo.u32 %r6, %r5, 4, %r2;\n"
      "  st.shared.u32 [%r6], %r1;\n";
  CHECK(raced(shifted, 5));
  CHECK_FALSE(gate(shifted).empty());
  const std::string squared =
      "  ld.global.u32 %r5, [%rd1];\n  and.b32 %r5, %r5, 63;\n  mul.lo.u32 %r5, %r5, %r9;\n"
      "  mad.lo.u32 %r6, %r5, 4, %r2;\n  st.shared.u32 [%r6], %r1;\n";
  CHECK(raced(squared, 1));
  CHECK_FALSE(gate(squared).empty());
}

TEST_CASE("a size among the parameters moves the words of one warp onto those of the other") {
  const std::string moved =
      "  shr.u32 %r5, %r1, 5;\n  mad.lo.u32 %r5, %r5, %r9, %r1;\n"
      "  mad.lo.u32 %r6, %r5, 4, %r3;\n  st.shared.u32 [%r6], %r1;\n";
  CHECK(raced(moved, 0u - 32));
  CHECK_FALSE(gate(moved).empty());
}

TEST_CASE("only threads that go on are in the last iteration of a loop") {
  // The word of element i in 8 columns with a pitch of 17 words.
  const auto word = [](const std::string& i) {
    return "  shr.u32 %r5, " + i + ", 3;\n  and.b32 %r6, " + i +
           ", 7;\n  mad.lo.u32 %r5, %r6, 17, %r5;\n  mad.lo.u32 %r7, %r5, 4, %r3;\n";
  };
  const auto fill = [&](const std::string& bound) {
    return "  mov.u32 %r8, %r1;\nLOOP:\n" + word("%r8") +
           "  st.shared.u32 [%r7], %r1;\n  add.u32 %r8, %r8, 64;\n"
           "  setp.lt.u32 %p2, %r8, " +
           bound + ";\n  @%p2 bra LOOP;\n  add.u32 %r8, %r1, 100;\n  setp.lt.u32 %p2, %r1, 28;\n" +
           word("%r8") + "  @%p2 st.shared.u32 [%r7], %r9;\n";
  };
  CHECK_FALSE(raced(fill("100"), 5));
  CHECK(gate(fill("100")) == "");
  CHECK(raced(fill("101"), 5));
  CHECK_FALSE(gate(fill("101")).empty());
}

namespace {

/// Threads write their words of one of three buffers in turn, and read another's, four times.
const std::string kFourTimes = R"(  mov.u32 %r5, 0;
LOOP:
  rem.u32 %r6, %r5, 3;
  mad.lo.u32 %r7, %r6, 256, %r2;
  st.shared.u32 [%r7], %r1;
  bar.sync 0;
  xor.b32 %r8, %r1, 32;
  mad.lo.u32 %r8, %r8, 4, %r3;
  mad.lo.u32 %r8, %r6, 256, %r8;
  ld.shared.u32 %r4, [%r8];
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p2, %r5, 4;
  @%p2 bra LOOP;
)";

}  // namespace

TEST_CASE("after its last round a loop does not begin again by itself") {
  CHECK_FALSE(raced(kFourTimes, 5));
  CHECK(gate(kFourTimes) == "");
}

TEST_CASE("a loop around a loop begins it again") {
  const std::string again = "  mov.u32 %r10, 0;\nAGAIN:\n" + kFourTimes +
                            "  add.u32 %r10, %r10, 1;\n  setp.lt.u32 %p3, %r10, %r9;\n"
                            "  @%p3 bra AGAIN;\n";
  CHECK(raced(again, 2));
  CHECK_FALSE(gate(again).empty());
}

TEST_CASE("rounds of two loops have nothing to do with each other") {
  // The first loop is left with a write to one of two buffers; the second reads both.
  const auto loops = [](const std::string& barrier) {
    return "  mov.u32 %r5, 0;\nFIRST:\n  and.b32 %r6, %r5, 1;\n  mad.lo.u32 %r7, %r6, 256, %r2;\n"
           "  bar.sync 0;\n  st.shared.u32 [%r7], %r1;\n  setp.ge.u32 %p2, %r5, %r9;\n"
           "  @%p2 bra OUT;\n  bar.sync 0;\n  add.u32 %r5, %r5, 1;\n  bra FIRST;\nOUT:\n" +
           barrier +
           "  xor.b32 %r8, %r1, 32;\n  mad.lo.u32 %r8, %r8, 4, %r3;\n  mov.u32 %r5, 0;\nSECOND:\n"
           "  add.u32 %r6, %r5, 1;\n  and.b32 %r6, %r6, 1;\n  mad.lo.u32 %r7, %r6, 256, %r8;\n"
           "  ld.shared.u32 %r4, [%r7];\n  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p3, %r5, 2;\n"
           "  @%p3 bra SECOND;\n";
  };
  CHECK(raced(loops(""), 0));
  CHECK_FALSE(gate(loops("")).empty());
  CHECK_FALSE(raced(loops("  bar.sync 0;\n"), 0));
  CHECK(gate(loops("  bar.sync 0;\n")) == "");
}

TEST_CASE("what did not race in any launch is not proved") {
  const auto possible = [](const std::string& body) {
    const std::string text = gate(body);
    INFO(text);
    CHECK(has(text, "warning: "));
    CHECK_FALSE(has(text, "error: "));
    for (const std::uint32_t n : {4096u, 7u, 1u, 0u}) CHECK_FALSE(raced(body, n));
  };
  // A way around the barrier of the warp that no thread takes.
  possible(
      "  shl.b32 %r5, %r9, 1;\n  and.b32 %r5, %r5, 1;\n  setp.ne.u32 %p2, %r5, 0;\n"
      "  xor.b32 %r6, %r1, 1;\n  mad.lo.u32 %r6, %r6, 4, %r3;\n  st.shared.u32 [%r2], %r1;\n"
      "  @%p2 bra PAST;\n  bar.warp.sync 0xffffffff;\nPAST:\n  ld.shared.u32 %r4, [%r6];\n");
  // One value by two ways.
  possible(
      "  mov.u32 %r5, 7;\n  setp.eq.u32 %p2, %r1, 0;\n  setp.eq.u32 %p3, %r1, 32;\n"
      "  @%p2 st.shared.u32 [tile], %r5;\n  @%p3 st.shared.u32 [tile], 7;\n");
}

TEST_CASE("a product of two loops' counters is not that of their first rounds") {
  const auto loops = [](const std::string& factor) {
    return "  mov.u32 %r5, 0;\nOUTER:\n  mov.u32 %r6, 0;\nINNER:\n  and.b32 %r7, %r5, 1;\n"
           "  and.b32 %r8, %r6, 1;\n  mul.lo.u32 %r7, %r7, %r8;\n  mad.lo.u32 %r7, %r7, " +
           factor +
           ", %r2;\n  st.shared.u32 [%r7], %r1;\n  add.u32 %r6, %r6, 1;\n"
           "  setp.lt.u32 %p2, %r6, 2;\n  @%p2 bra INNER;\n  add.u32 %r5, %r5, 1;\n"
           "  setp.lt.u32 %p2, %r5, 2;\n  @%p2 bra OUTER;\n  xor.b32 %r8, %r1, 32;\n"
           "  mad.lo.u32 %r8, %r8, 4, %r3;\n  ld.shared.u32 %r4, [%r8+256];\n";
  };
  CHECK(raced(loops("256"), 5));
  CHECK_FALSE(gate(loops("256")).empty());
  CHECK_FALSE(raced(loops("512"), 5));
  CHECK(gate(loops("512")) == "");
}

TEST_CASE("a test that some rounds pass by ends no loop") {
  const auto loop = [](const std::string& around) {
    return "  mov.u32 %r5, 0;\nLOOP:\n  mad.lo.u32 %r7, %r5, 256, %r2;\n"
           "  st.shared.u32 [%r7], %r1;\n" +
           around +
           "  setp.ge.u32 %p3, %r5, 2;\n  @%p3 bra OUT;\nPAST:\n  add.u32 %r5, %r5, 1;\n"
           "  setp.lt.u32 %p4, %r5, 4;\n  @%p4 bra LOOP;\nOUT:\n  xor.b32 %r8, %r1, 32;\n"
           "  mad.lo.u32 %r8, %r8, 4, %r3;\n  ld.shared.u32 %r4, [%r8+768];\n";
  };
  const std::string past = loop("  setp.gt.u32 %p2, %r9, 5;\n  @%p2 bra PAST;\n");
  CHECK(raced(past, 9));
  CHECK_FALSE(gate(past).empty());
  CHECK_FALSE(raced(loop(""), 9));
  CHECK(gate(loop("")) == "");
}

TEST_CASE("after one barrier some threads begin the next round, some stay in theirs") {
  // One of two buffers is written, the other one read; the first warp stays in the first round
  // once.
  const auto loop = [](const std::string& stays) {
    return "  mov.u32 %r5, 0;\n  mov.u32 %r10, 0;\n  xor.b32 %r8, %r1, 32;\n"
           "  mad.lo.u32 %r8, %r8, 4, %r3;\nROUND:\n  and.b32 %r6, %r5, 1;\n"
           "  mad.lo.u32 %r7, %r6, 256, %r2;\n  xor.b32 %r6, %r6, 1;\n"
           "  mad.lo.u32 %r11, %r6, 256, %r8;\nAGAIN:\n  st.shared.u32 [%r7], %r1;\n"
           "  ld.shared.u32 %r4, [%r11];\n  bar.sync 0;\n  add.u32 %r10, %r10, 1;\n"
           "  setp.ge.u32 %p2, %r10, 4;\n  @%p2 bra END;\n  setp.eq.and.u32 %p3, %r10, 1, " +
           stays + ";\n  @%p3 bra AGAIN;\n  add.u32 %r5, %r5, 1;\n  bra ROUND;\nEND:\n";
  };
  CHECK(raced(loop("%p1"), 5));
  CHECK_FALSE(gate(loop("%p1")).empty());
}

TEST_CASE("the remainder of a product comes back as that of its counter does") {
  const auto loop = [](const std::string& read) {
    return "  shr.u32 %r10, %r1, 5;\n  mov.u32 %r5, 0;\nLOOP:\n  mul.lo.u32 %r6, %r5, %r10;\n"
           "  and.b32 %r6, %r6, 1;\n  mad.lo.u32 %r7, %r6, 256, %r2;\n"
           "  st.shared.u32 [%r7], %r1;\n  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p2, %r5, %r9;\n"
           "  @%p2 bra LOOP;\n  xor.b32 %r8, %r1, 32;\n  mad.lo.u32 %r8, %r8, 4, %r3;\n"
           "  ld.shared.u32 %r4, [%r8+" +
           read + "];\n";
  };
  CHECK(raced(loop("256"), 5));
  CHECK_FALSE(gate(loop("256")).empty());
  CHECK_FALSE(raced(loop("512"), 5));
  CHECK(gate(loop("512")) == "");
}

TEST_CASE("threads that left different barriers may be in different rounds") {
  // In each step one warp writes one of two buffers and stays in its round, the other one reads the
  // other buffer and goes on to the next round.
  const std::string steps = R"(  mov.u32 %r5, 0;
  mov.u32 %r10, 0;
  shr.u32 %r12, %r1, 5;
  xor.b32 %r8, %r1, 32;
  mad.lo.u32 %r8, %r8, 4, %r3;
ROUND:
  and.b32 %r6, %r5, 1;
  mad.lo.u32 %r7, %r6, 256, %r2;
  xor.b32 %r6, %r6, 1;
  mad.lo.u32 %r11, %r6, 256, %r8;
STEP:
  setp.ge.u32 %p2, %r10, 2;
  @%p2 bra END;
  setp.eq.u32 %p3, %r12, %r10;
  add.u32 %r10, %r10, 1;
  @%p3 bra WRITES;
  bar.sync 0;
  ld.shared.u32 %r4, [%r11];
  bar.sync 0;
  add.u32 %r5, %r5, 1;
  bra ROUND;
WRITES:
  bar.sync 0;
  st.shared.u32 [%r7], %r1;
  bar.sync 0;
  bra STEP;
END:
)";
  CHECK(raced(steps, 5));
  CHECK_FALSE(gate(steps).empty());
}

TEST_CASE("threads that left a loop after different rounds do not agree on what it left behind") {
  const auto left = [](const std::string& in_loop) {
    return "  shr.u32 %r10, %r1, 5;\n  mov.u32 %r5, 0;\nLOOP:\n" + in_loop +
           "  add.u32 %r5, %r5, 1;\n  setp.le.u32 %p2, %r5, %r10;\n  @%p2 bra LOOP;\n"
           "  bar.sync 0;\n  mad.lo.u32 %r7, %r6, 256, %r2;\n  xor.b32 %r8, %r1, 32;\n"
           "  mad.lo.u32 %r8, %r8, 4, %r3;\n  mad.lo.u32 %r8, %r6, 256, %r8;\n"
           "  st.shared.u32 [%r7], %r1;\n  ld.shared.u32 %r4, [%r8+256];\n";
  };
  for (const char* in_loop :
       {"  mov.u32 %r6, %r5;\n", "  and.b32 %r6, %r5, 1;\n", "  popc.b32 %r6, %r5;\n",
        "  min.u32 %r6, %r5, %r9;\n", "  mul.lo.u32 %r6, %r5, %r5;\n"}) {
    INFO(in_loop);
    CHECK(raced(left(in_loop), 5));
    CHECK_FALSE(gate(left(in_loop)).empty());
  }
}

TEST_CASE("what a loop counted up to says who comes here, if all left it together") {
  const auto either = [](const std::string& bound) {
    return "  shr.u32 %r10, %r1, 5;\n  mov.u32 %r5, 0;\nLOOP:\n  setp.lt.u32 %p3, %r5, 1;\n"
           "  add.u32 %r5, %r5, 1;\n  setp.le.u32 %p2, %r5, " +
           bound +
           ";\n  @%p2 bra LOOP;\n  bar.sync 0;\n  xor.b32 %r8, %r1, 32;\n"
           "  mad.lo.u32 %r8, %r8, 4, %r3;\n  @%p3 st.shared.u32 [%r2], %r1;\n"
           "  @!%p3 ld.shared.u32 %r4, [%r8];\n";
  };
  CHECK(raced(either("%r10"), 5));
  CHECK_FALSE(gate(either("%r10")).empty());
  CHECK_FALSE(raced(either("%r9"), 5));
  CHECK(gate(either("%r9")) == "");
}

TEST_CASE("two buffers in turn that are not touched in the first rounds") {
  const std::string late = R"(  xor.b32 %r8, %r1, 32;
  mad.lo.u32 %r8, %r8, 4, %r3;
  mov.u32 %r5, 0;
LOOP:
  and.b32 %r6, %r5, 1;
  mad.lo.u32 %r7, %r6, 256, %r2;
  mad.lo.u32 %r10, %r6, 256, %r8;
  setp.ge.u32 %p2, %r5, 2;
  @%p2 st.shared.u32 [%r7], %r1;
  ld.shared.u32 %r4, [%r10];
  bar.sync 0;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, %r9;
  @%p3 bra LOOP;
)";
  CHECK_FALSE(raced(late, 2));
  CHECK(raced(late, 3));
  CHECK_FALSE(gate(late).empty());
  // After a loop of four rounds.
  const std::string after = R"(  mov.u32 %r5, 0;
LOOP:
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, 4;
  @%p3 bra LOOP;
  and.b32 %r6, %r5, 1;
  mad.lo.u32 %r7, %r6, 256, %r2;
  st.shared.u32 [%r7], %r1;
  xor.b32 %r8, %r1, 32;
  mad.lo.u32 %r8, %r8, 4, %r3;
  ld.shared.u32 %r4, [%r8];
)";
  CHECK(raced(after, 5));
  CHECK_FALSE(gate(after).empty());
}
