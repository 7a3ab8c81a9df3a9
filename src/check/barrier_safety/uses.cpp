// src/check/barrier_safety/uses.cpp - how statements use barriers
#include <algorithm>

#include "check/barrier_safety/constants.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;

Constants::Constants(const Function& function, const analysis::RegisterIndex& index)
    : index_(index), values_(index.size()), writes_(index.size(), 0) {
  for (const Instruction& s : function.body) {
    analysis::for_each_access(function, s, [&](const analysis::RegisterAccess& a) {
      if (!a.write) return;
      const std::uint32_t reg = index.find(a.reg);
      ++writes_[reg];
      const auto operands = function.operands_of(s);
      if (s.op == Op::mov && !s.guard.present() && operands.size() == 2 &&
          operands[1].kind == OperandKind::Integer)
        values_[reg] = operands[1].value;
    });
  }
}

std::optional<std::uint64_t> Constants::of(const Operand& o) const {
  if (o.kind == OperandKind::Integer) return o.value;
  if (o.kind != OperandKind::Register) return std::nullopt;
  const std::uint32_t reg = index_.find(o.as_register());
  return reg != kNone && writes_[reg] == 1 ? values_[reg] : std::nullopt;
}

bool counts_a_warp(const Constants& constants, const Use& use) {
  return use.aligned && use.count != nullptr && constants.of(*use.count) == 32u;
}

Use use_of(const Function& function, const Instruction& s) {
  Use use;
  if (!is_instruction(s)) return use;
  const OpInfo& row = info(s.op);
  // Other rows with this flag are setmaxnreg and mbarriers.
  if (!has(row.flags, Flag::Barrier) || (row.mnemonic != "bar" && row.mnemonic != "barrier"))
    return use;
  use.kind = s.get(Field::Scope) == Modifier::cluster ? UseKind::Cluster
             : s.op == Op::bar_warp_sync              ? UseKind::Warp
                                                      : UseKind::Block;
  use.aligned = use.kind != UseKind::Warp && (row.mnemonic == "bar" || s.has(Field::Aligned));
  use.waits =
      s.op != Op::bar_arrive && s.op != Op::barrier_arrive && s.op != Op::barrier_cluster_arrive;
  use.arrives = s.op != Op::barrier_cluster_wait;
  const auto operands = function.operands_of(s);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function, s, i);
    if (spec == nullptr) continue;
    switch (spec->label[0]) {
      case 'a':
        use.id = &operands[i];
        break;
      case 'b':
        use.count = &operands[i];
        break;
      case 'c':
        use.vote = &operands[i];
        break;
      default:
        use.result = &operands[i];
        break;
    }
  }
  if (use.kind != UseKind::Cluster && use.id == nullptr) use.kind = UseKind::None;
  return use;
}

bool leaves_before(const Subject& subject, std::uint32_t decider, std::uint32_t barrier,
                   bool whole_warps) {
  const analysis::Cfg& cfg = subject.cfg;
  const std::uint32_t home = cfg.block_of(barrier);
  const auto follows = [&](std::uint32_t statement) {
    const std::uint32_t block = cfg.block_of(statement);
    return block == home ? statement > barrier : cfg.post_dominators().dominates(block, home);
  };
  const auto stops = [&](std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t i = first; i < end; ++i) {
      const Instruction& s = subject.function.body[i];
      if (!is_instruction(s)) continue;
      const Flag flags = info(s.op).flags;
      if (has(flags, Flag::Convergent | Flag::Call | Flag::Barrier)) return true;
      if (!whole_warps && has(flags, Flag::WritesMemory) && follows(i)) return true;
    }
    return false;
  };
  const auto leads_out = [&](std::uint32_t start) {
    std::vector<bool> seen(cfg.blocks().size(), false);
    std::vector<std::uint32_t> open;
    const auto enter = [&](std::uint32_t next) {
      if (next == cfg.exit() || seen[next]) return;
      seen[next] = true;
      open.push_back(next);
    };
    enter(start);
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (stops(cfg.blocks()[at].first, cfg.blocks()[at].end)) return false;
      for (const std::uint32_t next : cfg.successors(at)) enter(next);
    }
    return true;
  };
  const std::uint32_t block = cfg.block_of(decider);
  const auto successors = cfg.successors(block);
  if (cfg.blocks()[block].terminator == decider) return std::ranges::any_of(successors, leads_out);
  // A guard on the barrier itself: the others continue after it.
  return !stops(decider + 1, cfg.blocks()[block].end) && std::ranges::all_of(successors, leads_out);
}

}  // namespace ptxgen::inline v0::gates::barriers
