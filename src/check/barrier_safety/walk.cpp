// src/check/barrier_safety/walk.cpp - runs the threads of a block up to their barriers
#include <algorithm>
#include <map>

#include "check/barrier_safety/walk_state.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;

namespace {

constexpr std::uint32_t kBarriers = 16;
constexpr std::uint32_t kClusterId = kBarriers;
constexpr std::uint32_t kCallId = kBarriers + 1;  // of calls that reach a barrier
constexpr std::size_t kMaxTraces = 64;
constexpr std::size_t kMaxTraceLength = 512;
constexpr std::size_t kMaxExits = 16;
// Work beside that of single threads: of a group that continues, and of each statement.
constexpr std::uint64_t kGroupWork = 16;
constexpr std::uint64_t kStatementWork = 1;

/// Registers that branches and barriers read.
std::vector<std::uint32_t> roots(const Subject& subject) {
  std::vector<std::uint32_t> found;
  const auto add_reads = [&](std::uint32_t statement) {
    analysis::for_each_access(subject.function, subject.function.body[statement],
                              [&](const analysis::RegisterAccess& a) {
                                if (!a.write) found.push_back(subject.index.find(a.reg));
                              });
  };
  for (const analysis::Block& block : subject.cfg.blocks()) {
    if (block.terminator != kNone) add_reads(block.terminator);
  }
  for (const std::uint32_t barrier : subject.barriers) add_reads(barrier);
  return found;
}

class Walker {
 public:
  Walker(const Subject& subject, const Launch& launch, std::uint64_t& work)
      : s_(subject),
        f_(subject.function),
        launch_(launch),
        work_(work),
        threads_(launch.threads()),
        needed_(f_, s_.index, roots(subject)),
        state_(threads_ <= kMaxThreads ? threads_ : 0) {}

  Walk run() {
    if (threads_ == 0 || threads_ > kMaxThreads || f_.body.empty()) return std::move(walk_);
    values_.emplace(s_.module, f_, s_.index, needed_, KnownLaunch{.launch = launch_});
    if (!values_->fits()) return std::move(walk_);
    groups_.push_back({0, state_.all});
    while (!ended_) {
      if (!groups_.empty())
        run_group();
      else
        resolve();
    }
    return std::move(walk_);
  }

 private:
  void give_up() {
    ended_ = true;
    walk_.end = Walk::End::GaveUp;
  }

  void spend(std::uint64_t results) {
    if (work_ < results) {
      work_ = 0;
      give_up();
    } else {
      work_ -= results;
    }
  }

  // Control --------------------------------------------------------------------------------------

  std::uint64_t place(std::uint32_t statement) const {
    if (statement >= f_.body.size()) return ~std::uint64_t{0};
    return (std::uint64_t{s_.cfg.position(s_.cfg.block_of(statement))} << 32) | statement;
  }

  void put(std::uint32_t statement, const Threads& threads) {
    if (threads.none()) return;
    if (statement >= f_.body.size()) return leave(threads, kNone);
    for (Group& group : groups_) {
      if (group.statement == statement) {
        group.threads |= threads;
        return;
      }
    }
    groups_.push_back({statement, threads});
  }
  void put_block(std::uint32_t block, const Threads& threads, std::uint32_t from) {
    if (block == s_.cfg.exit() || block == analysis::kNoNode) return leave(threads, from);
    put(s_.cfg.blocks()[block].first, threads);
  }
  void leave(const Threads& threads, std::uint32_t statement) {
    threads.for_each(threads_, [&](std::uint32_t t) {
      state_.left_at[t] =
          statement == kNone ? static_cast<std::uint32_t>(f_.body.size() - 1) : statement;
    });
    state_.left |= threads;
  }

