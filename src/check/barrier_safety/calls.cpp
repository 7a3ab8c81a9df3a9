// src/check/barrier_safety/calls.cpp - what functions of a module do at barriers
#include "check/barrier_safety/calls.hpp"

#include <utility>

#include "check/barrier_safety/constants.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;

namespace {

std::uint32_t numbers_of(const Function& function) {
  std::uint32_t numbers = 0;
  std::optional<analysis::RegisterIndex> index;
  std::optional<Constants> constants;
  for (const Instruction& s : function.body) {
    const Use use = use_of(function, s);
    if (use.kind != UseKind::Block) continue;
    if (!index) constants.emplace(function, index.emplace(function));
    const auto number = constants->of(*use.id);
    if (!number)
      numbers |= (1u << kBlockBarriers) - 1;
    else if (*number < kBlockBarriers && !counts_a_warp(*constants, use))
      numbers |= 1u << *number;
  }
  return numbers;
}

/// The function and its direct and indirect callees. `reached_by`: by function, the last caller
/// that reaches it.
std::vector<std::uint32_t> reached_from(std::uint32_t caller,
                                        const std::vector<std::vector<std::uint32_t>>& callees,
                                        std::vector<std::uint32_t>& reached_by) {
  std::vector<std::uint32_t> reached{caller};
  reached_by[caller] = caller;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::uint32_t f : callees[reached[i]]) {
      if (std::exchange(reached_by[f], caller) != caller) reached.push_back(f);
    }
  }
  return reached;
}

}  // namespace

Calls::Calls(const Module& module) : module_(module), summaries_(module.functions.size()) {
  summarise();
  find_numbers();
}

const Function* Calls::callee_of(const Function& function, const Instruction& s,
                                 std::uint32_t& number) const {
  for (std::size_t i = 0; i < function.operands_of(s).size(); ++i) {
    const OperandSpec* spec = operand_spec(function, s, i);
    if (spec == nullptr || spec->role != OperandRole::Callee) continue;
    const Operand& o = function.operands_of(s)[i];
    if (o.kind != OperandKind::Symbol || o.id >= module_.symbols.size()) return nullptr;
    const Symbol& symbol = module_.symbols[o.id];
    if (symbol.kind != SymbolKind::Function || symbol.index >= module_.functions.size())
      return nullptr;
    number = symbol.index;
    return &module_.functions[symbol.index];
  }
  return nullptr;
}

CallEffect Calls::effect_of(const Function& function, const Instruction& s) const {
  std::uint32_t number = 0;
  if (callee_of(function, s, number) != nullptr) return summaries_[number].effect;
  // An indirect call may call any function of the module.
  CallEffect all;
  for (std::size_t f = 0; f < module_.functions.size(); ++f) {
    if (module_.functions[f].entry) continue;
    all.barrier = all.barrier || summaries_[f].effect.barrier;
    all.warp = all.warp || summaries_[f].effect.warp;
    all.leaves = all.leaves || summaries_[f].effect.leaves;
  }
  return all;
}

// Effects only grow, so the iteration ends.
void Calls::summarise() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      const Function& function = module_.functions[f];
      if (function.entry || function.body.empty()) continue;
      const CallEffect before = summaries_[f].effect;
      CallEffect& effect = summaries_[f].effect;
      for (const Instruction& s : function.body) {
        if (!is_instruction(s)) continue;
        const Use use = use_of(function, s);
        effect.barrier =
            effect.barrier || use.kind == UseKind::Block || use.kind == UseKind::Cluster;
        effect.warp = effect.warp || use.kind == UseKind::Warp;
        if (has(info(s.op).flags, Flag::Call)) {
          const CallEffect inner = effect_of(function, s);
          effect.barrier = effect.barrier || inner.barrier;
          effect.warp = effect.warp || inner.warp;
          effect.leaves = effect.leaves || inner.leaves;
        }
        effect.leaves = effect.leaves || s.op == Op::exit;
      }
      if (effect.barrier && !effect.always) effect.always = always_waits(function);
      changed = changed || before.barrier != effect.barrier || before.warp != effect.warp ||
                before.leaves != effect.leaves || before.always != effect.always;
    }
  }
}

bool Calls::always_waits(const Function& function) const {
  const analysis::Cfg cfg(function);
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    const Use use = use_of(function, s);
    const bool here = use.kind == UseKind::Block && use.waits && use.count == nullptr &&
                      use.id->kind == OperandKind::Integer;
    const bool inside =
        is_instruction(s) && has(info(s.op).flags, Flag::Call) && effect_of(function, s).always;
    if ((here || inside) && !s.guard.present() &&
        cfg.post_dominators().dominates(cfg.block_of(i), 0))
      return true;
  }
  return false;
}

void Calls::find_numbers() {
  const std::size_t functions = module_.functions.size();
  std::vector<std::vector<std::uint32_t>> callees(functions);
  for (std::size_t f = 0; f < functions; ++f) {
    summaries_[f].numbers = numbers_of(module_.functions[f]);
    callees[f] = callees_of(module_.functions[f]);
  }
  std::vector<std::uint32_t> reached_by(functions, kNone);
  for (std::uint32_t caller = 0; caller < functions; ++caller) {
    if (callees[caller].empty()) continue;
    const std::vector<std::uint32_t> reached = reached_from(caller, callees, reached_by);
    std::uint32_t once = 0, twice = 0;
    for (const std::uint32_t f : reached) {
      twice |= once & summaries_[f].numbers;
      once |= summaries_[f].numbers;
    }
    for (const std::uint32_t f : reached)
      summaries_[f].elsewhere |= twice | (once & ~summaries_[f].numbers);
  }
}
std::vector<std::uint32_t> Calls::callees_of(const Function& function) const {
  std::vector<std::uint32_t> callees;
  bool any = false;  // an indirect call
  for (const Instruction& s : function.body) {
    if (!is_instruction(s) || !has(info(s.op).flags, Flag::Call)) continue;
    std::uint32_t number = 0;
    if (callee_of(function, s, number) != nullptr)
      callees.push_back(number);
    else
      any = true;
  }
  for (std::uint32_t f = 0; f < module_.functions.size() && any; ++f) {
    if (!module_.functions[f].entry) callees.push_back(f);
  }
  return callees;
}
Subject Calls::subject_of(analysis::Facts& facts, std::size_t number) const {
  const Function& function = facts.function();
  Subject subject{module_, function, facts.cfg(), facts.index(), facts.uniformity(), {}, {}, {}};
  subject.elsewhere = summaries_[number].elsewhere;
  bool any_call = false;
  for (const Instruction& s : function.body)
    any_call = any_call || (is_instruction(s) && has(info(s.op).flags, Flag::Call));
  if (any_call) subject.calls.resize(function.body.size());
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    if (!is_instruction(s)) continue;
    if (has(info(s.op).flags, Flag::Call)) {
      subject.calls[i] = effect_of(function, s);
      if (subject.calls[i].barrier || subject.calls[i].warp) subject.barriers.push_back(i);
    } else if (use_of(function, s).kind != UseKind::None) {
      subject.barriers.push_back(i);
    }
  }
  return subject;
}

}  // namespace ptxgen::inline v0::gates::barriers
