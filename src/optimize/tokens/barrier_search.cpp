// src/optimize/tokens/barrier_search.cpp - the fewest barriers that order what all of them order
#include "optimize/tokens/barrier_search.hpp"

#include <algorithm>
#include <bit>

namespace ptxgen::inline v0::optimize {

using analysis::kNoNode;
using ptx::kNone;

namespace {

constexpr std::uint8_t kSameIteration = 1;
constexpr std::uint8_t kLaterIteration = 2;

}  // namespace

BarrierSearch::BarrierSearch(analysis::Facts& facts, const BlockBarriers& barriers)
    : facts_(facts),
      barriers_(barriers),
      conflicts_(facts),
      uses_(barriers.segments().size()),
      removed_(barriers.all().size(), false) {
  for (std::uint32_t i = 0; i < uses_.size(); ++i) {
    const Segment& segment = barriers.segments()[i];
    if (!facts.cfg().reachable(segment.block)) continue;
    for (std::uint32_t s = segment.first; s < segment.end; ++s) {
      if (const auto use = memory_use(facts.function(), s)) uses_[i].push_back(*use);
    }
  }
}

const std::vector<bool>& BarrierSearch::run() {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < barriers_.all().size(); ++i) order.push_back(i);
  const auto place = [&](std::uint32_t barrier) {
    return facts_.cfg().position(facts_.cfg().block_of(barriers_.all()[barrier].statement));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  for (const std::uint32_t barrier : order) {
    if (barriers_.all()[barrier].removable) removed_[barrier] = !unordered(barrier, removed_);
  }
  search();
  return removed_;
}

// Paths ---------------------------------------------------------------------------------------

bool BarrierSearch::is_around(std::uint32_t loop, std::uint32_t inner) const {
  const auto loops = facts_.cfg().loops().loops();
  for (; inner != kNoNode; inner = loops[inner].parent) {
    if (inner == loop) return true;
  }
  return false;
}

/// The innermost loop around both segments; kNoNode if it is irreducible, since its iterations do
/// not begin at one place.
std::uint32_t BarrierSearch::common_loop(std::uint32_t a, std::uint32_t b) const {
  const analysis::LoopForest& forest = facts_.cfg().loops();
  const std::uint32_t other = barriers_.segments()[b].block;
  std::uint32_t loop = forest.innermost(barriers_.segments()[a].block);
  while (loop != kNoNode && !forest.contains(loop, other)) loop = forest.loops()[loop].parent;
  for (std::uint32_t l = loop; l != kNoNode; l = forest.loops()[l].parent) {
    if (forest.loops()[l].irreducible) return kNoNode;
  }
  return loop;
}

BarrierSearch::Reached BarrierSearch::reach(std::uint32_t from, bool forward, std::uint32_t loop,
                                            const std::vector<bool>& removed) const {
  Reached reached(uses_.size(), 0);
  std::vector<std::pair<std::uint32_t, std::uint8_t>> open{{from, kSameIteration}};
  reached[from] = kSameIteration;
  while (!open.empty()) {
    const auto [segment, how] = open.back();
    open.pop_back();
    for (const SegmentEdge& edge : forward ? barriers_.after(segment) : barriers_.before(segment)) {
      if (edge.barrier != kNone && !removed[edge.barrier]) continue;
      const bool again = loop != kNoNode && edge.loop != kNoNode && is_around(edge.loop, loop);
      const std::uint8_t next = again ? kLaterIteration : how;
      if ((reached[edge.to] & next) != 0) continue;
      reached[edge.to] |= next;
      open.emplace_back(edge.to, next);
    }
  }
  return reached;
}

std::vector<BarrierSearch::Sides> BarrierSearch::sides_of(std::uint32_t barrier,
                                                          const std::vector<bool>& removed) const {
  const BlockBarrier& at = barriers_.all()[barrier];
  const analysis::LoopForest& forest = facts_.cfg().loops();
  std::vector<Sides> all;
  std::uint32_t loop = forest.innermost(facts_.cfg().block_of(at.statement));
  for (;; loop = forest.loops()[loop].parent) {
    all.push_back(
        {loop, reach(at.before, false, loop, removed), reach(at.after, true, loop, removed)});
    if (loop == kNoNode) return all;
  }
}

// Pairs ---------------------------------------------------------------------------------------

const std::optional<OrderedPair>& BarrierSearch::conflict(std::uint32_t a, std::uint32_t b,
                                                          std::uint32_t loop) {
  const auto [at, inserted] = known_.try_emplace({a, b, loop});
  if (!inserted) return at->second;
  for (const MemoryUse& first : uses_[a]) {
    for (const MemoryUse& second : uses_[b]) {
      const Conflict found = conflicts_.of(first, second, loop);
      if (!found) continue;
      at->second = OrderedPair{first.statement, second.statement, a, b, found};
      // One that is proved explains more than one that is not.
      if (found.reason != "may-conflict") return at->second;
    }
  }
  return at->second;
}

/// The segments that are reached and have uses, of which `uses` is the number.
std::vector<std::uint32_t> BarrierSearch::used(const Reached& reached, std::size_t& uses) const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == 0 || uses_[i].empty()) continue;
    all.push_back(i);
    uses += uses_[i].size();
  }
  return all;
}

