// src/emulator/memory_barrier.cpp - mbarrier objects
#include <algorithm>
#include <cstring>

#include "emulator/memory_access.hpp"
#include "emulator/memory_async.hpp"
#include "emulator/memory_faults.hpp"
#include "emulator/memory_steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Op;

/// An mbarrier object is 64 bits that PTX leaves to the implementation. Ours, from the lowest bit:
/// 20 bits arrivals that the phase still waits for; 20 bits arrivals that each phase waits for;
/// 21 bits bytes that the phase still waits for, two's complement; 1 bit parity of the phase;
/// 1 bit always set, so that memory which is no such object is told apart; 1 bit clear.
/// The state that an arrival returns is the object as it was before.
struct Object {
  std::uint32_t pending = 0;
  std::uint32_t expected = 0;
  std::int32_t bytes = 0;
  bool parity = false;
  bool valid = false;

  static constexpr std::uint64_t kCount = (1u << 20) - 1;
  static constexpr std::uint64_t kBytes = (1u << 21) - 1;

  [[nodiscard]] static Object unpacked(std::uint64_t word) noexcept {
    Object made;
    made.pending = static_cast<std::uint32_t>(word & kCount);
    made.expected = static_cast<std::uint32_t>(word >> 20 & kCount);
    const auto bytes = static_cast<std::int32_t>(word >> 40 & kBytes);
    made.bytes = bytes >= 1 << 20 ? bytes - (1 << 21) : bytes;
    made.parity = (word >> 61 & 1u) != 0;
    made.valid = (word >> 62) == 1;
    return made;
  }
  [[nodiscard]] std::uint64_t packed() const noexcept {
    return (pending & kCount) | (expected & kCount) << 20 |
           (static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes)) & kBytes) << 40 |
           std::uint64_t{parity} << 61 | std::uint64_t{1} << 62;
  }
  /// The phase ends when nothing is waited for any more.
  void settle() noexcept {
    if (pending != 0 || bytes != 0) return;
    parity = !parity;
    pending = expected;
  }
  void arrive(std::uint32_t count) noexcept {
    // More arrivals than the phase has room for are undefined; here the rest is lost.
    pending -= count < pending ? count : pending;
    settle();
  }
};

enum class Action : std::uint8_t { Init, Inval, Arrive, Expect, Complete, Test, CopyArrive };

struct Meaning {
  Action action = Action::Arrive;
  bool drop = false;
  bool expects = false;  ///< the count operand is bytes
  bool parity = false;
  bool noinc = false;
};

Meaning meaning_of(const MemoryDetail& detail) {
  Meaning made;
  switch (detail.op) {
    case Op::mbarrier_init:
      made.action = Action::Init;
      break;
    case Op::mbarrier_inval:
      made.action = Action::Inval;
      break;
    case Op::mbarrier_expect_tx:
      made.action = Action::Expect;
      break;
    case Op::mbarrier_complete_tx:
      made.action = Action::Complete;
      break;
    case Op::mbarrier_arrive_expect_tx:
      made.expects = true;
      break;
    case Op::mbarrier_arrive_drop:
    case Op::mbarrier_arrive_drop_count:
    case Op::mbarrier_arrive_drop_no_complete:
      made.drop = true;
      break;
    case Op::mbarrier_arrive_drop_expect_tx:
      made.drop = true;
      made.expects = true;
      break;
    case Op::mbarrier_test_wait:
    case Op::mbarrier_try_wait:
      made.action = Action::Test;
      break;
    case Op::mbarrier_test_wait_parity:
    case Op::mbarrier_try_wait_parity:
      made.action = Action::Test;
      made.parity = true;
      break;
    case Op::cp_async_mbarrier_arrive:
      made.action = Action::CopyArrive;
      made.noinc = detail.lane.extra != 0;
      break;
    default:
      break;
  }
  return made;
}

/// Races are told of the object by its shared offset.
std::uint64_t object_of(const Context& context, const std::byte* host) {
  return static_cast<std::uint64_t>(host - context.cta->shared);
}

}  // namespace