  void run_group() {
    const auto next = std::ranges::min_element(
        groups_, {}, [&](const Group& group) { return place(group.statement); });
    Group group = *next;
    groups_.erase(next);
    const std::uint32_t block = s_.cfg.block_of(group.statement);
    const analysis::Block& range = s_.cfg.blocks()[block];
    spend(kGroupWork);
    for (std::uint32_t i = group.statement; i < range.end && !ended_; ++i) {
      const Instruction& statement = f_.body[i];
      spend(kStatementWork);
      if (statement.kind == StatementKind::Unknown) return give_up();
      if (statement.kind != StatementKind::Instruction) continue;
      if (i == range.terminator) {
        spend(group.threads.count());
        return terminate(block, i, group.threads);
      }
      if (!event(i, group.threads)) return;
      if (group.threads.none()) return;
      if (!needed_.statements[i]) continue;
      values_->execute(i, group.threads, state_.left);
      spend(group.threads.count());
    }
    if (!ended_) put(range.end, group.threads);
  }

  /// Stops the threads that reach a barrier; the others continue.
  bool event(std::uint32_t number, Threads& threads) {
    const Instruction& statement = f_.body[number];
    if (statement.op == Op::trap) {
      give_up();
      return false;
    }
    const Use use = use_of(f_, statement);
    const CallEffect call = s_.call(number);
    if (call.leaves) {
      give_up();
      return false;
    }
    const bool of_warps =
        call.warp || (has(info(statement.op).flags, Flag::Convergent) && use.kind == UseKind::None);
    // Divergent lanes of a warp wait for each other at such an instruction, or never reconverge.
    if (of_warps && !whole_warps(threads)) {
      if (call.warp) {
        give_up();
        return false;
      }
      walk_.exact = false;
    }
    if (use.kind == UseKind::None && !call.barrier) return true;
    Threads taken, not_taken;
    if (!split(statement.guard, threads, taken, not_taken, true)) return false;
    branches_.add(number, taken, not_taken);
    taken.for_each(threads_, [&](std::uint32_t t) { state_.waits_at[t] = number; });
    state_.waiting |= taken;
    threads = not_taken;
    if (taken.none()) return true;
    // They continue with the next statement later, perhaps together with other threads.
    put(number + 1, not_taken);
    threads.reset();
    return false;
  }

  bool whole_warps(const Threads& threads) const {
    return (lanes_of_the_warps_of(threads) & ~state_.left & ~threads).none();
  }

  /// Splits threads by a guard. False if the walk gives up. `matters`: a needed value depends on
  /// the guard.
  bool split(const Guard& guard, const Threads& threads, Threads& taken, Threads& not_taken,
             bool matters) {
    bool known = true, exact = true;
    threads.for_each(threads_, [&](std::uint32_t t) {
      const Value held = values_->holds(guard, t);
      known = known && held.mark != Mark::Unknown;
      exact = exact && held.mark == Mark::Exact;
      (held.bits != 0 ? taken : not_taken).set(t);
    });
    if (!known) {
      give_up();
      return false;
    }
    if (matters && !exact) walk_.exact = false;
    return true;
  }

  bool all_known(const Guard& guard, const Operand* index, const Threads& threads) const {
    bool known = true;
    threads.for_each(threads_, [&](std::uint32_t t) {
      known = known && values_->holds(guard, t).mark != Mark::Unknown &&
              (index == nullptr || values_->of(*index, t).mark != Mark::Unknown);
    });
    return known;
  }

  void terminate(std::uint32_t block, std::uint32_t number, const Threads& threads) {
    const Instruction& statement = f_.body[number];
    const bool table = statement.op == Op::brx_idx;
    const Operand* index = table ? &f_.operands_of(statement)[0] : nullptr;
    if (!all_known(statement.guard, index, threads)) return jump_over(block, number, threads);
    Threads taken, not_taken;
    if (!split(statement.guard, threads, taken, not_taken, path_matters(block))) return;
    if (table) {
      const auto targets = s_.cfg.successors(block);
      // Without a guard every successor is one of the table's.
      if (statement.guard.present() || targets.empty()) return give_up();
      return by_table(block, number, *index, taken);
    }
    branches_.add(number, taken, not_taken);
    if (statement.op == Op::bra) {
      put_block(s_.cfg.successors(block).empty() ? s_.cfg.exit() : s_.cfg.successors(block)[0],
                taken, number);
    } else {
      leave(taken, number);
    }
    put(number + 1, not_taken);
  }

