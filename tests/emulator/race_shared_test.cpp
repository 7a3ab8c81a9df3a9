// tests/emulator/race_shared_test.cpp - races in shared memory: scenarios with known verdicts
#include <catch2/catch.hpp>

#include "emulator/race/shared.hpp"
#include "race_runner.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using ptxgen::test::RaceRunner;
using ptxgen::test::strided;
using Kind = RaceAccess::Kind;
using ptx::Modifier;

namespace {

/// Nothing was found.
void clean(RaceRunner& run) {
  const auto found = run.take();
  INFO((found.empty() ? std::string()
                      : "statement " + std::to_string(found[0].statement) + " with " +
                            std::to_string(found[0].conflict.other.statement)));
  CHECK(found.empty());
}

/// A race of these statements was found, the second with the first, and nothing else.
RaceRunner::Found only(RaceRunner& run, std::uint32_t statement, std::uint32_t other,
                       Rule rule = Rule::SharedRace) {
  const auto found = run.take();
  REQUIRE_FALSE(found.empty());
  for (const auto& at : found) {
    CHECK(at.statement == statement);
    CHECK(at.conflict.other.statement == other);
    CHECK(at.conflict.rule == rule);
  }
  return found[0];
}

}  // namespace

TEST_CASE("a tile is written, a barrier, and read by others", "[race]") {
  for (const unsigned bytes : {1u, 2u, 4u, 8u, 16u}) {
    CAPTURE(bytes);
    RaceRunner run(1, 4);
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (unsigned w = 0; w < 4; ++w) {
        run.warp(w).store(1, strided(w * 32 * bytes, bytes), RaceRunner::kAll, bytes);
      }
      run.barrier();
      for (unsigned w = 0; w < 4; ++w) {
        run.warp(w).load(2, strided((3 - w) * 32 * bytes, bytes), RaceRunner::kAll, bytes);
        run.load(3, strided(0, bytes), RaceRunner::kAll, bytes);
      }
      run.barrier();
    }
    clean(run);
    // Without the second barrier.
    run.warp(0).load(2, strided(64 * bytes, bytes), RaceRunner::kAll, bytes);
    run.warp(2).store(1, strided(64 * bytes, bytes), RaceRunner::kAll, bytes);
    only(run, 1, 2);
  }
}

TEST_CASE("read and write race in either order", "[race]") {
  RaceRunner run(1, 2);
  run.warp(0).load(1, strided(0, 4));
  run.warp(1).store(2, strided(0, 4));
  const auto found = only(run, 2, 1);
  CHECK(found.thread == 32);
  CHECK(found.conflict.other.thread == 0);
  CHECK(found.conflict.own == Mark::WeakWrite);
  CHECK(found.conflict.theirs == Mark::WeakRead);
  run.barrier();
  run.warp(1).store(2, strided(0, 4));
  run.warp(0).load(1, strided(0, 4));
  only(run, 1, 2);
}

TEST_CASE("a write races with each of several readers", "[race]") {
  RaceRunner run(1, 4);
  for (unsigned w = 0; w < 3; ++w) run.warp(w).load(1 + w, strided(0, 4));
  run.barrier(1, 0b1011);  // orders warps 0, 1 and 3; warp 2 stays away
  run.warp(3).store(9, strided(0, 4));
  const auto found = run.take();
  REQUIRE_FALSE(found.empty());
  for (const auto& at : found) CHECK(at.conflict.other.thread / 32 == 2);
}

TEST_CASE("lanes of a warp race until they synchronise", "[race]") {
  RaceRunner run(1, 1);
  run.store(1, strided(0, 4));
  run.load(2, [](unsigned lane) { return (lane ^ 1u) * 4; });
  const auto found = only(run, 2, 1);
  CHECK(found.conflict.same_warp);
  CHECK(found.thread == 0);
  CHECK(found.conflict.other.thread == 1);
  run.barrier();
  run.store(1, strided(0, 4));
  run.warp_sync();
  run.load(2, [](unsigned lane) { return (lane ^ 1u) * 4; });
  clean(run);
}

