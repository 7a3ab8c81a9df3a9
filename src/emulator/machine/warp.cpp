// src/emulator/machine/warp.cpp - runs the splits of a warp
#include "emulator/machine/warp.hpp"

#include <algorithm>
#include <new>

#include "emulator/machine/grid_sync.hpp"
#include "emulator/memory/warpgroup.hpp"
#include "emulator/report/report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// Back edges after which a split that polls memory lets other splits run.
constexpr std::uint32_t kPollingBackEdges = 16;
/// The same for a loop without polling accesses, which may wait for a plain store.
constexpr std::uint32_t kPlainBackEdges = 1u << 16;

/// Whether `a` runs before `b`.
bool before(const Split& a, const Split& b) {
  if (a.penalty != b.penalty) return a.penalty < b.penalty;
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.segment < b.segment;
}

constexpr std::size_t kNoSplit = ~std::size_t{0};

FindingText trap_text(const Grid& grid, std::uint32_t statement) {
  const Image::Place place = grid.image->place(statement);
  if (!grid.cooperative && place.statement != nullptr &&
      guards_grid_sync(*place.function, *place.statement)) {
    return {
        "the kernel traps here: its grid barrier (grid.sync) has no workspace because the launch "
        "is not cooperative",
        {"launch it as a cooperative kernel (Launch::cooperative, cuLaunchCooperativeKernel, "
         "cudaLaunchCooperativeKernel), or split it into one launch for each part between the "
         "barriers"}};
  }
  return {"the kernel traps here", {}};
}

std::size_t pick(const Warp& warp) {
  std::size_t best = kNoSplit;
  for (std::size_t i = 0; i < warp.splits.size(); ++i) {
    const Split& split = warp.splits[i];
    if (split.state != Split::State::Ready) continue;
    if (best == kNoSplit || before(split, warp.splits[best])) best = i;
  }
  return best;
}

/// Merges the split with others at the same place. Returns its new index.
std::size_t merge(Warp& warp, std::size_t index) {
  for (std::size_t i = 0; i < warp.splits.size(); ++i) {
    if (i == index) continue;
    Split& own = warp.splits[index];
    Split& other = warp.splits[i];
    if (other.frame != own.frame || other.segment != own.segment || other.arrived) continue;
    own.mask |= other.mask;
    own.penalty = std::min(own.penalty, other.penalty);
    own.state = Split::State::Ready;
    warp.splits.erase(warp.splits.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < index) --index;
    i = kNoSplit;  // restart: indices have changed
  }
  return index;
}

/// Moves lanes of a split to a new split at `segment`.
void split_off(Warp& warp, std::size_t index, std::uint32_t lanes, std::uint32_t segment) {
  if (warp.splits.size() == 1) warp.passed_barrier = 0;
  Split other = warp.splits[index];
  other.mask = lanes;
  other.segment = segment;
  other.state = Split::State::Ready;
  other.back_edges = 0;
  other.forced = false;
  warp.splits[index].mask &= ~lanes;
  warp.splits.push_back(other);
}

/// What the run loop does after a control step.
enum class Next : std::uint8_t { Continue, Reselect, Yield, Spins, Stop };

class Runner {
 public:
  Runner(Warp& warp, std::uint64_t quantum) : warp_(warp), quantum_(quantum) {}

  WarpStop run() {
    for (;;) {
      if (warp_.cta->killed || warp_.done()) return WarpStop::Done;
      index_ = pick(warp_);
      if (index_ == kNoSplit) {
        if (resolve_divergent_barrier(warp_)) continue;
        return WarpStop::Blocked;
      }
      switch (run_split()) {
        case Next::Stop:
          return WarpStop::Done;
        case Next::Yield:
          return WarpStop::Yields;
        case Next::Spins:
          return WarpStop::Spins;
        case Next::Continue:
        case Next::Reselect:
          break;
      }
      if (quantum_ == 0) return WarpStop::Yields;
    }
  }

 private:
  Split& split() { return warp_.splits[index_]; }