  // A table may name one block several times, so entries are not successors.
  void by_table(std::uint32_t block, std::uint32_t number, const Operand& index,
                const Threads& threads) {
    std::vector<std::uint32_t> targets = table_targets(number);
    if (targets.empty()) return give_up();
    std::map<std::uint32_t, Threads> by_target;
    bool exact = true;
    threads.for_each(threads_, [&](std::uint32_t t) {
      const Value at = values_->of(index, t);
      exact = exact && at.mark == Mark::Exact;
      by_target[targets[std::min<std::uint64_t>(at.bits & 0xffffffffu, targets.size() - 1)]].set(t);
    });
    if (!exact && path_matters(block)) walk_.exact = false;
    Threads rest = threads;
    for (const auto& [target, group] : by_target) {
      rest &= ~group;
      branches_.add(number, group, rest);
      put(target, group);
    }
  }
  /// The targets of a brx.idx in table order; empty if the table is not found.
  std::vector<std::uint32_t> table_targets(std::uint32_t number) const {
    std::vector<std::uint32_t> targets;
    const std::uint32_t name = f_.operands_of(f_.body[number])[1].id;
    std::map<std::uint32_t, std::uint32_t> labels;
    const Instruction* table = nullptr;
    for (std::uint32_t i = 0; i < f_.body.size(); ++i) {
      const Instruction& statement = f_.body[i];
      if (statement.kind == StatementKind::Label) labels[f_.operands_of(statement)[0].id] = i;
      if (statement.kind == StatementKind::BranchTargets && f_.operands_of(statement)[0].id == name)
        table = &statement;
    }
    if (table == nullptr) return targets;
    for (const Operand& o : f_.operands_of(*table).subspan(1)) {
      const auto found = labels.find(o.id);
      if (found == labels.end()) return {};
      targets.push_back(found->second);
    }
    return targets;
  }

  /// The branch depends on something unknown. If no barrier depends on the branch, the threads
  /// continue where the paths reconverge, and the values written in between become unknown.
  void jump_over(std::uint32_t block, std::uint32_t number, const Threads& threads) {
    if (s_.decides[block]) return give_up();
    for (const std::uint32_t inside : region_of(block)) {
      const analysis::Block& range = s_.cfg.blocks()[inside];
      spend(range.end - range.first);
      for (std::uint32_t i = range.first; i < range.end; ++i) {
        if (!needed_.statements[i]) continue;
        values_->forget(i, threads);
        spend(threads.count());
      }
    }
    put_block(s_.cfg.post_dominators().immediate(block), threads, number);
  }
  /// The blocks between the end of a block and its immediate post-dominator.
  std::vector<std::uint32_t> region_of(std::uint32_t block) const {
    const std::uint32_t join = s_.cfg.post_dominators().immediate(block);
    std::vector<std::uint32_t> region;
    std::vector<bool> seen(s_.cfg.blocks().size(), false);
    const auto add_successors = [&](std::uint32_t from) {
      for (const std::uint32_t next : s_.cfg.successors(from)) {
        if (next == join || next == s_.cfg.exit() || seen[next]) continue;
        seen[next] = true;
        region.push_back(next);
      }
    };
    add_successors(block);
    for (std::size_t i = 0; i < region.size(); ++i) add_successors(region[i]);
    return region;
  }
  /// Whether a needed value depends on the branch at the end of a block.
  bool path_matters(std::uint32_t block) {
    if (s_.decides[block]) return true;
    if (path_matters_.empty()) path_matters_.assign(s_.cfg.blocks().size(), -1);
    std::int8_t& known = path_matters_[block];
    if (known >= 0) return known != 0;
    known = 0;
    for (const std::uint32_t inside : region_of(block)) {
      const analysis::Block& range = s_.cfg.blocks()[inside];
      spend(range.end - range.first);
      for (std::uint32_t i = range.first; i < range.end; ++i) {
        if (needed_.statements[i]) known = 1;
      }
    }
    return known != 0;
  }

