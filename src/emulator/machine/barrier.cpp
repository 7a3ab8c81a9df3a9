// src/emulator/machine/barrier.cpp - CTA barriers, and blocks that cannot proceed
#include <algorithm>

#include "emulator/machine/cluster.hpp"
#include "emulator/machine/warp.hpp"
#include "emulator/memory/warpgroup.hpp"
#include "emulator/race/race.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::uint32_t warps_of(const Cta& cta) { return static_cast<std::uint32_t>(cta.warps.size()); }

/// Whether all expected threads have arrived. A barrier of the whole block does not wait for exited
/// threads, whether they exited before or after others of their warp arrived.
bool is_full(const Cta& cta, const BarrierState& state) {
  if (!state.all) return state.arrived >= state.expected;
  std::uint32_t there = 0;
  for (const Warp& warp : cta.warps) {
    const std::uint32_t lanes = state.lanes[warp.index];
    if (lanes != 0 || warp.done()) {
      there += static_cast<std::uint32_t>(std::popcount(lanes | ~warp.live()));
    }
  }
  return there >= state.expected;
}

/// From sm_70 on a barrier waits only for threads that have not exited.
bool barriers_count_exited(const Cta& cta) {
  ptx::TargetName target;
  const auto before_70 = [&](std::string_view name) {
    return ptx::parse_target_name(name, target) && target.sm < 70;
  };
  return before_70(cta.grid->image->module.target) || before_70(cta.grid->space->gpu().target);
}

FindingText exited_text(const Warp& left, std::uint32_t lanes, bool passed, bool counted) {
  const auto count = static_cast<std::uint32_t>(std::popcount(lanes));
  const std::string threads = format_text("{} of warp {}", count_text(count, "thread"), left.index);
  if (passed) {
    return {
        format_text("{} skipped this barrier, which expects all threads of the block, and exited "
                    "later",
                    threads),
        {"rule: all threads of a block execute the same barrier",
         "move the barrier out of the branch or loop that some threads do not take"}};
  }
  FindingText text{
      format_text("{} exited before this barrier, which expects all threads of the block", threads),
      {}};
  if (counted) {
    text.severity = Severity::Error;
    text.details.emplace_back("rule: before sm_70 a barrier waits for exited threads too");
  } else {
    text.details.emplace_back(
        "rule: from sm_70 on a barrier waits only for the threads that have not exited");
  }
  text.details.emplace_back(
      "let every thread reach the barrier, and guard the work instead of exiting early");
  return text;
}

void report_exited_before(Cta& cta, Warp& waiting, Split& split, const Warp& left) {
  Context context = context_of(waiting, split);
  const unsigned lane = first_lane(split.mask);
  const std::uint32_t passed = left.exited & left.passed_barrier;
  const std::uint32_t lanes = passed != 0 ? passed : left.exited;
  OtherParty other;
  other.statement = left.exit_statement;
  other.cta = cta.linear;
  other.thread = left.first_thread + first_lane(lanes);
  cta.grid->reporter->report(
      context, statement_of(split),
      passed != 0 ? Rule::BarrierDivergence : Rule::ExitedBeforeBarrier, lane, other,
      [&] { return exited_text(left, lanes, passed != 0, barriers_count_exited(cta)); });
}

/// The warp to report when threads exited before a barrier: one that skipped it, else any.
const Warp* find_exited(const Cta& cta) {
  const Warp* found = nullptr;
  for (const Warp& warp : cta.warps) {
    if (warp.exited == 0) continue;
    if ((warp.exited & warp.passed_barrier) != 0) return &warp;
    if (found == nullptr) found = &warp;
  }
  return found;
}

/// Releases all threads that wait at a barrier.
void complete(Cta& cta, std::uint32_t id) {
  BarrierState& state = cta.barriers[id];
  if (cta.races) cta.races->barrier_complete(cta, id);
  if (cta.grid->races) cta.grid->races->barrier_complete(cta, id);
  const Warp* exited = state.all ? find_exited(cta) : nullptr;
  for (Warp& warp : cta.warps) {
    for (Split& split : warp.splits) {
      if (split.state != Split::State::Barrier || !split.arrived || split.barrier != id) continue;
      if (exited != nullptr) report_exited_before(cta, warp, split, *exited);
      exited = nullptr;
      const ControlDetail& detail = detail_of(split);
      if (detail.result.present()) {
        std::uint64_t value = state.set;
        if (detail.action == ptx::Modifier::and_) value = state.set == state.voted;
        if (detail.action == ptx::Modifier::or_) value = state.set != 0;
        const Context context = context_of(warp, split);
        for_each_lane(split.mask,
                      [&](unsigned lane) { set_lane(context, detail.result, lane, value); });
      }
      split.state = Split::State::Ready;
      split.arrived = false;
      split.segment = split.frame->code->segments[split.segment].next;
    }
  }
  state.arrived = state.expected = state.set = state.voted = 0;
  state.all = false;
  state.statement = kNoIndex;
  std::ranges::fill(state.lanes, 0u);
}

