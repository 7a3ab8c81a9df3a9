// src/analysis/cfg.cpp - basic blocks and control flow of a function
#include "ptxgen/analysis/cfg.hpp"

#include <algorithm>

#include "support/scratch.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

bool ends_block(const Instruction& s) {
  if (s.kind != StatementKind::Instruction) return false;
  const Flag flags = info(s.op).flags;
  return has(flags, Flag::Terminator) || has(flags, Flag::Branch);
}

// The position of each label, and which labels are branch targets.
struct Labels {
  ScratchVector<std::uint32_t> place;
  ScratchVector<std::uint32_t> table;  // the .branchtargets that a label names
  ScratchVector<std::uint32_t> any;    // where a brx.idx without a table may lead
  ScratchVector<bool> is_target;

  Labels(const Function& function, Scratch& scratch)
      : place(function.labels.size(), kNone, &scratch),
        table(function.labels.size(), kNone, &scratch),
        any(&scratch),
        is_target(function.labels.size(), false, &scratch) {
    bool unknown_table = false;
    const auto known = [&](const Operand& o) {
      return o.kind == OperandKind::Label && o.id < place.size();
    };
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      const Instruction& s = function.body[i];
      const auto operands = function.operands_of(s);
      if (s.kind == StatementKind::Label && !operands.empty() && known(operands[0])) {
        place[operands[0].id] = i;
      } else if (s.kind == StatementKind::BranchTargets && !operands.empty()) {
        if (known(operands[0])) table[operands[0].id] = i;
        for (const Operand& o : operands.subspan(1)) {
          if (!known(o)) continue;
          is_target[o.id] = true;
          any.push_back(o.id);
        }
      } else if (s.kind == StatementKind::Instruction) {
        for (const Operand& o : operands) {
          if (known(o)) is_target[o.id] = true;
        }
      }
    }
    if (!any.empty()) return;
    for (const Instruction& s : function.body) {
      if (s.kind != StatementKind::Instruction || s.op != Op::brx_idx) continue;
      const auto operands = function.operands_of(s);
      unknown_table = unknown_table || operands.size() < 2 || !known(operands[1]) ||
                      table[operands[1].id] == kNone;
    }
    if (!unknown_table) return;
    for (std::uint32_t l = 0; l < place.size(); ++l) {
      if (place[l] == kNone) continue;
      is_target[l] = true;
      any.push_back(l);
    }
  }
};

void add_edges(const Function& function, const Labels& labels, std::span<const Block> blocks,
               const std::vector<std::uint32_t>& block_of, ScratchVector<Edge>& edges) {
  const auto exit = static_cast<std::uint32_t>(blocks.size());
  edges.reserve(blocks.size() * 2);
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    const auto lead_to = [&](const Operand& o) {
      const bool placed =
          o.kind == OperandKind::Label && o.id < labels.place.size() && labels.place[o.id] != kNone;
      edges.push_back({b, placed ? block_of[labels.place[o.id]] : exit});
    };
    if (blocks[b].terminator == kNone) {
      edges.push_back({b, b + 1});  // after the last block is the exit
      continue;
    }
    const Instruction& s = function.body[blocks[b].terminator];
    const auto operands = function.operands_of(s);
    if (!has(info(s.op).flags, Flag::Branch)) {
      edges.push_back({b, exit});
    } else if (s.op == Op::brx_idx) {
      const std::uint32_t named = operands.size() < 2 ? kNone : operands[1].id;
      const std::uint32_t table = named < labels.table.size() ? labels.table[named] : kNone;
      if (table != kNone) {
        for (const Operand& o : function.operands_of(function.body[table]).subspan(1)) lead_to(o);
      } else {
        for (const std::uint32_t l : labels.any) lead_to(Operand::label({l}));
      }
    } else {
      for (const Operand& o : operands) lead_to(o);
    }
    if (s.guard.present()) edges.push_back({b, b + 1});
  }
}

}  // namespace

