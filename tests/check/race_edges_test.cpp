// tests/check/race_edges_test.cpp - edges of what orders accesses and where they go
#include <catch2/catch.hpp>
#include <string>

#include "race_snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// %r1 the number of the thread, %r2 the address of its word of `tile`, %r9 and %rd1 parameters.
const std::string kOwn = R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r1, 4, %r2;
  ld.param.u32 %r9, [n];
  ld.param.u64 %rd1, [a];
)";
const std::string kWrite = "  st.shared.u32 [%r2], %r1;\n";
const std::string kReadNext = "  ld.shared.u32 %r3, [%r2+4];\n";

}  // namespace

TEST_CASE("a barrier whose number threads disagree about orders nothing") {
  CHECK(races_in(kOwn + "  and.b32 %r5, %r9, 7;\n" + kWrite + "  bar.sync %r5;\n" + kReadNext)
            .empty());
  CHECK_FALSE(races_in(kOwn + "  and.b32 %r5, %r1, 1;\n" + kWrite + "  bar.sync %r5;\n" + kReadNext)
                  .empty());
}

TEST_CASE("where threads may arrive at any barrier without waiting, none orders") {
  CHECK_FALSE(
      races_in(kOwn + kWrite + "  bar.sync 0;\n" + kReadNext + "  bar.arrive %r9, 64;\n").empty());
  CHECK_FALSE(
      races_in(kOwn + kWrite + "  bar.sync 1;\n" + kReadNext + "  bar.arrive 1, 64;\n").empty());
  CHECK_FALSE(
      races_in(kOwn + kWrite + "  bar.sync %r9;\n" + kReadNext + "  bar.arrive 1, 64;\n").empty());
  // At others they may.
  CHECK(races_in(kOwn + kWrite + "  bar.sync 0;\n" + kReadNext + "  bar.arrive 1, 64;\n").empty());
}

TEST_CASE("after the barriers of two arms is one place in time") {
  const std::string arms = R"(  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra WRITES;
  barrier.sync 0;
  ld.shared.u32 %r3, [tile];
  bra DONE;
WRITES:
  barrier.sync 0;
  st.shared.u32 [%r2], %r1;
DONE:
)";
  // The two may be barriers of other rounds, as far as counting goes, so that nothing is proved.
  const std::string text = races_in(kOwn + arms);
  CHECK(has(text, "warning: this write and the read at line 24"));
  CHECK_FALSE(has(text, "error: "));
}

TEST_CASE("a copy writes as many bytes as it says") {
  const auto copies = [](const std::string& pitch) {
    return races_in(kOwn + "  mov.u32 %r6, tile;\n  mad.lo.u32 %r6, %r1, " + pitch +
                    ", %r6;\n  cp.async.cg.shared.global [%r6], [%rd1], 16;\n"
                    "  cp.async.wait_all;\n");
  };
  CHECK(copies("16").empty());
  CHECK_FALSE(copies("8").empty());
}

TEST_CASE("a wait under a guard waits for nothing") {
  const auto copy = [](const std::string& guard) {
    return races_in(kOwn +
                    "  setp.gt.u32 %p1, %r9, 3;\n  cp.async.ca.shared.global [%r2], [%rd1], 4;\n" +
                    guard + "cp.async.wait_all;\n  bar.sync 0;\n" + kReadNext);
  };
  CHECK(copy("  ").empty());
  CHECK_FALSE(copy("  @%p1 ").empty());
}

TEST_CASE("ldmatrix reads the rows that its first lanes name") {
  const auto read = [](const std::string& count, const std::string& result) {
    return races_in(kOwn +
                    "  mov.u32 %r6, tile;\n  mad.lo.u32 %r6, %r1, 16, %r6;\n"
                    "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 st.shared.u32 [tile+128], 7;\n"
                    "  ldmatrix.sync.aligned.m8n8." +
                    count + ".shared.b16 {" + result + "}, [%r6];\n");
  };
  CHECK(read("x1", "%r10").empty());
  CHECK_FALSE(read("x2", "%r10, %r11").empty());
}

