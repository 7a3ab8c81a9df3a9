// src/emulator/machine/cluster.cpp - cluster barriers and deadlocks
#include "emulator/machine/cluster.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/machine/warp.hpp"
#include "emulator/memory/bulk_queue.hpp"
#include "emulator/memory/mbarrier.hpp"
#include "emulator/race/race.hpp"
#include "emulator/report/report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Consecutive failed polls after which a warp counts as waiting forever. Far more than a loop with
/// a bounded number of polls makes.
constexpr std::uint32_t kMaxFailedPolls = 1u << 14;

Cluster::Arrivals& arrivals_at(const Warp& warp) {
  Cluster& cluster = *warp.cta->cluster;
  return cluster.warps[warp.cta->rank * warp.cta->warps.size() + warp.index];
}

template <class F>
void for_each_check(Cta& cta, F&& f) {
  if (cta.races) f(*cta.races);
  if (cta.grid->races) f(*cta.grid->races);
}

void advance(Split& split) {
  split.state = Split::State::Ready;
  split.arrived = false;
  split.segment = split.frame->code->segments[split.segment].next;
}

/// The lanes of a split have waited for the last completed phase.
void pass(Warp& warp, Split& split) {
  arrivals_at(warp).open &= ~split.mask;
  Cluster& cluster = *warp.cta->cluster;
  Context context = context_of(warp, split);
  for_each_check(*warp.cta, [&](Races& races) {
    races.acquire(context, split.mask, kClusterBarrierObject | ((cluster.phase - 1) & 1u),
                  cluster.blocks[0]);
  });
  advance(split);
}

void report_misuse(Warp& warp, Split& split, std::string_view what, std::uint32_t lanes) {
  Context context = context_of(warp, split);
  context.grid->reporter->report(
      context, statement_of(split), Rule::BarrierDivergence, first_lane(lanes), [&] {
        return FindingText{std::string(what),
                           {"let every thread alternate between barrier.cluster.arrive and "
                            "barrier.cluster.wait"}};
      });
  kill(*warp.cta);
}

void complete(Cluster& cluster) {
  for (Cta* cta : cluster.blocks) {
    for (Warp& warp : cta->warps) {
      Cluster::Arrivals& at = arrivals_at(warp);
      at.open |= at.arrived & ~warp.exited;
      at.arrived = 0;
    }
  }
  ++cluster.phase;
  for (Cta* cta : cluster.blocks) {
    for (Warp& warp : cta->warps) {
      for (Split& split : warp.splits) {
        const bool waits = split.state == Split::State::Barrier && split.arrived &&
                           split.barrier == kClusterBarrier;
        if (waits) pass(warp, split);
      }
    }
  }
  // All threads have waited for the previous phase: reuse its object for the next one.
  Cta& first = *cluster.blocks[0];
  for_each_check(first, [&](Races& races) {
    races.forget(kClusterBarrierObject | (cluster.phase & 1u), first);
  });
}

std::string missing_text(const MbarrierObject& object) {
  std::string text;
  if (object.pending != 0) {
    text = format_text("{} of {}", object.pending, count_text(object.expected, "arrival"));
  }
  if (object.bytes != 0) {
    if (!text.empty()) text += " and ";
    text += count_text(object.bytes < 0 ? -object.bytes : object.bytes, "byte");
  }
  if (text.empty()) return "nothing is missing: it waits for a later phase";
  text += object.pending + static_cast<std::uint32_t>(object.bytes != 0) == 1 && object.bytes == 0
              ? " is missing"
              : " are missing";
  if (object.bytes < 0) text += ": more bytes arrived than were expected";
  return text;
}

/// "..., at line 9: waits for the phase of parity 0 of the mbarrier at shared offset 0x0".
std::string describe_poll(const Warp& warp) {
  const Cta& cta = *warp.cta;
  const Warp::FailedPoll& poll = warp.failed_poll;
  const std::string at = cta.grid->image->at_text(poll.statement);
  std::string text = format_text(
      "warp {}, thread {}{}{}: waits for the phase of parity {:d} of the mbarrier at shared offset "
      "{}",
      warp.index, to_text(thread_position(cta.grid->block, warp.first_thread + poll.lane)),
      at.empty() ? "" : ", ", at, poll.parity, hex(poll.object));
  if (const auto* const variable = shared_variable(*cta.grid, poll.object)) {
    text += format_text(" (shared variable '{}')", variable->name);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, cta.shared + poll.object, 8);
  const MbarrierObject object = MbarrierObject::unpacked(word);
  text +=
      format_text("; its current phase has parity {:d}, {}", object.parity, missing_text(object));
  return text;
}

bool polls_forever(const Warp& warp) noexcept {
  return warp.failed_poll.consecutive >= kMaxFailedPolls;
}

/// A line for each waiting split or warp, with "block (1,0,0), " in front if there are several
/// blocks.
std::vector<std::string> waiters_of(const Cluster& cluster) {
  std::vector<std::string> waiters;
  for (const Cta* cta : cluster.blocks) {
    const std::string block =
        cluster.blocks.size() > 1 ? format_text("block {}, ", to_text(cta->id)) : std::string();
    for (const Warp& warp : cta->warps) {
      for (const Split& split : warp.splits) {
        if (split.state != Split::State::Ready)
          waiters.push_back(block + describe_wait(split, warp));
      }
      if (!warp.done() && polls_forever(warp)) waiters.push_back(block + describe_poll(warp));
    }
  }
  return waiters;
}