void run_mbarrier(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  const Meaning meaning = meaning_of(detail);
  if (meaning.action == Action::CopyArrive) {
    // Legal at once: the copies may take no time at all.
    AsyncCopies::of(context).finish(context, mask, 0, true);
  }
  std::uint64_t addresses[32];
  compute_addresses(context, detail.base, detail.offset, addresses);
  AccessRequest request;
  request.space = detail.space;
  request.addresses = addresses;
  request.mask = mask;
  request.bytes = request.alignment = 8;
  request.reads = meaning.action != Action::Init;
  request.writes = meaning.action != Action::Test;
  request.kind = meaning.action == Action::Init || meaning.action == Action::Inval
                     ? RaceAccess::Kind::Write
                     : RaceAccess::Kind::Atomic;
  request.count = false;
  Reach found;
  reach(context, step, detail, request, found);
  // Each phase is an object of its own, so that an early arrival for the next one is not mistaken
  // for one of the phase that was waited for.
  const auto each_check = [&](auto&& f) {
    if (detail.action == Modifier::relaxed) return;
    if (context.cta->races) f(*context.cta->races);
    if (context.grid->races) f(*context.grid->races);
  };
  for_each_lane(mask, [&](unsigned lane) {
    if ((found.mask >> lane & 1u) == 0) {
      // The finding is made; waiting for an object that is not there would only add a deadlock.
      if (!detail.data.empty() && detail.data[0].present()) {
        set_lane(context, detail.data[0], lane, meaning.action == Action::Test ? 1 : 0);
      }
      return;
    }
    std::byte* const host = found.host[lane];
    std::uint64_t word = 0;
    std::memcpy(&word, host, 8);
    const std::uint64_t before = word;
    const std::uint64_t operand =
        detail.sources.empty() ? 1 : get_lane(context, detail.sources[0], lane);
    const auto count = static_cast<std::uint32_t>(operand);
    const auto bytes = static_cast<std::int32_t>(operand);
    Object object = Object::unpacked(word);
    if (meaning.action == Action::Init) {
      object = {};
      object.pending = object.expected = count;
      word = object.packed();
    } else if (!object.valid) {
      report_no_object(
          {context, step, detail, request, ptx::Space::Shared, lane, object_of(context, host)});
      if (meaning.action == Action::Test) set_lane(context, detail.data[0], lane, 1);
      return;
    } else if (meaning.action == Action::Inval) {
      word = 0;
    } else if (meaning.action == Action::Test) {
      // A state is of the phase that runs or of the one before it, so that its parity tells.
      const bool waited = meaning.parity ? (operand & 1u) != 0 : Object::unpacked(operand).parity;
      const bool done = waited != object.parity;
      set_lane(context, detail.data[0], lane, done ? 1 : 0);
      if (done) {
        each_check([&](Races& races) {
          races.acquire(context, 1u << lane, 2 * object_of(context, host) + (waited ? 1 : 0));
        });
      }
      return;
    } else {
      const bool releases =
          meaning.action == Action::Arrive || meaning.action == Action::CopyArrive;
      if (releases) {
        each_check([&](Races& races) {
          races.release(context, 1u << lane,
                        2 * object_of(context, host) + (object.parity ? 1 : 0));
        });
      }
      if (meaning.action == Action::Expect || meaning.expects) object.bytes += bytes;
      if (meaning.action == Action::Complete) {
        object.bytes -= bytes;
        object.settle();
      }
      if (meaning.action == Action::Arrive) {
        const std::uint32_t arrivals = meaning.expects ? 1 : count;
        if (meaning.drop) object.expected -= std::min(arrivals, object.expected);
        object.arrive(arrivals);
      }
      // Without .noinc the arrival is one more than the object was made for.
      if (meaning.action == Action::CopyArrive) {
        if (!meaning.noinc) ++object.pending;
        object.arrive(1);
      }
      word = object.packed();
    }
    std::memcpy(host, &word, 8);
    if (meaning.action == Action::Arrive && !detail.data.empty() && detail.data[0].present()) {
      set_lane(context, detail.data[0], lane, before);
    }
  });
}

void run_copy_bulk(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  std::uint64_t to[32];
  std::uint64_t from[32];
  std::uint64_t barrier[32];
  compute_addresses(context, detail.base, detail.offset, to);
  compute_addresses(context, detail.second_base, detail.second_offset, from);
  compute_addresses(context, detail.sources[1], detail.lane.extra, barrier);
  const auto each_check = [&](auto&& f) {
    if (context.cta->races) f(*context.cta->races);
    if (context.grid->races) f(*context.grid->races);
  };
  for_each_lane(mask, [&](unsigned lane) {
    const std::uint64_t total = get_lane(context, detail.sources[0], lane) & 0xffffffffu;
    AccessRequest write;
    write.space = ptx::Space::Shared;
    write.addresses = to;
    write.mask = 1u << lane;
    write.bytes = write.alignment = 16;
    write.writes = true;
    write.kind = RaceAccess::Kind::AsyncWrite;
    write.ticket = AsyncCopies::of(context).new_ticket();
    AccessRequest read = write;
    read.space = ptx::Space::Global;
    read.addresses = from;
    read.writes = false;
    read.reads = true;
    read.kind = RaceAccess::Kind::AsyncRead;
    // Legal at once: the copy may take no time at all.
    for (std::uint64_t done = 0; done < total; done += 16, to[lane] += 16, from[lane] += 16) {
      Reach target;
      Reach source;
      reach(context, step, detail, read, source);
      reach(context, step, detail, write, target);
      if ((source.mask & target.mask) == 0) break;  // the finding is made, and once is enough
      std::byte data[16];
      load_bytes(data, source.host[lane], 16);
      store_bytes(target.host[lane], data, 16);
    }
    each_check([&](Races& races) { races.async_complete(context, 1u << lane, write.ticket); });
    AccessRequest complete;
    complete.space = ptx::Space::Shared;
    complete.addresses = barrier;
    complete.mask = 1u << lane;
    complete.bytes = complete.alignment = 8;
    complete.reads = complete.writes = true;
    complete.kind = RaceAccess::Kind::Atomic;
    complete.count = false;
    Reach found;
    reach(context, step, detail, complete, found);
    if (found.mask == 0) return;
    std::byte* const host = found.host[lane];
    std::uint64_t word = 0;
    std::memcpy(&word, host, 8);
    Object object = Object::unpacked(word);
    if (!object.valid) {
      report_no_object(
          {context, step, detail, complete, ptx::Space::Shared, lane, object_of(context, host)});
      return;
    }
    each_check([&](Races& races) {
      races.release(context, 1u << lane, 2 * object_of(context, host) + (object.parity ? 1 : 0));
    });
    object.bytes -= static_cast<std::int32_t>(total);
    object.settle();
    word = object.packed();
    std::memcpy(host, &word, 8);
  });
}

void run_pending_count(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  for_each_lane(context.mask(step), [&](unsigned lane) {
    const Object state = Object::unpacked(get_lane(context, detail.sources[0], lane));
    set_lane(context, detail.data[0], lane, state.pending);
  });
}

}  // namespace ptxgen::inline v0::emulator