TEST_CASE("generic pointers point to shared memory only if some are made of its addresses") {
  const std::string result =
      "  mov.u64 %rd2, tile;\n  cvta.shared.u64 %rd2, %rd2;\n  st.u32 [%rd2], %r1;\n";
  CHECK_FALSE(races_in(kOwn + result).empty());
  const std::string parameter = "  st.u32 [%rd1], %r1;\n";
  CHECK(races_in(kOwn + parameter + kWrite).empty());
  const std::string loaded = "  ld.global.u64 %rd3, [%rd1];\n  st.u32 [%rd3], %r1;\n";
  CHECK(races_in(kOwn + loaded).empty());
  CHECK_FALSE(races_in(kOwn + result.substr(0, result.find("  st")) + loaded).empty());
  // What comes from a parameter points elsewhere, whatever else is made.
  CHECK(
      races_in(kOwn + "  mov.u64 %rd2, tile;\n  cvta.shared.u64 %rd2, %rd2;\n" + parameter + kWrite)
          .empty());
  // An access that says .shared points there wherever its address came from.
  CHECK_FALSE(races_in(kOwn + "  st.shared.u32 [%rd1], %r1;\n").empty());
}

TEST_CASE("a call does what the functions do that its function calls, and what those call") {
  const ptx::Module module = ptx::parse(
      ".version 8.7\n.target sm_90\n.address_size 64\n.shared .b32 s[64];\n"
      ".func h()\n{\n  .reg .b32 %r<4>;\n  ld.shared.u32 %r1, [s];\n  ret;\n}\n"
      ".func g()\n{\n  call h, ();\n  ret;\n}\n"
      ".func f()\n{\n  call g, ();\n  ret;\n}\n"
      ".visible .entry k()\n.reqntid 64, 1, 1\n{\n  .reg .b32 %r<4>;\n  mov.u32 %r1, %tid.x;\n"
      "  st.shared.u32 [s], %r1;\n  bar.sync 0;\n  st.shared.u32 [s], 1;\n  call f, ();\n"
      "  ret;\n}\n");
  CHECK(has(summary(gates::shared_race(module)), "this write and the read at line"));
}

TEST_CASE("one value for all threads is the same only if it is written once") {
  CHECK(has(races_in(kOwn + "  st.shared.u32 [tile], %r9;\n"), "note: "));
  const std::string rounds = races_in(kOwn +
                                      "  mov.u32 %r5, 0;\nLOOP:\n  st.shared.u32 [tile], %r5;\n"
                                      "  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p1, %r5, %r9;\n"
                                      "  @%p1 bra LOOP;\n");
  CHECK_FALSE(rounds.empty());
  CHECK_FALSE(has(rounds, "note: "));
  const std::string two = races_in(kOwn +
                                   "  add.u32 %r5, %r9, 1;\n  setp.eq.u32 %p1, %r1, 0;\n"
                                   "  setp.eq.u32 %p2, %r1, 1;\n  @%p1 st.shared.u32 [tile], %r9;\n"
                                   "  @%p2 st.shared.u32 [tile], %r5;\n");
  CHECK(has(two, "error: thread (0,0,0) writes bytes 0..3 of 'tile', and thread (1,0,0) writes"));
}

TEST_CASE("a value that may differ between threads is not one value") {
  const auto stored = [](const std::string& value) {
    const std::string text = races_in(kOwn + value + "  st.shared.u32 [tile], %r3;\n");
    INFO(value << text);
    CHECK(has(text, "error: thread (0,0,0) writes bytes 0..3 of 'tile', and by the same"));
    CHECK_FALSE(has(text, "note: "));
  };
  CHECK(has(races_in(kOwn + "  ld.global.u32 %r3, [%rd1];\n  st.shared.u32 [tile], %r3;\n"),
            "note: "));
  stored("  ld.volatile.global.u32 %r3, [%rd1];\n");
  stored("  atom.global.add.u32 %r3, [%rd1], 1;\n");
  stored("  mov.u32 %r3, %clock;\n");
  // One register, written on two paths of which some threads take one and some the other.
  stored(
      "  mov.u32 %r3, %r9;\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra SKIP;\n"
      "  add.u32 %r3, %r9, 1;\nSKIP:\n");
}

