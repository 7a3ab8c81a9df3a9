// tests/check/shared_race_test.cpp - what the gate shared_race says, as text
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "race_snippets.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string missing(std::string_view body, std::string_view directives = ".reqntid 64, 1, 1") {
  return summary(gates::analyze(kernel(body, directives)), "missing-barrier");
}

/// The details with that word in front of their colon, a line each.
std::string details(const Finding& finding, std::string_view word) {
  std::string text;
  for (const std::string& detail : finding.details) {
    if (detail.substr(0, detail.find(':')).find(word) != std::string::npos) text += detail + "\n";
  }
  return text;
}

/// %r1 the number of the thread, %r2 the address of its word of `tile`.
std::string own_word(const std::string& rest) {
  return R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r1, 4, %r2;
)" + rest +
         "  ret;\n";
}

}  // namespace

TEST_CASE("a neighbour's word without a barrier") {
  const std::string body = own_word("  st.shared.u32 [%r2], %r1;\n  ld.shared.u32 %r3, [%r2+4];\n");
  CHECK(
      races(body) ==
      "19/20: error: thread (1,0,0) writes bytes 4..7 of 'tile', and thread (0,0,0) reads them at "
      "line 20; no barrier separates them\n");
  CHECK(missing(body) == "");
  const std::string barrier =
      own_word("  st.shared.u32 [%r2], %r1;\n  bar.sync 0;\n  ld.shared.u32 %r3, [%r2+4];\n");
  CHECK(races(barrier) == "");
}

TEST_CASE("a finding about a race says where, which launch, which rule and what to do") {
  const ptx::Module module =
      kernel(own_word("  st.shared.u32 [%r2], %r1;\n  ld.shared.v2.u32 {%r3, %r4}, [%r2+8];\n"));
  const std::vector<Finding> findings =
      gates::shared_race(module, {.target = {}, .entry = {}, .block = {64, 1, 1}});
  REQUIRE(findings.size() == 1);
  CHECK(
      to_text(findings[0]) ==
      "<ptx>:19: error: thread (2,0,0) writes bytes 8..11 of 'tile', and thread (0,0,0) reads "
      "bytes 8..15 of 'tile' at line 20; no barrier separates them [shared-race]\n"
      "    in: st.shared.u32 [%r2], %r1;\n"
      "    other: line 20: ld.shared.v2.u32 {%r3, %r4}, [%r2+8];\n"
      "    launch: every launch with a block of 64 x 1 x 1 threads\n"
      "    rule: between two barriers the threads of a block run in any order, and so do those of "
      "one warp\n"
      "    cure: bar.sync between the two, where all threads of the block pass; in a loop also "
      "between two iterations");
  CHECK(findings[0].kernel == "k");
}

TEST_CASE("a block read in reverse: the shape decides how much is known") {
  const std::string body = own_word(
      "  st.shared.u32 [%r2], %r1;\n  xor.b32 %r4, %r1, 255;\n  mov.u32 %r5, tile;\n"
      "  mad.lo.u32 %r5, %r4, 4, %r5;\n  ld.shared.u32 %r3, [%r5];\n");
  const auto severity = [](const std::vector<Finding>& findings) {
    return findings.size() == 1 ? std::string(to_string(findings[0].severity))
                                : std::to_string(findings.size());
  };
  CHECK(severity(gates::shared_race(kernel(body, ".reqntid 256, 1, 1"))) == "error");
  CHECK(severity(gates::shared_race(kernel(body), {.block = {256, 1, 1}})) == "error");
  CHECK(severity(gates::shared_race(kernel(body), {.block = {128, 1, 1}})) == "0");
  const std::vector<Finding> open = gates::shared_race(kernel(body));
  CHECK(severity(open) == "warning");
  CHECK(
      to_text(open.at(0)) ==
      "<ptx>:19: warning: thread (0,0,0) writes bytes 0..3 of 'tile', and thread (255,0,0) "
      "reads them at line 23; no barrier separates them [shared-race]\n"
      "    in: st.shared.u32 [%r2], %r1;\n"
      "    other: line 23: ld.shared.u32 %r3, [%r5];\n"
      "    launch: a block of 1024 x 1 x 1 threads (.reqntid or --block would give the shape)\n"
      "    not in every launch: a block of 64 x 1 x 1 threads does not have this race\n"
      "    rule: between two barriers the threads of a block run in any order, and so do those of "
      "one warp\n"
      "    cure: bar.sync between the two, where all threads of the block pass; in a loop also "
      "between two iterations");
}

