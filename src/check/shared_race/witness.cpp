// src/check/shared_race/witness.cpp - two threads run by hand, to prove a race
#include "check/shared_race/witness.hpp"

#include <algorithm>

#include "analysis/evaluate.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

/// Sizes that kernels are launched with: many rounds, uneven ends, few and none.
constexpr std::uint64_t kParameters[] = {4096, 1000, 257, 64, 33, 7, 1, 0};
constexpr std::uint64_t kPointer = 0x7f00'0000'0000;
constexpr std::uint32_t kMaxStatements = 4000;

std::uint64_t size_of(const Variable& variable) {
  return std::min<std::uint64_t>(size_in_bytes(variable), 1u << 24);
}

}  // namespace

struct Witnesses::Run {
  std::uint32_t thread = 0;
  Bits parameter;  ///< nothing: they may be anything
  Event now;       ///< what is to be said of the next access
  std::vector<Bits> registers;
  std::vector<bool> visited;             ///< by block
  std::uint32_t assumption_end = kNone;  ///< where the first guard that was taken to hold ends
  bool assumed_outside = false;          ///< and that the thread has been there
};

Witnesses::Witnesses(analysis::Facts& facts, const std::vector<SharedAccess>& accesses,
                     const std::vector<Orders>& orders, ThreadValueClasses& values,
                     std::array<std::uint32_t, 3> shape)
    : facts_(facts), accesses_(accesses), shape_(shape), orders_(orders), values_(values) {
  const Function& function = facts.function();
  first_access_.assign(function.body.size() + 1, 0);
  for (const SharedAccess& access : accesses) ++first_access_[access.statement + 1];
  for (std::size_t i = 0; i < function.body.size(); ++i) first_access_[i + 1] += first_access_[i];
  lay_out();
  find_relevant();
}

void Witnesses::find_relevant() {
  const Function& function = facts_.function();
  const analysis::RegisterIndex& index = facts_.index();
  const analysis::RegisterUses uses(function, index);
  relevant_.assign(function.body.size(), false);
  std::vector<bool> needed(index.size());
  std::vector<std::uint32_t> open;
  const auto need = [&](Register reg) {
    const std::uint32_t number = index.find(reg);
    if (number == kNone || needed[number]) return;
    needed[number] = true;
    open.push_back(number);
  };
  const auto need_sources = [&](std::uint32_t statement) {
    analysis::for_each_access(function, function.body[statement],
                              [&](const analysis::RegisterAccess& access) {
                                if (!access.write) need(access.reg);
                              });
  };
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    if (s.kind == StatementKind::Instruction && s.guard.present()) need(s.guard.predicate);
  }
  for (const SharedAccess& access : accesses_) need_sources(access.statement);
  while (!open.empty()) {
    const std::uint32_t reg = open.back();
    open.pop_back();
    for (const analysis::RegisterUses::Use& use : uses.of(reg)) {
      if (!use.write || relevant_[use.statement]) continue;
      relevant_[use.statement] = true;
      // What is loaded is not known, whatever the address.
      const Instruction& s = function.body[use.statement];
      if (!has(info(s.op).flags, Flag::ReadsMemory)) need_sources(use.statement);
    }
  }
}

void Witnesses::lay_out() {
  const Module& module = facts_.module();
  const Function& function = facts_.function();
  // Only what the function names can be addressed in it.
  for (const Operand& operand : function.operands) {
    const bool named = operand.kind == OperandKind::Symbol ||
                       (operand.kind == OperandKind::Memory && operand.base == OperandKind::Symbol);
    if (named && operand.id < module.symbols.size()) bases_.emplace(operand.id, 0);
  }
  std::uint64_t next = 0;
  std::vector<std::uint32_t> unsized;
  for (auto at = bases_.begin(); at != bases_.end();) {
    const Variable* variable = analysis::variable_of(module, at->first);
    if (variable == nullptr || variable->space != Space::Shared) {
      at = bases_.erase(at);
      continue;
    }
    if (variable->linkage == Linkage::Extern) {
      unsized.push_back(at->first);
    } else {
      constexpr std::uint64_t kAlignment = 128;
      at->second = next;
      next += (size_of(*variable) + kAlignment - 1) / kAlignment * kAlignment;
    }
    ++at;
  }
  for (const std::uint32_t id : unsized) bases_[id] = next;
}

