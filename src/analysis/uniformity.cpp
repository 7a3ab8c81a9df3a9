// src/analysis/uniformity.cpp - uniform values and branches
#include "ptxgen/analysis/uniformity.hpp"

#include <algorithm>
#include <optional>

#include "analysis/lane_bits.hpp"
#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

// Steps after which the solver gives up: about a second.
constexpr std::uint64_t kMaxWork = 300'000'000;

}  // namespace

class UniformitySolver {
 public:
  UniformitySolver(Uniformity& result, const Module& module, const Function& function,
                   const Cfg& cfg, const RegisterIndex& index, const UniformityOptions& options)
      : result_(result),
        module_(module),
        function_(function),
        cfg_(cfg),
        index_(index),
        uses_(function, index),
        block_shape_(block_shape(function, options)),
        options_(options) {}

  void solve() {
    start();
    while (!result_.gave_up_ && (!open_blocks_.empty() || !open_registers_.empty())) {
      if (work_ > kMaxWork) {
        give_up();
      } else if (!open_registers_.empty()) {
        const std::uint32_t reg = open_registers_.back();
        open_registers_.pop_back();
        for (const RegisterUses::Use& use : uses_.of(reg)) {
          // A queued block is evaluated entirely.
          if (!use.write && !block_is_open_[cfg_.block_of(use.statement)]) evaluate(use.statement);
        }
      } else {
        const std::uint32_t block = open_blocks_.back();
        open_blocks_.pop_back();
        block_is_open_[block] = false;
        for (std::uint32_t i = cfg_.blocks()[block].first; i < cfg_.blocks()[block].end; ++i)
          evaluate(i);
      }
    }
  }

