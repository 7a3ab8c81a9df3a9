// tests/check/race_bulk_test.cpp - shared_race on copies that an mbarrier counts
#include <catch2/catch.hpp>
#include <string>

#include "race_snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// %r1 the number of the thread, %r2 the address of its word of `tile`, %r4 and %r5 those of two
/// mbarriers, %p1 whether it is thread 0; after a barrier that all reach.
const std::string kStart = R"(  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r1, 4, %r2;
  mov.u32 %r4, other;
  add.u32 %r5, %r4, 8;
  mov.u32 %r6, tile;
  ld.param.u64 %rd1, [a];
  ld.param.u32 %r9, [n];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [%r4], 1;
  @%p1 mbarrier.init.shared.b64 [%r5], 64;
  bar.sync 0;
)";
/// Thread 0 has `size` bytes copied to the start of `tile`, counted by the first mbarrier.
std::string copy(const std::string& size = "256") {
  return "  @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], " + size +
         ";\n"
         "  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], "
         "[%rd1], " +
         size + ", [%r4];\n";
}
std::string wait(const std::string& name, const std::string& mbarrier = "%r4",
                 const std::string& guard = "") {
  return name + ":\n  " + guard + "mbarrier.try_wait.parity.shared.b64 %p2, [" + mbarrier +
         "], 0;\n  @!%p2 bra " + name + ";\n";
}
const std::string kRead = "  ld.shared.u32 %r3, [%r2];\n";

}  // namespace

TEST_CASE("who has waited at its mbarrier may read what a bulk copy brought") {
  CHECK(races_in(kStart + copy() + wait("W") + kRead) == "");
  CHECK_FALSE(races_in(kStart + copy() + kRead).empty());
  CHECK_FALSE(races_in(kStart + copy() + "  bar.sync 0;\n" + kRead).empty());
}

TEST_CASE("a finding about a bulk copy says which access, which rule and what to do") {
  const std::vector<Finding> findings = race_findings(kStart + copy() + kRead + "  ret;\n");
  REQUIRE(findings.size() == 1);
  CHECK(to_text(findings[0]) ==
        "<ptx>:29: warning: this copy may be in progress, or start too early, at the read at "
        "line 30, and may touch the same bytes; not every path between them waits at an mbarrier "
        "[shared-race]\n"
        "    in: @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], "
        "[%rd1], 256, [%r4];\n"
        "    other: line 30: ld.shared.u32 %r3, [%r2];\n"
        "    not shown: that two such threads are here between the same two barriers; it depends "
        "on conditions\n"
        "    rule: between two barriers the threads of a block run in any order, and so do those "
        "of one warp\n"
        "    cure: before the bytes are accessed: mbarrier.try_wait at the copy's mbarrier until "
        "its phase has ended, in each thread, or in one followed by bar.sync; before they are "
        "overwritten: bar.sync, or a wait at an mbarrier at which all threads that access them "
        "arrive");
}

TEST_CASE("one thread may wait for all, if a barrier tells them") {
  const std::string one = "  @!%p1 bra MEET;\n" + wait("W") + "MEET:\n";
  CHECK(races_in(kStart + copy() + one + "  bar.sync 0;\n" + kRead) == "");
  CHECK_FALSE(races_in(kStart + copy() + one + kRead).empty());
  CHECK_FALSE(
      races_in(kStart + copy() + "  setp.eq.u32 %p1, %r9, 0;\n" + one + "  bar.sync 0;\n" + kRead)
          .empty());
  // Another predicate, the other way round, and one that is computed anew in each round.
  CHECK_FALSE(races_in(kStart + "  setp.eq.u32 %p3, %r9, 0;\n" + copy() + "  @!%p3 bra MEET;\n" +
                       wait("W") + "MEET:\n  bar.sync 0;\n" + kRead)
                  .empty());
  CHECK_FALSE(races_in(kStart + copy() + "  @%p1 bra MEET;\n" + wait("W") +
                       "MEET:\n  bar.sync 0;\n" + kRead)
                  .empty());
  CHECK_FALSE(races_in(kStart + "L:\n  setp.eq.u32 %p1, %r1, %r9;\n  @!%p1 bra MEET;\n" +
                       wait("W") + "MEET:\n  bar.sync 0;\n" + kRead + "  bar.sync 0;\n" + copy() +
                       "  add.u32 %r9, %r9, 1;\n  setp.lt.u32 %p4, %r9, 99;\n  @%p4 bra L;\n")
                  .empty());
  // In the round after the copy no thread waits, although barriers part all others from it.
  CHECK_FALSE(races_in(kStart + "L:\n  setp.eq.u32 %p1, %r1, %r9;\n  @!%p1 bra MEET;\n" +
                       wait("W") + "MEET:\n  bar.sync 0;\n" + kRead + "  bar.sync 0;\n" + copy() +
                       "  add.u32 %r9, %r9, 64;\n  setp.lt.u32 %p4, %r9, 999;\n  @%p4 bra L;\n")
                  .empty());
}