std::optional<std::uint64_t> Witnesses::base_of(std::uint32_t symbol) const {
  const auto at = bases_.find(symbol);
  return at == bases_.end() ? std::nullopt : std::optional(at->second);
}

// One thread ----------------------------------------------------------------------------------

Witnesses::Bits Witnesses::source(const Run& run, const Instruction& s,
                                  const Operand& operand) const {
  const unsigned width = bits(s.type());
  switch (operand.kind) {
    case OperandKind::Register: {
      const std::uint32_t reg = facts_.index().find(operand.as_register());
      if (reg == kNone || operand.component != 0) return {};
      Bits value = run.registers[reg];
      if (value && operand.negated) *value ^= 1;
      return value;
    }
    case OperandKind::Special: {
      const std::uint32_t c = operand.component;
      const std::array<std::uint64_t, 3> at{run.thread % shape_[0],
                                            run.thread / shape_[0] % shape_[1],
                                            run.thread / shape_[0] / shape_[1]};
      switch (static_cast<SpecialRegister>(operand.id)) {
        case SpecialRegister::tid:
          return c >= 1 && c <= 3 ? Bits(at[c - 1]) : Bits{};
        case SpecialRegister::ntid:
          return c >= 1 && c <= 3 ? Bits(shape_[c - 1]) : Bits{};
        case SpecialRegister::ctaid:
          return c >= 1 && c <= 3 ? Bits(0) : Bits{};
        case SpecialRegister::laneid:
          return run.thread % 32;
        default:
          return {};
      }
    }
    case OperandKind::Symbol:
      if (const auto base = base_of(operand.id))
        return analysis::low_bits(*base + operand.value, width);
      return {};
    default:
      return analysis::constant_bits(operand, s.type());
  }
}

Witnesses::Bits Witnesses::address(const Run& run, const Operand& operand) const {
  if (operand.base == OperandKind::Integer) return operand.value;
  if (operand.base == OperandKind::Symbol) {
    const auto base = base_of(operand.id);
    return base ? Bits(analysis::low_bits(*base + operand.value, 32)) : Bits{};
  }
  const std::uint32_t reg = facts_.index().find(operand.as_register());
  if (reg == kNone || operand.component != 0 || !run.registers[reg]) return {};
  if (*run.registers[reg] >= kPointer / 2) return {};
  return analysis::low_bits(*run.registers[reg] + operand.value, 32);
}

void Witnesses::record(Run& run, std::uint32_t statement, std::vector<Event>& events) {
  const Function& function = facts_.function();
  const Instruction& s = function.body[statement];
  for (std::uint32_t i = first_access_[statement]; i < first_access_[statement + 1]; ++i) {
    const SharedAccess& access = accesses_[i];
    if (access.anywhere || (access.lanes >> (run.thread % 32) & 1u) == 0) continue;
    const auto operands = function.operands_of(s);
    const Bits at = address(run, operands[access.operand]);
    if (!at) continue;
    Event event = run.now;
    event.access = i;
    event.address = *at;
    if (access.writes && !access.reads && operands.size() > 1)
      event.value = source(run, s, operands[1]);
    events.push_back(event);
  }
}