 private:
  void start() {
    const std::size_t blocks = cfg_.blocks().size();
    result_.registers_.assign(index_.size(), Agreement::Grid);
    bits_.assign(index_.size(), LaneBits{});
    result_.chosen_.assign(index_.size(), false);
    result_.branches_.assign(blocks, Agreement::Grid);
    result_.control_.assign(blocks, Agreement::Grid);
    result_.split_.assign(blocks, false);
    decided_.assign(blocks, Agreement::Grid);
    block_is_open_.assign(blocks, true);
    // Unreachable code does not diverge, and its writes are not read.
    for (const std::uint32_t b : cfg_.order()) {
      if (cfg_.reachable(b)) open_blocks_.push_back(b);
    }
    std::reverse(open_blocks_.begin(), open_blocks_.end());
    own_.assign(function_.body.size(), false);

    for (const Variable& parameter : function_.parameters) {
      if (parameter.space == Space::Register)
        lower(index_.find({parameter.decl, 0}), Agreement::None, lane_bits(Agreement::None));
    }
    // Registers written in each block and live after some block.
    written_.resize(blocks);
    for (std::uint32_t reg = 0; reg < index_.size(); ++reg) {
      bool written = false, leaves_block = false;
      std::uint32_t first_block = kNone;
      for (const RegisterUses::Use& use : uses_.of(reg)) {
        const std::uint32_t block = cfg_.block_of(use.statement);
        written = written || (use.write && cfg_.reachable(block));
        if (first_block == kNone) first_block = block;
        // Alone in one block, it may still be read there from the time before.
        leaves_block = leaves_block || block != first_block || (!use.write && !written);
      }
      if (!written) lower(reg, Agreement::None, lane_bits(Agreement::None));
      if (!leaves_block) continue;
      std::uint32_t last = kNone;
      for (const RegisterUses::Use& use : uses_.of(reg)) {
        const std::uint32_t block = cfg_.block_of(use.statement);
        if (!use.write || block == last) continue;
        written_[block].push_back(reg);
        last = block;
      }
    }
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (!cfg_.reachable(b)) continue;
      for (std::uint32_t i = cfg_.blocks()[b].first; i < cfg_.blocks()[b].end; ++i) {
        const Instruction& s = function_.body[i];
        if (s.kind == StatementKind::Unknown) give_up();
        if (s.kind != StatementKind::Instruction) continue;
        if (writes_carry(s)) carry_written_ = true;
        if (has(info(s.op).flags, Flag::Call) && cfg_.reachable(b)) split_from(b);
      }
    }
    if (!function_.entry) split_from(0);
  }

  void give_up() {
    result_.gave_up_ = true;
    std::fill(result_.registers_.begin(), result_.registers_.end(), Agreement::None);
    std::fill(result_.chosen_.begin(), result_.chosen_.end(), true);
    std::fill(result_.split_.begin(), result_.split_.end(), true);
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b) {
      if (cfg_.successors(b).size() > 1) result_.branches_[b] = Agreement::None;
      result_.control_[b] = Agreement::None;
    }
  }

  void lower(std::uint32_t reg, Agreement to, LaneBits bits) {
    if (reg == kNone) return;
    const LaneBits lowered = bits_[reg].with(bits);
    if (result_.registers_[reg] <= to && bits_[reg] == lowered) return;
    result_.registers_[reg] = weaker(result_.registers_[reg], to);
    bits_[reg] = lowered;
    open_registers_.push_back(reg);
  }
  // Of several values that agreed, one of which each thread has.
  void lower(std::uint32_t reg, Agreement to) {
    lower(reg, to, {lane_bits(to).differing, LaneBits::kAll});
  }
  void reopen(std::uint32_t block) {
    if (block_is_open_[block]) return;
    block_is_open_[block] = true;
    open_blocks_.push_back(block);
  }

  // --- statements -----------------------------------------------------------------------------

  Agreement value(const Operand& o) {
    const OperandKind kind = o.kind == OperandKind::Memory ? o.base : o.kind;
    if (kind == OperandKind::Special)
      return of_special(static_cast<SpecialRegister>(o.id), o.component, block_shape_);
    return agreement(module_, function_, index_, result_, o, options_);
  }

  // An operand with that agreement.
  LaneSource source(const Operand& o, Agreement agreed) const {
    switch (o.kind) {
      case OperandKind::Integer:
        return {lane_bits(static_cast<std::uint64_t>(o.offset())), true,
                static_cast<std::uint64_t>(o.offset())};
      case OperandKind::Special:
        return {lane_bits(static_cast<SpecialRegister>(o.id), o.component, block_shape_)};
      case OperandKind::Register: {
        const std::uint32_t reg = index_.find(o.as_register());
        if (reg == kNone || o.component != 0 || o.negated) break;
        return {bits_[reg]};
      }
      default:
        break;
    }
    return {lane_bits(agreed)};
  }

  // What the sources of an instruction have in common.
  struct Sources {
    Agreement all = Agreement::Grid;
    Agreement agreed = Agreement::Grid;  // of the operands other than the threads' votes
    bool writes = false;                 // whether the instruction has a result
    std::size_t count = 0;
    std::array<LaneSource, 4> bits;  // of the first ones
  };

  [[nodiscard]] Sources sources_of(const Instruction& s, std::span<const Operand> operands) {
    Sources result;
    const OperandSpecs specs(function_, s);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandSpec* spec = specs[i];
      if (spec != nullptr &&
          (spec->role == OperandRole::Destination || spec->role == OperandRole::Returns)) {
        result.writes = true;
        continue;
      }
      const Agreement v = value(operands[i]);
      result.all = weaker(result.all, v);
      if (result.count < result.bits.size()) result.bits[result.count] = source(operands[i], v);
      ++result.count;
      // The mask of a vote, the number and the threads of a barrier.
      if (spec == nullptr || (spec->type_source == TypeSource::Fixed && spec->fixed == Type::u32))
        result.agreed = weaker(result.agreed, v);
    }
    return result;
  }

  void evaluate(std::uint32_t statement) {
    const Instruction& s = function_.body[statement];
    if (s.kind != StatementKind::Instruction || own_[statement]) return;
    if (!cfg_.reachable(cfg_.block_of(statement))) return;
    const auto operands = function_.operands_of(s);
    work_ += 4 + operands.size() * 4;
    const Agreement guard =
        s.guard.present() ? value(Operand::reg(s.guard.predicate)) : Agreement::Grid;
    const Sources sources = sources_of(s, operands);
    const std::uint32_t block = cfg_.block_of(statement);
    const Block& code = cfg_.blocks()[block];
    if (code.terminator == statement && cfg_.successors(block).size() > 1)
      lower_branch(block, weaker(guard, s.op == Op::brx_idx ? sources.all : Agreement::Grid));

    const bool carry_out = writes_carry(s);
    if (!sources.writes && !carry_out) {
      own_[statement] = code.terminator != statement;
      return;
    }
    std::optional<LaneBits> low;
    Agreement written = Agreement::None;
    const ResultKind kind = result_kind(module_, function_, s);
    if (kind == ResultKind::Computed) {
      written = reads_carry(s) ? weaker(sources.all, carry_) : sources.all;
      if (!reads_carry(s) && !carry_out && sources.count <= sources.bits.size()) {
        low = lane_bits(s, std::span(sources.bits).first(sources.count));
        if (low->differing == 0) written = std::max(written, Agreement::Warp);
      }
    } else {
      written = uncomputed(kind, s, block, sources.all, sources.agreed);
    }
    // If the guard is false the old value remains.
    written = weaker(written, guard);
    if (!low) low = lane_bits(written);
    if (guard < Agreement::Warp) low->differing = LaneBits::kAll;
    for (const NumberedAccess& a : index_.accesses(statement)) {
      if (a.write) lower(a.reg, written, *low);
    }
    if (carry_out) lower_carry(written);
    own_[statement] = written == Agreement::None && *low == lane_bits(Agreement::None) &&
                      code.terminator != statement;
  }

  // A result that is not computed from the operands alone.
  [[nodiscard]] Agreement uncomputed(ResultKind kind, const Instruction& s, std::uint32_t block,
                                     Agreement sources, Agreement agreed) const {
    const bool together = !result_.split_[block];
    const auto in_warp = [&](Agreement of) {
      return together && of >= Agreement::Warp ? Agreement::Warp : Agreement::None;
    };
    switch (kind) {
      case ResultKind::Immutable:
        return sources;
      case ResultKind::Loaded:
        return in_warp(sources);
      case ResultKind::Collective:
        return in_warp(agreed);
      case ResultKind::BlockWide: {
        const bool some_threads = s.op == Op::bar_red_count || s.op == Op::barrier_red_count ||
                                  s.op == Op::bar_red_popc_count ||
                                  s.op == Op::barrier_red_popc_count;
        if (!some_threads && agreed >= Agreement::Block &&
            result_.control_[block] >= Agreement::Block)
          return Agreement::Block;
        return in_warp(agreed);
      }
      case ResultKind::Capped:
        return weaker(sources, Agreement::Block);
      case ResultKind::Computed:
      case ResultKind::Own:
        break;
    }
    return Agreement::None;
  }

  // The carry flag is a register that no operand names.
  void lower_carry(Agreement to) {
    if (carry_ <= to) return;
    carry_ = to;
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b) reopen(b);
  }

  // --- control --------------------------------------------------------------------------------

  void lower_branch(std::uint32_t block, Agreement to) {
    if (result_.branches_[block] <= to || !cfg_.reachable(block)) return;
    result_.branches_[block] = to;
    decide(block);
    join(block, to);
  }

  // Everything control dependent on a branch agrees no more than the branch and its own control.
  void decide(std::uint32_t start) {
    std::vector<std::uint32_t> open{start};
    while (!open.empty()) {
      const std::uint32_t branch = open.back();
      open.pop_back();
      const Agreement to = weaker(result_.branches_[branch], result_.control_[branch]);
      if (cfg_.successors(branch).size() < 2 || decided_[branch] <= to) continue;
      decided_[branch] = to;
      const std::uint32_t reconvergence = cfg_.post_dominators().immediate(branch);
      for (std::uint32_t next : cfg_.successors(branch)) {
        for (; next != reconvergence && next != kNoNode && next != cfg_.exit();
             next = cfg_.post_dominators().immediate(next)) {
          if (++work_ > kMaxWork) return give_up();
          if (result_.control_[next] <= to) continue;
          result_.control_[next] = to;
          reopen(next);
          open.push_back(next);
        }
      }
    }
  }

  // `branch` diverges. Each successor's name is propagated along the paths from it; where two names
  // arrive, threads of different paths reconverge. At the immediate post-dominator all
  // reconverge, unless it precedes the branch: the first threads at the header of a loop begin
  // another iteration, and may reconverge with others anywhere.
  void join(std::uint32_t branch, Agreement to) {
    const std::uint32_t nodes = cfg_.exit() + 1;
    std::uint32_t reconvergence = cfg_.post_dominators().immediate(branch);
    if (reconvergence != kNoNode && cfg_.position(reconvergence) <= cfg_.position(branch))
      reconvergence = kNoNode;
    if (names_.empty()) names_.assign(nodes, kNone);
    std::vector<std::uint32_t> open, region, joins;
    std::uint32_t name_at_branch = kNone;  // of threads that return to the branch
    const auto arrive = [&](std::uint32_t node, std::uint32_t name) {
      ++work_;
      std::uint32_t& known = node == branch ? name_at_branch : names_[node];
      if (known == name || known == node) return;
      if (known == kNone) {
        known = name;
        if (node != branch) region.push_back(node);
      } else {
        known = node;
        joins.push_back(node);
      }
      if (node != branch && node != reconvergence && node != cfg_.exit()) open.push_back(node);
    };
    // The name of a successor is not its own as a join: it may become one as well.
    for (const std::uint32_t next : cfg_.successors(branch)) arrive(next, next + nodes);
    while (!open.empty() && work_ <= kMaxWork) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (const std::uint32_t next : cfg_.successors(node)) arrive(next, names_[node]);
    }
    for (const std::uint32_t node : region) names_[node] = kNone;
    if (work_ > kMaxWork) return give_up();

    // Threads that return and then take another path reconverge with threads that took it at once:
    // their values are from different iterations.
    std::vector<std::uint32_t>& places = joins;
    const bool comes_round = name_at_branch != kNone;
    if (comes_round) {
      for (const std::uint32_t next : cfg_.successors(branch)) {
        if (next + nodes != name_at_branch) places.push_back(next);
      }
    }
    std::erase(places, cfg_.exit());
    if (!places.empty()) {
      if (carry_written_) lower_carry(to);
      if (comes_round) choose(written_[branch], places, to);
      for (const std::uint32_t node : region) {
        if (node != reconvergence && node != cfg_.exit()) choose(written_[node], places, to);
      }
      if (to < Agreement::Warp) {
        for (const std::uint32_t place : places) split_from(place);
      }
    }
    // Where a loop has several entries threads that came by different ones may go round it out of
    // step: nothing in it agrees.
    for (const std::uint32_t node : region) enter_irreducible(node, to);
    enter_irreducible(branch, to);
  }

  // Registers of `candidates` that are wanted at one of the places have, there, values from
  // different writes.
  void choose(const std::vector<std::uint32_t>& candidates, std::span<const std::uint32_t> places,
              Agreement to) {
    for (const std::uint32_t reg : candidates) {
      work_ += 1 + places.size();
      if (result_.registers_[reg] <= to && result_.chosen_[reg]) continue;
      if (std::none_of(places.begin(), places.end(),
                       [&](std::uint32_t place) { return live_at(reg, place); }))
        continue;
      result_.chosen_[reg] = true;
      lower(reg, to);
    }
  }
  void enter_irreducible(std::uint32_t at, Agreement to) {
    const LoopForest& loops = cfg_.loops();
    std::uint32_t outermost = kNoNode;
    if (at == cfg_.exit()) return;
    for (std::uint32_t l = loops.innermost(at); l != kNoNode; l = loops.loops()[l].parent) {
      ++work_;
      if (loops.loops()[l].irreducible) outermost = l;
    }
    if (outermost == kNoNode) return;
    if (irreducible_.empty()) irreducible_.assign(loops.loops().size(), Agreement::Grid);
    if (irreducible_[outermost] <= to) return;
    irreducible_[outermost] = to;
    for (const std::uint32_t node : loops.nodes(outermost)) {
      if (node == cfg_.exit()) continue;
      for (std::uint32_t i = cfg_.blocks()[node].first; i < cfg_.blocks()[node].end; ++i) {
        for (const NumberedAccess& a : index_.accesses(i)) {
          if (!a.write) continue;
          result_.chosen_[a.reg] = true;
          lower(a.reg, to);
        }
      }
      if (to < Agreement::Warp) split_from(node);
      if (cfg_.successors(node).size() > 1) lower_branch(node, to);
    }
  }

  void split_from(std::uint32_t start) {
    if (start == cfg_.exit() || result_.split_[start]) return;
    std::vector<std::uint32_t> open{start};
    result_.split_[start] = true;
    while (!open.empty()) {
      const std::uint32_t block = open.back();
      open.pop_back();
      reopen(block);
      for (const std::uint32_t next : cfg_.successors(block)) {
        if (next == cfg_.exit() || result_.split_[next]) continue;
        result_.split_[next] = true;
        open.push_back(next);
      }
    }
  }

  // Whether the register may be read after the start of the block before it is written.
  bool live_at(std::uint32_t reg, std::uint32_t block) {
    if (block == cfg_.exit()) return false;
    if (live_.empty()) live_.resize(index_.size());
    std::vector<std::uint64_t>& live = live_[reg];
    if (live.empty()) find_live(reg, live);
    return (live[block / 64] >> (block % 64) & 1) != 0;
  }
  void find_live(std::uint32_t reg, std::vector<std::uint64_t>& live) {
    const std::size_t words = cfg_.blocks().size() / 64 + 1;
    live.assign(words, 0);
    std::vector<std::uint64_t> written(words, 0);
    work_ += words * 4;  // memory counts as work
    const auto test = [](const std::vector<std::uint64_t>& set, std::uint32_t i) {
      return (set[i / 64] >> (i % 64) & 1) != 0;
    };
    std::vector<std::uint32_t> open;
    const auto add = [&](std::uint32_t block) {
      if (test(live, block)) return;
      live[block / 64] |= std::uint64_t{1} << (block % 64);
      open.push_back(block);
    };
    for (const RegisterUses::Use& use : uses_.of(reg)) {
      ++work_;
      const std::uint32_t block = cfg_.block_of(use.statement);
      if (!use.write) {
        if (!test(written, block)) add(block);
      } else if (use.full && !use.guarded) {
        written[block / 64] |= std::uint64_t{1} << (block % 64);
      }
    }
    while (!open.empty()) {
      const std::uint32_t block = open.back();
      open.pop_back();
      for (const std::uint32_t before : cfg_.predecessors(block)) {
        ++work_;
        if (!test(written, before)) add(before);
      }
    }
  }

  Uniformity& result_;
  const Module& module_;
  const Function& function_;
  const Cfg& cfg_;
  const RegisterIndex& index_;
  RegisterUses uses_;
  std::array<std::uint32_t, 3> block_shape_;
  const UniformityOptions& options_;

  std::vector<std::uint32_t> open_blocks_, open_registers_;
  std::vector<bool> block_is_open_;
  std::vector<bool> own_;  // of each statement: all that it writes is None, and nothing follows
  std::vector<std::vector<std::uint32_t>> written_;  // by block: registers that may leave it
  std::vector<std::vector<std::uint64_t>> live_;     // by register: the blocks where it is live
  std::vector<std::uint32_t> names_;                 // for join
  std::vector<Agreement> decided_, irreducible_;
  std::vector<LaneBits> bits_;  // by register
  Agreement carry_ = Agreement::Grid;
  bool carry_written_ = false;
  std::uint64_t work_ = 0;
};