TEST_CASE("tiles of a warp synchronise apart", "[race]") {
  for (const unsigned width : {4u, 8u, 16u}) {
    CAPTURE(width);
    RaceRunner run(1, 1);
    run.store(1, strided(0, 4));
    for (unsigned first = 0; first < 32; first += width) {
      const std::uint32_t mask = ((1u << width) - 1) << first;
      run.warp_sync(mask);
      run.load(
          2, [](unsigned lane) { return (lane ^ 1u) * 4; }, mask);
      run.warp_sync(mask);
      run.store(
          3, [](unsigned lane) { return (lane ^ 1u) * 4; }, mask);
    }
    clean(run);
    for (unsigned first = 0; first < 32; first += width) {
      run.warp_sync(((1u << width) - 1) << first);
    }
    // Into the neighbouring tile.
    run.load(4, [=](unsigned lane) { return (lane ^ width) * 4; });
    CHECK(run.take().size() == 32);
  }
}

TEST_CASE("exited lanes do not keep a warp from being whole", "[race]") {
  RaceRunner run(1, 2);
  run.store(1, strided(0, 4));
  run.exit(0xffff0000u);
  run.warp_sync(0xffffu);
  run.load(
      2, [](unsigned lane) { return (lane + 16) * 4; }, 0xffffu);
  clean(run);
  run.warp(1).store(3, strided(512, 4));
  run.barrier();
  run.warp(0).load(2, strided(512, 4), 0xffffu);
  run.warp(1).load(2, strided(0, 4));
  clean(run);
}

TEST_CASE("one instruction, one address, two lanes", "[race]") {
  RaceRunner run(1, 1);
  run.shared(Kind::Write, 1, 0b11, 4, strided(8, 0), Modifier::none,
             [](unsigned lane) { return lane; });
  const auto found = only(run, 1, 1);
  CHECK(found.conflict.same_access);
  CHECK(found.thread == 1);
  CHECK(found.conflict.other.thread == 0);
  run.barrier();
  run.shared(Kind::Write, 1, 0b11, 4, strided(8, 0), Modifier::none, [](unsigned) { return 7; });
  only(run, 1, 1, Rule::RaceSameValue);
  // Equal by halves, different as a whole.
  run.barrier();
  run.shared(Kind::Write, 1, 0b11, 4, strided(16, 2), Modifier::none,
             [](unsigned) { return 0x00070008u; });
  const auto halves = run.take();
  CHECK(std::ranges::any_of(halves,
                            [](const auto& at) { return at.conflict.rule == Rule::SharedRace; }));
  // Not known what is written.
  run.barrier();
  run.store(1, strided(8, 0), 0b11);
  only(run, 1, 1);
}

TEST_CASE("equal values of different instructions", "[race]") {
  RaceRunner run(1, 2);
  const auto seven = [](unsigned) { return std::uint64_t{7}; };
  run.warp(0).shared(Kind::Write, 1, 1, 4, strided(0, 4), Modifier::none, seven);
  run.warp(1).shared(Kind::Write, 2, 1, 4, strided(0, 4), Modifier::none, seven);
  only(run, 2, 1, Rule::RaceSameValue);
  run.warp(0).shared(Kind::Write, 3, 1, 4, strided(0, 4), Modifier::none,
                     [](unsigned) { return 8; });
  only(run, 3, 2);
  // A reader is not consoled by the value.
  run.barrier();
  run.warp(0).load(4, strided(0, 4), 1);
  run.warp(1).shared(Kind::Write, 5, 1, 4, strided(0, 4), Modifier::none,
                     [](unsigned) { return 8; });
  only(run, 5, 4);
}