TEST_CASE("an error is one in every launch that the guards let through") {
  const std::string race = "  st.shared.u32 [%r2], %r1;\n  ld.shared.u32 %r3, [%r2+4];\n";
  const auto first = [](const std::string& body) {
    return races(body).substr(0, races(body).find(' ', 8));
  };
  const std::string n = "  ld.param.u32 %r9, [n];\n";
  // A guard that the block agrees on, in front of the accesses or around them.
  CHECK(first(own_word(n + "  setp.eq.u32 %p1, %r9, 0;\n  @%p1 bra END;\n" + race + "END:\n")) ==
        "22/23: error:");
  CHECK(first(own_word(n + "  setp.eq.u32 %p1, %r9, 0;\n  @%p1 ret;\n" + race)) == "22/23: error:");
  // A loop over the input in front of them: whatever it computes.
  CHECK(first(own_word(n +
                       "LOOP:\n  add.u32 %r9, %r9, 1;\n  setp.lt.u32 %p1, %r9, 100;\n"
                       "  @%p1 bra LOOP;\n" +
                       race)) == "24/25: error:");
  // One launch has a single thread past the guard, or none.
  CHECK(first(own_word(n + "  setp.ge.u32 %p1, %r1, %r9;\n  @%p1 bra END;\n" + race + "END:\n")) ==
        "22/23: warning:");
  // Guards that exclude each other: there is no such launch.
  CHECK(first(own_word(n + "  setp.gt.u32 %p1, %r9, 9;\n  setp.le.u32 %p2, %r9, 9;\n"
                           "  @!%p1 bra ONE;\n  st.shared.u32 [%r2], %r1;\nONE:\n"
                           "  @!%p2 bra TWO;\n  ld.shared.u32 %r3, [%r2+4];\nTWO:\n"))
            .find("error") == std::string::npos);
  // A pitch that a parameter gives: 1 makes rows overlap, 64 does not.
  const std::string pitch = R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r4, %tid.y;
  ld.param.u32 %r9, [n];
  mad.lo.u32 %r5, %r4, %r9, %r1;
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r5, 4, %r2;
  st.shared.u32 [%r2], %r4;
  ret;
)";
  const std::vector<Finding> findings = gates::shared_race(kernel(pitch, ".reqntid 16, 16, 1"));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::Warning);
  CHECK(details(findings[0], "launch").find("these two threads do not race") != std::string::npos);
}

TEST_CASE("kernels for one thread, and ranks in blocks of three dimensions") {
  // A sum that one thread makes in place: with a larger block it would be a race.
  const std::string alone =
      "  st.shared.u32 [tile], %r1;\n  ld.shared.u32 %r3, [tile];\n  add.u32 %r3, %r3, 1;\n"
      "  st.shared.u32 [tile], %r3;\n  ret;\n";
  CHECK(races(alone, "").find("error") == std::string::npos);
  CHECK(races(alone, ".reqntid 1, 1, 1") == "");
  CHECK(races(alone, ".maxntid 1, 1, 1") == "");
  // thread_rank of cooperative groups.
  const std::string rank = R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %tid.z;
  mov.u32 %r5, %ntid.x;
  mov.u32 %r6, %ntid.y;
  mad.lo.u32 %r7, %r4, %r6, %r3;
  mad.lo.u32 %r7, %r7, %r5, %r1;
)";
  const std::string store =
      "  mov.u32 %r2, tile;\n  mad.lo.u32 %r2, %r7, 4, %r2;\n"
      "  st.shared.u32 [%r2], %r1;\n";
  CHECK(races(rank + store + "  ret;\n", "") == "");
  // Where it is a race in a cube, and none in a row, the row is named.
  const ptx::Module cube = kernel(rank +
                                  "  mov.u32 %r2, tile;\n  mad.lo.u32 %r2, %r1, 4, %r2;\n"
                                  "  st.shared.u32 [%r2], %r7;\n  ret;\n");
  const std::vector<Finding> findings = gates::shared_race(cube);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::Warning);
  CHECK(details(findings[0], "launch") ==
        "launch: a block of 8 x 8 x 8 threads (.reqntid or --block would give the shape)\n"
        "not in every launch: a block of 1 x 1 x 1 threads does not have this race\n");
}