  // Barriers -------------------------------------------------------------------------------------

  std::uint32_t warp_end(std::uint32_t first) const { return std::min(first + 32, threads_); }

  /// No thread runs: completes barriers, or ends the walk.
  void resolve() {
    if (state_.waiting.none()) return finish();
    spend(kGroupWork + state_.waiting.count());
    if (release_warp_syncs()) return;
    if (ended_) return;
    if (arrive_at_barriers()) return;
    if (ended_) return;
    if (complete_barriers()) return;
    if (!ended_) report_deadlock();
  }

  void resume(const Threads& threads) {
    std::map<std::uint32_t, Threads> by_statement;
    threads.for_each(threads_, [&](std::uint32_t t) {
      by_statement[state_.waits_at[t] + 1].set(t);
      state_.waits_at[t] = kNone;
    });
    state_.waiting &= ~threads;
    state_.arrived &= ~threads;
    for (const auto& [statement, group] : by_statement) put(statement, group);
  }

  bool release_warp_syncs() {
    Threads released;
    for (std::uint32_t first = 0; first < threads_; first += 32) {
      for (std::uint32_t t = first; t < warp_end(first); ++t) {
        if (state_.waits_at[t] == kNone || released[t]) continue;
        const Use use = use_of(f_, f_.body[state_.waits_at[t]]);
        if (use.kind != UseKind::Warp) continue;
        const Value mask = values_->of(*use.id, t);
        if (mask.mark == Mark::Unknown) {
          give_up();
          return false;
        }
        if (mask.mark != Mark::Exact) walk_.exact = false;
        const auto named = static_cast<std::uint32_t>(mask.bits);
        if ((named >> (t - first) & 1) == 0) {
          trouble(Trouble::Unnamed, state_.waits_at[t], Threads().set(t), {});
          walk_.expected = named;
          return false;
        }
        Threads there;
        bool complete = true;
        for (std::uint32_t other = first; other < warp_end(first); ++other) {
          if ((named >> (other - first) & 1) == 0 || state_.left[other]) continue;
          const bool waits = state_.waits_at[other] != kNone && same_mask(other, named);
          complete = complete && waits;
          if (waits) there.set(other);
        }
        if (complete) released |= there;
      }
    }
    if (released.none()) return false;
    resume(released);
    return true;
  }
  bool same_mask(std::uint32_t thread, std::uint32_t named) const {
    const Use use = use_of(f_, f_.body[state_.waits_at[thread]]);
    if (use.kind != UseKind::Warp) return false;
    const Value mask = values_->of(*use.id, thread);
    return mask.mark != Mark::Unknown && static_cast<std::uint32_t>(mask.bits) == named;
  }

  /// Whole warps arrive at aligned barriers, single lanes at others. Returns whether any did.
  bool arrive_at_barriers() {
    bool moved = false;
    for (std::uint32_t first = 0; first < threads_ && !ended_; first += 32) {
      bool all_wait = true, diverged = false, loose = false;
      std::uint32_t site = kNone, aligned_site = kNone;
      for (std::uint32_t t = first; t < warp_end(first); ++t) {
        if (state_.left[t]) continue;
        const std::uint32_t at = state_.waits_at[t];
        all_wait = all_wait && at != kNone && !is_warp_sync(at) && !state_.arrived[t];
        if (at == kNone) continue;
        const CallEffect call = s_.call(at);
        if (is_aligned(at) && !call.barrier) aligned_site = at;
        // Lanes at barriers that are not aligned arrive first, and may yet reach the other
        // barrier; so may lanes that return from a call without having waited.
        loose = loose || !is_aligned(at) || (call.barrier && !call.always);
        diverged = diverged || (site != kNone && site != at);
        site = at;
      }
      if (aligned_site != kNone && all_wait && diverged && !loose) {
        report_diverged_warp(first, aligned_site);
        return false;
      }
      bool arrived = false;
      for (std::uint32_t t = first; t < warp_end(first) && !ended_; ++t) {
        const std::uint32_t at = state_.waits_at[t];
        if (at == kNone || state_.arrived[t] || is_warp_sync(at)) continue;
        if (is_aligned(at) && (diverged || !all_wait)) continue;
        arrived = arrive(t) || arrived;
      }
      // Warps arrive one by one: a barrier that one completes is free before the next arrives.
      if (arrived && !ended_) moved = release_arrivers() || moved;
    }
    return moved;
  }
  bool is_warp_sync(std::uint32_t statement) const {
    return use_of(f_, f_.body[statement]).kind == UseKind::Warp;
  }
  bool is_aligned(std::uint32_t statement) const {
    return s_.call(statement).barrier || use_of(f_, f_.body[statement]).aligned;
  }