/// Thread count of a barrier: that of its operand, or all threads of the block, in whole warps.
std::uint64_t thread_count(const Context& context, const ControlDetail& detail, unsigned lane) {
  if (detail.count.present()) return get_lane(context, detail.count, lane);
  return std::uint64_t{warps_of(*context.cta)} * kLanes;
}

/// Reports a barrier that does not exist, or an impossible thread count. False if there is neither.
bool report_invalid(Context& context, std::uint32_t statement, unsigned lane, std::uint64_t id,
                    std::uint64_t count) {
  if (id < kBarriers && count != 0 && count % kLanes == 0) return false;
  context.grid->reporter->report(context, statement, Rule::BarrierDivergence, lane, [&] {
    return FindingText{
        id >= kBarriers
            ? format_text("there is no barrier {}; a block has barriers 0 to 15", id)
            : format_text("a barrier for {}; the count must be a positive multiple of 32",
                          count_text(count, "thread")),
        {}};
  });
  return true;
}

/// Reports an arrival with another thread count than that of the current phase.
void report_other_count(Context& context, std::uint32_t statement, unsigned lane, std::uint64_t id,
                        std::uint32_t count) {
  const Cta& cta = *context.cta;
  const BarrierState& state = cta.barriers[id];
  OtherParty other{state.statement, cta.linear, 0};
  for (const Warp& warp : cta.warps) {
    if (state.lanes[warp.index] != 0) {
      other.thread = warp.first_thread + first_lane(state.lanes[warp.index]);
      break;
    }
  }
  context.grid->reporter->report(context, statement, Rule::BarrierDivergence, lane, other, [&] {
    return FindingText{
        format_text("arrives at barrier {} with a count of {}, where other threads arrived with {}",
                    id, count_text(count, "thread"), state.expected),
        {"all threads of one barrier phase must give the same thread count"}};
  });
}

/// The split's lanes arrive. It waits unless that completes the barrier or it only arrives.
void arrive(Warp& warp, std::size_t index) {
  Cta& cta = *warp.cta;
  Split& split = warp.splits[index];
  const ControlDetail& detail = detail_of(split);
  Context context = context_of(warp, split);
  const std::uint32_t statement = statement_of(split);
  const unsigned lane = first_lane(split.mask);
  const std::uint64_t wide_id = get_lane(context, detail.barrier, lane);
  const bool counts_all = !detail.count.present();
  const std::uint64_t count = thread_count(context, detail, lane);
  if (report_invalid(context, statement, lane, wide_id, count)) {
    kill(cta);
    return;
  }
  const auto id = static_cast<std::uint32_t>(wide_id);
  const auto expected = static_cast<std::uint32_t>(count);
  BarrierState& state = cta.barriers[id];
  if (state.lanes.size() != cta.warps.size()) state.lanes.assign(cta.warps.size(), 0);
  if (state.expected != 0 && state.expected != expected) {
    report_other_count(context, statement, lane, id, expected);
  }
  if (state.expected == 0) {
    state.expected = expected;
    state.statement = statement;
  }
  state.all |= counts_all;
  if (context.counting) ++context.worker->barriers;
  for (Races* const races : {cta.races.get(), cta.grid->races.get()}) {
    if (races != nullptr) races->barrier_arrive(context, id, split.mask, !detail.arrive);
  }
  // A warp counts as 32 threads; the first arrival counts the missing ones.
  if (state.lanes[warp.index] == 0) {
    state.arrived += static_cast<std::uint32_t>(std::popcount(~warp.live()));
    if (detail.aligned && !counts_all && warp.exited != 0)
      report_exited_before(cta, warp, split, warp);
  }
  state.lanes[warp.index] |= split.mask;
  state.arrived += static_cast<std::uint32_t>(std::popcount(split.mask));
  if (detail.predicate.present()) {
    for_each_lane(split.mask, [&](unsigned each) {
      state.set += get_lane(context, detail.predicate, each) != 0 ? 1 : 0;
      ++state.voted;
    });
  }
  split.arrived = !detail.arrive;
  if (detail.arrive) {
    split.state = Split::State::Ready;
    split.segment = split.frame->code->segments[split.segment].next;
  } else {
    split.state = Split::State::Barrier;
    split.barrier = id;
  }
  if (is_full(cta, state)) complete(cta, id);
}

