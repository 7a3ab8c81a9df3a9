// src/check/barrier_safety/roles.cpp - threads whose control depends on their index alone
#include <algorithm>
#include <map>

#include "check/barrier_safety/orders.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;
using analysis::Agreement;

namespace {

constexpr std::size_t kMaxRoles = 16;
constexpr std::size_t kMaxSteps = 2000;
constexpr std::uint32_t kJoin = 17;  // the barrier number for a whole warp

/// Values that depend on the thread's index and decide a branch, or a barrier's number or count.
struct IndexDependence {
  std::vector<std::uint64_t> values;  ///< by thread
};

class Roles {
 public:
  Roles(const Subject& subject, const Subject& sharper, const std::array<std::uint32_t, 3>& block)
      : s_(subject),
        sharper_(sharper),
        values_(subject.function, subject.index, block, true),
        undefined_(analysis::maybe_undefined(subject.function, subject.cfg, subject.index)),
        threads_(block[0] * block[1] * block[2]) {}

  bool agree() {
    if (threads_ == 0 || threads_ > kMaxThreads || sharper_.uniformity.gave_up()) return false;
    if (!find_dependences() || !find_roles()) return false;
    // Equal choices at uniform branches help only while no role runs far ahead.
    return all_views_agree(true) || all_views_agree(false);
  }

 private:
  bool all_views_agree(bool shared) {
    shared_ = shared;
    const std::uint32_t rounded = (threads_ + 31) / 32 * 32;
    std::vector<Role> roles;
    for (const Threads& threads : members_) {
      Role role;
      role.threads = threads;
      role.size = static_cast<std::uint32_t>(threads.count());
      if (threads[threads_ - 1]) role.size += rounded - threads_;
      if (!build(role, false)) return false;
      roles.push_back(std::move(role));
    }
    if (!every_order_ends(std::move(roles), threads_, false)) return false;
    return !any_warp_sync_ || warps_agree();
  }

  bool known(const Operand& o, IndexDependence& dependence) const {
    if (o.kind == OperandKind::Register) {
      const std::uint32_t reg = s_.index.find(o.as_register());
      if (reg == kNone || undefined_.contains(reg)) return false;
    }
    return values_.operand(o, dependence.values);
  }
  Agreement of_guard(const Instruction& s) const {
    if (!s.guard.present()) return Agreement::Grid;
    const std::uint32_t reg = sharper_.index.find(s.guard.predicate);
    return reg == kNone ? Agreement::None : sharper_.uniformity.of(reg);
  }
  bool guard_dependence(std::uint32_t statement, IndexDependence& dependence) const {
    const Instruction& s = s_.function.body[statement];
    if (!known(Operand::reg(s.guard.predicate), dependence)) return false;
    for (std::uint64_t& value : dependence.values) value = (value != 0) != s.guard.negated ? 1 : 0;
    return true;
  }

  bool find_dependences() {
    for (std::uint32_t b = 0; b < s_.cfg.blocks().size(); ++b) {
      if (!s_.decides[b] || s_.cfg.successors(b).size() < 2) continue;
      if (sharper_.uniformity.of_branch(b) >= Agreement::Block) continue;
      const std::uint32_t terminator = s_.cfg.blocks()[b].terminator;
      if (s_.function.body[terminator].op == Op::brx_idx) return false;
      if (!guard_dependence(terminator, dependences_[terminator])) return false;
    }
    for (const std::uint32_t barrier : s_.barriers) {
      if (!s_.cfg.reachable(s_.cfg.block_of(barrier))) continue;
      const Instruction& statement = s_.function.body[barrier];
      const Use use = use_of(s_.function, statement);
      if (use.kind == UseKind::None || use.kind == UseKind::Cluster) return false;
      if (of_guard(statement) < Agreement::Block &&
          !guard_dependence(barrier, dependences_[barrier]))
        return false;
      any_warp_sync_ = any_warp_sync_ || use.kind == UseKind::Warp;
      if (!known(*use.id, ids_[barrier])) return false;
      if (use.count != nullptr && !known(*use.count, counts_[barrier])) return false;
    }
    return !any_leaving_call() && !(any_warp_sync_ && any_other_convergent());
  }
  /// Votes, shuffles and the like: lanes may wait for each other at them too.
  bool any_other_convergent() const {
    return std::ranges::any_of(s_.function.body, [&](const Instruction& s) {
      return s.kind == StatementKind::Instruction && has(info(s.op).flags, Flag::Convergent) &&
             use_of(s_.function, s).kind == UseKind::None;
    });
  }
  bool any_leaving_call() const {
    return std::ranges::any_of(s_.calls, [](const CallEffect& call) { return call.leaves; });
  }