TEST_CASE("neighbouring bytes are not shared", "[race]") {
  RaceRunner run(1, 2);
  SECTION("bytes and halves in runs") {
    run.warp(0).store(1, strided(0, 2), RaceRunner::kAll, 2);
    run.warp(1).store(2, strided(64, 2), RaceRunner::kAll, 2);
    run.warp(0).load(1, strided(0, 2), RaceRunner::kAll, 2);
    run.warp(0).store(3, strided(0, 2), RaceRunner::kAll, 2);
    run.warp(0).store(4, strided(128, 1), RaceRunner::kAll, 1);
    run.warp(0).load(4, strided(128, 1), RaceRunner::kAll, 1);
    clean(run);
    run.warp(0).load(5, strided(0, 4), 0b11, 4);
    only(run, 5, 3);
  }
  SECTION("scattered") {
    // Each thread its byte of every word, in an odd order.
    for (unsigned w = 0; w < 2; ++w) {
      for (unsigned part = 0; part < 2; ++part) {
        run.warp(w).store(
            1, [=](unsigned lane) { return lane * 4 + w * 2 + part; }, RaceRunner::kAll, 1);
      }
      run.load(
          2, [=](unsigned lane) { return lane * 4 + w * 2; }, RaceRunner::kAll, 2);
    }
    clean(run);
    run.warp(0).load(
        3, [](unsigned lane) { return lane * 4 + 2; }, 1, 1);
    only(run, 3, 1);
  }
  SECTION("unaligned end of a partial warp") {
    run.warp(0).store(1, strided(0, 1), 0x7f, 1);
    run.warp(1).store(2, strided(7, 1), 0x1, 1);
    clean(run);
    run.warp(1).store(2, strided(6, 1), 0x1, 1);
    only(run, 2, 1);
  }
}

TEST_CASE("wide accesses meet narrow ones", "[race]") {
  RaceRunner run(1, 2);
  run.warp(0).store(1, strided(0, 16), RaceRunner::kAll, 16);
  run.warp(1).load(2, strided(500, 4), 1, 4);
  const auto found = only(run, 2, 1);
  CHECK(found.conflict.other.thread == 31);
  run.warp(1).load(2, strided(509, 1), 1, 1);
  only(run, 2, 1);
  run.warp(1).load(2, strided(512, 1), 1, 1);
  clean(run);
}

TEST_CASE("atomics race with plain accesses only", "[race]") {
  RaceRunner run(1, 3);
  for (unsigned w = 0; w < 3; ++w) {
    run.warp(w).shared(Kind::Atomic, 1, RaceRunner::kAll, 4,
                       [](unsigned lane) { return lane % 8 * 4; });
  }
  clean(run);
  SECTION("then read") {
    run.warp(0).load(2, strided(0, 4), 1);
    const auto found = run.take();
    REQUIRE_FALSE(found.empty());
    for (const auto& at : found) {
      CHECK(at.conflict.theirs == Mark::StrongWrite);
      CHECK(at.conflict.own == Mark::WeakRead);
    }
  }
  SECTION("then written") {
    run.warp(0).store(2, strided(0, 4), 1);
    CHECK_FALSE(run.take().empty());
  }
  SECTION("a barrier, then read, then counted again") {
    run.barrier();
    run.warp(0).load(2, strided(0, 4), 1);
    clean(run);
    run.warp(1).shared(Kind::Atomic, 3, 1, 4, strided(0, 4));
    only(run, 3, 2);
  }
  SECTION("volatile reads") {
    run.warp(0).shared(Kind::Read, 2, RaceRunner::kAll, 4, strided(0, 4), Modifier::volatile_);
    clean(run);
  }
}

TEST_CASE("the last of many sets the counter back", "[race]") {
  RaceRunner run(1, 4);
  for (unsigned w = 0; w < 4; ++w) run.warp(w).shared(Kind::Atomic, 1, 1, 4, strided(0, 0));
  run.store(2, strided(0, 0), 1);
  clean(run);
  run.warp(1).shared(Kind::Atomic, 1, 1, 4, strided(0, 0));
  only(run, 1, 2);
  // Not the last one.
  run.barrier();
  for (unsigned w = 0; w < 4; ++w) run.warp(w).shared(Kind::Atomic, 1, 1, 4, strided(0, 0));
  run.warp(0).store(2, strided(0, 0), 1);
  only(run, 2, 1);
}