  bool arrive(std::uint32_t t) {
    const std::uint32_t at = state_.waits_at[t];
    const Use use = use_of(f_, f_.body[at]);
    std::uint64_t id = use.kind == UseKind::Cluster ? kClusterId : 0;
    std::uint64_t count = 0;
    if (use.kind == UseKind::Block) {
      const Value number = values_->of(*use.id, t);
      const Value wanted =
          use.count != nullptr ? values_->of(*use.count, t) : Value{0, Mark::Exact};
      if (number.mark == Mark::Unknown || wanted.mark == Mark::Unknown) {
        give_up();
        return false;
      }
      if (number.mark != Mark::Exact || wanted.mark != Mark::Exact) walk_.exact = false;
      id = number.bits & 0xffffffffu;
      count = wanted.bits & 0xffffffffu;
      if (id >= kBarriers || (use.count != nullptr && (count == 0 || count % 32 != 0))) {
        trouble(Trouble::Number, at, Threads().set(t), {});
        walk_.actual = id;
        walk_.expected = count;
        return false;
      }
      // Threads in other functions may arrive at this barrier too; they are not simulated.
      if (count != 0 && (s_.elsewhere >> id & 1) != 0) {
        give_up();
        return false;
      }
    } else if (use.kind == UseKind::None) {
      id = kCallId;
    }
    if (is_aligned(at) && !same_in_warp(t, at, id)) return false;
    BarrierArrivals& barrier = barriers_[id];
    const std::uint64_t expected = count == 0 ? rounded() : count;
    if (barrier.expected != 0 && barrier.expected != expected) {
      trouble(Trouble::Counts, at, Threads().set(t), barrier.threads);
      walk_.other = barrier.statement;
      walk_.expected = expected;
      walk_.actual = barrier.expected;
      return false;
    }
    if (barrier.threads[t]) {
      // A second arrival before the first use is complete: the result depends on the order.
      give_up();
      return false;
    }
    if (barrier.expected == 0) barrier.statement = at;
    barrier.expected = expected;
    barrier.all = barrier.all || count == 0;
    barrier.threads.set(t);
    state_.arrived.set(t);
    state_.barrier_of[t] = static_cast<std::uint32_t>(id);
    if (state_.traces[t].size() < kMaxTraceLength)
      state_.traces[t].push_back(
          {at, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(count)});
    else
      state_.trace_too_long = true;
    return true;
  }
  /// Lanes of one warp must name one barrier when they execute it together.
  bool same_in_warp(std::uint32_t t, std::uint32_t at, std::uint64_t id) {
    for (std::uint32_t other = t / 32 * 32; other < t; ++other) {
      if (state_.waits_at[other] != at || !state_.arrived[other] || state_.barrier_of[other] == id)
        continue;
      trouble(Trouble::Numbers, at, Threads().set(other), Threads().set(t));
      walk_.expected = state_.barrier_of[other];
      walk_.actual = id;
      return false;
    }
    return true;
  }
  std::uint64_t rounded() const { return (std::uint64_t{threads_} + 31) / 32 * 32; }

