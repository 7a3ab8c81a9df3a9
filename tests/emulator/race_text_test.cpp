// tests/emulator/race_text_test.cpp - what findings about races say
#include <catch2/catch.hpp>

#include "emulator/race/detail.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;

TEST_CASE("messages name both accesses and the cure", "[race]") {
  Conflict conflict;
  conflict.rule = Rule::SharedRace;
  conflict.bytes = 4;
  conflict.address = 0x40;
  conflict.own = Mark::WeakWrite;
  conflict.theirs = Mark::WeakRead;
  const auto text = [&](std::string_view name = "shared variable 'tile'") {
    return race_text(conflict, "thread (3,0,0) of block (0,0,0)", "thread (35,0,0)", "at line 41",
                     name);
  };
  CHECK(text().message ==
        "thread (3,0,0) of block (0,0,0) writes 4 bytes at shared offset 0x40 (shared variable "
        "'tile'), which thread (35,0,0) read at line 41; nothing orders the two");
  REQUIRE(text().details.size() == 1);
  CHECK(text().details[0] == "put bar.sync 0 between them");
  conflict.same_warp = true;
  CHECK(text().details[0] ==
        "put bar.warp.sync with both lanes in its mask (or bar.sync 0) between them");
  conflict.same_warp = false;
  conflict.theirs = Mark::StrongWrite;
  CHECK(text().details[0] ==
        "make both accesses atomic or relaxed, or put bar.sync 0 between them");
  conflict.theirs = Mark::WeakWrite;
  conflict.same_access = true;
  CHECK(text({}).message ==
        "thread (3,0,0) of block (0,0,0) writes 4 bytes at shared offset 0x40, which thread "
        "(35,0,0) writes with the same instruction, another value");
  CHECK(text().details[0] == "let one thread write it, or use an atomic");
  conflict.rule = Rule::RaceSameValue;
  CHECK(text({}).message ==
        "thread (3,0,0) of block (0,0,0) writes 4 bytes at shared offset 0x40, which thread "
        "(35,0,0) writes with the same instruction, the same value");
  conflict.same_access = false;
  CHECK(text({}).message ==
        "thread (3,0,0) of block (0,0,0) writes 4 bytes at shared offset 0x40, which thread "
        "(35,0,0) wrote at line 41, the same value; nothing orders the two");
  conflict.rule = Rule::SharedRace;
  conflict.async = true;
  CHECK(
      text({}).message ==
      "thread (3,0,0) of block (0,0,0) writes 4 bytes at shared offset 0x40, which thread (35,0,0) "
      "wrote at line 41; one of the two is an asynchronous copy that no thread has waited for");
  CHECK(text().details[0] ==
        "wait for the copy (cp.async.wait_group, cp.async.wait_all or its mbarrier) before "
        "accessing its bytes, and put bar.sync 0 after the wait for the other threads");
  conflict.async = false;
  conflict.vague = true;
  conflict.theirs = Mark::WeakRead;
  CHECK(text({}).message ==
        "thread (3,0,0) of block (0,0,0) writes 4 bytes at shared offset 0x40, which several "
        "threads read at line 41, thread (35,0,0) the first of them; nothing orders the two "
        "accesses");
  conflict.vague = false;
  conflict.mixed = true;
  conflict.own = Mark::StrongWrite;
  conflict.theirs = Mark::StrongRead;
  CHECK(text({}).message ==
        "thread (3,0,0) of block (0,0,0) changes (atomic, volatile or relaxed) 4 bytes at shared "
        "offset 0x40, which thread (35,0,0) read (volatile, relaxed or acquire) at line 41 with "
        "another width; nothing orders the two");
  CHECK(text().details[0] ==
        "use one width for all atomic, volatile and relaxed accesses to these bytes: accesses that "
        "overlap only in part race like plain ones");
}