  Next run_split() {
    Context context = context_of(warp_, split());
    Worker& worker = *context.worker;
    const std::uint64_t budget = context.grid->options.max_instructions;
    const auto run_steps = context.grid->run_steps;
    for (;;) {
      if (warp_.splits.size() > 1) {
        index_ = merge(warp_, index_);
        if (pick(warp_) != index_) return Next::Reselect;
        if (warp_.splits.size() > 1) note_passed_barrier(warp_, split());
      }
      Split& current = split();
      const Code& code = *current.frame->code;
      const Segment& segment = code.segments[current.segment];
      context.frame = current.frame->registers;
      context.active = current.mask;
      context.code = &code;
      context.activation = current.frame;
      context.split = &current;
      if (context.counting) {
        const std::size_t number = code.first_segment + current.segment;
        ++worker.segment_executions[number];
        // std::popcount is a call where the instruction set is not given.
        worker.segment_lanes[number] +=
            current.mask == 0xffffffffu ? kLanes
                                        : static_cast<std::uint64_t>(std::popcount(current.mask));
      }
      if (segment.polls) current.polled = true;
      warp_.instructions += segment.instructions;
      const Step* const step = run_steps(context, code.steps.data() + segment.first);
      if (warp_.instructions > budget) return over_budget(context, *step);
      if (warp_.cta->killed) return Next::Stop;
      const Next next = control(context, *step, segment);
      if (next != Next::Continue) return next;
      if (--quantum_ == 0) return Next::Yield;
    }
  }

  Next control(Context& context, const Step& step, const Segment& segment) {
    Split& current = split();
    if (segment.kind == Control::Next) {
      current.segment = segment.next;
      return Next::Continue;
    }
    const ControlDetail& detail = context.code->controls[segment.detail];
    const std::uint32_t lanes = context.mask(step);
    if (lanes != current.mask && context.counting) {
      context.worker->predicated_off[step.statement] +=
          static_cast<std::uint64_t>(std::popcount(current.mask & ~lanes));
    }
    if (segment.kind == Control::Branch) return branch(context, segment, detail, lanes);
    if (lanes == 0) {
      current.segment = segment.next;
      return Next::Continue;
    }
    if (lanes != current.mask) split_off(warp_, index_, current.mask & ~lanes, segment.next);
    context.split = &split();
    context.active = lanes;
    switch (segment.kind) {
      case Control::BranchTable:
        return branch_table(context, detail, lanes);
      case Control::WarpSync:
        if (lanes == 0xffffffffu && names_all(context, detail)) {
          return sync_all(context, step, detail);
        }
        return warp_sync(context, step, detail, lanes);
      case Control::Barrier:
        reach_barrier(warp_, index_);
        return Next::Reselect;
      case Control::Call:
        if (!enter_function(warp_, split(), *context.grid->image->codes[detail.callee])) {
          return Next::Stop;
        }
        return Next::Continue;
      case Control::CallIndirect:
        return call_indirect(context, step, detail, lanes);
      case Control::CallSystem:
        if (!call_system(context, step.statement, detail)) return Next::Stop;
        split().segment = segment.next;
        return Next::Continue;
      case Control::Return:
        leave_function(warp_, split());
        return Next::Continue;
      case Control::Exit:
        return leave(lanes, step.statement);
      case Control::Trap:
        return trap(context, step, lanes);
      default:
        return Next::Stop;
    }
  }

  Next branch(Context& context, const Segment& segment, const ControlDetail& detail,
              std::uint32_t taken) {
    Split& current = split();
    const std::uint32_t on = current.mask & ~taken;
    if (taken == 0) {
      current.segment = segment.next;
      return Next::Continue;
    }
    if (on != 0) {
      if (context.counting) {
        ++context.worker->branch_divergent[context.code->first_segment + current.segment];
      }
      split_off(warp_, index_, on, segment.next);
    }
    split().segment = detail.target;
    return detail.backward ? back_edge() : Next::Continue;
  }