  /// Threads at an arrive continue at once, unless they have just completed a barrier.
  bool release_arrivers() {
    Threads free;
    state_.arrived.for_each(threads_, [&](std::uint32_t t) {
      const Use use = use_of(f_, f_.body[state_.waits_at[t]]);
      if (use.kind != UseKind::None && !use.waits) free.set(t);
    });
    const bool completed = complete_barriers();
    free &= state_.waiting;
    if (free.any()) resume(free);
    return completed || free.any();
  }

  std::uint64_t arrivals(const BarrierArrivals& barrier) const {
    std::uint64_t number = barrier.threads.count();
    // A warp counts as 32 threads, including lanes beyond the block and lanes that left the
    // kernel.
    for (std::uint32_t first = 0; first < threads_; first += 32) {
      std::uint32_t there = 0, gone = 32 - (warp_end(first) - first);
      for (std::uint32_t t = first; t < warp_end(first); ++t) {
        there += barrier.threads[t] ? 1u : 0u;
        gone += state_.left[t] && !barrier.threads[t] ? 1u : 0u;
      }
      if (there != 0) number += gone;
    }
    return number;
  }

  bool complete_barriers() {
    bool moved = false;
    for (std::uint64_t id = 0; id < barriers_.size() && !ended_; ++id) {
      BarrierArrivals& barrier = barriers_[id];
      if (barrier.expected == 0) continue;
      const bool cluster = id == kClusterId;
      const Threads live = state_.all & ~state_.left;
      if (cluster || barrier.all) {
        if ((live & ~barrier.threads).any()) continue;
      } else if (arrivals(barrier) < barrier.expected) {
        continue;
      }
      if (id == kCallId && !one_call(barrier)) {
        give_up();
        return false;
      }
      Threads gone = state_.left & ~barrier.threads;
      if (!barrier.all && !cluster) gone = lanes_of_the_warps_of(barrier.threads) & gone;
      if (gone.any() && !barrier.all && !is_aligned(barrier.statement)) {
        // Whether lanes that left count depends on whether they left before the others arrived.
        give_up();
        return false;
      }
      if (!cluster && gone.any()) {
        // A return from a function does not leave the kernel. Lanes that skip a barrier which the
        // rest of their warp executes together may leave too late to count as gone.
        if (!f_.entry || skips_barrier(barrier, gone)) {
          trouble(Trouble::Left, barrier.statement, barrier.threads, gone);
          return false;
        }
        note_exit(barrier.statement, barrier.threads, gone);
      }
      if (arrivals(barrier) > barrier.expected && !cluster) {
        // More threads than the barrier counts: the order decides which of them it releases.
        give_up();
        return false;
      }
      // Threads that only arrived may wait at another barrier by now.
      Threads free;
      (barrier.threads & state_.arrived).for_each(threads_, [&](std::uint32_t t) {
        if (state_.barrier_of[t] == id) free.set(t);
      });
      reduce(barrier.threads, free);
      barrier = BarrierArrivals{};
      resume(free);
      moved = true;
    }
    return moved;
  }
  /// Whether all arrived at the same call. The called function is checked by itself.
  bool one_call(const BarrierArrivals& barrier) const {
    bool same = s_.call(barrier.statement).always || (state_.left & state_.all).none();
    barrier.threads.for_each(
        threads_, [&](std::uint32_t t) { same = same && state_.waits_at[t] == barrier.statement; });
    return same;
  }
  Threads lanes_of_the_warps_of(const Threads& threads) const {
    return threads.whole_warps() & state_.all;
  }