TEST_CASE("one value of a warp in one word is no more than a note") {
  const auto note = [](const std::string& body,
                       std::string_view directives = ".reqntid 128, 1, 1") {
    std::string text;
    for (const Finding& finding : gates::shared_race(kernel(body, directives))) {
      text += std::string(to_string(finding.severity)) + " " + finding.rule + "\n";
    }
    return text;
  };
  const std::string load = R"(  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [a];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [%rd1];
)";
  const std::string store = R"(  shr.u32 %r4, %r1, 5;
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r4, 4, %r2;
  st.shared.u32 [%r2], %r3;
  ret;
)";
  const std::string same = "note race-same-value\n";
  CHECK(note(load + store) == "error shared-race\n");
  CHECK(note(load + "  redux.sync.add.s32 %r3, %r3, 0xffffffff;\n" + store) == same);
  const auto butterfly = [](const std::string& steps, const std::string& operation) {
    std::string text;
    for (const char step : steps) {
      const std::string distance = std::to_string(1 << (step - '0'));
      text += "  shfl.sync.bfly.b32 %r5, %r3, " + distance + ", 31, 0xffffffff;\n  " + operation +
              " %r3, %r3, %r5;\n";
    }
    return text;
  };
  CHECK(note(load + butterfly("43210", "add.s32") + store) == same);
  CHECK(note(load + butterfly("01234", "max.s32") + store) == same);
  CHECK(note(load + butterfly("43210", "add.s32") + store, "") == same);
  // A step too few, and an operation that does not commute: not shown either way.
  CHECK(note(load + butterfly("4321", "add.s32") + store) == "warning shared-race\n");
  CHECK(note(load + butterfly("43210", "sub.s32") + store) == "warning shared-race\n");
  // Moves and floats in between, as Triton prints it; and the other way round.
  std::string floats = "  mov.b32 %f1, %r3;\n";
  for (const char* step : {"16", "8", "4", "2", "1"}) {
    floats += std::string("  mov.b32 %r6, %f1;\n  shfl.sync.bfly.b32 %r5, %r6, ") + step +
              ", 31, -1;\n  mov.b32 %f2, %r5;\n  add.f32 %f1, %f2, %f1;\n";
  }
  CHECK(note(load + floats + "  mov.b32 %r3, %f1;\n" + store) == same);
  // Masks and distances in registers, and a predicate beside the value, as nvcc prints it.
  std::string registers = "  mov.u32 %r10, 31;\n  mov.u32 %r11, -1;\n";
  for (const char* step : {"16", "8", "4", "2", "1"}) {
    registers += std::string("  mov.u32 %r12, ") + step +
                 ";\n  shfl.sync.bfly.b32 %r5|%p3, %r3, %r12, %r10, %r11;\n"
                 "  add.s32 %r3, %r5, %r3;\n";
  }
  CHECK(note(load + registers + store) == same);
  // Groups of eight lanes, each with a word of its own.
  const std::string groups = R"(  shr.u32 %r4, %r1, 3;
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r4, 4, %r2;
  st.shared.u32 [%r2], %r3;
  ret;
)";
  CHECK(note(load + butterfly("210", "add.s32") + groups) == same);
  CHECK(note(load + butterfly("432", "add.s32") + groups) == "warning shared-race\n");
  // All warps write one word: each has its own sum.
  CHECK(note(load + butterfly("43210", "add.s32") + "  st.shared.u32 [tile], %r3;\n  ret;\n") ==
        "warning shared-race\n");
  // In a loop without a barrier a lane may be an iteration ahead.
  CHECK(note(load + "LOOP:\n" + butterfly("43210", "add.s32") +
             "  shr.u32 %r4, %r1, 5;\n  mov.u32 %r2, tile;\n  mad.lo.u32 %r2, %r4, 4, %r2;\n"
             "  st.shared.u32 [%r2], %r3;\n  setp.lt.u32 %p1, %r3, 9;\n  @%p1 bra LOOP;\n  ret;\n")
            .find("note") == std::string::npos);
  // A value that all threads load from one address.
  CHECK(note("  ld.param.u64 %rd1, [a];\n  ld.global.u32 %r3, [%rd1];\n"
             "  st.shared.u32 [tile], %r3;\n  ret;\n") == same);
}