Cfg::Cfg(const Function& function) : block_of_(function.body.size(), 0) {
  Scratch scratch;
  const Labels labels(function, scratch);
  const std::uint32_t statements = static_cast<std::uint32_t>(function.body.size());

  blocks_.emplace_back();
  bool has_instruction = false;
  for (std::uint32_t i = 0; i < statements; ++i) {
    const Instruction& s = function.body[i];
    bool target = false;
    std::uint32_t label = kNone;
    if (s.kind == StatementKind::Label && s.operand_count != 0) {
      label = function.operands_of(s)[0].id;
      target = label < labels.place.size() && labels.is_target[label];
    }
    // Declarations and labels before the target may belong to its block.
    if (blocks_.back().terminator != kNone || (target && has_instruction)) {
      blocks_.emplace_back().first = i;
      has_instruction = false;
    }
    Block& block = blocks_.back();
    if (label != kNone && !has_instruction && block.label == LabelId{}) block.label = {label};
    block_of_[i] = static_cast<std::uint32_t>(blocks_.size() - 1);
    block.end = i + 1;
    has_instruction =
        has_instruction || s.kind == StatementKind::Instruction || s.kind == StatementKind::Unknown;
    if (ends_block(s)) block.terminator = i;
  }

  ScratchVector<Edge> edges(&scratch);
  add_edges(function, labels, blocks_, block_of_, edges);
  graph_ = Graph(exit() + 1, edges);
  loops_ = LoopForest(graph_, 0);
  order_.reserve(blocks_.size());
  position_.assign(blocks_.size() + 1, exit());
  for (const std::uint32_t block : loops_.order()) {
    if (block == exit()) continue;
    position_[block] = static_cast<std::uint32_t>(order_.size());
    order_.push_back(block);
  }
  dominators_ = DominatorTree(graph_, 0);
  post_dominators_ = DominatorTree(reversed_with_exits(graph_, loops_, exit()), exit());
}

std::vector<std::uint32_t> Cfg::deciders(std::uint32_t block) const {
  std::vector<std::uint32_t> open{block}, found;
  std::vector<bool> known(blocks_.size(), false);
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (std::uint32_t branch = 0; branch < blocks_.size(); ++branch) {
      if (known[branch] || successors(branch).size() < 2) continue;
      // A block may decide about itself: the test of a loop does.
      if (post_dominators_.strictly_dominates(node, branch)) continue;
      const auto to = successors(branch);
      if (std::none_of(to.begin(), to.end(), [&](std::uint32_t next) {
            return post_dominators_.dominates(node, next);
          })) {
        continue;
      }
      known[branch] = true;
      found.push_back(branch);
      open.push_back(branch);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string to_text(const Cfg& cfg, const Module& module, const Function& function) {
  std::string text;
  const auto name = [&](std::uint32_t block) {
    return block == cfg.exit() ? std::string("exit") : std::to_string(block);
  };
  for (const std::uint32_t b : cfg.order()) {
    const Block& block = cfg.blocks()[b];
    text += "block " + name(b);
    if (block.label.value < function.labels.size()) {
      text += " ";
      text += module.text(function.labels[block.label.value].name);
    }
    text += ": statements " + std::to_string(block.first) + " to " + std::to_string(block.end) +
            ", then";
    for (const std::uint32_t next : cfg.successors(b)) text += " " + name(next);
    if (!cfg.reachable(b)) text += ", unreachable";
    if (const std::uint32_t above = cfg.dominators().immediate(b); above != kNoNode)
      text += ", dominated by " + name(above);
    if (const std::uint32_t above = cfg.post_dominators().immediate(b); above != kNoNode)
      text += ", post-dominated by " + name(above);
    if (const std::uint32_t loop = cfg.loops().innermost(b); loop != kNoNode)
      text += ", loop of " + name(cfg.loops().loops()[loop].header);
    text += "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