/// The lanes of a split with the same barrier and thread count as its first lane.
std::uint32_t lanes_of_one_barrier(Warp& warp, Split& split) {
  const ControlDetail& detail = detail_of(split);
  const Context context = context_of(warp, split);
  const unsigned first = first_lane(split.mask);
  const auto names = [&](unsigned lane) {
    return std::pair(get_lane(context, detail.barrier, lane),
                     detail.count.present() ? get_lane(context, detail.count, lane) : 0);
  };
  std::uint32_t same = 0;
  for_each_lane(split.mask, [&](unsigned lane) {
    if (names(lane) == names(first)) same |= 1u << lane;
  });
  return same;
}

}  // namespace

std::string describe_wait(const Split& split, const Warp& warp) {
  const Cta& cta = *warp.cta;
  const std::string at = cta.grid->image->at_text(statement_of(split));
  std::string text = format_text(
      "warp {}, {} from thread {} on{}{}", warp.index,
      count_text(static_cast<unsigned>(std::popcount(split.mask)), "thread"),
      to_text(thread_position(cta.grid->block, warp.first_thread + first_lane(split.mask))),
      at.empty() ? "" : ", ", at);
  if (split.state == Split::State::Barrier && split.barrier == kClusterBarrier) {
    const ClusterArrivals there = arrivals_of(*cta.cluster);
    text += format_text(": the cluster barrier, {} of {} have arrived", there.arrived,
                        count_text(there.threads, "thread"));
  } else if (split.state == Split::State::Barrier) {
    const BarrierState& state = cta.barriers[split.barrier];
    text += format_text(": barrier {}, {} of {} have arrived", split.barrier, state.arrived,
                        count_text(state.expected, "thread"));
  } else if (split.state == Split::State::Warpgroup) {
    text += ": waits for the other warps of its warpgroup to execute a wgmma";
  } else {
    text += ": waits for lanes of its member mask";
  }
  return text;
}

void reach_barrier(Warp& warp, std::size_t index) {
  Split& split = warp.splits[index];
  const ControlDetail& detail = detail_of(split);
  if (detail.aligned && split.mask != warp.live() && !split.forced) {
    // The rest of the warp may still arrive; otherwise resolve_divergent_barrier decides.
    split.state = Split::State::Barrier;
    split.arrived = false;
    return;
  }
  split.forced = false;
  if (!detail.barrier.present()) return reach_cluster_barrier(warp, index);
  const std::uint32_t same = lanes_of_one_barrier(warp, split);
  if (same != split.mask) {
    if (detail.aligned) {
      Context context = context_of(warp, split);
      const unsigned lane = first_lane(split.mask & ~same);
      context.grid->reporter->report(
          context, statement_of(split), Rule::BarrierDivergence, lane, [&] {
            return FindingText{
                format_text(
                    "the lanes of a warp give different barriers or thread counts: barrier {} "
                    "and barrier {}",
                    get_lane(context, detail.barrier, first_lane(same)),
                    get_lane(context, detail.barrier, lane)),
                {"all threads of a warp must arrive at the same barrier; otherwise use "
                 "barrier.sync without .aligned"}};
          });
      kill(*warp.cta);
      return;
    }
    // The other lanes execute this barrier again.
    Split others = split;
    others.mask &= ~same;
    split.mask = same;
    warp.splits.push_back(others);
  }
  arrive(warp, index);
}

bool resolve_divergent_barrier(Warp& warp) {
  if (warp.splits.empty()) return false;
  const Split* first = nullptr;
  for (const Split& split : warp.splits) {
    if (split.state != Split::State::Barrier || split.arrived) return false;
    if (first == nullptr) first = &split;
  }
  if (warp.splits.size() == 1 && first->mask == warp.live()) {
    // The missing lanes have exited; complete() reports it.
    warp.splits[0].state = Split::State::Ready;
    return true;
  }
  Cta& cta = *warp.cta;
  // Splits of a warp at different barrier instructions proceed separately, as on current hardware.
  for (std::size_t i = 0; i < warp.splits.size(); ++i) {
    Split& split = warp.splits[i];
    split.forced = true;
    split.state = Split::State::Ready;
    if (i + 1 != warp.splits.size() && warp.splits.size() > 1) continue;
    const Split& other_split = i == 0 ? split : warp.splits[0];
    Context context = context_of(warp, split);
    OtherParty other;
    if (i != 0) {
      other.statement = statement_of(other_split);
      other.cta = cta.linear;
      other.thread = warp.first_thread + first_lane(other_split.mask);
    }
    cta.grid->reporter->report(
        context, statement_of(split), Rule::BarrierDivergence, first_lane(split.mask), other, [&] {
          return FindingText{
              format_text(
                  "warp {} arrives at an aligned barrier while diverged: {} of {} threads are "
                  "here",
                  warp.index, std::popcount(split.mask), std::popcount(warp.live())),
              {"all threads of a warp must execute the same bar.sync; move it out of the branch, "
               "or "
               "use barrier.sync without .aligned and give the thread count"}};
        });
  }
  return true;
}