TEST_CASE("two threads write one word") {
  CHECK(races("  mov.u32 %r1, %tid.x;\n  st.shared.u32 [tile], %r1;\n  ret;\n") ==
        "17/17: error: thread (0,0,0) writes bytes 0..3 of 'tile', and by the same instruction "
        "thread (1,0,0) writes them; no barrier separates them\n");
  CHECK(races("  st.shared.u32 [tile], 7;\n  ret;\n") ==
        "16/16: note: threads write the same value to the same bytes here; no barrier separates "
        "them\n");
  CHECK(races("  mov.u32 %r1, %tid.x;\n  atom.shared.add.u32 %r2, [tile], %r1;\n  ret;\n") == "");
  CHECK(races("  mov.u32 %r1, %tid.x;\n  st.volatile.shared.u32 [tile], %r1;\n  ret;\n") == "");
}

TEST_CASE("one thread writes for all") {
  const std::string one = R"(  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra NEXT;
  st.shared.u32 [tile], 5;
NEXT:
)";
  CHECK(
      races(own_word(one + "  ld.shared.u32 %r3, [tile];\n")) ==
      "21/23: error: thread (0,0,0) writes bytes 0..3 of 'tile', and thread (1,0,0) reads them at "
      "line 23; no barrier separates them\n");
  CHECK(races(own_word(one + "  bar.sync 0;\n  ld.shared.u32 %r3, [tile];\n")) == "");
  CHECK(races(own_word(one + "  @!%p1 ld.shared.u32 %r3, [tile];\n")) == "");
}

TEST_CASE("lanes of a warp are ordered by bar.warp.sync alone") {
  const std::string write = "  st.shared.u32 [%r2], %r1;\n";
  const std::string read = "  ld.shared.u32 %r3, [%r2+4];\n";
  const std::string sync = "  bar.warp.sync 0xffffffff;\n";
  CHECK(races(own_word(write + sync + read), ".reqntid 32, 1, 1") == "");
  CHECK(races(own_word(write + sync + read)) ==
        "19/21: error: thread (32,0,0) writes bytes 128..131 of 'tile', and thread (31,0,0) reads "
        "them at line 21; no barrier separates them\n");
  CHECK(races(own_word(write + "  shfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff;\n" + read),
              ".reqntid 32, 1, 1") != "");
  const ptx::Module module = kernel(own_word(sync + write + read), ".reqntid 32, 1, 1");
  const std::vector<Finding> findings = gates::shared_race(module);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].details.back() ==
        "cure: bar.warp.sync between the two, or bar.sync where all threads of the block pass");
}

TEST_CASE("what depends on data is not shown") {
  const std::string body = own_word(R"(  ld.global.u32 %r5, [%rd1];
  mov.u32 %r6, tile;
  mad.lo.u32 %r6, %r5, 4, %r6;
  st.shared.u32 [%r6], %r1;
  bar.sync 0;
  ld.shared.u32 %r3, [%r2];
)");
  CHECK(races("  ld.param.u64 %rd1, [a];\n" + body) ==
        "23/23: warning: threads may write the same bytes here; no barrier separates them\n");
  CHECK(missing("  ld.param.u64 %rd1, [a];\n" + body) == "");
  const std::string both = own_word(R"(  ld.global.u32 %r5, [%rd1];
  mov.u32 %r6, tile;
  mad.lo.u32 %r6, %r5, 4, %r6;
  st.shared.u32 [%r2], %r1;
  ld.shared.u32 %r3, [%r6];
  ld.shared.u32 %r3, [%r6+4];
)");
  const ptx::Module module = kernel("  ld.param.u64 %rd1, [a];\n" + both, ".reqntid 64, 1, 1");
  const std::vector<Finding> findings = gates::shared_race(module);
  REQUIRE(findings.size() == 1);
  CHECK(
      to_text(findings[0]) ==
      "<ptx>:23: warning: this write and the read at line 24 may touch the same bytes in two "
      "threads; no barrier separates them [shared-race]\n"
      "    in: st.shared.u32 [%r2], %r1;\n"
      "    other: line 24: ld.shared.u32 %r3, [%r6];\n"
      "    also with: line 25\n"
      "    not shown: that the addresses differ; they depend on %r5\n"
      "    rule: between two barriers the threads of a block run in any order, and so do those of "
      "one warp\n"
      "    cure: bar.sync between the two, where all threads of the block pass; in a loop also "
      "between two iterations");
  CHECK(missing("  ld.param.u64 %rd1, [a];\n" + both) ==
        "23/24: warning: 'tile' is written here and read at line 24, and some path between them "
        "has no barrier\n");
}

