// src/check/barrier_safety/walk.cpp - a block walked through a function
#include <algorithm>
#include <map>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;

namespace {

constexpr std::uint32_t kBarriers = 16;
constexpr std::uint32_t kClusterId = kBarriers;
constexpr std::uint32_t kCallId = kBarriers + 1;  // of calls that come to a barrier
constexpr std::size_t kMaxStories = 64;
constexpr std::size_t kLongestStory = 512;
constexpr std::size_t kMaxParts = 4096;
constexpr std::size_t kMaxExits = 16;

struct Group {
  std::uint32_t statement = 0;
  Threads threads;
};

/// Two sides that went different ways.
struct Parting {
  std::uint32_t statement = 0;
  Threads turned, stayed;
};

struct Arrived {
  std::uint64_t expected = 0;  ///< 0: nobody is there
  std::uint32_t statement = kNone;
  bool all = false;
  Threads threads;
};

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
        needed_(f_, s_.index, roots(subject)) {}

  Walk run() {
    if (threads_ == 0 || threads_ > kMaxThreads || f_.body.empty()) return std::move(walk_);
    values_.emplace(s_.module, f_, s_.index, needed_, KnownLaunch{.launch = launch_});
    if (!values_->fits()) return std::move(walk_);
    waits_at_.assign(threads_, kNone);
    arrived_at_.assign(threads_, 0);
    left_at_.assign(threads_, kNone);
    story_.resize(threads_);
    for (std::uint32_t t = 0; t < threads_; ++t) all_.set(t);
    groups_.push_back({0, all_});
    while (!ended_) {
      if (!groups_.empty())
        run_group();
      else
        resolve();
    }
    return std::move(walk_);
  }

 private:
  void lost() {
    ended_ = true;
    walk_.end = Walk::End::Lost;
  }

