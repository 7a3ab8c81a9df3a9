// src/emulator/memory/barrier.cpp - mbarrier objects
#include <algorithm>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/async.hpp"
#include "emulator/memory/barrier.hpp"
#include "emulator/memory/bulk.hpp"
#include "emulator/memory/faults.hpp"
#include "emulator/memory/steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Op;

using Object = MbarrierObject;

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

/// Where the object lies in its owner's shared memory.
std::uint64_t offset_of(const Cta& owner, const std::byte* host) {
  return static_cast<std::uint64_t>(host - owner.shared);
}

/// Whoever waits in a loop comes here again and again.
void note_vain(Context& context, const Step& step, unsigned lane, std::uint64_t object,
               bool parity) {
  Warp::VainWait& vain = context.warp->vain;
  // A loop with more in it than the wait does something else meanwhile.
  constexpr std::uint64_t kShortLoop = 256;
  const bool same = context.warp->instructions - vain.instructions <= kShortLoop;
  vain.in_a_row = same ? vain.in_a_row + 1 : 1;
  vain.instructions = context.warp->instructions;
  vain.statement = step.statement;
  vain.lane = lane;
  vain.object = object;
  vain.parity = parity;
}

/// Puts the object back after something was taken off it.
void store_object(Cta& owner, std::byte* host, const Object& object, bool parity_before) {
  const std::uint64_t word = object.packed();
  std::memcpy(host, &word, 8);
  if (owner.bulk != nullptr && object.parity != parity_before) {
    phase_ended(owner, offset_of(owner, host));
  }
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
  const auto each_check = [&](Cta& owner, auto&& f) {
    if (detail.action == Modifier::relaxed) return;
    if (owner.races) f(*context.cta->races);
    if (context.grid->races) f(*context.grid->races);
  };
  unsigned vain_lane = kLanes;
  bool vain_parity = false;
  std::uint64_t vain_object = 0;
  bool goes_on = meaning.action != Action::Test;
  for_each_lane(mask, [&](unsigned lane) {
    if ((found.mask >> lane & 1u) == 0) {
      // The finding is made; waiting for an object that is not there would only add a deadlock.
      if (!detail.data.empty() && detail.data[0].present()) {
        set_lane(context, detail.data[0], lane, meaning.action == Action::Test ? 1 : 0);
      }
      goes_on = true;
      return;
    }
    std::byte* const host = found.host[lane];
    Cta& owner = found.owner(context, lane);
    const std::uint64_t offset = offset_of(owner, host);
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
      std::memcpy(host, &word, 8);
      return;
    }
    if (!object.valid) {
      report_no_object({context, step, detail, request, ptx::Space::Shared, lane, offset,
                        &owner != context.cta ? &owner : nullptr});
      if (meaning.action == Action::Test) set_lane(context, detail.data[0], lane, 1);
      goes_on = true;
      return;
    }
    if (meaning.action == Action::Inval) {
      word = 0;
      std::memcpy(host, &word, 8);
      return;
    }
    if (meaning.action == Action::Test) {
      // A state is of the phase that runs or of the one before it, so that its parity tells.
      const bool waited = meaning.parity ? (operand & 1u) != 0 : Object::unpacked(operand).parity;
      const bool done = waited != object.parity;
      set_lane(context, detail.data[0], lane, done ? 1 : 0);
      if (done) {
        goes_on = true;
        if (owner.bulk != nullptr && detail.action != Modifier::relaxed) {
          observe_copies(context, lane, offset, phase_object(offset, waited));
        }
        each_check(owner, [&](Races& races) {
          races.acquire(context, 1u << lane, phase_object(offset, waited), &owner);
        });
      } else {
        vain_lane = lane;
        vain_object = offset;
        vain_parity = waited;
      }
      return;
    }
    const bool releases = meaning.action == Action::Arrive || meaning.action == Action::CopyArrive;
    if (releases) {
      each_check(owner, [&](Races& races) {
        races.release(context, 1u << lane, phase_object(offset, object.parity), &owner);
      });
    }
    const bool parity = object.parity;
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
    store_object(owner, host, object, parity);
    if (meaning.action == Action::Arrive && !detail.data.empty() && detail.data[0].present()) {
      set_lane(context, detail.data[0], lane, before);
    }
  });
  if (goes_on) {
    context.warp->vain.in_a_row = 0;
  } else if (vain_lane != kLanes) {
    note_vain(context, step, vain_lane, vain_object, vain_parity);
  }
}

bool complete_bytes(Cta& owner, std::uint64_t offset, std::uint32_t bytes) {
  std::byte* const host = owner.shared + offset;
  std::uint64_t word = 0;
  std::memcpy(&word, host, 8);
  Object object = Object::unpacked(word);
  if (!object.valid) return false;
  const bool parity = object.parity;
  object.bytes -= static_cast<std::int32_t>(bytes);
  object.settle();
  store_object(owner, host, object, parity);
  return true;
}

void run_pending_count(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  for_each_lane(context.mask(step), [&](unsigned lane) {
    const Object state = Object::unpacked(get_lane(context, detail.sources[0], lane));
    set_lane(context, detail.data[0], lane, state.pending);
  });
}

}  // namespace ptxgen::inline v0::emulator