TEST_CASE("a barrier is missed between a write and a read after it, nowhere else") {
  const std::string somewhere = R"(  ld.param.u64 %rd1, [a];
  ld.global.u32 %r5, [%rd1];
  mov.u32 %r6, tile;
  mad.lo.u32 %r6, %r5, 4, %r6;
)";
  // After a read, another write or an atomic operation the race is shared_race's alone.
  for (const char* const pair : {"  ld.shared.u32 %r3, [%r6];\n  st.shared.u32 [%r2], %r1;\n",
                                 "  st.shared.u32 [%r2], %r1;\n  st.shared.u32 [%r6], %r5;\n",
                                 "  st.shared.u32 [%r2], %r1;\n"
                                 "  atom.shared.add.u32 %r3, [%r6], 1;\n"}) {
    CAPTURE(pair);
    const std::string body = own_word(somewhere + pair);
    CHECK(races(body).find("warning: ") != std::string::npos);
    CHECK(missing(body) == "");
  }
  // With a loop around them the write comes before the read, too.
  const std::string loop = R"(LOOP:
  ld.shared.u32 %r3, [%r6];
  st.shared.u32 [%r2], %r1;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p1, %r5, 9;
  @%p1 bra LOOP;
)";
  CHECK(missing(own_word(somewhere + loop)) ==
        "25/24: warning: 'tile' is written here and read at line 24, and some path between them "
        "has no barrier\n");
}

TEST_CASE("conditions that depend on data leave a race possible") {
  const std::string body = own_word(R"(  ld.global.u32 %r5, [%rd1];
  setp.gt.u32 %p1, %r5, 3;
  @%p1 st.shared.u32 [%r2], %r1;
  ld.shared.u32 %r3, [%r2+4];
)");
  const ptx::Module module = kernel("  ld.param.u64 %rd1, [a];\n" + body, ".reqntid 64, 1, 1");
  const std::vector<Finding> findings = gates::shared_race(module);
  CHECK(summary(findings) ==
        "22/23: warning: this write and the read at line 23 may touch the same bytes in two "
        "threads; no barrier separates them\n");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].details[2] ==
        "not shown: that two such threads are here between the same two barriers; it depends on "
        "conditions");
}

TEST_CASE("a tree of sums is in order, with all its barriers") {
  const auto tree = [](const std::string& barrier) {
    return own_word(
        "  st.shared.u32 [%r2], %r1;\n  bar.sync 0;\n  mov.u32 %r5, 32;\nLOOP:\n"
        "  setp.ge.u32 %p1, %r1, %r5;\n  @%p1 bra NEXT;\n  shl.b32 %r6, %r5, 2;\n"
        "  add.u32 %r6, %r2, %r6;\n  ld.shared.u32 %r7, [%r6];\n"
        "  ld.shared.u32 %r8, [%r2];\n  add.u32 %r8, %r8, %r7;\n"
        "  st.shared.u32 [%r2], %r8;\nNEXT:\n" +
        barrier + "  shr.u32 %r5, %r5, 1;\n  setp.ne.u32 %p2, %r5, 0;\n  @%p2 bra LOOP;\n");
  };
  CHECK(races(tree("  bar.sync 0;\n")) == "");
  CHECK(races(tree("")).find(": error: thread (") != std::string::npos);
}

TEST_CASE("both barriers of a tile loop are needed, each round") {
  const auto loop = [](const std::string& first, const std::string& second) {
    return own_word(
        "  ld.param.u32 %r9, [n];\n  mov.u32 %r5, 0;\nLOOP:\n"
        "  st.shared.u32 [%r2], %r1;\n" +
        first + "  ld.shared.u32 %r3, [tile+12];\n" + second +
        "  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p1, %r5, %r9;\n  @%p1 bra LOOP;\n");
  };
  const std::string barrier = "  bar.sync 0;\n";
  CHECK(races(loop(barrier, barrier)) == "");
  CHECK(races(loop("", barrier)).find("22/23: error: thread (3,0,0) writes bytes 12..15") == 0);
  // A launch with one iteration is free of it.
  CHECK(races(loop(barrier, "")).find("22/24: warning: thread (3,0,0) writes bytes 12..15") == 0);
  const ptx::Module module = kernel(loop(barrier, ""), ".reqntid 64, 1, 1");
  CHECK(details(gates::shared_race(module)[0], "launch") ==
        "launch: a block of 64 x 1 x 1 threads, for example with 4096 for every integer "
        "parameter\nnot in every launch: with 1 for every integer parameter these two threads do "
        "not race\n");
}