  bool find_roles() {
    std::map<std::vector<std::uint64_t>, Threads> by_path;
    for (std::uint32_t t = 0; t < threads_; ++t) {
      std::vector<std::uint64_t> path;
      for (const auto* list : {&dependences_, &ids_, &counts_}) {
        for (const auto& [statement, dependence] : *list) path.push_back(dependence.values[t]);
      }
      by_path[std::move(path)].set(t);
      if (by_path.size() > kMaxRoles) return false;
    }
    for (const auto& [path, threads] : by_path) members_.push_back(threads);
    return true;
  }

  // The steps of a role --------------------------------------------------------------------------

  bool build(Role& role, bool within_warp) {
    steps_.clear();
    lead_ = 0;
    while (lead_ < threads_ && !role.threads[lead_]) ++lead_;
    within_warp_ = within_warp;
    role.steps.clear();
    failed_ = false;
    open_.clear();
    role.first = step_at(0, role);
    while (!open_.empty() && !failed_) {
      const auto [at, step] = open_.back();
      open_.pop_back();
      fill(at, step, role);
    }
    return !failed_;
  }

  /// The next step from a statement on; follows branches that the index decides.
  std::uint32_t step_at(std::uint32_t statement, Role& role) {
    std::uint32_t at = statement;
    std::size_t hops = 0;
    while (at < s_.function.body.size()) {
      if (++hops > s_.function.body.size() + s_.cfg.blocks().size() + 8) {
        failed_ = true;  // an endless loop without a barrier
        return 0;
      }
      const std::uint32_t block = s_.cfg.block_of(at);
      if (is_event(at)) break;
      if (at != s_.cfg.blocks()[block].terminator) {
        ++at;
        continue;
      }
      const auto successors = s_.cfg.successors(block);
      std::uint32_t next = analysis::kNoNode;
      if (successors.size() == 1) {
        next = successors[0];
      } else if (!s_.decides[block]) {
        next = s_.cfg.post_dominators().immediate(block);
      } else if (const auto dependence = dependences_.find(at); dependence != dependences_.end()) {
        next = decided(at, dependence->second.values[lead_] != 0);
      } else {
        break;  // a choice
      }
      if (next == s_.cfg.exit() || next == analysis::kNoNode) {
        at = static_cast<std::uint32_t>(s_.function.body.size());
      } else {
        at = s_.cfg.blocks()[next].first;
      }
    }
    const auto found = steps_.find(at);
    if (found != steps_.end()) return found->second;
    const auto result = static_cast<std::uint32_t>(role.steps.size());
    if (result >= kMaxSteps) failed_ = true;
    steps_.emplace(at, result);
    role.steps.emplace_back();
    if (at < s_.function.body.size()) open_.emplace_back(at, result);
    return result;
  }

  std::uint32_t decided(std::uint32_t terminator, bool holds) const {
    const std::uint32_t block = s_.cfg.block_of(terminator);
    const auto successors = s_.cfg.successors(block);
    if (s_.function.body[terminator].op == Op::bra) return successors[holds ? 0 : 1];
    // ret and exit: the exit is the first successor, the next block the other.
    return holds ? s_.cfg.exit() : block_after(terminator);
  }
  std::uint32_t block_after(std::uint32_t statement) const {
    return statement + 1 < s_.function.body.size() ? s_.cfg.block_of(statement + 1) : s_.cfg.exit();
  }

  bool is_event(std::uint32_t statement) const {
    const Use use = use_of(s_.function, s_.function.body[statement]);
    if (use.kind == UseKind::None) return false;
    // The block's view ignores warp syncs; the warp's view ignores arrivals, which do not wait.
    if (within_warp_ ? !use.waits : use.kind == UseKind::Warp) return false;
    const auto dependence = dependences_.find(statement);
    return dependence == dependences_.end() || dependence->second.values[lead_] != 0;
  }