  Next back_edge() {
    Split& current = split();
    const bool polls = current.polled;
    if (++current.back_edges < (polls ? kPollingBackEdges : kPlainBackEdges)) return Next::Continue;
    current.back_edges = 0;
    current.polled = false;
    // Other ready splits run first; if there are none, the warp yields.
    std::uint32_t max_penalty = current.penalty;
    for (const Split& other : warp_.splits) max_penalty = std::max(max_penalty, other.penalty);
    current.penalty = max_penalty + 1;
    std::uint32_t min_penalty = current.penalty;
    for (const Split& other : warp_.splits) {
      if (other.state == Split::State::Ready) min_penalty = std::min(min_penalty, other.penalty);
    }
    for (Split& other : warp_.splits) other.penalty -= std::min(min_penalty, other.penalty);
    if (pick(warp_) == index_) return Next::Spins;
    // Splits that all poll another warp must not use up the quantum of their warp.
    return polls && ++failed_polls_ >= warp_.splits.size() ? Next::Yield : Next::Reselect;
  }

  Next branch_table(Context& context, const ControlDetail& detail, std::uint32_t lanes) {
    // The lanes of each target get a new split; those of the first target keep this one.
    std::uint32_t rest = lanes;
    const auto target_of = [&](unsigned lane) {
      const std::uint64_t index = get_lane(context, detail.index, lane);
      // An index beyond the table is undefined in PTX; take the last entry.
      return detail.targets[std::min<std::uint64_t>(index, detail.targets.size() - 1)];
    };
    const std::uint32_t first = target_of(static_cast<unsigned>(std::countr_zero(rest)));
    bool diverged = false;
    while (rest != 0) {
      const std::uint32_t target = target_of(static_cast<unsigned>(std::countr_zero(rest)));
      std::uint32_t same = 0;
      for_each_lane(rest, [&](unsigned lane) {
        if (target_of(lane) == target) same |= 1u << lane;
      });
      if (target != first) {
        split_off(warp_, index_, same, target);
        diverged = true;
      }
      rest &= ~same;
    }
    if (diverged && context.counting) {
      ++context.worker->branch_divergent[context.code->first_segment + split().segment];
    }
    split().segment = first;
    return detail.backward ? back_edge() : Next::Continue;
  }