TEST_CASE("a block whose shape is not known is tried in several") {
  const std::string body = own_word("  st.shared.u32 [%r2], %r1;\n  ld.shared.u32 %r3, [%r2+4];\n");
  CHECK(races(body, "") ==
        "19/20: warning: thread (1,0,0) writes bytes 4..7 of 'tile', and thread (0,0,0) reads them "
        "at "
        "line 20; no barrier separates them\n");
  // Only a block of more than one warp races, and only one that is wider than high.
  const std::string warp = own_word(
      "  st.shared.u32 [%r2], %r1;\n  bar.warp.sync 0xffffffff;\n  ld.shared.u32 %r3, [%r2+4];\n");
  const ptx::Module module = kernel(warp);
  const std::vector<Finding> findings = gates::shared_race(module);
  CHECK(
      summary(findings) ==
      "19/21: warning: thread (32,0,0) writes bytes 128..131 of 'tile', and thread (31,0,0) reads "
      "them at line 21; no barrier separates them\n");
  REQUIRE(findings.size() == 1);
  CHECK(details(findings[0], "launch") ==
        "launch: a block of 1024 x 1 x 1 threads (.reqntid or --block would give the shape)\n"
        "not in every launch: a block of 32 x 1 x 1 threads does not have this race\n");
}

TEST_CASE("barriers at which only some meet order nothing") {
  const std::string write = "  st.shared.u32 [%r2], %r1;\n";
  const std::string read = "  ld.shared.u32 %r3, [%r2+4];\n";
  CHECK(races(own_word(write + "  bar.sync 1, 64;\n" + read)) == "");
  CHECK(races(own_word(write + "  bar.sync 1, 32;\n" + read)) != "");
  CHECK(races(own_word(write + "  bar.arrive 1, 64;\n" + read)) != "");
  CHECK(races(own_word(write + "  bar.sync 2;\n" + read)) == "");
  CHECK(races(own_word(write + "  @%p1 bar.sync 2;\n" + read)) != "");
  CHECK(races(own_word(write + "  bar.red.popc.u32 %r4, 0, %p1;\n" + read)) == "");
}

TEST_CASE("the cluster's barrier is one of the block") {
  const std::string write = "  st.shared.u32 [%r2], %r1;\n";
  const std::string read = "  ld.shared.u32 %r3, [%r2+4];\n";
  const std::string arrive = "  barrier.cluster.arrive;\n";
  const std::string wait = "  barrier.cluster.wait;\n";
  CHECK(races(own_word(write + arrive + wait + read)) == "");
  CHECK(races(own_word(arrive + write + wait + read)) != "");
  CHECK(races(own_word(write + arrive + "  @%p1 barrier.cluster.wait;\n" + read)) != "");
  CHECK(races(own_word(write + "  @%p1 barrier.cluster.arrive;\n" + wait + read)) != "");
  CHECK(races(own_word(write + "  barrier.cluster.arrive.relaxed;\n" + wait + read)) != "");
  const std::string remote = "  mapa.shared::cluster.u32 %r3, %r2, 0;\n";
  CHECK(races(own_word(remote + "  st.shared::cluster.u32 [%r3], %r1;\n" + arrive + wait + read)) ==
        "");
}

TEST_CASE("a copy that no thread has waited for") {
  const auto copy = [](const std::string& wait) {
    return "  ld.param.u64 %rd1, [a];\n" +
           own_word("  cp.async.ca.shared.global [%r2], [%rd1], 4;\n" + wait +
                    "  bar.sync 0;\n  ld.shared.u32 %r3, [%r2+4];\n");
  };
  CHECK(races(copy("  cp.async.wait_all;\n")) == "");
  CHECK(races(copy("  cp.async.commit_group;\n  cp.async.wait_group 0;\n")) == "");
  CHECK(races(copy("  cp.async.commit_group;\n  cp.async.wait_group 1;\n")) != "");
  // Groups are done in the order in which they were made.
  const std::string group = "  cp.async.commit_group;\n";
  CHECK(races(copy(group + group + "  cp.async.wait_group 1;\n")) == "");
  CHECK(races(copy(group + group + "  cp.async.wait_group 2;\n")) != "");
  CHECK(races(copy(group + "  @%p1 cp.async.commit_group;\n  cp.async.wait_group 1;\n")) != "");
  CHECK(races(copy(group + group + "  @%p1 cp.async.wait_group 1;\n")) != "");
  CHECK(races(copy("  cp.async.wait_group 0;\n" + group)) != "");
  // By one way there are two groups, by the other one.
  CHECK(races(copy(group + "  @%p1 bra $S;\n" + group + "$S:\n  cp.async.wait_group 1;\n")) != "");
  const ptx::Module module = kernel(copy(""), ".reqntid 64, 1, 1");
  const std::vector<Finding> findings = gates::shared_race(module);
  CHECK(summary(findings) ==
        "20/22: warning: this copy may be in progress at the read at line 22, and may touch the "
        "same bytes; no wait for it comes before\n");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].details.back() ==
        "cure: cp.async.wait_all (or wait_group 0), then bar.sync, before it");
}