TEST_CASE("a flag with release and acquire orders", "[race]") {
  RaceRunner run(1, 2);
  run.warp(0).store(1, strided(0, 4));
  SECTION("by the same lane") {
    run.shared(Kind::Write, 2, 1, 4, strided(1024, 0), Modifier::release);
    run.warp(1).shared(Kind::Read, 3, 1, 4, strided(1024, 0), Modifier::acquire);
    run.load(4, strided(0, 4), 1);
    clean(run);
    run.load(4, strided(4, 4), 1);  // what lane 1 wrote was not released by lane 0
    only(run, 4, 1);
    run.load(4, strided(0, 0), 2);  // lane 1 has acquired nothing
    only(run, 4, 1);
  }
  SECTION("after bar.warp.sync, for the warp") {
    run.warp_sync();
    run.shared(Kind::Write, 2, 1, 4, strided(1024, 0), Modifier::release);
    run.warp(1).shared(Kind::Read, 3, 1, 4, strided(1024, 0), Modifier::acquire);
    run.warp_sync();
    run.load(4, strided(0, 4));
    clean(run);
  }
  SECTION("with fences and volatile") {
    run.warp_sync();
    run.fence(Modifier::cta);
    run.shared(Kind::Write, 2, 1, 4, strided(1024, 0), Modifier::volatile_);
    run.warp(1).shared(Kind::Read, 3, RaceRunner::kAll, 4, strided(1024, 0), Modifier::volatile_);
    run.fence(Modifier::cta);
    run.load(4, strided(0, 4));
    clean(run);
  }
  SECTION("without the writer's fence") {
    run.shared(Kind::Write, 2, 1, 4, strided(1024, 0), Modifier::volatile_);
    run.warp(1).shared(Kind::Read, 3, RaceRunner::kAll, 4, strided(1024, 0), Modifier::volatile_);
    run.fence(Modifier::cta);
    run.load(4, strided(0, 4), 1);
    only(run, 4, 1);
  }
  SECTION("without the reader's fence") {
    run.fence(Modifier::cta);
    run.shared(Kind::Write, 2, 1, 4, strided(1024, 0), Modifier::volatile_);
    run.warp(1).shared(Kind::Read, 3, RaceRunner::kAll, 4, strided(1024, 0), Modifier::volatile_);
    run.load(4, strided(0, 4), 1);
    only(run, 4, 1);
  }
  SECTION("what comes after the fence is not released") {
    run.fence(Modifier::cta);
    run.store(5, strided(256, 4));
    run.shared(Kind::Write, 2, 1, 4, strided(1024, 0), Modifier::volatile_);
    run.warp(1).shared(Kind::Read, 3, RaceRunner::kAll, 4, strided(1024, 0), Modifier::volatile_);
    run.fence(Modifier::cta);
    run.load(4, strided(0, 4), 1);
    clean(run);
    run.load(4, strided(256, 4), 1);
    only(run, 4, 5);
  }
}

TEST_CASE("a lock hands its data on", "[race]") {
  RaceRunner run(1, 3);
  for (int iteration = 0; iteration < 200; ++iteration) {
    run.warp(static_cast<std::uint32_t>(iteration % 3));
    run.shared(Kind::Atomic, 1, 1, 4, strided(1024, 0));
    run.fence(Modifier::cta, 1);
    run.load(2, strided(0, 0), 1);
    run.store(3, strided(0, 0), 1);
    run.fence(Modifier::cta, 1);
    run.shared(Kind::Atomic, 4, 1, 4, strided(1024, 0));
  }
  clean(run);
}

TEST_CASE("an mbarrier releases and is acquired", "[race]") {
  RaceRunner run(1, 4);
  for (unsigned w = 0; w < 3; ++w) {
    run.warp(w).store(1, strided(w * 128, 4));
    run.release(0x2000);
  }
  run.warp(3).acquire(0x2000);
  run.load(2, strided(0, 4));
  run.load(2, strided(256, 4));
  clean(run);
  run.warp(0).store(3, strided(512, 4));  // after its arrival
  run.warp(3).acquire(0x2000);
  run.load(2, strided(512, 4), 1);
  only(run, 2, 3);
}

TEST_CASE("lane 0 arrives for a warp that has not synchronised", "[race]") {
  RaceRunner run(1, 2);
  run.warp(0).store(1, strided(0, 4));
  run.release(0x2000, 1);
  run.warp(1).acquire(0x2000);
  run.load(2, strided(0, 4));
  CHECK(run.take().size() == 31);
}