TEST_CASE("all variables without a size begin at one place") {
  const ptx::Module module = ptx::parse(
      ".version 8.7\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 x[];\n"
      ".extern .shared .align 16 .b8 y[];\n.visible .entry k()\n.reqntid 64, 1, 1\n{\n"
      "  .reg .b32 %r<9>;\n  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, x;\n"
      "  mad.lo.u32 %r2, %r1, 4, %r2;\n  st.shared.u32 [%r2], %r1;\n  mov.u32 %r3, y;\n"
      "  mad.lo.u32 %r3, %r1, 4, %r3;\n  ld.shared.u32 %r4, [%r3+4];\n  ret;\n}\n");
  CHECK_FALSE(summary(gates::shared_race(module)).empty());
}

TEST_CASE("that two conditions do not hold together says nothing about either") {
  CHECK_FALSE(races_in(kOwn + "  setp.lt.u32 %p1, %r1, 63;\n  setp.gt.u32 %p2, %r9, 5;\n"
                              "  and.pred %p3, %p1, %p2;\n  @!%p3 st.shared.u32 [tile], %r1;\n")
                  .empty());
  CHECK(races_in(kOwn + "  setp.lt.u32 %p1, %r1, 63;\n  setp.gt.u32 %p2, %r9, 5;\n"
                        "  or.pred %p3, %p1, %p2;\n  @!%p3 st.shared.u32 [tile], %r1;\n")
            .empty());
}

TEST_CASE("three buffers in turn are not followed: a counter that wraps breaks the turn") {
  CHECK_FALSE(races_in(kOwn + "  mov.u32 %r5, 0;\nLOOP:\n  rem.u32 %r6, %r5, 3;\n"
                              "  mad.lo.u32 %r7, %r6, 256, %r2;\n  st.shared.u32 [%r7], %r1;\n"
                              "  bar.sync 0;\n  xor.b32 %r8, %r1, 1;\n  mov.u32 %r10, tile;\n"
                              "  mad.lo.u32 %r8, %r8, 4, %r10;\n  mad.lo.u32 %r8, %r6, 256, %r8;\n"
                              "  ld.shared.u32 %r3, [%r8];\n  add.u32 %r5, %r5, 1;\n"
                              "  setp.lt.u32 %p1, %r5, %r9;\n  @%p1 bra LOOP;\n")
                  .empty());
}

TEST_CASE("iterations of a loop are compared as far apart as its barrier lets threads be") {
  // Row j is written, and row 2 - j read after the barrier, for j from 0 to 2.
  const std::string loop = R"(  mov.u32 %r5, 0;
LOOP:
  mad.lo.u32 %r6, %r5, 256, %r2;
  st.shared.u32 [%r6], %r1;
  bar.sync 0;
  xor.b32 %r7, %r1, 1;
  mov.u32 %r8, tile;
  mad.lo.u32 %r7, %r7, 4, %r8;
  sub.u32 %r8, 2, %r5;
  mad.lo.u32 %r7, %r8, 256, %r7;
  ld.shared.u32 %r3, [%r7];
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, 3;
  @%p1 bra LOOP;
)";
  CHECK(races_in(kOwn + loop).empty());
  // With a loop around it, row 0 is written again while the last round of before reads it.
  CHECK_FALSE(races_in(kOwn + "  mov.u32 %r10, 0;\nOUTER:\n" + loop +
                       "  add.u32 %r10, %r10, 1;\n  setp.lt.u32 %p2, %r10, %r9;\n"
                       "  @%p2 bra OUTER;\n")
                  .empty());
}

TEST_CASE("a test that some rounds pass by ends nothing for certain") {
  // Up to 100 all words are others, and up to 400 they come again.
  const auto rounds = [](const std::string& guard) {
    return races_in(R"(  ld.param.u32 %r10, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r9, tile;
  setp.gt.u32 %p3, %r10, 5;
LOOP:
  rem.u32 %r4, %r1, 100;
  mad.lo.u32 %r5, %r4, 4, %r9;
  st.shared.u32 [%r5], %r1;
  add.u32 %r1, %r1, 64;
)" + guard + R"(  setp.ge.u32 %p1, %r1, 100;
  @%p1 bra DONE;
SKIP:
  setp.lt.u32 %p2, %r1, 400;
  @%p2 bra LOOP;
DONE:
)");
  };
  CHECK(rounds("").empty());
  CHECK_FALSE(rounds("  @%p3 bra SKIP;\n").empty());
}