  void fill(std::uint32_t at, std::uint32_t number, Role& role) {
    const Instruction& statement = s_.function.body[at];
    const Use use = use_of(s_.function, statement);
    Step step;
    step.statement = at;
    const std::uint32_t block = s_.cfg.block_of(at);
    step.shared = shared_ && sharper_.uniformity.of_control(block) >= Agreement::Block;
    if (use.kind == UseKind::None) {
      step.kind = Step::Kind::Choice;
      for (const std::uint32_t next : s_.cfg.successors(block)) {
        step.next.push_back(next == s_.cfg.exit()
                                ? step_at(static_cast<std::uint32_t>(s_.function.body.size()), role)
                                : step_at(s_.cfg.blocks()[next].first, role));
      }
    } else if (statement.guard.present() && !dependences_.contains(at)) {
      // All threads execute it or none; a new step for the first case.
      step.kind = Step::Kind::Choice;
      const auto arrival = static_cast<std::uint32_t>(role.steps.size());
      role.steps.emplace_back();
      Step come;
      make_arrival(come, at, use, role);
      const std::uint32_t next = step_at(at + 1, role);
      come.next.push_back(next);
      role.steps[arrival] = std::move(come);
      step.next = {arrival, next};
    } else {
      make_arrival(step, at, use, role);
      step.next.push_back(step_at(at + 1, role));
    }
    role.steps[number] = std::move(step);
  }

  void make_arrival(Step& step, std::uint32_t at, const Use& use, const Role& role) {
    step.kind = Step::Kind::Arrive;
    step.statement = at;
    step.waits = use.waits;
    step.aligned = use.aligned;
    const std::uint64_t id = ids_[at].values[lead_] & 0xffffffffu;
    if (within_warp_) return make_warp_arrival(step, use, id, role);
    const std::uint64_t rounded = (std::uint64_t{threads_} + 31) / 32 * 32;
    const std::uint64_t count =
        use.count == nullptr ? rounded : counts_[at].values[lead_] & 0xffffffffu;
    if (id >= 16 || count == 0 || count % 32 != 0) failed_ = true;
    step.id = static_cast<std::uint32_t>(id);
    step.count = static_cast<std::uint32_t>(count);
  }

  // One warp -------------------------------------------------------------------------------------

  /// In a warp's view: lanes reconverge by a mask, or all of them at a barrier of the block.
  void make_warp_arrival(Step& step, const Use& use, std::uint64_t id, const Role& role) {
    if (use.kind != UseKind::Warp) {
      step.id = kJoin;
      step.count = lanes_here_;
      return;
    }
    const auto mask = static_cast<std::uint32_t>(id);
    step.aligned = false;
    const auto known_mask = masks_.emplace(mask, static_cast<std::uint32_t>(masks_.size())).first;
    step.id = known_mask->second;
    if (step.id >= 16) failed_ = true;
    std::uint32_t named = 0;
    for (std::uint32_t lane = 0; lane < lanes_here_; ++lane) {
      if ((mask >> lane & 1) != 0) ++named;
      if (role.threads[warp_ + lane] && (mask >> lane & 1) == 0) failed_ = true;
    }
    step.count = named;
  }

  bool warps_agree() {
    for (warp_ = 0; warp_ < threads_; warp_ += 32) {
      lanes_here_ = std::min(32u, threads_ - warp_);
      masks_.clear();
      std::vector<Role> roles;
      for (const Threads& threads : members_) {
        Role role;
        for (std::uint32_t lane = 0; lane < lanes_here_; ++lane) {
          if (threads[warp_ + lane]) role.threads.set(warp_ + lane);
        }
        role.size = static_cast<std::uint32_t>(role.threads.count());
        if (role.size == 0) continue;
        if (!build(role, true)) return false;
        roles.push_back(std::move(role));
      }
      if (!every_order_ends(std::move(roles), threads_, true)) return false;
    }
    return true;
  }

  const Subject& s_;
  const Subject& sharper_;
  IndexValues values_;
  analysis::RegisterSet undefined_;
  std::uint32_t threads_;
  bool any_warp_sync_ = false;
  std::map<std::uint32_t, IndexDependence> dependences_, ids_, counts_;  // by statement
  std::vector<Threads> members_;                                         // by role
  std::map<std::uint32_t, std::uint32_t> steps_;  // by statement, of the role at work
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open_;
  std::uint32_t lead_ = 0;
  bool within_warp_ = false;
  bool shared_ = true;
  bool failed_ = false;
  std::uint32_t warp_ = 0, lanes_here_ = 0;
  std::map<std::uint32_t, std::uint32_t> masks_;
};

}  // namespace

bool roles_agree(const Subject& subject, const Subject& sharper,
                 const std::array<std::uint32_t, 3>& block) {
  return Roles(subject, sharper, block).agree();
}

}  // namespace ptxgen::inline v0::gates::barriers