  /// The results of bar.red.
  void reduce(const Threads& came, const Threads& waiting) {
    std::uint64_t set = 0, votes = 0;
    // Votes of threads that only arrived are not kept.
    Mark mark = came == waiting ? Mark::Exact : Mark::Unknown;
    waiting.for_each(threads_, [&](std::uint32_t t) {
      const Use use = use_of(f_, f_.body[state_.waits_at[t]]);
      if (use.vote == nullptr) return;
      const Value own = values_->of(*use.vote, t);
      mark = std::max(mark, own.mark);
      set += own.bits != 0 ? 1 : 0;
      ++votes;
    });
    if (votes == 0) return;
    waiting.for_each(threads_, [&](std::uint32_t t) {
      const Instruction& statement = f_.body[state_.waits_at[t]];
      const Use use = use_of(f_, statement);
      if (use.result == nullptr || use.result->kind != OperandKind::Register) return;
      const Modifier action = statement.get(Field::BoolOp);
      Value computed{set, mark};
      if (action == Modifier::and_) computed.bits = set == votes;
      if (action == Modifier::or_) computed.bits = set != 0;
      values_->write(use.result->as_register(), t, computed);
    });
  }

  // The end --------------------------------------------------------------------------------------

  void finish() {
    ended_ = true;
    walk_.end = state_.trace_too_long ? Walk::End::GaveUp : Walk::End::Finished;
    walk_.trace_of.assign(threads_, 0);
    for (std::uint32_t t = 0; t < threads_; ++t) {
      const auto known = std::ranges::find(walk_.traces, state_.traces[t]);
      walk_.trace_of[t] = static_cast<std::uint16_t>(known - walk_.traces.begin());
      if (known != walk_.traces.end()) continue;
      if (walk_.traces.size() == kMaxTraces) {
        walk_.exact = false;
        return;
      }
      walk_.traces.push_back(std::move(state_.traces[t]));
    }
  }

  void trouble(Trouble kind, std::uint32_t barrier, const Threads& waiting,
               const Threads& missing) {
    ended_ = true;
    walk_.end = Walk::End::Deadlock;
    describe(walk_, kind, barrier, waiting, missing);
  }

  /// Whether lanes that left had skipped a barrier that the rest of their warp executes together.
  bool skips_barrier(const BarrierArrivals& barrier, const Threads& gone) const {
    if (!is_aligned(barrier.statement) || s_.call(barrier.statement).barrier) return false;
    for (std::uint32_t t = 0; t < threads_; ++t) {
      if (!gone[t]) continue;
      const std::uint32_t first = t / 32 * 32;
      for (std::uint32_t mate = first; mate < warp_end(first); ++mate) {
        if (!barrier.threads[mate]) continue;
        const DivergentBranch* divergence = branches_.last(mate, t);
        if (divergence == nullptr ||
            !leaves_before(s_, divergence->statement, barrier.statement, false))
          return true;
        break;
      }
    }
    return false;
  }
  /// Records that threads left before a barrier that the others completed.
  void note_exit(std::uint32_t barrier, const Threads& waiting, const Threads& missing) {
    const bool known =
        std::ranges::any_of(walk_.exits, [&](const Walk& exit) { return exit.barrier == barrier; });
    if (known || walk_.exits.size() == kMaxExits) return;
    Walk& exit = walk_.exits.emplace_back();
    exit.end = Walk::End::Deadlock;
    exit.left_before = true;
    exit.exact = walk_.exact;
    describe(exit, Trouble::Left, barrier, waiting, missing);
  }

  void describe(Walk& walk, Trouble kind, std::uint32_t barrier, const Threads& waiting,
                const Threads& missing) const {
    walk.trouble = kind;
    walk.barrier = barrier;
    walk.waiting = waiting;
    walk.missing = missing;
    if (missing.none()) return;
    std::uint32_t gone = 0;
    while (!missing[gone]) ++gone;
    walk.others_left = state_.left[gone];
    walk.other = state_.left[gone] ? state_.left_at[gone] : state_.waits_at[gone];
    std::uint32_t here = 0;
    while (here < threads_ && !waiting[here]) ++here;
    const DivergentBranch* divergence = here < threads_ ? branches_.last(here, gone) : nullptr;
    if (divergence == nullptr) return;
    walk.decider = divergence->statement;
    walk.taken = divergence->taken;
  }