void Witnesses::execute(Run& run, std::uint32_t statement) {
  const Function& function = facts_.function();
  const Instruction& s = function.body[statement];
  const auto operands = function.operands_of(s);
  const auto store = [&](std::size_t i, Bits value) {
    if (i >= operands.size() || operands[i].kind != OperandKind::Register) return;
    const std::uint32_t reg = facts_.index().find(operands[i].as_register());
    if (reg != kNone && operands[i].component == 0) run.registers[reg] = value;
  };
  const bool single = operands.size() == 2 && operands[0].kind == OperandKind::Register;
  if (single && (s.is(Op::cvta) || s.is(Op::cvta_to) || s.is(Op::mov))) {
    store(0, source(run, s, operands[1]));
    return;
  }
  if (single && function.entry && space_of(s.get(Field::Space)) == Space::Param &&
      kind(s.type()) != TypeKind::Float && operands[1].kind == OperandKind::Memory &&
      operands[1].base == OperandKind::Symbol && operands[1].id < facts_.module().symbols.size() &&
      facts_.module().symbols[operands[1].id].kind == SymbolKind::Parameter) {
    // What takes 64 bits is a pointer as a rule, and none to shared memory.
    if (!run.parameter) return store(0, {});
    store(0, bits(s.type()) == 64 ? kPointer : analysis::low_bits(*run.parameter, bits(s.type())));
    return;
  }
  std::vector<Bits> known(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function, s, i);
    if (spec == nullptr || spec->role == OperandRole::Destination) continue;
    const Type type = operand_type(s, *spec);
    Bits value = source(run, s, operands[i]);
    if (operands[i].kind == OperandKind::Integer)
      value = analysis::constant_bits(operands[i], type);
    if (value && type != Type::none)
      value = analysis::low_bits(*value, type == Type::pred ? 1 : bits(type));
    known[i] = value;
  }
  const analysis::Outcome outcome = analysis::evaluate(function, s, known);
  analysis::for_each_access(function, s, [&](const analysis::RegisterAccess& access) {
    const std::uint32_t reg = facts_.index().find(access.reg);
    if (access.write && reg != kNone) run.registers[reg].reset();
  });
  switch (outcome.kind) {
    case analysis::Outcome::Kind::Values:
      for (std::size_t i = 0; i < outcome.count && i < 2; ++i) store(i, outcome.values[i]);
      break;
    case analysis::Outcome::Kind::Source:
      store(0, known[outcome.source]);
      break;
    case analysis::Outcome::Kind::Opposite:
      store(0, known[outcome.source] ? Bits(*known[outcome.source] ^ 1) : Bits{});
      break;
    case analysis::Outcome::Kind::Unknown:
      break;
  }
}

/// Whether it may order the thread behind what another has done.
bool Witnesses::acquires(const Instruction& s) {
  const OpInfo& row = info(s.op);
  if (has(row.flags, Flag::Barrier | Flag::Call) || row.mnemonic == "mbarrier") return true;
  if (!has(row.flags, Flag::Fence)) return false;
  if (!has(row.flags, Flag::ReadsMemory | Flag::WritesMemory)) return true;
  const Modifier order = s.get(Field::Order);
  return order == Modifier::acquire || order == Modifier::acq_rel;
}

void Witnesses::pass(Run& run, std::uint32_t statement) const {
  const Instruction& s = facts_.function().body[statement];
  Event& now = run.now;
  if (orders_[statement] == Orders::Block) {
    ++now.interval;
    now.barrier = statement;
    now.warp_barrier = kNone;
    now.warp_interval = 0;
    now.unordered = now.unordered_in_warp = true;
  } else if (orders_[statement] == Orders::Warp) {
    ++now.warp_interval;
    now.warp_barrier = statement;
    now.unordered_in_warp = true;
  } else if (s.op == Op::bar_warp_sync) {
    now.unordered_in_warp = false;
  } else if (acquires(s)) {
    now.unordered = now.unordered_in_warp = false;
  }
}

void Witnesses::forget_writes(Run& run, std::uint32_t statement) const {
  const Function& function = facts_.function();
  analysis::for_each_access(function, function.body[statement],
                            [&](const analysis::RegisterAccess& access) {
                              const std::uint32_t reg = facts_.index().find(access.reg);
                              if (access.write && reg != kNone) run.registers[reg].reset();
                            });
}

/// What control may come to from a block on before it comes to `end`.
std::vector<std::uint32_t> Witnesses::blocks_before(std::uint32_t start, std::uint32_t end) const {
  const analysis::Cfg& cfg = facts_.cfg();
  std::vector<std::uint32_t> found;
  if (start == end || start >= cfg.blocks().size()) return found;
  std::vector<bool> seen(cfg.blocks().size());
  seen[start] = true;
  found.push_back(start);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::uint32_t to : cfg.successors(found[i])) {
      if (to == end || to >= cfg.blocks().size() || seen[to]) continue;
      seen[to] = true;
      found.push_back(to);
    }
  }
  return found;
}

/// Whether there is an access in one of the blocks, or anything that orders threads.
bool Witnesses::has_events(const std::vector<std::uint32_t>& blocks) const {
  const Function& function = facts_.function();
  return std::any_of(blocks.begin(), blocks.end(), [&](std::uint32_t block) {
    const analysis::Block& range = facts_.cfg().blocks()[block];
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      const Instruction& s = function.body[i];
      if (s.kind == StatementKind::Unknown) return true;
      if (s.kind != StatementKind::Instruction) continue;
      if (first_access_[i] != first_access_[i + 1] || orders_[i] != Orders::Nothing || acquires(s))
        return true;
    }
    return false;
  });
}