TEST_CASE("rounds of two loops are not followed side by side") {
  CHECK_FALSE(races_in(kOwn + R"(  mov.u32 %r5, 0;
ONE:
  mad.lo.u32 %r6, %r5, 256, %r2;
  st.shared.u32 [%r6], %r1;
  bar.sync 0;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, 3;
  @%p1 bra ONE;
  xor.b32 %r7, %r1, 1;
  mov.u32 %r8, tile;
  mad.lo.u32 %r7, %r7, 4, %r8;
  mov.u32 %r5, 0;
TWO:
  mad.lo.u32 %r8, %r5, 256, %r7;
  ld.shared.u32 %r3, [%r8];
  bar.sync 0;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, 3;
  @%p1 bra TWO;
)")
                  .empty());
}

TEST_CASE("threads that have left a loop access nothing in its later rounds") {
  const auto fill = [](const std::string& columns) {
    return races_in(R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r9, tile;
LOOP:
  rem.u32 %r4, %r1, )" +
                    columns + R"(;
  mad.lo.u32 %r5, %r4, 4, %r9;
  st.shared.u32 [%r5], %r1;
  add.u32 %r1, %r1, 64;
  setp.lt.u32 %p1, %r1, 100;
  @%p1 bra LOOP;
)");
  };
  CHECK(fill("100").empty());
  CHECK_FALSE(fill("99").empty());
}

TEST_CASE("a number that each thread has another multiple of") {
  CHECK_FALSE(races_in(kOwn + "  mad.lo.u32 %r5, %r1, %r9, %r1;\n  mov.u32 %r6, tile;\n"
                              "  mad.lo.u32 %r6, %r5, 4, %r6;\n  st.shared.u32 [%r6], %r1;\n")
                  .empty());
}

TEST_CASE("a counter times a number of the thread comes back as often as the counter does") {
  const auto rounds = [](const std::string& row) {
    return races_in(kOwn +
                    "  mov.u32 %r5, 0;\nLOOP:\n  mul.lo.u32 %r6, %r5, %r1;\n"
                    "  and.b32 %r6, %r6, 1;\n  mad.lo.u32 %r7, %r6, 256, %r2;\n"
                    "  st.shared.u32 [%r7], %r1;\n  xor.b32 %r8, %r1, 1;\n  mov.u32 %r10, tile;\n"
                    "  mad.lo.u32 %r8, %r8, 4, %r10;\n  mad.lo.u32 %r8, %r6, 256, %r8;\n"
                    "  ld.shared.u32 %r3, [%r8+" +
                    row +
                    "];\n  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p1, %r5, %r9;\n  @%p1 bra LOOP;\n");
  };
  CHECK(rounds("512").empty());
  CHECK_FALSE(rounds("256").empty());
}

TEST_CASE("what each thread has loaded is another number for each") {
  CHECK_FALSE(races_in(kOwn + "  mad.wide.u32 %rd2, %r1, 4, %rd1;\n  ld.global.u32 %r5, [%rd2];\n"
                              "  mad.lo.u32 %r6, %r5, 4, %r2;\n  st.shared.u32 [%r6], %r1;\n")
                  .empty());
  CHECK(races_in(kOwn + "  mad.lo.u32 %r6, %r9, 4, %r2;\n  st.shared.u32 [%r6], %r1;\n").empty());
}

TEST_CASE("what is not known of two threads leaves a race possible, not proved") {
  const auto possible = [](const std::string& body) {
    const std::string text = races_in(kOwn + body);
    INFO(text);
    CHECK(has(text, "warning: "));
    CHECK_FALSE(has(text, "error: "));
  };
  // A fence may order one after the other.
  possible(kWrite + "  membar.cta;\n" + kReadNext);
  // A barrier that is passed or not.
  possible("  ld.global.u32 %r5, [%rd1];\n  setp.gt.u32 %p1, %r5, 3;\n" + kWrite +
           "  @%p1 bar.sync 2;\n" + kReadNext);
  // An address that was loaded, in a register that held a constant before.
  possible(
      "  mov.u32 %r5, 0;\n  ld.global.u32 %r5, [%rd1];\n  mov.u32 %r6, tile;\n"
      "  mad.lo.u32 %r6, %r5, 4, %r6;\n" +
      kWrite + "  ld.shared.u32 %r3, [%r6];\n");  // Two threads that write one number, which only
                                                  // running them tells.
  possible(
      "  mov.u32 %r5, 3;\n  add.u32 %r5, %r5, 4;\n  mov.u32 %r6, 7;\n"
      "  setp.eq.u32 %p1, %r1, 0;\n  setp.eq.u32 %p2, %r1, 1;\n"
      "  @%p1 st.shared.u32 [tile], %r5;\n  @%p2 st.shared.u32 [tile], %r6;\n");
  // A barrier of the warp that is passed unless a parameter has one value.
  possible(kWrite +
           "  setp.eq.u32 %p1, %r9, 12345;\n  @%p1 bra SKIP;\n"
           "  bar.warp.sync 0xffffffff;\nSKIP:\n  xor.b32 %r5, %r1, 1;\n  mov.u32 %r6, tile;\n"
           "  mad.lo.u32 %r6, %r5, 4, %r6;\n  ld.shared.u32 %r3, [%r6];\n");
  // Arms with a barrier each, of two numbers: no launch gets past them.
  possible(
      "  setp.lt.u32 %p1, %r1, 32;\n  @%p1 bra FIRST;\n  bar.sync 1;\n"
      "  st.shared.u32 [%r2], %r1;\n  bra END;\nFIRST:\n  bar.sync 2;\n"
      "  ld.shared.u32 %r3, [%r2+128];\nEND:\n");
}