  /// Lanes of a warp wait at different statements, one of them aligned.
  void report_diverged_warp(std::uint32_t first, std::uint32_t site) {
    // Reports the barrier that is first in the text.
    std::uint32_t t = first;
    while (t < warp_end(first) && (state_.left[t] || state_.waits_at[t] == site)) ++t;
    if (t < warp_end(first) && state_.waits_at[t] < site && is_aligned(state_.waits_at[t]) &&
        !s_.call(state_.waits_at[t]).barrier)
      site = state_.waits_at[t];
    Threads here, there;
    for (t = first; t < warp_end(first); ++t) {
      if (!state_.left[t]) (state_.waits_at[t] == site ? here : there).set(t);
    }
    trouble(Trouble::Diverged, site, here, there);
  }

  void report_deadlock() {
    // The barrier with the most threads, then the first in the text.
    std::map<std::uint32_t, Threads> sites;
    state_.waiting.for_each(threads_, [&](std::uint32_t t) { sites[state_.waits_at[t]].set(t); });
    const auto largest =
        std::ranges::max_element(sites, {}, [](const auto& site) { return site.second.count(); });
    const std::uint32_t site = largest->first;
    const Use use = use_of(f_, f_.body[site]);
    // A call may reach the barrier at which the others wait, or none. The callers of a function
    // are not known here, so neither is the number of threads that arrive.
    const bool any_call =
        std::ranges::any_of(sites, [&](const auto& at) { return s_.call(at.first).barrier; });
    if (any_call || (!f_.entry && use.count != nullptr)) return give_up();
    Threads missing = state_.all & ~largest->second;
    if (use.kind == UseKind::Warp) missing &= lanes_of_the_warps_of(largest->second) & ~state_.left;
    if (use.kind == UseKind::Block && use.count != nullptr) {
      std::uint32_t t = 0;
      while (!largest->second[t]) ++t;
      const BarrierArrivals& barrier = barriers_[values_->of(*use.id, t).bits & 0xf];
      const Threads came = barrier.threads;
      const std::uint64_t wanted = values_->of(*use.count, t).bits & 0xffffffffu;
      const std::uint64_t number = arrivals(barrier);
      trouble(Trouble::TooFew, site, largest->second, state_.all & ~came);
      walk_.expected = wanted;
      walk_.actual = number;
      return;
    }
    if (missing.none()) {
      // All threads are here, at barriers of different numbers.
      std::uint32_t one = 0;
      while (!largest->second[one]) ++one;
      Threads same, others;
      largest->second.for_each(threads_, [&](std::uint32_t t) {
        (state_.barrier_of[t] == state_.barrier_of[one] ? same : others).set(t);
      });
      trouble(Trouble::Numbers, site, same, others);
      walk_.expected = state_.barrier_of[one];
      others.for_each(threads_, [&](std::uint32_t t) { walk_.actual = state_.barrier_of[t]; });
      return;
    }
    // A barrier does not wait for threads that have left the kernel, only for the others.
    const Threads elsewhere = missing & ~state_.left;
    const bool left = elsewhere.none() || !f_.entry;
    const Threads gone = missing & state_.left;
    trouble(left && gone.any() ? Trouble::Left : Trouble::Elsewhere, site, largest->second,
            left && gone.any() ? gone : elsewhere);
  }

  const Subject& s_;
  const Function& f_;
  const Launch& launch_;
  std::uint64_t& work_;
  std::uint32_t threads_;
  NeededRegisters needed_;
  std::optional<KnownValues> values_;
  std::vector<std::int8_t> path_matters_;  // by block, -1 not known

  std::vector<Group> groups_;
  ThreadProgress state_;
  std::array<BarrierArrivals, kBarriers + 2> barriers_;  // by number
  DivergentBranches branches_;
  bool ended_ = false;
  Walk walk_;
};

}  // namespace

Walk walk(const Subject& subject, const Launch& launch, std::uint64_t& work) {
  return Walker(subject, launch, work).run();
}

}  // namespace ptxgen::inline v0::gates::barriers