/// Which way a branch goes is not known. Where all threads of the block go the same way and only
/// one way leads to accesses, the launch is one of those in which they go it: such guards are taken
/// to hold, each once, one within the other. Otherwise to where all ways meet again. False if that
/// is not possible.
bool Witnesses::decide(Run& run, std::uint32_t branch, std::uint32_t& at) {
  const analysis::Cfg& cfg = facts_.cfg();
  const std::uint32_t block = cfg.block_of(branch);
  const std::uint32_t end = cfg.post_dominators().immediate(block);
  const auto successors = cfg.successors(block);
  if (successors.size() != 2) return false;
  std::array<std::vector<std::uint32_t>, 2> ways;
  for (std::size_t i = 0; i < 2; ++i) {
    ways[i] = blocks_before(successors[i], end);
    if (budget_ < ways[i].size()) return false;
    budget_ -= ways[i].size();
  }
  const std::array<bool, 2> matters{has_events(ways[0]), has_events(ways[1])};
  const bool together = facts_.uniformity().of_branch(block) >= analysis::Agreement::Block;
  if (!run.parameter && together && matters[0] != matters[1]) {
    const std::uint32_t to = successors[matters[0] ? 0 : 1];
    // Another iteration is more than that the guard lets the block through.
    if (run.visited[to] || run.assumed_outside) return false;
    if (run.assumption_end == kNone) run.assumption_end = end;
    at = cfg.blocks()[to].first;
    return true;
  }
  if (end >= cfg.blocks().size()) return false;
  for (const std::vector<std::uint32_t>& way : ways) {
    if (!jump_over(run, way)) return false;
  }
  at = cfg.blocks()[end].first;
  return true;
}

/// Some of the blocks may be executed, or none: what is accessed there is left out.
bool Witnesses::jump_over(Run& run, const std::vector<std::uint32_t>& blocks) const {
  const Function& function = facts_.function();
  for (const std::uint32_t block : blocks) {
    const analysis::Block& range = facts_.cfg().blocks()[block];
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      const Instruction& s = function.body[i];
      if (s.kind == StatementKind::Unknown) return false;
      if (s.kind != StatementKind::Instruction) continue;
      const bool leaves = has(info(s.op).flags, Flag::Terminator) && !s.is(Op::bra);
      if (leaves || orders_[i] != Orders::Nothing || acquires(s)) return false;
      forget_writes(run, i);
    }
  }
  return true;
}

Witnesses::Trace Witnesses::run(std::uint32_t thread, Bits parameter) {
  const Function& function = facts_.function();
  const analysis::Cfg& cfg = facts_.cfg();
  Trace trace;
  Run state;
  state.thread = thread;
  state.parameter = parameter;
  state.registers.resize(facts_.index().size());
  state.visited.resize(cfg.blocks().size());
  std::uint32_t at = 0;
  for (std::uint32_t steps = 0; steps < kMaxStatements; ++steps) {
    if (at >= function.body.size()) {
      trace.complete = true;
      break;
    }
    if (budget_ == 0) break;
    --budget_;
    const Instruction& s = function.body[at];
    const std::uint32_t statement = at++;
    const std::uint32_t block = cfg.block_of(statement);
    state.visited[block] = true;
    state.assumed_outside |= block == state.assumption_end;
    if (s.kind == StatementKind::Unknown) break;
    if (s.kind != StatementKind::Instruction) continue;
    Bits guard = 1;
    if (s.guard.present()) {
      const std::uint32_t reg = facts_.index().find(s.guard.predicate);
      guard = reg == kNone ? Bits{} : state.registers[reg];
      if (guard && s.guard.negated) *guard ^= 1;
    }
    const Flag flags = info(s.op).flags;
    if (!guard && (s.is(Op::bra) || s.is(Op::ret) || s.is(Op::exit))) {
      if (decide(state, statement, at)) continue;
      break;
    }
    // Where the way, or what orders the thread, is not known, nothing is any more.
    if (!guard && (has(flags, Flag::Terminator | Flag::Barrier | Flag::Fence | Flag::Call))) break;
    if (!guard) {
      forget_writes(state, statement);
      continue;
    }
    if ((*guard & 1) == 0) continue;
    if (has(flags, Flag::Terminator)) {
      trace.complete = s.is(Op::ret) || s.is(Op::exit);
      if (!s.is(Op::bra)) break;
      const std::uint32_t to = cfg.successors(block)[0];
      if (to >= cfg.blocks().size()) break;
      at = cfg.blocks()[to].first;
      continue;
    }
    record(state, statement, trace.events);
    pass(state, statement);
    if (relevant_[statement]) execute(state, statement);
  }
  return trace;
}