TEST_CASE("what a function does is not followed") {
  const auto module = [](const std::string& body) {
    return ptx::parse(
        ".version 8.7\n.target sm_90\n.address_size 64\n.shared .b32 s[64];\n"
        ".func f()\n{\n  .reg .b32 %r<4>;\n" +
        body +
        "  ret;\n}\n.visible .entry k()\n.reqntid 64, 1, 1\n{\n"
        "  st.shared.u32 [s], 1;\n  call f, ();\n  ret;\n}\n");
  };
  const std::vector<Finding> findings = gates::shared_race(module("  ld.shared.u32 %r1, [s];\n"));
  CHECK(
      summary(findings) ==
      "14/14: note: threads write the same value to the same bytes here; no barrier separates "
      "them\n"
      "14/15: warning: this write and the read at line 15 may touch the same bytes in two threads; "
      "no barrier separates them\n");
  REQUIRE(findings.size() == 2);
  CHECK(findings[1].details[2] ==
        "not shown: that the addresses differ; they depend on the function that is called");
  CHECK(gates::shared_race(module("  mov.u32 %r1, 5;\n")).size() == 1);
}

TEST_CASE("the same constant from two places") {
  CHECK(races(own_word("  setp.eq.u32 %p1, %r1, 0;\n  setp.eq.u32 %p2, %r1, 1;\n"
                       "  @%p1 st.shared.u32 [tile], 1;\n  @%p2 st.shared.u32 [tile], 1;\n")) ==
        "21/22: note: this write and the write at line 22 store the same value to the same bytes; "
        "no barrier separates them\n");
  CHECK(races("  st.shared.u32 [tile], 1;\n  st.shared.u32 [tile], 2;\n  ret;\n")
            .find("16/17: error: ") != std::string::npos);
}

TEST_CASE("loops that fill a tile by rows and columns") {
  const auto fill = [](const std::string& pitch) {
    return R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r9, tile;
LOOP:
  shr.u32 %r2, %r1, 3;
  and.b32 %r3, %r1, 7;
  mul.lo.u32 %r4, %r3, )" +
           pitch + R"(;
  add.u32 %r4, %r4, %r2;
  mad.lo.u32 %r5, %r4, 4, %r9;
  st.shared.u32 [%r5], %r1;
  add.u32 %r1, %r1, 64;
  setp.lt.u32 %p1, %r1, 128;
  @%p1 bra LOOP;
  ret;
)";
  };
  // 16 columns fit a pitch of 17, not one of 15.
  CHECK(races(fill("17")) == "");
  CHECK(races(fill("15")).find("24/24: ") == 0);
}

TEST_CASE("two buffers in turn need one barrier a round") {
  const auto loop = [](const std::string& iteration) {
    return own_word("  ld.param.u32 %r9, [n];\n  mov.u32 %r5, 0;\nLOOP:\n  and.b32 %r6, %r5, " +
                    iteration +
                    ";\n  mad.lo.u32 %r7, %r6, 256, %r2;\n  st.shared.u32 [%r7], %r1;\n"
                    "  bar.sync 0;\n  xor.b32 %r8, %r1, 1;\n  mov.u32 %r10, tile;\n"
                    "  mad.lo.u32 %r8, %r8, 4, %r10;\n  mad.lo.u32 %r8, %r6, 256, %r8;\n"
                    "  ld.shared.u32 %r3, [%r8];\n"
                    "  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p1, %r5, %r9;\n  @%p1 bra LOOP;\n");
  };
  CHECK(races(loop("1")) == "");
  CHECK(races(loop("3")) == "");
  CHECK(races(loop("0")) != "");
}