  /// Whether the member mask of every lane names all 32.
  static bool names_all(const Context& context, const ControlDetail& detail) {
    if (!detail.members.present()) return true;
    if (detail.members.lane_bytes != 4) return false;
    const auto* const members = context.lanes<std::uint32_t>(detail.members.offset);
    std::uint32_t missing = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) missing |= ~members[lane];
    return missing == 0;
  }

  /// The common case of `warp_sync`: all lanes are here.
  Next sync_all(Context& context, const Step& step, const ControlDetail& detail) {
    if (waits_for_warpgroup(context, step, detail)) return Next::Reselect;
    split().forced = false;
    detail.together(context, step);
    split().segment = context.code->segments[split().segment].next;
    return Next::Continue;
  }

  /// wgmma.wait_group: the other warps of the warpgroup have not issued all that it waits for.
  bool waits_for_warpgroup(Context& context, const Step& step, const ControlDetail& detail) {
    if (detail.op != ptx::Op::wgmma_wait_group || split().forced || can_finish_wait(context, step))
      return false;
    split().state = Split::State::Warpgroup;
    return true;
  }

  Next warp_sync(Context& context, const Step& step, const ControlDetail& detail,
                 std::uint32_t lanes) {
    Reporter& reporter = *context.grid->reporter;
    const std::uint32_t live = warp_.live();
    std::uint32_t complete = 0;
    std::uint32_t named = 0;
    for_each_lane(lanes, [&](unsigned lane) {
      const std::uint32_t members =
          detail.members.present()
              ? static_cast<std::uint32_t>(get_lane(context, detail.members, lane))
              : warp_.lanes;
      named |= members;
      if ((members & live & ~lanes) == 0) complete |= 1u << lane;
      if (((members >> lane) & 1u) == 0) {
        reporter.report(context, step.statement, Rule::SyncMask, lane, [&] {
          return FindingText{
              format_text("lane {} executes this with the member mask {}, which does "
                          "not include it",
                          lane, hex(members)),
              {"every lane that executes a .sync instruction must be in its mask"}};
        });
      }
    });
    std::uint32_t acting = lanes;
    if (complete == 0 && detail.op == ptx::Op::bar_warp_sync && !split().forced) {
      if (const std::uint32_t synced = sync_across_splits(lanes, live)) {
        // The race checks learn of all lanes at once.
        acting = synced;
        complete = lanes;
      }
    }
    if (complete != lanes && !split().forced) {
      if (complete != 0) {
        split_off(warp_, index_, lanes & ~complete, split().segment);
        warp_.splits.back().state = Split::State::WarpSync;
        lanes = acting = complete;
      } else {
        split().state = Split::State::WarpSync;
        return Next::Reselect;
      }
    }
    if ((named & warp_.exited) != 0) {
      const auto gone = static_cast<unsigned>(std::countr_zero(named & warp_.exited));
      reporter.report(context, step.statement, Rule::ExitedLaneInMask,
                      static_cast<unsigned>(std::countr_zero(lanes)), [&] {
                        return FindingText{
                            format_text("the member mask {} names lane {}, which has "
                                        "exited",
                                        hex(named), gone),
                            {}};
                      });
    }
    context.split = &split();
    context.active = acting;
    if (waits_for_warpgroup(context, step, detail)) return Next::Reselect;
    split().forced = false;
    detail.together(context, step);
    split().segment = context.code->segments[split().segment].next;
    return Next::Continue;
  }

  /// bar.warp.sync: lanes with the same mask synchronise at different instructions. Releases the
  /// lanes that wait at others. Returns all synchronised lanes, or 0 if some have not arrived.
  std::uint32_t sync_across_splits(std::uint32_t lanes, std::uint32_t live) {
    const auto mask_of = [&](const Split& at, unsigned lane) {
      const Code& code = *at.frame->code;
      const ControlDetail& other = code.controls[code.segments[at.segment].detail];
      Context there;
      there.frame = at.frame->registers;
      return other.op == ptx::Op::bar_warp_sync && other.members.present()
                 ? static_cast<std::uint32_t>(get_lane(there, other.members, lane))
                 : 0u;
    };
    const std::uint32_t members = mask_of(split(), static_cast<unsigned>(std::countr_zero(lanes)));
    std::uint32_t there = lanes;
    const auto same_sync = [&](const Split& other) {
      return other.state == Split::State::WarpSync &&
             mask_of(other, static_cast<unsigned>(std::countr_zero(other.mask))) == members;
    };
    for (const Split& other : warp_.splits) {
      if (same_sync(other)) there |= other.mask;
    }
    if ((members & live & ~there) != 0) return 0;
    for (Split& other : warp_.splits) {
      if (!same_sync(other)) continue;
      other.state = Split::State::Ready;
      other.segment = other.frame->code->segments[other.segment].next;
    }
    return there;
  }

  Next call_indirect(Context& context, const Step& step, const ControlDetail& detail,
                     std::uint32_t lanes) {
    const std::uint64_t address =
        get_lane(context, detail.index, static_cast<unsigned>(std::countr_zero(lanes)));
    std::uint32_t same = 0;
    for_each_lane(lanes, [&](unsigned lane) {
      if (get_lane(context, detail.index, lane) == address) same |= 1u << lane;
    });
    // The other lanes execute this call again.
    if (same != lanes) split_off(warp_, index_, lanes & ~same, split().segment);
    const auto& codes = context.grid->kernel_image->code_of_function;
    const std::uint64_t number = (address - kFunctionWindow) / 16;
    const bool valid = address >= kFunctionWindow && address % 16 == 0 && number < codes.size() &&
                       codes[number] != kNoIndex;
    const Code* callee = valid ? context.grid->image->codes[codes[number]].get() : nullptr;
    if (callee == nullptr || callee->parameters.size() != detail.arguments.size() ||
        callee->returns.size() != detail.returns.size()) {
      context.grid->reporter->report(
          context, step.statement, Rule::InvalidAddress,
          static_cast<unsigned>(std::countr_zero(same)), [&] {
            return FindingText{
                callee == nullptr
                    ? format_text("calls {}, which is not the address of a function", hex(address))
                    : format_text("calls a function of {} with {}",
                                  count_text(callee->parameters.size(), "parameter"),
                                  count_text(detail.arguments.size(), "argument")),
                {}};
          });
      kill(*warp_.cta);
      return Next::Stop;
    }
    context.active = same;
    return enter_function(warp_, split(), *callee) ? Next::Continue : Next::Stop;
  }

  Next leave(std::uint32_t lanes, std::uint32_t statement) {
    exit_lanes(warp_, split(), lanes, statement);
    warp_.splits.erase(warp_.splits.begin() + static_cast<std::ptrdiff_t>(index_));
    // Splits that waited for these lanes check again.
    for (Split& other : warp_.splits) {
      if (other.state == Split::State::WarpSync) other.state = Split::State::Ready;
    }
    // So do waits for this warp to issue a wgmma.
    for (Warp& other : warp_.cta->warps) {
      for (Split& each : other.splits) {
        if (each.state == Split::State::Warpgroup) each.state = Split::State::Ready;
      }
    }
    recheck_barriers(*warp_.cta);
    return warp_.done() ? Next::Stop : Next::Reselect;
  }

  Next trap(Context& context, const Step& step, std::uint32_t lanes) {
    context.grid->reporter->report(context, step.statement, Rule::Trap,
                                   static_cast<unsigned>(std::countr_zero(lanes)),
                                   [&] { return trap_text(*context.grid, step.statement); });
    kill(*warp_.cta);
    return Next::Stop;
  }

  Next over_budget(Context& context, const Step& step) {
    const std::uint64_t budget = context.grid->options.max_instructions;
    context.grid->reporter->report(
        context, step.statement, Rule::InstructionBudget,
        static_cast<unsigned>(std::countr_zero(context.active)), [&] {
          return FindingText{
              format_text("warp {} has executed more than {} and is stopped here; its "
                          "loop may never end",
                          warp_.index, count_text(budget, "instruction")),
              {"raise the budget (--max-instructions, Options::max_instructions) if "
               "the kernel is just long"}};
        });
    kill(*warp_.cta);
    return Next::Stop;
  }

  Warp& warp_;
  std::uint64_t quantum_;
  std::size_t failed_polls_ = 0;  ///< loops with only failed polls, in this quantum
  std::size_t index_ = 0;
};

}  // namespace

