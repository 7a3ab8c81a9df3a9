// src/check/barrier_safety/suspects.cpp - barriers that uniformity does not show to be safe
#include "check/barrier_safety/suspects.hpp"

#include <algorithm>

#include "analysis/uniformity_sources.hpp"
#include "check/barrier_safety/constants.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;
using analysis::Agreement;

namespace {

constexpr std::size_t kMaxDoubts = 100;

/// See `suspects`.
class Suspects {
 public:
  Suspects(const Subject& subject, const Subject& written,
           const std::array<std::uint32_t, 3>& block)
      : s_(subject), block_(block), constants_(written.function, written.index) {}

  std::vector<Doubt> find() {
    mark_after_leaving_calls();
    std::vector<Doubt> found;
    for (const std::uint32_t barrier : s_.barriers) {
      const std::uint32_t block = s_.cfg.block_of(barrier);
      if (!s_.cfg.reachable(block)) continue;
      Doubt doubt;
      doubt.barrier = barrier;
      doubt.shape_known = block_[0] != 0;
      if (doubtful(doubt, barrier, block)) found.push_back(std::move(doubt));
      // Each report costs time, and more are not readable.
      if (found.size() == kMaxDoubts) break;
    }
    return found;
  }

 private:
  Agreement agreement(const Operand& o) const {
    return analysis::agreement(s_.module, s_.function, s_.index, s_.uniformity, o,
                               {.block = block_});
  }
  Agreement of_guard(const Guard& guard) const {
    return guard.present() ? agreement(Operand::reg(guard.predicate)) : Agreement::Grid;
  }

  bool doubtful(Doubt& doubt, std::uint32_t barrier, std::uint32_t block) {
    const Instruction& statement = s_.function.body[barrier];
    const Use use = use_of(s_.function, statement);
    const CallEffect call = s_.call(barrier);
    if (s_.uniformity.gave_up()) {
      doubt.why = Doubt::Why::Unknown;
      return true;
    }
    Agreement needed = Agreement::Block;
    const bool alone = each_warp_alone(use);
    if (use.kind == UseKind::Warp || (use.kind == UseKind::None && !call.barrier) || alone)
      needed = Agreement::Warp;
    if (diverges(doubt, statement, block, needed)) {
      doubt.why = use.kind == UseKind::None ? Doubt::Why::Call : Doubt::Why::Control;
      return true;
    }
    if (use.kind == UseKind::Warp) {
      doubt.why = Doubt::Why::Mask;
      const auto mask = constants_.of(*use.id);
      return !mask || static_cast<std::uint32_t>(*mask) != 0xffffffffu;
    }
    if (use.kind == UseKind::Cluster) {
      doubt.why = Doubt::Why::Cluster;
      return blocks_diverge(doubt, statement, block);
    }
    if (use.kind == UseKind::None) {
      doubt.why = Doubt::Why::Left;
      return after_leaving_call_[block];
    }
    doubt.why = Doubt::Why::Left;
    if (alone) return after_leaving_call_[block];
    doubt.why = Doubt::Why::Number;
    if (agreement(*use.id) < Agreement::Block) return true;
    if (constants_.of(*use.id).value_or(0) >= kBlockBarriers) return true;
    doubt.why = Doubt::Why::Count;
    if (use.count != nullptr && !counts_all(*use.count)) return true;
    // A thread that only arrives may run ahead and arrive twice, in place of another thread.
    if (!use.waits) return true;
    doubt.why = Doubt::Why::Left;
    return after_leaving_call_[block];
  }

  bool diverges(Doubt& doubt, const Instruction& statement, std::uint32_t block,
                Agreement needed) const {
    const Agreement guard = of_guard(statement.guard);
    if (s_.uniformity.of_control(block) >= needed && guard >= needed) return false;
    for (const std::uint32_t decider : s_.cfg.deciders(block)) {
      if (s_.uniformity.of_branch(decider) < needed)
        doubt.deciders.push_back(s_.cfg.blocks()[decider].terminator);
    }
    if (guard < needed) doubt.deciders.push_back(doubt.barrier);
    return true;
  }

  /// Blocks of a cluster may diverge if those that avoid the barrier leave for good: no barrier
  /// waits for threads that have left.
  bool blocks_diverge(Doubt& doubt, const Instruction& statement, std::uint32_t block) const {
    if (of_guard(statement.guard) < Agreement::Grid) doubt.deciders.push_back(doubt.barrier);
    for (const std::uint32_t decider : s_.cfg.deciders(block)) {
      if (s_.uniformity.of_branch(decider) >= Agreement::Grid) continue;
      const auto successors = s_.cfg.successors(decider);
      if (std::any_of(successors.begin(), successors.end(),
                      [&](std::uint32_t next) { return !reaches_cluster_barrier(next); }))
        continue;
      doubt.deciders.push_back(s_.cfg.blocks()[decider].terminator);
    }
    return !doubt.deciders.empty();
  }
  bool reaches_cluster_barrier(std::uint32_t start) const {
    if (start == s_.cfg.exit()) return false;
    std::vector<bool> targets(s_.cfg.blocks().size(), false), seen(targets);
    for (const std::uint32_t barrier : s_.barriers) {
      if (use_of(s_.function, s_.function.body[barrier]).kind != UseKind::Block)
        targets[s_.cfg.block_of(barrier)] = true;
    }
    std::vector<std::uint32_t> open{start};
    seen[start] = true;
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (targets[at]) return true;
      for (const std::uint32_t next : s_.cfg.successors(at)) {
        if (next == s_.cfg.exit() || seen[next]) continue;
        seen[next] = true;
        open.push_back(next);
      }
    }
    return false;
  }

  /// A barrier for 32 threads without other uses: each warp completes it alone.
  bool each_warp_alone(const Use& use) const {
    const auto number = use.kind == UseKind::Block ? constants_.of(*use.id) : std::nullopt;
    if (!number || *number >= kBlockBarriers || !counts_a_warp(constants_, use)) return false;
    if ((s_.elsewhere >> *number & 1) != 0) return false;
    return std::ranges::all_of(s_.barriers, [&](std::uint32_t barrier) {
      const Use other = use_of(s_.function, s_.function.body[barrier]);
      if (other.kind != UseKind::Block) return true;
      const auto its = constants_.of(*other.id);
      return (its && *its != *number) || counts_a_warp(constants_, other);
    });
  }
  bool counts_all(const Operand& count) const {
    const auto number = constants_.of(count);
    const std::uint64_t threads = std::uint64_t{block_[0]} * block_[1] * block_[2];
    return number && threads != 0 && (*number & 0xffffffffu) == (threads + 31) / 32 * 32;
  }

  void mark_after_leaving_calls() {
    after_leaving_call_.assign(s_.cfg.blocks().size(), false);
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < s_.calls.size(); ++i) {
      if (s_.calls[i].leaves) open.push_back(s_.cfg.block_of(i));
    }
    // Includes the whole block of the call: precise enough for a rare case.
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (after_leaving_call_[at]) continue;
      after_leaving_call_[at] = true;
      for (const std::uint32_t next : s_.cfg.successors(at)) {
        if (next != s_.cfg.exit()) open.push_back(next);
      }
    }
  }

  const Subject& s_;
  std::array<std::uint32_t, 3> block_;
  Constants constants_;
  std::vector<bool> after_leaving_call_;
};

}  // namespace

std::vector<Doubt> suspects(const Subject& subject, const Subject& written,
                            const std::array<std::uint32_t, 3>& block) {
  return Suspects(subject, written, block).find();
}

}  // namespace ptxgen::inline v0::gates::barriers