void note_passed_barrier(Warp& warp, const Split& split) {
  const Segment& segment = split.frame->code->segments[split.segment];
  if (segment.follows_barrier) warp.passed_barrier |= split.mask;
}

void recheck_barriers(Cta& cta) {
  for (std::uint32_t id = 0; id < kBarriers; ++id) {
    BarrierState& state = cta.barriers[id];
    if (state.expected != 0 && state.all && is_full(cta, state)) complete(cta, id);
  }
  recheck_cluster_barrier(*cta.cluster);
}

namespace {

/// A warp waits for a wgmma that others of its warpgroup never execute: it goes on without them.
bool release_warpgroup_wait(Cta& cta) {
  for (Warp& warp : cta.warps) {
    for (Split& split : warp.splits) {
      if (split.state != Split::State::Warpgroup) continue;
      Context context = context_of(warp, split);
      const Segment& segment = split.frame->code->segments[split.segment];
      const Step& step = split.frame->code->steps[segment.control];
      cta.grid->reporter->report(
          context, statement_of(split), Rule::WarpgroupMismatch, first_lane(split.mask), [&] {
            return FindingText{
                format_text("warp {} waits for a wgmma that these warps of its warpgroup do not "
                            "execute: {}",
                            warp.index, missing_warps(context, step)),
                {"rule: the four warps of a warpgroup (warps 4 i to 4 i + 3) execute the same "
                 "wgmma instructions",
                 "move the wgmma to where all of them execute it"}};
          });
      split.forced = true;
      split.state = Split::State::Ready;
      return true;
    }
  }
  return false;
}

}  // namespace

bool release_stuck_split(Cta& cta) {
  if (release_warpgroup_wait(cta)) return true;
  Reporter& reporter = *cta.grid->reporter;
  // Splits that wait for lanes of a member mask that never arrive.
  bool forced = false;
  for (Warp& warp : cta.warps) {
    for (Split& split : warp.splits) {
      if (split.state != Split::State::WarpSync) continue;
      Context context = context_of(warp, split);
      const ControlDetail& detail = detail_of(split);
      const unsigned lane = first_lane(split.mask);
      const std::uint32_t members =
          detail.members.present()
              ? static_cast<std::uint32_t>(get_lane(context, detail.members, lane))
              : warp.lanes;
      const std::uint32_t missing = members & warp.live() & ~split.mask;
      OtherParty other;
      for (const Split& there : warp.splits) {
        if ((there.mask & missing) == 0) continue;
        other.statement = statement_of(there);
        other.cta = cta.linear;
        other.thread = warp.first_thread + first_lane(there.mask & missing);
        break;
      }
      reporter.report(context, statement_of(split), Rule::SyncMask, lane, other, [&] {
        return FindingText{
            format_text(
                "the member mask {} names lane {} (lanes missing: {}), which never executes "
                "this instruction",
                hex(members), first_lane(missing), hex(missing)),
            {"name only the lanes that execute it, for example by activemask before the branch, or "
             "move it to where all lanes execute it"}};
      });
      split.forced = true;
      split.state = Split::State::Ready;
      forced = true;
    }
    if (forced) return true;
  }
  for (Warp& warp : cta.warps) {
    for (std::size_t i = 0; i < warp.splits.size(); ++i) {
      Split& split = warp.splits[i];
      if (split.state != Split::State::Barrier || split.arrived) continue;
      Context context = context_of(warp, split);
      reporter.report(
          context, statement_of(split), Rule::BarrierDivergence, first_lane(split.mask), [&] {
            return FindingText{
                format_text("{} of {} of warp {} arrive at this aligned barrier; the others "
                            "wait elsewhere",
                            std::popcount(split.mask),
                            count_text(std::popcount(warp.live()), "thread"), warp.index),
                {"all threads of a warp must execute the same bar.sync"}};
          });
      split.forced = true;
      split.state = Split::State::Ready;
      return true;
    }
  }
  return false;
}

void report_too_few(Cta& cta) {
  for (Warp& warp : cta.warps) {
    for (Split& split : warp.splits) {
      if (split.state != Split::State::Barrier || split.barrier >= kBarriers) continue;
      const BarrierState& state = cta.barriers[split.barrier];
      // The remaining threads cannot complete the barrier.
      std::uint32_t left = 0;
      for (const Warp& other : cta.warps) {
        left += other.done() && state.lanes[other.index] == 0 ? 0 : kLanes;
      }
      if (left >= state.expected) continue;
      Context context = context_of(warp, split);
      cta.grid->reporter->report(
          context, statement_of(split), Rule::BarrierDivergence, first_lane(split.mask), [&] {
            return FindingText{
                format_text("barrier {} expects {}, but only {} can arrive", split.barrier,
                            count_text(state.expected, "thread"), left),
                {}};
          });
    }
  }
}

}  // namespace ptxgen::inline v0::emulator