// Ranges of symbols -------------------------------------------------------------------------------

namespace {

/// %r5 the number of iterations, %r8 the word of the thread opposite. Threads write bytes 768..1023
/// and read 256 bytes of the loop's iteration.
std::string bounded_loop(const std::string& count, const std::string& test = "lt.u32") {
  return kOwn + count + R"(  sub.u32 %r8, 63, %r1;
  mov.u32 %r7, tile;
  mad.lo.u32 %r7, %r8, 4, %r7;
  st.shared.u32 [%r2+768], %r1;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 bra DONE;
  mov.u32 %r6, 0;
LOOP:
  ld.shared.u32 %r3, [%r7];
  add.u32 %r7, %r7, 256;
  add.u32 %r6, %r6, 1;
  setp.)" +
         test +
         R"( %p2, %r6, %r5;
  @%p2 bra LOOP;
DONE:
)";
}

/// Rows of `pitch` bytes; of each, threads write their words of `inner` times 256 bytes.
std::string rows_of_words(const std::string& pitch, const std::string& inner,
                          const std::string& guard = {}) {
  return kOwn + R"(  min.u32 %r5, %r9, 2;
  setp.eq.u32 %p1, %r5, 0;
  @%p1 bra DONE;
)" + inner +
         R"(  mov.u32 %r6, 0;
ROW:
  mad.lo.u32 %r7, %r6, )" +
         pitch + R"(, %r2;
  mov.u32 %r8, 0;
WORD:
  mad.lo.u32 %r11, %r8, 256, %r7;
)" + guard +
         R"(  st.shared.u32 [%r11], %r1;
SKIP:
  add.u32 %r8, %r8, 1;
  setp.lt.u32 %p2, %r8, %r10;
  @%p2 bra WORD;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p3, %r6, %r5;
  @%p3 bra ROW;
DONE:
)";
}

}  // namespace

TEST_CASE("a loop that ends at a smaller one of two numbers is bounded by either") {
  CHECK(races_in(bounded_loop("  min.u32 %r5, %r9, 3;\n")) == "");
  CHECK_FALSE(races_in(bounded_loop("  min.u32 %r5, %r9, 4;\n")).empty());
  CHECK_FALSE(races_in(bounded_loop("  mov.u32 %r5, %r9;\n")).empty());
  CHECK(races_in(bounded_loop("  and.b32 %r5, %r9, 3;\n")) == "");
  // The last iteration is the one with the number itself.
  CHECK(races_in(bounded_loop("  min.u32 %r5, %r9, 2;\n", "le.u32")) == "");
  CHECK_FALSE(races_in(bounded_loop("  min.u32 %r5, %r9, 3;\n", "le.u32")).empty());
  // As an unsigned number, the smaller of two signed ones may be large.
  CHECK(races_in(bounded_loop("  min.s32 %r5, %r9, 3;\n", "lt.s32")) == "");
  CHECK_FALSE(races_in(bounded_loop("  min.s32 %r5, %r9, 3;\n")).empty());
  // What a number of up to 5 is above the smaller of it and another, or 0.
  const auto above = [](const std::string& other) {
    return races_in(bounded_loop("  and.b32 %r12, %r9, 5;\n  min.u32 %r10, %r12, " + other +
                                 ";\n  sub.u32 %r5, %r12, %r10;\n"));
  };
  CHECK(above("3") == "");
  CHECK_FALSE(above("1").empty());
  // It ends at another number, or at any.
  CHECK_FALSE(races_in(bounded_loop("  min.u32 %r5, %r9, 3;\n", "ne.u32")).empty());
  CHECK_FALSE(races_in(bounded_loop("  max.u32 %r5, %r9, 3;\n")).empty());
}