std::string cluster_name(const Cluster& cluster) {
  return cluster.blocks.size() > 1 ? "cluster " + to_text(cluster.id)
                                   : "block " + to_text(cluster.blocks[0]->id);
}

}  // namespace

bool can_run(const Warp& warp) noexcept {
  return std::ranges::any_of(warp.splits, [](const Split& split) {
    return split.state == Split::State::Ready || !split.arrived;
  });
}

bool can_run(const Cta& cta) noexcept {
  return std::ranges::any_of(cta.warps, [](const Warp& warp) {
    return std::ranges::any_of(
        warp.splits, [](const Split& split) { return split.state == Split::State::Ready; });
  });
}

void reach_cluster_barrier(Warp& warp, std::size_t index) {
  Split& split = warp.splits[index];
  Cluster& cluster = *warp.cta->cluster;
  Cluster::Arrivals& at = arrivals_at(warp);
  const ControlDetail& detail = detail_of(split);
  warp.failed_poll.consecutive = 0;
  if (detail.arrive) {
    if (const std::uint32_t repeated = split.mask & (at.arrived | at.open)) {
      return report_misuse(
          warp, split, "arrives at the cluster barrier again without a wait in between", repeated);
    }
    if (detail.action != ptx::Modifier::relaxed) {
      Context context = context_of(warp, split);
      for_each_check(*warp.cta, [&](Races& races) {
        races.release(context, split.mask, kClusterBarrierObject | (cluster.phase & 1u),
                      cluster.blocks[0]);
      });
    }
    at.arrived |= split.mask;
    advance(split);
    return recheck_cluster_barrier(cluster);
  }
  if (const std::uint32_t absent = split.mask & ~(at.arrived | at.open)) {
    return report_misuse(warp, split, "waits at the cluster barrier without having arrived",
                         absent);
  }
  const std::uint32_t later = split.mask & at.arrived;
  if (later != 0 && later != split.mask) {
    Split others = split;
    others.mask = later;
    split.mask &= ~later;
    pass(warp, split);
    others.state = Split::State::Barrier;
    others.arrived = true;
    others.barrier = kClusterBarrier;
    warp.splits.push_back(others);
    return;
  }
  if (later == 0) return pass(warp, split);
  split.state = Split::State::Barrier;
  split.arrived = true;
  split.barrier = kClusterBarrier;
}

void recheck_cluster_barrier(Cluster& cluster) {
  const std::size_t warps = cluster.blocks[0]->warps.size();
  bool any = false;
  for (std::size_t i = 0; i < cluster.warps.size(); ++i) {
    const Warp& warp = cluster.blocks[i / warps]->warps[i % warps];
    const std::uint32_t arrived = cluster.warps[i].arrived;
    if ((warp.live() & ~arrived) != 0) return;
    any |= arrived != 0;
  }
  if (any) complete(cluster);
}

ClusterArrivals arrivals_of(const Cluster& cluster) noexcept {
  ClusterArrivals sum;
  for (const Cta* cta : cluster.blocks) {
    for (const Warp& warp : cta->warps) {
      const std::uint32_t arrived = arrivals_at(warp).arrived & warp.live();
      sum.arrived += static_cast<std::uint32_t>(std::popcount(arrived));
      sum.threads += static_cast<std::uint32_t>(std::popcount(warp.live()));
    }
  }
  return sum;
}

bool only_polls(const Cluster& cluster) noexcept {
  bool any = false;
  for (const Cta* cta : cluster.blocks) {
    if (cta->bulk != nullptr && is_under_way(*cta)) return false;
    for (const Warp& warp : cta->warps) {
      if (warp.done()) continue;
      if (polls_forever(warp)) {
        any = true;
      } else if (can_run(warp)) {
        return false;
      }
    }
  }
  return any;
}

void end_polling(Cluster& cluster) {
  for (Cta* cta : cluster.blocks) {
    for (Warp& warp : cta->warps) {
      if (warp.done() || !polls_forever(warp)) continue;
      Context context = context_of(warp, warp.splits[0]);
      cta->grid->reporter->report(
          context, warp.failed_poll.statement, Rule::BarrierDeadlock, warp.failed_poll.lane, [&] {
            std::vector<std::string> details = waiters_of(cluster);
            details.emplace_back(
                "give mbarrier.init the number of arrivals, and expect exactly the bytes that the "
                "copies of the phase write");
            return FindingText{
                format_text("no thread of {} can proceed; the mbarrier that is waited for "
                            "is never completed",
                            cluster_name(cluster)),
                std::move(details)};
          });
      return kill(*cta);
    }
  }
}

void resolve_deadlock(Cluster& cluster) {
  for (Cta* cta : cluster.blocks) {
    if (release_stuck_split(*cta)) return;
  }
  // All remaining threads wait at barriers that never complete.
  for (Cta* cta : cluster.blocks) report_too_few(*cta);
  for (Cta* cta : cluster.blocks) {
    for (Warp& warp : cta->warps) {
      if (warp.splits.empty()) continue;
      Split& split = warp.splits[0];
      Context context = context_of(warp, split);
      cta->grid->reporter->report(
          context, statement_of(split), Rule::BarrierDeadlock, first_lane(split.mask), [&] {
            return FindingText{
                format_text("no thread of {} can proceed; all remaining threads wait",
                            cluster_name(cluster)),
                waiters_of(cluster)};
          });
      return kill(*cta);
    }
  }
  kill(*cluster.blocks[0]);
}

}  // namespace ptxgen::inline v0::emulator