TEST_CASE("every warp reads, one lane of each arrives, one writes", "[race]") {
  RaceRunner run(1, 4);
  for (unsigned w = 0; w < 4; ++w) {
    run.warp(w).load(1, strided(0, 4));
    run.release(0x2000, 1);
  }
  run.warp(0).acquire(0x2000, 1);
  run.store(2, strided(0, 0), 1);  // read by lane 0 of each
  clean(run);
  run.store(2, strided(4, 0), 1);  // read by lane 1 of each
  CHECK_FALSE(run.take().empty());
}

TEST_CASE("named barriers, producers and consumers", "[race]") {
  RaceRunner run(1, 4);
  run.warp(0).store(1, strided(0, 4));
  run.barrier_arrive(1);
  run.store(3, strided(128, 4));  // the next stage
  run.barrier(1, 0b0010);
  run.warp(1).load(2, strided(0, 4));
  clean(run);
  run.load(2, strided(128, 4), 1);
  only(run, 2, 3);
  run.warp(2).load(2, strided(0, 4), 1);  // was not at the barrier
  only(run, 2, 1);
}

TEST_CASE("a warp that has left counts only where the whole block is meant", "[race]") {
  RaceRunner run(1, 2);
  run.warp(0).store(1, strided(0, 4));
  run.exit(RaceRunner::kAll);
  SECTION("bar.sync 2, 32") {
    run.barrier(2, 0b10);
    run.warp(1).load(2, strided(0, 4));
    only(run, 2, 1);
  }
  SECTION("bar.sync 0") {
    run.barrier();
    run.warp(1).load(2, strided(0, 4));
    clean(run);
  }
}

TEST_CASE("asynchronous copies are ordered by nothing but their completion", "[race]") {
  RaceRunner run(1, 2);
  const auto copy = [&](std::uint32_t statement, std::uint64_t base, std::uint64_t ticket) {
    run.shared(Kind::AsyncWrite, statement, RaceRunner::kAll, 16, strided(base, 16), Modifier::none,
               {}, ticket);
  };
  copy(1, 0, 1);
  SECTION("waited for") {
    run.async_complete();
    run.load(2, strided(0, 16), RaceRunner::kAll, 16);
    clean(run);
    run.barrier();
    run.warp(1).load(2, strided(0, 16), RaceRunner::kAll, 16);
    clean(run);
  }
  SECTION("not waited for, by the same thread") {
    run.load(2, strided(0, 16), RaceRunner::kAll, 16);
    const auto found = only(run, 2, 1);
    CHECK(found.conflict.async);
    CHECK(found.conflict.same_thread);
  }
  SECTION("a barrier does not help") {
    run.barrier();
    run.warp(1).load(2, strided(0, 16), RaceRunner::kAll, 16);
    CHECK(only(run, 2, 1).conflict.async);
  }
  SECTION("waited for, without a barrier") {
    run.async_complete();
    run.warp(1).load(2, strided(0, 16), RaceRunner::kAll, 16);
    CHECK_FALSE(only(run, 2, 1).conflict.async);
  }
  SECTION("groups") {
    copy(3, 512, 2);
    run.async_complete(RaceRunner::kAll, 1);
    run.load(2, strided(0, 16), RaceRunner::kAll, 16);
    clean(run);
    run.load(2, strided(512, 16), 1, 16);
    only(run, 2, 3);
  }
  SECTION("in halves and after other accesses") {
    run.async_complete();
    run.barrier();
    run.load(4, strided(0, 4));
    run.barrier();
    run.shared(Kind::AsyncWrite, 5, 1, 4, strided(0, 4));
    run.shared(Kind::AsyncWrite, 5, 2, 8, strided(16, 8));
    clean(run);
    run.barrier();
    run.warp(1).load(6, strided(0, 4), 1);
    only(run, 6, 5);
  }
}

