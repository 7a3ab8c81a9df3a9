// tests/emulator/race_oracle_test.cpp - random traces against exact happens-before
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "emulator/race/detail.hpp"
#include "race_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using ptxgen::test::RaceRunner;
using Kind = RaceAccess::Kind;
using ptx::Modifier;

namespace {

/// Every access is kept, every thread has a whole vector clock: slow and plain.
class Oracle {
 public:
  using Clock = std::vector<std::uint32_t>;
  struct Access {
    std::uint32_t thread = 0;
    std::uint32_t at = 0;  ///< the thread's own time
    std::uint64_t address = 0;
    unsigned bytes = 0;
    bool write = false;
    bool strong = false;
    bool pending = false;
    bool atomic = false;
    std::uint64_t ticket = 0;
  };

  explicit Oracle(std::uint32_t threads) : clocks_(threads, Clock(threads, 0)) {
    for (std::uint32_t t = 0; t < threads; ++t) clocks_[t][t] = 1;
    fences_.resize(threads);
    seen_.resize(threads);
  }

  /// Bytes on which the access races with an earlier one.
  std::set<std::uint64_t> access(const Access& now) {
    std::set<std::uint64_t> bad;
    doubt = false;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const Access& old = history_[i];
      if (!(old.write || now.write) || (old.strong && now.strong)) continue;
      if (!old.pending && clocks_[now.thread][old.thread] >= old.at) continue;
      const auto low = std::max(old.address, now.address);
      const auto high = std::min(old.address + old.bytes, now.address + now.bytes);
      // An atomic that has read what `old` wrote, and is ordered before: then `old` is no race.
      // Where the atomic was one of many lanes', the check may not see that.
      const bool seen = old.strong && old.write &&
                        std::any_of(history_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    history_.end(), [&](const Access& later) {
                                      return later.atomic && later.address <= low &&
                                             later.address + later.bytes >= high &&
                                             clocks_[now.thread][later.thread] >= later.at;
                                    });
      if (seen && high > low) {
        doubt = true;
        continue;
      }
      for (auto at = low; at < high; ++at) bad.insert(at);
    }
    return bad;
  }
  bool doubt = false;  ///< of the last call of `access`
  void record(Access now) {
    now.at = clocks_[now.thread][now.thread];
    history_.push_back(now);
  }
  void together(const std::vector<std::uint32_t>& threads) {
    Clock all = clocks_[0];
    std::ranges::fill(all, 0u);
    for (const std::uint32_t t : threads) join(all, clocks_[t]);
    for (const std::uint32_t t : threads) {
      clocks_[t] = all;
      ++clocks_[t][t];
    }
  }
  void release(std::uint32_t thread, Clock& object) {
    join(object, clocks_[thread]);
    ++clocks_[thread][thread];
  }
  void acquire(std::uint32_t thread, const Clock& object) { join(clocks_[thread], object); }

  void fence(std::uint32_t thread) {
    see(thread);
    fences_[thread] = clocks_[thread];
    ++clocks_[thread][thread];
  }
  void see(std::uint32_t thread) {
    for (const auto& [key, clock] : seen_[thread]) join(clocks_[thread], clock);
    seen_[thread].clear();
  }
  /// A strong access, after it was recorded.
  void strong(std::uint32_t thread, std::uint64_t key, bool reads, bool writes, Modifier order) {
    const auto found = flags_.find(key);
    if (reads && found != flags_.end()) {
      if (order == Modifier::acquire || order == Modifier::acq_rel) {
        join(clocks_[thread], found->second);
      } else {
        seen_[thread][key] = found->second;
      }
    }
    if (!writes) return;
    std::optional<Clock> own;
    if (order == Modifier::release || order == Modifier::acq_rel) {
      own = clocks_[thread];
    } else {
      own = fences_[thread];
    }
    if (!reads) flags_.erase(key);
    if (own) {
      Clock& flag = flags_[key];
      flag.resize(own->size());
      join(flag, *own);
    }
    ++clocks_[thread][thread];
  }
  void complete(std::uint32_t thread, std::uint64_t through) {
    for (Access& at : history_) {
      if (at.thread != thread || !at.pending || at.ticket > through) continue;
      at.pending = false;
      at.at = clocks_[thread][thread];
    }
  }
  std::map<std::uint64_t, Clock> objects;
  Clock& object(std::uint64_t key) {
    Clock& clock = objects[key];
    clock.resize(clocks_.size());
    return clock;
  }
  const Clock& clock(std::uint32_t thread) const { return clocks_[thread]; }
  void step(std::uint32_t thread) { ++clocks_[thread][thread]; }