Uniformity::Uniformity(const Module& module, const Function& function, const Cfg& cfg,
                       const RegisterIndex& index, const UniformityOptions& options) {
  UniformitySolver(*this, module, function, cfg, index, options).solve();
}

std::string_view to_string(Agreement agreement) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"none", "warp", "block", "grid"};
  return kNames[static_cast<std::size_t>(agreement)];
}

std::vector<DivergentBarrier> divergent_barriers(const Function& function, const Cfg& cfg,
                                                 const RegisterIndex& index,
                                                 const Uniformity& uniformity) {
  std::vector<DivergentBarrier> found;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    if (s.kind != StatementKind::Instruction) continue;
    const OpInfo& row = info(s.op);
    if (!has(row.flags, Flag::Barrier) || s.op == Op::bar_warp_sync ||
        (row.mnemonic != "bar" && row.mnemonic != "barrier"))
      continue;
    // With a number of threads, warps participate as a unit.
    bool counted = s.op == Op::bar_red_count || s.op == Op::bar_red_popc_count ||
                   s.op == Op::barrier_red_count || s.op == Op::barrier_red_popc_count;
    if (s.op == Op::bar_sync || s.op == Op::barrier_sync || s.op == Op::bar_arrive ||
        s.op == Op::barrier_arrive)
      counted = s.operand_count == 2;
    const Agreement needed = counted ? Agreement::Warp : Agreement::Block;
    const auto of_guard = [&](const Guard& guard) {
      const std::uint32_t reg = guard.present() ? index.find(guard.predicate) : kNone;
      return reg == kNone ? Agreement::Grid : uniformity.of(reg);
    };
    const std::uint32_t block = cfg.block_of(i);
    const Agreement agreed = weaker(uniformity.of_control(block), of_guard(s.guard));
    if (agreed >= needed || !cfg.reachable(block)) continue;
    DivergentBarrier barrier{i, agreed, {}};
    for (const std::uint32_t decider : cfg.deciders(block)) {
      if (uniformity.of_branch(decider) < needed)
        barrier.deciders.push_back(cfg.blocks()[decider].terminator);
    }
    if (of_guard(s.guard) < needed) barrier.deciders.push_back(i);
    found.push_back(std::move(barrier));
  }
  return found;
}

std::string to_text(const Uniformity& uniformity, const Cfg& cfg, const RegisterIndex& index,
                    const Module& module, const Function& function) {
  std::string text;
  for (const Agreement level :
       {Agreement::Grid, Agreement::Block, Agreement::Warp, Agreement::None}) {
    RegisterSet set(index.size());
    for (std::uint32_t i = 0; i < index.size(); ++i) {
      if (uniformity.of(i) == level) set.insert(i);
    }
    if (set.count() == 0) continue;
    text += std::string(to_string(level)) + ": " + to_text(set, index, module, function) + "\n";
  }
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    if (uniformity.of_branch(b) == Agreement::Grid) continue;
    text += "block " + std::to_string(b) +
            " ends in a branch that agrees in: " + std::string(to_string(uniformity.of_branch(b))) +
            "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
