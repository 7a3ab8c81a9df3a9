// src/emulator/memory/mbarrier.cpp - mbarrier objects
#include "emulator/memory/mbarrier.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/async.hpp"
#include "emulator/memory/bulk_queue.hpp"
#include "emulator/memory/faults.hpp"
#include "emulator/memory/steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using Action = MbarrierDetail::Action;
using Object = MbarrierObject;

Object load_object(const std::byte* host) {
  std::uint64_t word = 0;
  std::memcpy(&word, host, 8);
  return Object::unpacked(word);
}

/// Stores an object after an arrival or completed bytes.
void store_object(Cta& owner, std::byte* host, const Object& object, bool parity_before) {
  const std::uint64_t word = object.packed();
  std::memcpy(host, &word, 8);
  if (owner.bulk != nullptr && object.parity != parity_before) {
    phase_ended(owner, static_cast<std::uint64_t>(host - owner.shared));
  }
}

/// Applies everything but Init, Invalidate and Test. `operand`: a count or bytes.
void apply(Object& object, const MbarrierDetail& detail, std::uint64_t operand) {
  const auto bytes = static_cast<std::int32_t>(operand);
  switch (detail.action) {
    case Action::ExpectBytes:
      object.bytes += bytes;
      break;
    case Action::CompleteBytes:
      object.bytes -= bytes;
      object.settle();
      break;
    case Action::CopyArrive:
      // Without .noinc the arrival adds to the count that the object was initialised with.
      if (!detail.no_increment) ++object.pending;
      object.arrive(1);
      break;
    default: {
      const auto arrivals = detail.expects_bytes ? 1 : static_cast<std::uint32_t>(operand);
      if (detail.expects_bytes) object.bytes += bytes;
      if (detail.drop) object.expected -= std::min(arrivals, object.expected);
      object.arrive(arrivals);
      break;
    }
  }
}

/// One mbarrier instruction of a warp.
class MbarrierStep {
 public:
  MbarrierStep(Context& context, const Step& step)
      : context_(context),
        step_(step),
        detail_(context.code->memory[step.detail]),
        mbarrier_(detail_.as<MbarrierDetail>()),
        progress_(mbarrier_.action != Action::Test) {}

  void run(std::uint32_t mask) {
    // The copies of the thread may end at any time: carry them out now.
    if (mbarrier_.action == Action::CopyArrive) {
      AsyncCopies::of(context_).finish(context_, mask, 0, true);
    }
    std::uint64_t addresses[32];
    compute_addresses(context_, detail_.address, addresses);
    request_ = request(addresses, mask);
    AccessTargets found;
    resolve_access(context_, step_, detail_, request_, found);
    for_each_lane(mask, [&](unsigned lane) {
      if ((found.mask >> lane & 1u) != 0) {
        run_lane({lane, found.owner(context_, lane), found.host[lane]});
      } else {
        skip(lane);
      }
    });
    FailedPoll& poll = context_.warp->failed_poll;
    if (progress_) {
      poll.consecutive = 0;
    } else if (failed_lane_ != kLanes) {
      note_failed_poll(poll);
    }
  }

 private:
  using FailedPoll = Warp::FailedPoll;
  /// A lane and its object.
  struct Target {
    unsigned lane;
    Cta& owner;
    std::byte* host;
    [[nodiscard]] std::uint64_t offset() const {
      return static_cast<std::uint64_t>(host - owner.shared);
    }
  };

  [[nodiscard]] AccessRequest request(const std::uint64_t* addresses, std::uint32_t mask) const {
    const bool writes_only =
        mbarrier_.action == Action::Init || mbarrier_.action == Action::Invalidate;
    AccessRequest result;
    result.space = detail_.space;
    result.addresses = addresses;
    result.mask = mask;
    result.bytes = result.alignment = 8;
    result.reads = mbarrier_.action != Action::Init;
    result.writes = mbarrier_.action != Action::Test;
    result.kind = writes_only ? RaceAccess::Kind::Write : RaceAccess::Kind::Atomic;
    result.count = false;
    return result;
  }

  /// After a finding: a wait succeeds, or a deadlock would be reported too.
  void skip(unsigned lane) {
    if (!detail_.data.empty() && detail_.data[0].present()) {
      set_lane(context_, detail_.data[0], lane, mbarrier_.action == Action::Test ? 1 : 0);
    }
    progress_ = true;
  }