TEST_CASE("time runs over", "[race]") {
  RaceRunner run(1, 2);
  auto& races = dynamic_cast<SharedRaces&>(run.shared_races());
  for (int iteration = 0; iteration < 3; ++iteration) {
    races.skip_time(400000);
    run.warp(0).store(1, strided(0, 4));
    run.shared(Kind::Atomic, 5, RaceRunner::kAll, 4, strided(1024, 4));
    races.skip_time(100000);
    run.warp(1).load(2, strided(0, 4));  // still remembered
    only(run, 2, 1);
    run.load(2, strided(1024, 4), 1);
    only(run, 2, 5);
    run.barrier();
    races.skip_time(300000);
    run.load(2, strided(0, 4));
    run.load(2, strided(1024, 4), 1);
    run.barrier();
    clean(run);
  }
}

TEST_CASE("a block takes over from another", "[race]") {
  RaceRunner run(1, 2);
  for (int iteration = 0; iteration < 3; ++iteration) {
    run.warp(0).store(1, strided(0, 4));
    run.warp(1).load(2, strided(256, 4));
    run.shared(Kind::AsyncWrite, 3, RaceRunner::kAll, 16, strided(512, 16));
    run.shared(Kind::Atomic, 4, RaceRunner::kAll, 4, strided(1024, 0));
    clean(run);
    run.cta().warps[0].exited = 0;
    run.shared_races().restart(run.cta());
    run.warp(1).store(5, strided(0, 4));
    run.warp(0).store(5, strided(256, 4));
    run.warp(0).load(5, strided(512, 16), RaceRunner::kAll, 16);
    run.warp(0).store(5, strided(1024, 0), 1);
    clean(run);
    run.shared_races().restart(run.cta());
  }
}

TEST_CASE("addresses beyond shared memory are another check's finding", "[race]") {
  RaceRunner run(1, 2, 256);
  run.store(1, strided(0, 16), RaceRunner::kAll, 16);
  run.store(1, strided(~std::uint64_t{0} - 200, 4));
  run.store(1, strided(254, 0), 1, 4);
  run.warp(1).shared(Kind::Atomic, 2, RaceRunner::kAll, 8, strided(252, 4));
  clean(run);
}

TEST_CASE("shadow memory is small", "[race]") {
  RaceRunner run(1, 8, 48 * 1024);
  CHECK(run.shared_races().overhead_bytes() <= 7 * 48 * 1024);
}

TEST_CASE("strong accesses to shared memory of different width", "[race]") {
  struct Pair {
    Kind first;
    unsigned first_bytes;
    std::uint64_t first_at;
    Kind second;
    unsigned second_bytes;
    std::uint64_t second_at;
    bool races;
  };
  constexpr Pair kPairs[] = {
      {Kind::Write, 4, 0, Kind::Read, 4, 0, false},   {Kind::Atomic, 8, 0, Kind::Read, 8, 0, false},
      {Kind::Write, 2, 2, Kind::Atomic, 2, 2, false}, {Kind::Write, 2, 0, Kind::Read, 2, 2, false},
      {Kind::Read, 8, 0, Kind::Read, 4, 0, false},    {Kind::Atomic, 8, 0, Kind::Read, 4, 4, true},
      {Kind::Read, 4, 4, Kind::Atomic, 8, 0, true},   {Kind::Write, 4, 0, Kind::Write, 8, 0, true},
      {Kind::Write, 1, 3, Kind::Write, 2, 2, true},   {Kind::Read, 1, 1, Kind::Write, 4, 0, true},
  };
  for (const Pair& pair : kPairs) {
    CAPTURE(pair.first_bytes, pair.first_at, pair.second_bytes, pair.second_at);
    RaceRunner run(1, 2);
    run.shared(pair.first, 1, 1, pair.first_bytes, strided(pair.first_at, 0), Modifier::relaxed);
    run.warp(1).shared(pair.second, 2, 1, pair.second_bytes, strided(pair.second_at, 0),
                       Modifier::relaxed);
    const auto found = run.take();
    CHECK(found.empty() == !pair.races);
    for (const auto& each : found) {
      CHECK(each.conflict.mixed);
      CHECK(each.conflict.rule == Rule::SharedRace);
    }
    run.barrier();
    run.warp(0).shared(pair.second, 2, 1, pair.second_bytes, strided(pair.second_at, 0),
                       Modifier::relaxed);
    clean(run);
  }
}