std::optional<OrderedPair> BarrierSearch::unordered(std::uint32_t barrier,
                                                    std::vector<bool> removed) {
  removed[barrier] = true;  // a loop may lead through it again
  const std::vector<Sides> sides = sides_of(barrier, removed);
  std::size_t before_uses = 0, after_uses = 0;
  const std::vector<std::uint32_t> before = used(sides.back().before, before_uses);
  const std::vector<std::uint32_t> after = used(sides.back().after, after_uses);
  if (after_uses != 0 && before_uses > kMaxPairs / after_uses) {
    return OrderedPair{uses_[before[0]][0].statement,
                       uses_[after[0]][0].statement,
                       before[0],
                       after[0],
                       {"may-conflict", {}, {}}};
  }
  for (const std::uint32_t a : before) {
    for (const std::uint32_t b : after) {
      if (auto pair = unordered(sides, a, b)) return pair;
    }
  }
  return std::nullopt;
}

std::optional<OrderedPair> BarrierSearch::unordered(const std::vector<Sides>& sides,
                                                    std::uint32_t a, std::uint32_t b) {
  const std::uint32_t loop = common_loop(a, b);
  const auto inside =
      std::find_if(sides.begin(), sides.end(), [&](const Sides& one) { return one.loop == loop; });
  if (loop == kNoNode || inside == sides.end()) return conflict(a, b, kNoNode);
  const std::uint8_t from = inside->before[a], to = inside->after[b];
  if (((from | to) & kLaterIteration) != 0) {
    if (const auto& pair = conflict(a, b, kNoNode)) return pair;
  }
  if ((from & to & kSameIteration) != 0) return conflict(a, b, loop);
  return std::nullopt;
}

std::uint32_t BarrierSearch::orderer(const OrderedPair& pair) {
  const std::vector<bool> all(removed_.size(), true);
  for (std::uint32_t barrier = 0; barrier < removed_.size(); ++barrier) {
    if (removed_[barrier]) continue;
    const BlockBarrier& at = barriers_.all()[barrier];
    if (reach(at.before, false, kNoNode, all)[pair.first_segment] != 0 &&
        reach(at.after, true, kNoNode, all)[pair.second_segment] != 0) {
      return barrier;
    }
  }
  return kNone;
}

// A smaller set -------------------------------------------------------------------------------

/// Whether every path through the function passes the barrier once.
bool BarrierSearch::in_line(std::uint32_t barrier) const {
  const analysis::Cfg& cfg = facts_.cfg();
  const std::uint32_t block = cfg.block_of(barriers_.all()[barrier].statement);
  return cfg.loops().innermost(block) == kNoNode && cfg.post_dominators().dominates(block, 0);
}

bool BarrierSearch::feasible(const std::vector<bool>& removed) {
  for (std::uint32_t barrier = 0; barrier < removed.size(); ++barrier) {
    if (removed[barrier] && unordered(barrier, removed)) return false;
  }
  return true;
}

void BarrierSearch::search() {
  std::vector<std::uint32_t> open;  // those that may go, or stay
  std::size_t kept = 0;
  bool line = true;
  std::vector<bool> base(removed_.size(), false);
  for (std::uint32_t barrier = 0; barrier < removed_.size(); ++barrier) {
    if (!barriers_.all()[barrier].removable) continue;
    line = line && in_line(barrier);
    if (unordered(barrier, base)) continue;  // stays in any case
    open.push_back(barrier);
    kept += removed_[barrier] ? 0 : 1;
  }
  if (line || open.size() > kMaxSearched) return;
  // Sets of those that stay, the smallest first.
  for (std::size_t wanted = 0; wanted < kept; ++wanted) {
    for (std::uint32_t set = 0; set < 1u << open.size(); ++set) {
      if (static_cast<std::size_t>(std::popcount(set)) != wanted) continue;
      std::vector<bool> removed = base;
      for (std::size_t i = 0; i < open.size(); ++i) removed[open[i]] = (set >> i & 1u) == 0;
      if (!feasible(removed)) continue;
      removed_ = std::move(removed);
      return;
    }
  }
}

}  // namespace ptxgen::inline v0::optimize
