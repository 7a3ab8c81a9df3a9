// src/optimize/tokens/block_barriers.cpp - barriers of a block, and the code between them
#include "optimize/tokens/block_barriers.hpp"

#include <algorithm>
#include <map>

namespace ptxgen::inline v0::optimize {

using namespace ptx;
using analysis::Agreement;
using analysis::kNoNode;

namespace {

/// A barrier instruction with a number.
struct Numbered {
  std::uint32_t statement = 0;
  std::uint64_t number = 0;
  bool removable = false;
  std::string_view reason;  ///< why it is no block barrier; empty: it is
};

bool waits_without_count(Op op) {
  return op == Op::bar_sync || op == Op::barrier_sync || op == Op::bar_red ||
         op == Op::bar_red_popc || op == Op::barrier_red || op == Op::barrier_red_popc;
}
bool is_numbered(Op op) {
  return waits_without_count(op) || op == Op::bar_arrive || op == Op::barrier_arrive ||
         op == Op::bar_red_count || op == Op::bar_red_popc_count || op == Op::barrier_red_count ||
         op == Op::barrier_red_popc_count;
}

class Numbering {
 public:
  explicit Numbering(analysis::Facts& facts) : facts_(facts), function_(facts.function()) {}

  std::vector<Numbered> run() {
    std::vector<Numbered> found;
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      const Instruction& s = function_.body[i];
      if (s.kind != StatementKind::Instruction || !is_numbered(s.op)) continue;
      if (facts_.cfg().reachable(facts_.cfg().block_of(i))) found.push_back(describe(i));
    }
    // Where threads may wait at different barriers of one number, none of them is passed by all
    // threads together.
    std::map<std::uint64_t, bool> mixed;
    bool any_number = false;
    for (const Numbered& one : found) {
      if (one.reason == "number-unknown") any_number = true;
      if (!one.reason.empty()) mixed[one.number] = true;
    }
    for (Numbered& one : found) {
      if (one.reason.empty() && (any_number || mixed.count(one.number) != 0))
        one.reason = "shared-number";
    }
    return found;
  }

 private:
  Numbered describe(std::uint32_t statement) {
    const Instruction& s = function_.body[statement];
    const auto operands = function_.operands_of(s);
    const bool syncs = s.op == Op::bar_sync || s.op == Op::barrier_sync;
    const std::size_t number =
        syncs || s.op == Op::bar_arrive || s.op == Op::barrier_arrive ? 0 : 1;
    Numbered out{statement, 0, syncs, {}};
    if (number >= operands.size() || operands[number].kind != OperandKind::Integer) {
      out.reason = "number-unknown";
      return out;
    }
    out.number = operands[number].value;
    const Agreement control = facts_.uniformity().of_control(facts_.cfg().block_of(statement));
    if (!waits_without_count(s.op) || (syncs && operands.size() > 1)) {
      out.reason = "counted";
    } else if (s.guard.present()) {
      out.reason = "guarded";
    } else if (control < Agreement::Block) {
      out.reason = "divergent";
    } else if (!function_.entry) {
      out.reason = "device-function";
    }
    return out;
  }

  analysis::Facts& facts_;
  const Function& function_;
};

}  // namespace

BlockBarriers::BlockBarriers(analysis::Facts& facts) {
  find_barriers(facts);
  cut(facts);
}

bool BlockBarriers::is_block_barrier(std::uint32_t statement) const {
  const auto at = std::lower_bound(
      barriers_.begin(), barriers_.end(), statement,
      [](const BlockBarrier& barrier, std::uint32_t s) { return barrier.statement < s; });
  return at != barriers_.end() && at->statement == statement;
}

void BlockBarriers::find_barriers(analysis::Facts& facts) {
  for (const Numbered& one : Numbering(facts).run()) {
    if (one.reason.empty()) {
      barriers_.push_back({one.statement, one.removable, 0, 0});
    } else if (one.removable) {
      others_.push_back({one.statement, one.reason});
    }
  }
}

void BlockBarriers::connect(std::uint32_t from, SegmentEdge edge) {
  after_[from].push_back(edge);
  before_[edge.to].push_back({from, edge.barrier, edge.loop});
}

void BlockBarriers::cut(analysis::Facts& facts) {
  const analysis::Cfg& cfg = facts.cfg();
  const analysis::LoopForest& forest = cfg.loops();
  std::vector<std::uint32_t> first, last;  // segments of each block
  std::uint32_t next = 0;                  // barrier
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    const analysis::Block& block = cfg.blocks()[b];
    first.push_back(static_cast<std::uint32_t>(segments_.size()));
    segments_.push_back({b, block.first, block.end});
    for (; next < barriers_.size() && barriers_[next].statement < block.end; ++next) {
      BlockBarrier& barrier = barriers_[next];
      barrier.before = static_cast<std::uint32_t>(segments_.size() - 1);
      barrier.after = barrier.before + 1;
      segments_.back().end = barrier.statement;
      segments_.push_back({b, barrier.statement + 1, block.end});
    }
    last.push_back(static_cast<std::uint32_t>(segments_.size() - 1));
  }
  after_.resize(segments_.size());
  before_.resize(segments_.size());
  for (std::uint32_t i = 0; i < barriers_.size(); ++i)
    connect(barriers_[i].before, {barriers_[i].after, i, kNoNode});
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    for (const std::uint32_t to : cfg.successors(b)) {
      if (to >= cfg.blocks().size()) continue;
      std::uint32_t loop = forest.innermost(to);
      if (loop != kNoNode && (forest.loops()[loop].header != to || !forest.contains(loop, b)))
        loop = kNoNode;
      connect(last[b], {first[to], kNone, loop});
    }
  }
}

}  // namespace ptxgen::inline v0::optimize