TEST_CASE("more than can be compared is said") {
  std::string body = own_word("");
  body.resize(body.size() - std::string("  ret;\n").size());
  for (int i = 0; i < 400; ++i) body += "  st.shared.u32 [%r2], " + std::to_string(i) + ";\n";
  const std::string text = races(body + "  ret;\n");
  CHECK(text ==
        "19/418: warning: this kernel has too many accesses to shared memory between barriers to "
        "compare all of them: races of 'k' are not excluded\n");
}

TEST_CASE("the gate takes bodies that the verifier refuses") {
  const ptx::Module full =
      kernel(own_word("  ld.param.u32 %r9, [n];\n  setp.gt.u32 %p2, %r9, 3;\n"
                      "  @%p2 st.shared.u32 [%r2], %r9;\n  bar.sync 0;\nLOOP:\n"
                      "  ld.shared.u32 %r3, [%r2+4];\n"
                      "  setp.lt.u32 %p1, %r3, 3;\n  @%p1 bra LOOP;\n"));
  for (std::size_t i = 0; i < full.functions[0].operands.size(); ++i) {
    ptx::Module module = full;
    ptx::Operand& operand = module.functions[0].operands[i];
    operand.id = 1000;
    CHECK_NOTHROW(gates::shared_race(module));
    operand = ptx::Operand::integer(3);
    CHECK_NOTHROW(gates::shared_race(module));
    operand = ptx::Operand::label({77});
    CHECK_NOTHROW(gates::shared_race(module));
  }
  for (std::size_t i = 0; i < full.functions[0].body.size(); ++i) {
    ptx::Module module = full;
    if (module.functions[0].body[i].kind != ptx::StatementKind::Instruction) continue;
    module.functions[0].body[i].operand_count = 0;
    CHECK_NOTHROW(gates::shared_race(module));
  }
  // A register that is nowhere declared has no name.
  ptx::Module module = full;
  const auto address =
      std::find_if(module.functions[0].operands.begin(), module.functions[0].operands.end(),
                   [](const ptx::Operand& operand) {
                     return operand.kind == ptx::OperandKind::Memory &&
                            operand.base == ptx::OperandKind::Register;
                   });
  REQUIRE(address != module.functions[0].operands.end());
  address->id = 1000;
  const std::vector<Finding> findings = gates::shared_race(module);
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0].details[0] == "in: @%p2 st.shared.u32 [?], %r9;");
}

namespace {

ptx::Module library_kernel(const KernelDescription& entry, std::string_view target) {
  std::vector<std::uint64_t> values;
  for (const ParameterInfo& parameter : entry.parameters) values.push_back(parameter.default_value);
  return entry.build(values, test::served_target(entry, target));
}

}  // namespace

TEST_CASE("library kernels are free of races, and of warnings") {
  for (const char* target : {"sm_75", "sm_89", "sm_90", "sm_120"}) {
    for (const KernelDescription& entry : catalog()) {
      const ptx::Module module = library_kernel(entry, target);
      INFO(entry.name << " for " << target);
      CHECK(summary(gates::shared_race(module)) == "");
      // What keeps rows of several x in bounds is the launcher's check of m_dim.
      if (entry.name != "batched_gemv") CHECK(summary(gates::analyze(module)) == "");
      CHECK(summary(gates::sizes(module, declared_sizes(entry))) == "");
    }
  }
}

TEST_CASE("the library's matrix-vector product without one of its barriers") {
  const ptx::Module full = library_kernel(*find_kernel("gemv_coalesced"), "sm_89");
  const std::string text = ptx::print(full);
  const auto line_of = [&](std::size_t at) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  const auto store = line_of(text.find("st.shared"));
  const std::size_t first = text.find("bar.sync 0;");
  const std::size_t second = text.find("bar.sync 0;", first + 1);
  REQUIRE(second != std::string::npos);
  for (const std::size_t barrier : {first, second}) {
    std::string without = text;
    without.replace(barrier, 11, "           ");
    const std::vector<Finding> findings = gates::shared_race(ptx::parse(without));
    INFO(summary(findings));
    REQUIRE(findings.size() >= 4);
    // With one row and one column there is nothing to wait for.
    CHECK(findings[0].severity == Severity::Warning);
    CHECK(findings[0].message.find("thread (0,0,0) writes bytes 0..3 of 'tile', and thread (1,0,0) "
                                   "reads them at line") == 0);
    for (const Finding& finding : findings) {
      CHECK(finding.severity != Severity::Note);
      CHECK(finding.line == store);
      CHECK(finding.other_line != 0);
    }
  }
}