  void run_lane(const Target& target) {
    const std::uint64_t operand =
        detail_.sources.empty() ? 1 : get_lane(context_, detail_.sources[0], target.lane);
    if (mbarrier_.action == Action::Init) return initialise(target, operand);
    const Object object = load_object(target.host);
    if (!object.valid) {
      report_no_object({context_, step_, detail_, request_, ptx::Space::Shared, target.lane,
                        target.offset(), &target.owner != context_.cta ? &target.owner : nullptr});
      if (mbarrier_.action == Action::Test) set_lane(context_, detail_.data[0], target.lane, 1);
      progress_ = true;
    } else if (mbarrier_.action == Action::Invalidate) {
      std::memset(target.host, 0, 8);
    } else if (mbarrier_.action == Action::Test) {
      test(target, object, operand);
    } else {
      update(target, object, operand);
    }
  }

  static void initialise(const Target& target, std::uint64_t count) {
    Object object;
    object.pending = object.expected = static_cast<std::uint32_t>(count);
    const std::uint64_t word = object.packed();
    std::memcpy(target.host, &word, 8);
  }

  void test(const Target& target, const Object& object, std::uint64_t operand) {
    // A state belongs to the current phase or to the one before, so its parity is enough.
    const bool parity = mbarrier_.parity ? (operand & 1u) != 0 : Object::unpacked(operand).parity;
    const bool done = parity != object.parity;
    const std::uint64_t offset = target.offset();
    set_lane(context_, detail_.data[0], target.lane, done ? 1 : 0);
    if (!done) {
      failed_lane_ = target.lane;
      failed_object_ = offset;
      failed_parity_ = parity;
      return;
    }
    progress_ = true;
    if (target.owner.bulk != nullptr && !mbarrier_.relaxed) {
      observe_copies(context_, target.lane, offset, phase_object(offset, parity));
    }
    for_each_check(target.owner, [&](Races& races) {
      races.acquire(context_, 1u << target.lane, phase_object(offset, parity), &target.owner);
    });
  }

  void update(const Target& target, Object object, std::uint64_t operand) {
    const std::uint64_t state = object.packed();
    const bool parity = object.parity;
    const bool arrives =
        mbarrier_.action == Action::Arrive || mbarrier_.action == Action::CopyArrive;
    if (arrives) {
      for_each_check(target.owner, [&](Races& races) {
        races.release(context_, 1u << target.lane, phase_object(target.offset(), parity),
                      &target.owner);
      });
    }
    apply(object, mbarrier_, operand);
    store_object(target.owner, target.host, object, parity);
    if (mbarrier_.action == Action::Arrive && !detail_.data.empty() && detail_.data[0].present()) {
      set_lane(context_, detail_.data[0], target.lane, state);
    }
  }

  template <class F>
  void for_each_check(Cta& owner, F&& f) {
    if (mbarrier_.relaxed) return;
    if (owner.races) f(*context_.cta->races);
    if (context_.grid->races) f(*context_.grid->races);
  }

  void note_failed_poll(FailedPoll& poll) const {
    // A longer loop does something else between two polls.
    constexpr std::uint64_t kShortLoop = 256;
    const std::uint64_t instructions = context_.warp->instructions;
    const bool same_loop = instructions - poll.instructions <= kShortLoop;
    poll.consecutive = same_loop ? poll.consecutive + 1 : 1;
    poll.instructions = instructions;
    poll.statement = step_.statement;
    poll.lane = failed_lane_;
    poll.object = failed_object_;
    poll.parity = failed_parity_;
  }

  Context& context_;
  const Step& step_;
  const MemoryDetail& detail_;
  const MbarrierDetail& mbarrier_;
  AccessRequest request_;
  bool progress_;  ///< a lane does not wait
  unsigned failed_lane_ = kLanes;
  std::uint64_t failed_object_ = 0;
  bool failed_parity_ = false;
};

}  // namespace

void run_mbarrier(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask != 0) MbarrierStep(context, step).run(mask);
}

bool complete_bytes(Cta& owner, std::uint64_t offset, std::uint32_t bytes) {
  std::byte* const host = owner.shared + offset;
  Object object = load_object(host);
  if (!object.valid) return false;
  const bool parity = object.parity;
  object.bytes = bytes == kAllBytes ? 0 : object.bytes - static_cast<std::int32_t>(bytes);
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