  void spend(std::uint64_t results) {
    if (work_ < results) {
      work_ = 0;
      lost();
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
    for_each_thread(threads, threads_, [&](std::uint32_t t) {
      left_at_[t] = statement == kNone ? static_cast<std::uint32_t>(f_.body.size() - 1) : statement;
    });
    left_ |= threads;
  }

  void part(std::uint32_t statement, const Threads& turned, const Threads& stayed) {
    if (turned.none() || stayed.none()) return;
    // The youngest are what matters; a hostile loop must not fill the memory.
    if (partings_.size() == kMaxParts)
      partings_.erase(partings_.begin(), partings_.begin() + kMaxParts / 2);
    partings_.push_back({statement, turned, stayed});
  }

  void run_group() {
    const auto next = std::ranges::min_element(
        groups_, {}, [&](const Group& group) { return place(group.statement); });
    Group group = *next;
    groups_.erase(next);
    const std::uint32_t block = s_.cfg.block_of(group.statement);
    const analysis::Block& range = s_.cfg.blocks()[block];
    for (std::uint32_t i = group.statement; i < range.end && !ended_; ++i) {
      const Instruction& statement = f_.body[i];
      if (statement.kind == StatementKind::Unknown) return lost();
      if (statement.kind != StatementKind::Instruction) continue;
      if (i == range.terminator) {
        spend(group.threads.count());
        return terminate(block, i, group.threads);
      }
      if (!event(i, group.threads)) return;
      if (group.threads.none()) return;
      if (!needed_.statements[i]) continue;
      values_->execute(i, group.threads, left_);
      spend(group.threads.count());
    }
    // A block that only falls through must not loop for nothing: falling through goes forward.
    if (!ended_) put(range.end, group.threads);
  }

  /// The threads that come to a barrier wait there, the others go on.
  bool event(std::uint32_t number, Threads& threads) {
    const Instruction& statement = f_.body[number];
    if (statement.op == Op::trap) {
      lost();
      return false;
    }
    const Use use = use_of(f_, statement);
    const CallEffect call = s_.call(number);
    if (call.leaves) {
      lost();
      return false;
    }
    const bool of_warps =
        call.warp || (has(info(statement.op).flags, Flag::Convergent) && use.kind == UseKind::None);
    // Lanes of a warp that come to such an instruction apart wait for each other, or never meet.
    if (of_warps && !whole_warps(threads)) {
      if (call.warp) {
        lost();
        return false;
      }
      walk_.exact = false;
    }
    if (use.kind == UseKind::None && !call.barrier) return true;
    Threads turned, stayed;
    if (!split(statement.guard, threads, turned, stayed, true)) return false;
    part(number, turned, stayed);
    for_each_thread(turned, threads_, [&](std::uint32_t t) { waits_at_[t] = number; });
    waiting_ |= turned;
    threads = stayed;
    if (turned.none()) return true;
    // They go on with the next statement later, together with the others perhaps.
    put(number + 1, stayed);
    threads.reset();
    return false;
  }

  bool whole_warps(const Threads& threads) const {
    return (lanes_of_the_warps_of(threads) & ~left_ & ~threads).none();
  }

  /// By a guard. False if the walk has lost its way. `matters`: more than what is not wanted hangs
  /// on it.
  bool split(const Guard& guard, const Threads& threads, Threads& turned, Threads& stayed,
             bool matters) {
    bool known = true, exact = true;
    for_each_thread(threads, threads_, [&](std::uint32_t t) {
      const Value held = values_->holds(guard, t);
      known = known && held.mark != Mark::Unknown;
      exact = exact && held.mark == Mark::Exact;
      (held.bits != 0 ? turned : stayed).set(t);
    });
    if (!known) {
      lost();
      return false;
    }
    if (matters && !exact) walk_.exact = false;
    return true;
  }

  bool all_known(const Guard& guard, const Operand* index, const Threads& threads) const {
    bool known = true;
    for_each_thread(threads, threads_, [&](std::uint32_t t) {
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
    Threads turned, stayed;
    if (!split(statement.guard, threads, turned, stayed, way_matters(block))) return;
    if (table) {
      const auto targets = s_.cfg.successors(block);
      // Without a guard every successor is one of the table's.
      if (statement.guard.present() || targets.empty()) return lost();
      return by_table(block, number, *index, turned);
    }
    part(number, turned, stayed);
    if (statement.op == Op::bra) {
      put_block(s_.cfg.successors(block).empty() ? s_.cfg.exit() : s_.cfg.successors(block)[0],
                turned, number);
    } else {
      leave(turned, number);
    }
    put(number + 1, stayed);
  }

  // Entries of a table may name one block several times, so successors cannot be counted.
  void by_table(std::uint32_t block, std::uint32_t number, const Operand& index,
                const Threads& threads) {
    std::vector<std::uint32_t> targets = table_targets(number);
    if (targets.empty()) return lost();
    std::map<std::uint32_t, Threads> by_target;
    bool exact = true;
    for_each_thread(threads, threads_, [&](std::uint32_t t) {
      const Value at = values_->of(index, t);
      exact = exact && at.mark == Mark::Exact;
      by_target[targets[std::min<std::uint64_t>(at.bits & 0xffffffffu, targets.size() - 1)]].set(t);
    });
    if (!exact && way_matters(block)) walk_.exact = false;
    Threads rest = threads;
    for (const auto& [target, group] : by_target) {
      rest &= ~group;
      part(number, group, rest);
      put(target, group);
    }
  }
  /// First statements behind the labels of a brx.idx, in order; empty if they are not found.
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

  /// The way hangs on something unknown. If no barrier hangs on it too, the threads are taken to
  /// where the ways meet again, and nothing is known of what was written in between.
  void jump_over(std::uint32_t block, std::uint32_t number, const Threads& threads) {
    if (s_.decides[block]) return lost();
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
  /// The blocks between the end of one and where all ways from there meet again.
  std::vector<std::uint32_t> region_of(std::uint32_t block) const {
    const std::uint32_t meet = s_.cfg.post_dominators().immediate(block);
    std::vector<std::uint32_t> region;
    std::vector<bool> seen(s_.cfg.blocks().size(), false);
    const auto add_behind = [&](std::uint32_t from) {
      for (const std::uint32_t next : s_.cfg.successors(from)) {
        if (next == meet || next == s_.cfg.exit() || seen[next]) continue;
        seen[next] = true;
        region.push_back(next);
      }
    };
    add_behind(block);
    for (std::size_t i = 0; i < region.size(); ++i) add_behind(region[i]);
    return region;
  }
  /// Whether something that is wanted hangs on which way is gone from the end of a block.
  bool way_matters(std::uint32_t block) {
    if (s_.decides[block]) return true;
    if (way_matters_.empty()) way_matters_.assign(s_.cfg.blocks().size(), -1);
    std::int8_t& known = way_matters_[block];
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

  /// Nobody runs: whoever may go on does, or the walk is at its end.
  void resolve() {
    if (waiting_.none()) return finish();
    if (release_warp_syncs()) return;
    if (ended_) return;
    if (arrive_at_barriers()) return;
    if (ended_) return;
    if (complete_barriers()) return;
    if (!ended_) stuck();
  }

  void go_on(const Threads& threads) {
    std::map<std::uint32_t, Threads> behind;
    for_each_thread(threads, threads_, [&](std::uint32_t t) {
      behind[waits_at_[t] + 1].set(t);
      waits_at_[t] = kNone;
    });
    waiting_ &= ~threads;
    arrived_threads_ &= ~threads;
    for (const auto& [statement, group] : behind) put(statement, group);
  }

  bool release_warp_syncs() {
    Threads released;
    for (std::uint32_t first = 0; first < threads_; first += 32) {
      for (std::uint32_t t = first; t < warp_end(first); ++t) {
        if (waits_at_[t] == kNone || released[t]) continue;
        const Use use = use_of(f_, f_.body[waits_at_[t]]);
        if (use.kind != UseKind::Warp) continue;
        const Value mask = values_->of(*use.id, t);
        if (mask.mark == Mark::Unknown) {
          lost();
          return false;
        }
        if (mask.mark != Mark::Exact) walk_.exact = false;
        const auto named = static_cast<std::uint32_t>(mask.bits);
        if ((named >> (t - first) & 1) == 0) {
          trouble(Trouble::Unnamed, waits_at_[t], Threads().set(t), {});
          walk_.wanted = named;
          return false;
        }
        Threads there;
        bool complete = true;
        for (std::uint32_t other = first; other < warp_end(first); ++other) {
          if ((named >> (other - first) & 1) == 0 || left_[other]) continue;
          const bool waits = waits_at_[other] != kNone && same_mask(other, named);
          complete = complete && waits;
          if (waits) there.set(other);
        }
        if (complete) released |= there;
      }
    }
    if (released.none()) return false;
    go_on(released);
    return true;
  }
  bool same_mask(std::uint32_t thread, std::uint32_t named) const {
    const Use use = use_of(f_, f_.body[waits_at_[thread]]);
    if (use.kind != UseKind::Warp) return false;
    const Value mask = values_->of(*use.id, thread);
    return mask.mark != Mark::Unknown && static_cast<std::uint32_t>(mask.bits) == named;
  }

  /// Whole warps arrive at aligned barriers, lanes at others. Whether somebody did something new.
  bool arrive_at_barriers() {
    bool moved = false;
    for (std::uint32_t first = 0; first < threads_ && !ended_; first += 32) {
      bool all_wait = true, parted = false, loose = false;
      std::uint32_t site = kNone, aligned_site = kNone;
      for (std::uint32_t t = first; t < warp_end(first); ++t) {
        if (left_[t]) continue;
        const std::uint32_t at = waits_at_[t];
        all_wait = all_wait && at != kNone && !is_warp_sync(at) && !arrived_threads_[t];
        if (at == kNone) continue;
        const CallEffect call = s_.call(at);
        if (is_aligned(at) && !call.barrier) aligned_site = at;
        // Lanes that need not be together arrive first, and may yet go on to the others; so may
        // those that come back from a call without having waited.
        loose = loose || !is_aligned(at) || (call.barrier && !call.always);
        parted = parted || (site != kNone && site != at);
        site = at;
      }
      if (aligned_site != kNone && all_wait && parted && !loose) {
        apart(first, aligned_site);
        return false;
      }
      bool arrived = false;
      for (std::uint32_t t = first; t < warp_end(first) && !ended_; ++t) {
        const std::uint32_t at = waits_at_[t];
        if (at == kNone || arrived_threads_[t] || is_warp_sync(at)) continue;
        if (is_aligned(at) && (parted || !all_wait)) continue;
        arrived = arrive(t) || arrived;
      }
      // One warp after the other: what it completes it completes before the next one comes.
      if (arrived && !ended_) moved = let_arrivers_go() || moved;
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
    const std::uint32_t at = waits_at_[t];
    const Use use = use_of(f_, f_.body[at]);
    std::uint64_t id = use.kind == UseKind::Cluster ? kClusterId : 0;
    std::uint64_t count = 0;
    if (use.kind == UseKind::Block) {
      const Value number = values_->of(*use.id, t);
      const Value wanted =
          use.count != nullptr ? values_->of(*use.count, t) : Value{0, Mark::Exact};
      if (number.mark == Mark::Unknown || wanted.mark == Mark::Unknown) {
        lost();
        return false;
      }
      if (number.mark != Mark::Exact || wanted.mark != Mark::Exact) walk_.exact = false;
      id = number.bits & 0xffffffffu;
      count = wanted.bits & 0xffffffffu;
      if (id >= kBarriers || (use.count != nullptr && (count == 0 || count % 32 != 0))) {
        trouble(Trouble::Number, at, Threads().set(t), {});
        walk_.found = id;
        walk_.wanted = count;
        return false;
      }
      // Threads in other functions may come to this barrier too, and are not seen here.
      if (count != 0 && (s_.elsewhere >> id & 1) != 0) {
        lost();
        return false;
      }
    } else if (use.kind == UseKind::None) {
      id = kCallId;
    }
    if (is_aligned(at) && !same_in_warp(t, at, id)) return false;
    Arrived& barrier = arrived_[id];
    const std::uint64_t expected = count == 0 ? rounded() : count;
    if (barrier.expected != 0 && barrier.expected != expected) {
      trouble(Trouble::Counts, at, Threads().set(t), barrier.threads);
      walk_.other = barrier.statement;
      walk_.wanted = expected;
      walk_.found = barrier.expected;
      return false;
    }
    if (barrier.threads[t]) {
      // Comes a second time before the first use is complete: what that means hangs on the order.
      lost();
      return false;
    }
    if (barrier.expected == 0) barrier.statement = at;
    barrier.expected = expected;
    barrier.all = barrier.all || count == 0;
    barrier.threads.set(t);
    arrived_threads_.set(t);
    arrived_at_[t] = static_cast<std::uint32_t>(id);
    if (story_[t].size() < kLongestStory)
      story_[t].push_back({at, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(count)});
    else
      too_long_ = true;
    return true;
  }
  /// Lanes of one warp must mean one barrier where they execute it together.
  bool same_in_warp(std::uint32_t t, std::uint32_t at, std::uint64_t id) {
    for (std::uint32_t other = t / 32 * 32; other < t; ++other) {
      if (waits_at_[other] != at || !arrived_threads_[other] || arrived_at_[other] == id) continue;
      trouble(Trouble::Numbers, at, Threads().set(other), Threads().set(t));
      walk_.wanted = arrived_at_[other];
      walk_.found = id;
      return false;
    }
    return true;
  }
  std::uint64_t rounded() const { return (std::uint64_t{threads_} + 31) / 32 * 32; }

  /// Those who only arrive go on at once, unless they have just completed a barrier.
  bool let_arrivers_go() {
    Threads free;
    for_each_thread(arrived_threads_, threads_, [&](std::uint32_t t) {
      const Use use = use_of(f_, f_.body[waits_at_[t]]);
      if (use.kind != UseKind::None && !use.waits) free.set(t);
    });
    const bool completed = complete_barriers();
    free &= waiting_;
    if (free.any()) go_on(free);
    return completed || free.any();
  }

  std::uint64_t arrivals(const Arrived& barrier) const {
    std::uint64_t number = barrier.threads.count();
    // A warp counts as 32 threads: the ones that it lacks come with it, and those that left the
    // kernel too.
    for (std::uint32_t first = 0; first < threads_; first += 32) {
      std::uint32_t there = 0, gone = 32 - (warp_end(first) - first);
      for (std::uint32_t t = first; t < warp_end(first); ++t) {
        there += barrier.threads[t] ? 1u : 0u;
        gone += left_[t] && !barrier.threads[t] ? 1u : 0u;
      }
      if (there != 0) number += gone;
    }
    return number;
  }

  bool complete_barriers() {
    bool moved = false;
    for (std::uint64_t id = 0; id < arrived_.size() && !ended_; ++id) {
      Arrived& barrier = arrived_[id];
      if (barrier.expected == 0) continue;
      const bool cluster = id == kClusterId;
      const Threads live = all_ & ~left_;
      if (cluster || barrier.all) {
        if ((live & ~barrier.threads).any()) continue;
      } else if (arrivals(barrier) < barrier.expected) {
        continue;
      }
      if (id == kCallId && !one_call(barrier)) {
        lost();
        return false;
      }
      Threads gone = left_ & ~barrier.threads;
      if (!barrier.all && !cluster) gone = lanes_of_the_warps_of(barrier.threads) & gone;
      if (gone.any() && !barrier.all && !is_aligned(barrier.statement)) {
        // Lanes that left count as come or not, as they left before the others came or after.
        lost();
        return false;
      }
      if (!cluster && gone.any()) {
        // Who returns from a function has not left the kernel, and who goes around a barrier that
        // the rest of its warp executes together may come too late to have left before.
        if (!f_.entry || goes_around(barrier, gone)) {
          trouble(Trouble::Left, barrier.statement, barrier.threads, gone);
          return false;
        }
        note_exit(barrier.statement, barrier.threads, gone);
      }
      if (arrivals(barrier) > barrier.expected && !cluster) {
        // More than it counts have come: which of them it lets go hangs on the order.
        lost();
        return false;
      }
      // Who only arrived may by now wait at another one.
      Threads free;
      for_each_thread(barrier.threads & arrived_threads_, threads_, [&](std::uint32_t t) {
        if (arrived_at_[t] == id) free.set(t);
      });
      reduce(barrier.threads, free);
      barrier = Arrived{};
      go_on(free);
      moved = true;
    }
    return moved;
  }
  /// All have come to the same call. What happens in it is judged there.
  bool one_call(const Arrived& barrier) const {
    bool same = s_.call(barrier.statement).always || (left_ & all_).none();
    for_each_thread(barrier.threads, threads_,
                    [&](std::uint32_t t) { same = same && waits_at_[t] == barrier.statement; });
    return same;
  }
  Threads lanes_of_the_warps_of(const Threads& threads) const {
    Threads lanes;
    for (std::uint32_t t = 0; t < threads_; ++t) {
      if (!threads[t]) continue;
      for (std::uint32_t other = t / 32 * 32; other < warp_end(t / 32 * 32); ++other)
        lanes.set(other);
    }
    return lanes;
  }

  /// What bar.red gives to those who came.
  void reduce(const Threads& came, const Threads& waiting) {
    std::uint64_t set = 0, votes = 0;
    // Arrivals without a vote are no matter, and votes of others are not kept.
    Mark mark = came == waiting ? Mark::Exact : Mark::Unknown;
    for_each_thread(waiting, threads_, [&](std::uint32_t t) {
      const Use use = use_of(f_, f_.body[waits_at_[t]]);
      if (use.vote == nullptr) return;
      const Value own = values_->of(*use.vote, t);
      mark = std::max(mark, own.mark);
      set += own.bits != 0 ? 1 : 0;
      ++votes;
    });
    if (votes == 0) return;
    for_each_thread(waiting, threads_, [&](std::uint32_t t) {
      const Instruction& statement = f_.body[waits_at_[t]];
      const Use use = use_of(f_, statement);
      if (use.result == nullptr || use.result->kind != OperandKind::Register) return;
      const Modifier action = statement.get(Field::BoolOp);
      Value made{set, mark};
      if (action == Modifier::and_) made.bits = set == votes;
      if (action == Modifier::or_) made.bits = set != 0;
      values_->write(use.result->as_register(), t, made);
    });
  }

  // The end --------------------------------------------------------------------------------------

  void finish() {
    ended_ = true;
    walk_.end = too_long_ ? Walk::End::Lost : Walk::End::Finished;
    walk_.story_of.assign(threads_, 0);
    for (std::uint32_t t = 0; t < threads_; ++t) {
      const auto known = std::ranges::find(walk_.stories, story_[t]);
      walk_.story_of[t] = static_cast<std::uint16_t>(known - walk_.stories.begin());
      if (known != walk_.stories.end()) continue;
      if (walk_.stories.size() == kMaxStories) {
        walk_.exact = false;
        return;
      }
      walk_.stories.push_back(std::move(story_[t]));
    }
  }

  void trouble(Trouble kind, std::uint32_t barrier, const Threads& waiting,
               const Threads& missing) {
    ended_ = true;
    walk_.end = Walk::End::Stuck;
    describe(walk_, kind, barrier, waiting, missing);
  }

  /// Whether lanes that left have skipped a barrier that the rest of their warp executes together.
  bool goes_around(const Arrived& barrier, const Threads& gone) const {
    if (!is_aligned(barrier.statement) || s_.call(barrier.statement).barrier) return false;
    for (std::uint32_t t = 0; t < threads_; ++t) {
      if (!gone[t]) continue;
      const std::uint32_t first = t / 32 * 32;
      for (std::uint32_t mate = first; mate < warp_end(first); ++mate) {
        if (!barrier.threads[mate]) continue;
        const Parting* parting = parting_of(mate, t);
        if (parting == nullptr || !leaves_before(s_, parting->statement, barrier.statement, false))
          return true;
        break;
      }
    }
    return false;
  }
  /// Where two threads parted last, or null.
  const Parting* parting_of(std::uint32_t one, std::uint32_t other) const {
    for (auto parting = partings_.rbegin(); parting != partings_.rend(); ++parting) {
      if ((parting->turned[one] && parting->stayed[other]) ||
          (parting->stayed[one] && parting->turned[other]))
        return &*parting;
    }
    return nullptr;
  }

  /// Threads left before a barrier that the others come to, who go on.
  void note_exit(std::uint32_t barrier, const Threads& waiting, const Threads& missing) {
    const bool known =
        std::ranges::any_of(walk_.exits, [&](const Walk& exit) { return exit.barrier == barrier; });
    if (known || walk_.exits.size() == kMaxExits) return;
    Walk& exit = walk_.exits.emplace_back();
    exit.end = Walk::End::Stuck;
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
    walk.others_left = left_[gone];
    walk.other = left_[gone] ? left_at_[gone] : waits_at_[gone];
    std::uint32_t here = 0;
    while (here < threads_ && !waiting[here]) ++here;
    const Parting* parting = here < threads_ ? parting_of(here, gone) : nullptr;
    if (parting == nullptr) return;
    walk.decider = parting->statement;
    walk.turned = parting->turned;
  }

  /// Lanes of a warp wait at different statements, one of them aligned.
  void apart(std::uint32_t first, std::uint32_t site) {
    // The first in the text is the one to speak of.
    std::uint32_t t = first;
    while (t < warp_end(first) && (left_[t] || waits_at_[t] == site)) ++t;
    if (t < warp_end(first) && waits_at_[t] < site && is_aligned(waits_at_[t]) &&
        !s_.call(waits_at_[t]).barrier)
      site = waits_at_[t];
    Threads here, there;
    for (t = first; t < warp_end(first); ++t) {
      if (!left_[t]) (waits_at_[t] == site ? here : there).set(t);
    }
    trouble(Trouble::Apart, site, here, there);
  }

  void stuck() {
    // The barrier with the most threads, then the first in the text.
    std::map<std::uint32_t, Threads> sites;
    for_each_thread(waiting_, threads_, [&](std::uint32_t t) { sites[waits_at_[t]].set(t); });
    const auto most =
        std::ranges::max_element(sites, {}, [](const auto& site) { return site.second.count(); });
    const std::uint32_t site = most->first;
    const Use use = use_of(f_, f_.body[site]);
    // A call may come to the barrier at which the others wait, or to none at all; and who calls a
    // function is not known here, so that nobody can say how many threads come.
    const bool any_call =
        std::ranges::any_of(sites, [&](const auto& at) { return s_.call(at.first).barrier; });
    if (any_call || (!f_.entry && use.count != nullptr)) return lost();
    Threads missing = all_ & ~most->second;
    if (use.kind == UseKind::Warp) missing &= lanes_of_the_warps_of(most->second) & ~left_;
    if (use.kind == UseKind::Block && use.count != nullptr) {
      std::uint32_t t = 0;
      while (!most->second[t]) ++t;
      const Arrived& barrier = arrived_[values_->of(*use.id, t).bits & 0xf];
      const Threads came = barrier.threads;
      const std::uint64_t wanted = values_->of(*use.count, t).bits & 0xffffffffu;
      const std::uint64_t number = arrivals(barrier);
      trouble(Trouble::TooFew, site, most->second, all_ & ~came);
      walk_.wanted = wanted;
      walk_.found = number;
      return;
    }
    if (missing.none()) {
      // All are here, at barriers of different numbers.
      std::uint32_t one = 0;
      while (!most->second[one]) ++one;
      Threads same, others;
      for_each_thread(most->second, threads_, [&](std::uint32_t t) {
        (arrived_at_[t] == arrived_at_[one] ? same : others).set(t);
      });
      trouble(Trouble::Numbers, site, same, others);
      walk_.wanted = arrived_at_[one];
      for_each_thread(others, threads_, [&](std::uint32_t t) { walk_.found = arrived_at_[t]; });
      return;
    }
    // Nobody waits for those that have left the kernel: the others hold it up.
    const Threads elsewhere = missing & ~left_;
    const bool left = elsewhere.none() || !f_.entry;
    const Threads gone = missing & left_;
    trouble(left && gone.any() ? Trouble::Left : Trouble::Elsewhere, site, most->second,
            left && gone.any() ? gone : elsewhere);
  }

  const Subject& s_;
  const Function& f_;
  const Launch& launch_;
  std::uint64_t& work_;
  std::uint32_t threads_;
  NeededRegisters needed_;
  std::optional<KnownValues> values_;
  std::vector<std::int8_t> way_matters_;  // by block, -1 not known

  std::vector<Group> groups_;
  Threads all_, waiting_, left_, arrived_threads_;
  std::vector<std::uint32_t> waits_at_, left_at_;  // by thread: statements
  std::vector<std::uint32_t> arrived_at_;          // by thread: the number of the barrier
  std::array<Arrived, kBarriers + 2> arrived_;
  std::vector<Parting> partings_;
  std::vector<std::vector<Arrival>> story_;
  bool too_long_ = false;
  bool ended_ = false;
  Walk walk_;
};

}  // namespace

Walk walk(const Subject& subject, const Launch& launch, std::uint64_t& work) {
  return Walker(subject, launch, work).run();
}

}  // namespace ptxgen::inline v0::gates::barriers