 private:
  static void join(Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
  }
  std::vector<Clock> clocks_;
  std::vector<Access> history_;
  std::vector<std::optional<Clock>> fences_;
  std::vector<std::map<std::uint64_t, Clock>> seen_;
  std::map<std::uint64_t, Clock> flags_;
};

/// A mask of lanes: all, one, a tile, or any.
std::uint32_t some_lanes(std::mt19937_64& dice, std::uint32_t all) {
  switch (dice() % 6) {
    case 0:
    case 1:
    case 2:
      return all;
    case 3:
      return 1u << dice() % 32;
    case 4: {
      const unsigned width = 4u << dice() % 3;
      return ((1u << width) - 1) << dice() % (32 / width) * width;
    }
    default:
      return static_cast<std::uint32_t>(dice());
  }
}

/// How often a trace with so many warps does what.
struct Mix {
  unsigned warps = 2;
  unsigned accesses = 60;  ///< percent
  bool barriers = true;
  bool flags = true;
  bool async = true;
  bool narrow = true;  ///< accesses of other sizes than 4 bytes
  bool tiles = false;  ///< mostly reads by one instruction, of few places, by full warps
};

void run_trace(std::uint64_t number, const Mix& mix) {
  std::mt19937_64 dice(test::seed() * 1000003u + number);
  const std::uint32_t threads = mix.warps * 32 - (dice() % 4 == 0 ? 13 : 0);
  constexpr std::uint64_t kBytes = 256;
  RaceRunner run(1, mix.warps, 1024, threads);
  Oracle oracle(threads);
  std::set<std::uint64_t> tainted;  // bytes on which a race was seen: from there on anything goes
  std::vector<std::vector<std::uint32_t>> parked(16);
  std::uint64_t ticket = 1;
  std::size_t races = 0;
  std::size_t ordered = 0;
  for (std::uint32_t step = 0; step < 160; ++step) {
    const auto warp = static_cast<std::uint32_t>(dice() % mix.warps);
    const std::uint32_t exist = run.cta().warps[warp].lanes;
    const bool full = mix.tiles && dice() % 8 != 0;
    const std::uint32_t mask = (full ? 0xffffffffu : some_lanes(dice, 0xffffffffu)) & exist;
    run.warp(warp);
    if (mask == 0) continue;
    const auto each = [&](auto&& f) {
      for_each_lane(mask, [&](unsigned lane) { f(warp * 32 + lane); });
    };
    if (dice() % 100 < mix.accesses) {
      const unsigned bytes = mix.narrow ? 1u << dice() % 5 : 4u;
      const bool strong = mix.flags && dice() % 4 == 0 && bytes == 4;
      Kind kind = dice() % 2 == 0 ? Kind::Read : Kind::Write;
      Modifier order = Modifier::none;
      std::uint64_t start = dice() % (kBytes / bytes);
      std::uint64_t stride = dice() % 4 == 0 ? dice() % 4 : 1;
      const bool tile = mix.tiles && !strong && dice() % 8 != 0;
      if (tile) {
        kind = Kind::Read;
        start = dice() % 2;
        stride = std::array{0u, 1u, 1u, 2u}[dice() % 4];
      }
      if (strong) {
        kind = std::array{Kind::Read, Kind::Write, Kind::Atomic}[dice() % 3];
        order = kind == Kind::Read ? std::array{Modifier::volatile_, Modifier::acquire}[dice() % 2]
                : kind == Kind::Write
                    ? std::array{Modifier::volatile_, Modifier::release}[dice() % 2]
                    : std::array{Modifier::none, Modifier::acq_rel}[dice() % 2];
        // Few addresses, so that flags meet; and sometimes in the midst of the data.
        start = dice() % 4 == 0 ? start : kBytes / 4 + dice() % 3;
        stride = dice() % 2;
      } else if (mix.async && kind == Kind::Write && bytes >= 4 && dice() % 4 == 0) {
        kind = Kind::AsyncWrite;
      }
      const bool halves = dice() % 4 == 0;
      const auto address = [&](unsigned lane) {
        if (tile && halves) return (start + stride * (lane % 16)) * bytes;
        return start < kBytes / bytes && !strong
                   ? (start + stride * lane) % (kBytes / bytes) * bytes
                   : (start + stride * lane) * bytes;
      };
      // Lane by lane for the oracle; two lanes of one instruction race like any two threads.
      std::map<std::uint32_t, bool> expected;  // by lane; absent: tainted
      std::set<std::uint64_t> new_taint;
      for_each_lane(mask, [&](unsigned lane) {
        Oracle::Access access;
        access.thread = warp * 32 + lane;
        access.address = address(lane);
        access.bytes = bytes;
        access.write = kind != Kind::Read;
        access.strong = strong;
        access.pending = kind == Kind::AsyncWrite;
        access.ticket = ticket;
        access.atomic = kind == Kind::Atomic;
        const auto bad = oracle.access(access);
        bool is_tainted = false;
        for (std::uint64_t at = access.address; at < access.address + bytes; ++at) {
          is_tainted |= tainted.contains(at) || new_taint.contains(at);
        }
        if (!is_tainted && !oracle.doubt) expected[lane] = !bad.empty();
        new_taint.insert(bad.begin(), bad.end());
        for (std::uint64_t at = access.address; oracle.doubt && at < access.address + bytes; ++at) {
          new_taint.insert(at);
        }
        oracle.record(access);
      });
      const std::uint32_t statement =
          tile ? 1000 + static_cast<std::uint32_t>(dice() % 4) / 3 : step;
      run.shared(kind, statement, mask, bytes, address, order, {}, ticket);
      std::set<std::uint32_t> found;
      for (const auto& at : run.take()) found.insert(at.conflict.lane);
      for (const auto& [lane, bad] : expected) {
        if (bad != found.contains(lane)) {
          INFO("trace " << number << " step " << step << " warp " << warp << " lane " << lane
                        << " kind " << static_cast<int>(kind) << " bytes " << bytes << " address "
                        << address(lane) << " oracle " << bad);
          REQUIRE(bad == found.contains(lane));
        }
        races += bad ? 1 : 0;
        ordered += bad ? 0 : 1;
      }
      tainted.insert(new_taint.begin(), new_taint.end());
      if (strong) {
        each([&](std::uint32_t thread) {
          oracle.strong(thread, address(thread % 32) & ~std::uint64_t{3}, kind != Kind::Write,
                        kind != Kind::Read, order);
        });
      }
      continue;
    }
    switch (dice() % 8) {
      case 0:
      case 1: {
        oracle.together([&] {
          std::vector<std::uint32_t> lanes;
          each([&](std::uint32_t thread) { lanes.push_back(thread); });
          return lanes;
        }());
        run.warp_sync(mask);
        break;
      }
      case 2:
      case 3: {
        if (!mix.barriers) break;
        const auto id = static_cast<std::uint32_t>(dice() % 2);
        const std::uint32_t warps =
            dice() % 2 == 0 ? 0xffffffffu : static_cast<std::uint32_t>(dice());
        std::vector<std::uint32_t> all;
        for (std::uint32_t t = 0; t < threads; ++t) {
          if ((warps >> (t / 32) & 1u) == 0) continue;
          oracle.see(t);
          all.push_back(t);
        }
        if (all.empty()) break;
        oracle.together(all);
        run.barrier(id, warps);
        break;
      }
      case 4: {
        if (!mix.flags) break;
        const std::uint64_t object = 0x1000 + dice() % 2;
        if (dice() % 2 == 0) {
          each([&](std::uint32_t thread) { oracle.release(thread, oracle.object(object)); });
          run.release(object, mask);
        } else {
          each([&](std::uint32_t thread) { oracle.acquire(thread, oracle.object(object)); });
          run.acquire(object, mask);
        }
        break;
      }
      case 5:
        if (!mix.flags) break;
        each([&](std::uint32_t thread) { oracle.fence(thread); });
        run.fence(Modifier::cta, mask);
        break;
      default: {
        if (!mix.async) break;
        const std::uint64_t through = dice() % 2 == 0 ? ticket : ticket - dice() % 2;
        each([&](std::uint32_t thread) { oracle.complete(thread, through); });
        run.async_complete(mask, through);
        ++ticket;
        break;
      }
    }
  }
  CHECK(races + ordered > 0);
}

}  // namespace

TEST_CASE("random traces in shared memory have the verdict of an exact oracle", "[race]") {
  const int count = test::count(60, 2000);
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    run_trace(number * 4 + 0, {2, 70, true, true, true, true});
    run_trace(number * 4 + 1, {3, 50, true, false, false, false});
    run_trace(number * 4 + 2, {1, 40, false, true, true, true});
    run_trace(number * 4 + 3, {4, 40, true, true, false, false});
    run_trace(number * 4 + 4, {4, 70, true, false, false, false, true});
    run_trace(number * 4 + 5, {3, 60, false, false, false, false, true});
    run_trace(number * 4 + 6, {4, 70, true, true, true, true, true});
  }
}