Frame::~Frame() {
  if (registers != nullptr) ::operator delete (registers, std::align_val_t{64});
}

Context context_of(Warp& warp, Split& split) {
  Context context;
  Cta& cta = *warp.cta;
  context.frame = split.frame->registers;
  context.active = split.mask;
  context.counting = cta.grid->options.counters;
  context.code = split.frame->code;
  context.warp = &warp;
  context.cta = &cta;
  context.worker = cta.worker;
  context.grid = cta.grid;
  context.activation = split.frame;
  context.split = &split;
  return context;
}

const Step* run_steps(Context& context, const Step* step) {
  for (; step->run != nullptr; ++step) step->run(context, *step);
  return step;
}

void start_warp(Warp& warp) {
  warp.splits.clear();
  warp.exited = 0;
  warp.exit_statement = kNoIndex;
  warp.passed_barrier = 0;
  warp.instructions = 0;
  warp.seen_instructions = ~std::uint64_t{0};  // not the value of the previous block
  warp.failed_poll = {};
  Frame* frame = acquire_frame(warp, *warp.cta->grid->code, 0);
  frame->caller = nullptr;
  frame->depth = 0;
  frame->lanes = warp.lanes;
  Split all;
  all.frame = frame;
  all.segment = frame->code->entry;
  all.mask = warp.lanes;
  warp.splits.push_back(all);
}

void exit_lanes(Warp& warp, Split& split, std::uint32_t lanes, std::uint32_t statement) {
  warp.exited |= lanes;
  warp.exit_statement = statement;
  for (Frame* frame = split.frame; frame != nullptr;) {
    Frame* caller = frame->caller;
    frame->lanes &= ~lanes;
    if (frame->lanes == 0) warp.free_frames.push_back(frame);
    frame = caller;
  }
}

void kill(Cta& cta) {
  cta.killed = true;
  const std::uint64_t blocks = cta.cluster->blocks.size();
  cta.grid->reporter->stop_after(cta.order - cta.rank + blocks - 1);
}

WarpStop run_warp(Warp& warp, std::uint64_t quantum) { return Runner(warp, quantum).run(); }

}  // namespace ptxgen::inline v0::emulator
