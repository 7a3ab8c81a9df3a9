// src/analysis/undefined.cpp - registers that may be read before they are written
#include <algorithm>

#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

using Use = RegisterUses::Use;

bool defines(const Use& use) { return use.write && use.full && !use.guarded; }

// Whether one write precedes every read on every path: true for almost all compiled code, and then
// nothing has to be computed.
bool obviously_defined(std::span<const Use> uses, const Cfg& cfg) {
  std::uint32_t write = kNone;
  for (const Use& use : uses) {
    if (!defines(use)) continue;
    write = use.statement;
    break;
  }
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    if (use.write) return true;
    const std::uint32_t block = cfg.block_of(use.statement);
    if (!cfg.reachable(block)) return true;
    if (write == kNone) return false;
    const std::uint32_t from = cfg.block_of(write);
    return from == block ? write < use.statement : cfg.dominators().dominates(from, block);
  });
}

// Which of up to 64 registers are live where the function begins: those have a path to a read
// without a write.
std::uint64_t live_at_entry(std::span<const std::uint32_t> registers, const RegisterUses& uses,
                            const Cfg& cfg, const std::vector<bool>& returned,
                            std::vector<std::uint64_t>& live, std::vector<std::uint64_t>& written) {
  const std::size_t blocks = cfg.blocks().size();
  live.assign(blocks + 1, 0);
  written.assign(blocks + 1, 0);
  std::vector<std::uint32_t> open;
  for (std::size_t bit = 0; bit < registers.size(); ++bit) {
    const std::uint64_t mask = std::uint64_t{1} << bit;
    if (returned[registers[bit]]) {
      live[blocks] |= mask;
      if (open.empty() || open.back() != cfg.exit()) open.push_back(cfg.exit());
    }
    for (const Use& use : uses.of(registers[bit])) {
      const std::uint32_t block = cfg.block_of(use.statement);
      if (use.write) {
        if (defines(use)) written[block] |= mask;
      } else if ((written[block] & mask) == 0 && (live[block] & mask) == 0) {
        live[block] |= mask;
        open.push_back(block);
      }
    }
  }
  while (!open.empty()) {
    const std::uint32_t block = open.back();
    open.pop_back();
    for (const std::uint32_t before : cfg.predecessors(block)) {
      const std::uint64_t more = live[block] & ~written[before] & ~live[before];
      if (more == 0) continue;
      live[before] |= more;
      open.push_back(before);
    }
  }
  return live[0];
}

}  // namespace

RegisterSet maybe_undefined(const Function& function, const Cfg& cfg, const RegisterIndex& index) {
  RegisterSet set(index.size());
  const RegisterUses uses(function, index);
  std::vector<std::uint32_t> open;
  const auto insert = [&](std::uint32_t reg) {
    if (reg == kNone || set.contains(reg)) return;
    set.insert(reg);
    open.push_back(reg);
  };
  std::vector<bool> returned(index.size(), false);
  const auto in_registers = [&](const std::vector<Variable>& variables, auto&& fn) {
    for (const Variable& variable : variables) {
      if (variable.space != Space::Register) continue;
      const std::uint32_t reg = index.find({variable.decl, 0});
      if (reg != kNone) fn(reg);
    }
  };
  in_registers(function.returns, [&](std::uint32_t reg) { returned[reg] = true; });
  in_registers(function.parameters, insert);

  std::vector<std::uint32_t> unclear;
  for (std::uint32_t reg = 0; reg < index.size(); ++reg) {
    if (!set.contains(reg) && (returned[reg] || !obviously_defined(uses.of(reg), cfg)))
      unclear.push_back(reg);
  }
  std::vector<std::uint64_t> live, written;
  for (std::size_t at = 0; at < unclear.size(); at += 64) {
    const auto some =
        std::span(unclear).subspan(at, std::min<std::size_t>(64, unclear.size() - at));
    const std::uint64_t found = live_at_entry(some, uses, cfg, returned, live, written);
    for (std::size_t bit = 0; bit < some.size(); ++bit) {
      if ((found >> bit & 1) != 0) insert(some[bit]);
    }
  }

  for (const Instruction& s : function.body) {
    if (s.kind != StatementKind::Instruction || !has(info(s.op).flags, Flag::Call)) continue;
    for_each_access(function, s, [&](const RegisterAccess& a) {
      if (a.write) insert(index.find(a.reg));
    });
  }
  // Registers computed from them. Addresses count too: a load from an undefined address returns
  // anything. So do guards: under an undefined one it is unknown whether the old value
  // remains.
  while (!open.empty()) {
    const std::uint32_t reg = open.back();
    open.pop_back();
    for (const Use& use : uses.of(reg)) {
      if (use.write) continue;
      const Instruction& s = function.body[use.statement];
      for_each_access(function, s, [&](const RegisterAccess& a) {
        if (a.write) insert(index.find(a.reg));
      });
    }
  }
  return set;
}

RegisterSet maybe_undefined(const Function& function) {
  return maybe_undefined(function, Cfg(function), RegisterIndex(function));
}

}  // namespace ptxgen::inline v0::analysis