TEST_CASE("a counter that begins anywhere, or wraps around, bounds nothing") {
  const auto from = [](const std::string& start, const std::string& step) {
    std::string text = bounded_loop("  min.u32 %r5, %r9, 3;\n");
    text.replace(text.find("mov.u32 %r6, 0;"), 15, start);
    text.replace(text.find("add.u32 %r6, %r6, 1;"), 20, step);
    return races_in(text);
  };
  CHECK(from("mov.u32 %r6, 0;", "add.u32 %r6, %r6, 1;") == "");
  CHECK(from("and.b32 %r6, %r9, 1;", "add.u32 %r6, %r6, 1;") == "");
  CHECK(from("mov.u32 %r6, 0;", "add.u32 %r6, %r6, 5;") == "");
  CHECK_FALSE(from("mov.u32 %r6, %r9;", "add.u32 %r6, %r6, 1;").empty());
  // The first test fails, or the fourth.
  CHECK(from("mov.u32 %r6, -3;", "add.u32 %r6, %r6, 1;") == "");
  CHECK_FALSE(from("mov.u32 %r6, 3;", "add.u32 %r6, %r6, 4294967295;").empty());
  CHECK_FALSE(from("mov.u32 %r6, 4294967295;", "add.u32 %r6, %r6, 1;").empty());
}

TEST_CASE("a counter that falls, a loop with two tests") {
  // %r6 falls from 2 to 0, and wraps around: three iterations, below a bound of 3.
  const auto falls = [](const std::string& read) {
    return races_in(kOwn + "  sub.u32 %r8, 63, %r1;\n  mov.u32 %r7, tile;\n" +
                    "  mad.lo.u32 %r7, %r8, 4, %r7;\n  st.shared.u32 [%r2+512], %r1;\n" +
                    "  min.u32 %r5, %r9, 3;\n  mov.u32 %r6, 2;\nLOOP:\n" + read +
                    "  add.u32 %r7, %r7, 256;\n  sub.u32 %r6, %r6, 1;\n" +
                    "  setp.lt.u32 %p2, %r6, %r5;\n  @%p2 bra LOOP;\n");
  };
  CHECK_FALSE(falls("  ld.shared.u32 %r3, [%r7];\n").empty());
  CHECK(falls("") == "");
  // Whichever test fails first ends the loop.
  for (const char* other : {"2", "200"}) {
    std::string text = bounded_loop(std::string("  min.u32 %r5, %r9, ") + other + ";\n");
    const std::string smaller = other == std::string("2") ? "200" : "2";
    text.replace(text.find("LOOP:\n"), 6,
                 "LOOP:\n  setp.ge.u32 %p5, %r6, " + smaller + ";\n  @%p5 bra DONE;\n");
    INFO(text);
    CHECK(races_in(text) == "");
  }
}

TEST_CASE("after a loop its last iteration is bounded too") {
  const auto tail = [](const std::string& max) {
    std::string text = bounded_loop("  min.u32 %r5, %r9, " + max + ";\n");
    return races_in(text + "  ld.shared.u32 %r3, [%r7];\n");
  };
  CHECK(tail("2") == "");
  CHECK_FALSE(tail("3").empty());
}

TEST_CASE("a pointer that a branch chose is one of two") {
  const auto chosen = [](const std::string& other) {
    return races_in(kOwn + R"(  sub.u32 %r8, 63, %r1;
  mov.u32 %r7, tile;
  mad.lo.u32 %r7, %r8, 4, %r7;
  st.shared.u32 [%r2+512], %r1;
  setp.eq.u32 %p1, %r9, 0;
  @%p1 bra FIRST;
  add.u32 %r7, %r7, )" +
                    other + ";\nFIRST:\n  ld.shared.u32 %r3, [%r7];\n");
  };
  CHECK(chosen("256") == "");
  CHECK(chosen("128") == "");
  CHECK_FALSE(chosen("512").empty());
  CHECK_FALSE(chosen("%r9").empty());
}