const Witnesses::Trace& Witnesses::trace(std::uint32_t thread, Bits parameter) {
  const auto [at, made] = traces_.try_emplace({thread, parameter});
  if (made) at->second = run(thread, parameter);
  return at->second;
}

// Two threads ---------------------------------------------------------------------------------

bool Witnesses::race(const Event& a, std::uint32_t first, const Event& b,
                     std::uint32_t second) const {
  const bool same_warp = first / 32 == second / 32;
  // Threads that came by different barriers need not be between the same two.
  if (a.interval != b.interval || a.barrier != b.barrier) return false;
  if (same_warp && (a.warp_interval != b.warp_interval || a.warp_barrier != b.warp_barrier))
    return false;
  if (!(same_warp ? a.unordered_in_warp && b.unordered_in_warp : a.unordered && b.unordered))
    return false;
  const SharedAccess& x = accesses_[a.access];
  const SharedAccess& y = accesses_[b.access];
  if (a.address + x.bytes <= b.address || b.address + y.bytes <= a.address) return false;
  if (!(x.writes && y.writes)) return true;
  // Writing what is written already harms nobody.
  if (a.value && b.value) return *a.value != *b.value || a.address != b.address;
  const Function& function = facts_.function();
  if (function.body[x.statement].operand_count < 2 || function.body[y.statement].operand_count < 2)
    return true;
  const ThreadClasses& one = values_.of(x.statement, 1);
  if (x.statement == y.statement && one.of[first] == one.of[second]) return false;
  // What the lanes of a warp have exchanged may be equal in a way that was not seen.
  return !one.crosses_lanes && !values_.of(y.statement, 1).crosses_lanes;
}

std::optional<Witness> Witnesses::find_in(std::uint32_t first_access, std::uint32_t first_thread,
                                          std::uint32_t second_access, std::uint32_t second_thread,
                                          Bits parameter) {
  const std::vector<Event>& a = trace(first_thread, parameter).events;
  const std::vector<Event>& b = trace(second_thread, parameter).events;
  // Intervals only grow along both lists.
  std::size_t begin = 0;
  for (const Event& x : a) {
    if (x.access != first_access) continue;
    while (begin < b.size() && b[begin].interval < x.interval) ++begin;
    for (std::size_t i = begin; i < b.size() && b[i].interval == x.interval; ++i) {
      if (b[i].access != second_access || !race(x, first_thread, b[i], second_thread)) continue;
      Witness found;
      found.every_launch = !parameter.has_value();
      found.first_thread = first_thread;
      found.second_thread = second_thread;
      found.first_access = first_access;
      found.second_access = second_access;
      found.first_address = x.address;
      found.second_address = b[i].address;
      found.parameter = parameter.value_or(0);
      for (const auto& [id, base] : bases_) {
        if (base > x.address || (found.variable != kNone && base < found.variable_base)) continue;
        found.variable = id;
        found.variable_base = base;
      }
      return found;
    }
  }
  return {};
}

std::optional<Witness> Witnesses::find(std::uint32_t first_access, std::uint32_t first_thread,
                                       std::uint32_t second_access, std::uint32_t second_thread) {
  if (first_thread == second_thread) return {};
  const auto with = [&](Bits parameter) {
    return find_in(first_access, first_thread, second_access, second_thread, parameter);
  };
  if (auto found = with({})) return found;
  std::optional<Witness> found;
  std::optional<std::uint64_t> harmless;
  for (const std::uint64_t parameter : kParameters) {
    if (found && harmless) break;
    auto made = with(parameter);
    if (made && !found) found = std::move(made);
    if (!made && !harmless && trace(first_thread, parameter).complete &&
        trace(second_thread, parameter).complete)
      harmless = parameter;
  }
  if (found) found->harmless_parameter = harmless;
  return found;
}

}  // namespace ptxgen::inline v0::gates