TEST_CASE("a wait counts at the copy's mbarrier, without a guard, if its answer is read") {
  CHECK_FALSE(races_in(kStart + copy() + wait("W", "%r5") + kRead).empty());
  CHECK_FALSE(
      races_in(kStart + "  setp.lt.u32 %p3, %r9, 5;\n" + copy() + wait("W", "%r4", "@%p3 ") + kRead)
          .empty());
  CHECK_FALSE(
      races_in(kStart + copy() + "  mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n" + kRead)
          .empty());
  // Which of several it is depends on a number that is not known: it may be that one.
  CHECK(races_in(kStart + copy() + "  and.b32 %r7, %r9, 8;\n  add.u32 %r7, %r7, %r4;\n" +
                 wait("W", "%r7") + kRead) == "");
  for (const char* other : {"mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;\n",
                            "mbarrier.test_wait.shared.b64 %p2, [%r4], %rd2;\n",
                            "mbarrier.try_wait.shared.b64 %p2, [%r4], %rd2;\n"}) {
    INFO(other);
    CHECK(races_in(kStart + copy() + "  mbarrier.arrive.shared.b64 %rd2, [%r4];\nW:\n  " + other +
                   "  @!%p2 bra W;\n" + kRead) == "");
  }
}

TEST_CASE("a bulk copy writes as many bytes as it says, all if it does not say") {
  const auto last = [](const std::string& size) {
    return races_in(kStart + "  ld.param.u32 %r8, [n];\n" + copy(size) +
                    "  ld.shared.u32 %r3, [tile+240];\n");
  };
  CHECK(last("240") == "");
  CHECK_FALSE(last("256").empty());
  CHECK_FALSE(last("%r8").empty());
}

TEST_CASE("bytes that a thread still reads are not copied over") {
  const auto rounds = [](const std::string& between) {
    return races_in(kStart + "  mov.u32 %r10, 0;\nL:\n" + copy() + wait("W") + kRead + between +
                    "  add.u32 %r10, %r10, 1;\n  setp.lt.u32 %p4, %r10, %r9;\n  @%p4 bra L;\n");
  };
  CHECK_FALSE(rounds("").empty());
  CHECK(rounds("  bar.sync 0;\n") == "");
  CHECK(rounds("  mbarrier.arrive.shared.b64 _, [%r5];\n" + wait("E", "%r5")) == "");
  CHECK_FALSE(rounds("  mbarrier.arrive.shared.b64 _, [%r5];\n").empty());
  CHECK_FALSE(rounds("  bar.warp.sync 0xffffffff;\n").empty());
}

TEST_CASE("what orders a warp takes nothing from a wait before it") {
  CHECK(races_in(kStart + "L:\n" + copy() + wait("W") + "  bar.warp.sync 0xffffffff;\n" + kRead +
                 "  bar.sync 0;\n  add.u32 %r9, %r9, 1;\n  setp.lt.u32 %p4, %r9, 99;\n"
                 "  @%p4 bra L;\n") == "");
  // With nothing but waits between one round and the next.
  CHECK(races_in(kStart + "L:\n" + copy() + wait("W") + "  bar.warp.sync 0xffffffff;\n" + kRead +
                 "  mbarrier.arrive.shared.b64 _, [%r5];\n" + wait("E", "%r5") +
                 "  add.u32 %r9, %r9, 1;\n  setp.lt.u32 %p4, %r9, 99;\n  @%p4 bra L;\n") == "");
}

TEST_CASE("what orders a warp is no place from which a wait has to be on the way") {
  CHECK(races_in(kStart + "L:\n" + copy() + wait("W") + "  bar.warp.sync 0xffffffff;\n" + kRead +
                 "  mbarrier.arrive.shared.b64 _, [%r5];\n" + wait("E", "%r5") +
                 "  add.u32 %r9, %r9, 1;\n  setp.lt.u32 %p4, %r9, 99;\n  @%p4 bra L;\n") == "");
}

TEST_CASE("a copy into the block's own window is one too") {
  std::string own = kStart + copy() + kRead;
  own.replace(own.find("shared::cluster"), 15, "shared::cta");
  CHECK_FALSE(races_in(own).empty());
}

TEST_CASE("copies and waits that lack operands are passed over") {
  // The verifier refuses such a function; the gate must not read beyond it.
  const auto cut = [](const std::string& body, ptx::Op op) {
    ptx::Module module = kernel(body + "  ret;\n", ".reqntid 64, 1, 1");
    int found = 0;
    for (ptx::Instruction& s : module.functions.front().body) {
      if (!s.is(op)) continue;
      s.operand_count = 1;
      ++found;
    }
    REQUIRE(found == 1);
    return summary(gates::shared_race(module));
  };
  CHECK(cut(kStart + copy() + kRead, ptx::Op::cp_async_bulk_load) == "");
  CHECK_FALSE(cut(kStart + copy() + wait("W") + kRead, ptx::Op::mbarrier_try_wait_parity).empty());
}

TEST_CASE("two bulk copies are not compared") { CHECK(races_in(kStart + copy() + copy()) == ""); }

TEST_CASE("no rule asks for a barrier where the wait at an mbarrier is missing") {
  const ptx::Module module = kernel(kStart + copy() + kRead + "  ret;\n", ".reqntid 64, 1, 1");
  CHECK(summary(gates::analyze(module), "missing-barrier") == "");
}