TEST_CASE("rows of a bounded number of words do not overlap") {
  const std::string two = "  mov.u32 %r10, 2;\n", three = "  mov.u32 %r10, 3;\n";
  CHECK(races_in(rows_of_words("516", two)) == "");
  CHECK(races_in(rows_of_words("512", two)) == "");
  CHECK_FALSE(races_in(rows_of_words("508", two)).empty());
  CHECK_FALSE(races_in(rows_of_words("516", three)).empty());
  // The number of words, too, may be the smaller of two.
  const std::string blocks =
      "  ld.param.u32 %r12, [n];\n  min.u32 %r12, %r12, 96;\n"
      "  add.u32 %r10, %r12, 63;\n  shr.u32 %r10, %r10, 6;\n"
      "  max.u32 %r10, %r10, 1;\n";
  const std::string inside =
      "  shl.b32 %r13, %r8, 6;\n  add.u32 %r13, %r13, %r1;\n"
      "  setp.lt.u32 %p4, %r13, %r12;\n  @!%p4 bra SKIP;\n";
  CHECK(races_in(rows_of_words("388", blocks, inside)) == "");
  CHECK(races_in(rows_of_words("384", blocks, inside)) == "");
  CHECK_FALSE(races_in(rows_of_words("380", blocks, inside)).empty());
  CHECK_FALSE(races_in(rows_of_words("388", blocks)).empty());
}

TEST_CASE("a difference that wraps around does not keep threads away") {
  // Half of the threads: %r5 is large in them, so that none is below %r6.
  const auto guarded = [](const std::string& first) {
    return races_in(kOwn + "  setp.ge.u32 %p1, %r1, 32;\n  @%p1 bra DONE;\n  sub.u32 %r5, %r1, " +
                    first + ";\n  min.u32 %r6, %r9, 16;\n  setp.lt.u32 %p2, %r5, %r6;\n" +
                    "  @!%p2 st.shared.u32 [tile], %r1;\nDONE:\n");
  };
  CHECK_FALSE(guarded("32").empty());
  CHECK_FALSE(guarded("0").empty());
  CHECK_FALSE(guarded("-20").empty());
}

TEST_CASE("a comparison that wraps around does not keep two threads apart") {
  // Threads 5 and 3 write one word: what they compare keeps them apart unless it wraps around.
  const auto two = [](const std::string& number, const std::string& first,
                      const std::string& second) {
    return races_in(kOwn + "  " + number + ";\n  setp." + first +
                    ";\n  setp.eq.and.u32 %p1, %r1, 5, %p1;\n  setp." + second +
                    ";\n  setp.eq.and.u32 %p2, %r1, 3, %p2;\n  mov.u32 %r6, tile;\n"
                    "  @%p1 st.shared.u32 [%r6], %r1;\n  @%p2 st.shared.u32 [%r6], %r1;\n");
  };
  // With 2147483644 for %r9 the sum of thread 5 is negative.
  CHECK_FALSE(two("add.u32 %r5, %r9, %r1", "lt.s32 %p1, %r5, 0", "ge.s32 %p2, %r5, 100").empty());
  CHECK(two("add.u32 %r5, %r9, %r1", "lt.u32 %p1, %r5, 7", "ge.u32 %p2, %r5, 100") == "");
  // With 4 the difference of thread 5 is large.
  CHECK_FALSE(two("sub.u32 %r5, %r9, %r1", "gt.u32 %p1, %r5, 200", "lt.u32 %p2, %r5, 4").empty());
  CHECK(two("sub.u32 %r5, %r9, %r1", "gt.s32 %p1, %r5, 200", "lt.s32 %p2, %r5, 4") == "");
  CHECK(two("sub.u32 %r5, %r9, %r1", "lt.s32 %p1, %r5, -7", "ge.s32 %p2, %r5, 0") == "");
  // With 1 the constant itself is beyond the others.
  CHECK_FALSE(two("mov.u32 %r5, %r9", "gt.s32 %p1, %r5, -1", "lt.u32 %p2, %r5, -1").empty());
  CHECK(two("mov.u32 %r5, %r9", "gt.u32 %p1, %r5, %r1", "lt.u32 %p2, %r5, 4") == "");
}
