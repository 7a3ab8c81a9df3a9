// src/optimize/race_witness.cpp - two threads run by hand, to prove a race
#include "optimize/race_witness.hpp"

#include <algorithm>

#include "analysis/evaluate.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;

namespace {

/// Sizes that kernels are launched with: many rounds, uneven ends, few and none.
constexpr std::uint64_t kParameters[] = {4096, 1000, 257, 64, 33, 7, 1, 0};
constexpr std::uint64_t kPointer = 0x7f00'0000'0000;
constexpr std::uint32_t kMostStatements = 4000;

std::uint64_t size_of(const Variable& variable) {
  return std::min<std::uint64_t>(size_in_bytes(variable), 1u << 24);
}

}  // namespace

struct Witnesses::Run {
  std::uint32_t thread = 0;
  std::uint64_t parameter = 0;
  Event now;  ///< what is to be said of the next access
  std::vector<Bits> registers;
};

Witnesses::Witnesses(analysis::Facts& facts, const std::vector<SharedAccess>& accesses,
                     const std::vector<Orders>& orders, std::array<std::uint32_t, 3> shape)
    : facts_(facts), accesses_(accesses), shape_(shape), orders_(orders) {
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
  bases_.resize(module.symbols.size());
  std::uint64_t next = 0;
  const auto place = [&](std::size_t id, const Variable& variable) {
    if (variable.space != Space::Shared) return;
    constexpr std::uint64_t kAlignment = 128;
    bases_[id] = next;
    next += (size_of(variable) + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::vector<std::size_t> unsized;
  for (std::size_t id = 0; id < module.symbols.size(); ++id) {
    const Symbol& symbol = module.symbols[id];
    if (symbol.kind == SymbolKind::Variable) {
      const Variable& variable = module.variables[symbol.index];
      if (variable.linkage == Linkage::Extern) {
        if (variable.space == Space::Shared) unsized.push_back(id);
      } else {
        place(id, variable);
      }
    } else if (symbol.kind == SymbolKind::FunctionVariable) {
      place(id, module.functions[symbol.function].variables[symbol.index]);
    }
  }
  for (const std::size_t id : unsized) bases_[id] = next;
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
      return operand.id < bases_.size() && bases_[operand.id]
                 ? Bits(analysis::low_bits(*bases_[operand.id] + operand.value, width))
                 : Bits{};
    default:
      return analysis::constant_bits(operand, s.type());
  }
}

Witnesses::Bits Witnesses::address(const Run& run, const Operand& operand) const {
  if (operand.base == OperandKind::Integer) return operand.value;
  if (operand.base == OperandKind::Symbol) {
    if (operand.id >= bases_.size() || !bases_[operand.id]) return {};
    return analysis::low_bits(*bases_[operand.id] + operand.value, 32);
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
    store(0, bits(s.type()) == 64 ? kPointer : analysis::low_bits(run.parameter, bits(s.type())));
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

std::vector<Event> Witnesses::run(std::uint32_t thread, std::uint64_t parameter) {
  const Function& function = facts_.function();
  const analysis::Cfg& cfg = facts_.cfg();
  std::vector<Event> events;
  Run state;
  state.thread = thread;
  state.parameter = parameter;
  state.registers.resize(facts_.index().size());
  std::uint32_t at = 0;
  for (std::uint32_t steps = 0; steps < kMostStatements && at < function.body.size(); ++steps) {
    if (budget_ == 0) break;
    --budget_;
    const Instruction& s = function.body[at];
    const std::uint32_t statement = at++;
    if (s.kind == StatementKind::Unknown) break;
    if (s.kind != StatementKind::Instruction) continue;
    Bits guard = 1;
    if (s.guard.present()) {
      const std::uint32_t reg = facts_.index().find(s.guard.predicate);
      guard = reg == kNone ? Bits{} : state.registers[reg];
      if (guard && s.guard.negated) *guard ^= 1;
    }
    const Flag flags = info(s.op).flags;
    // Where the way, or what orders the thread, is not known, nothing is any more.
    if (!guard && (has(flags, Flag::Terminator | Flag::Barrier | Flag::Fence | Flag::Call))) break;
    if (!guard) {
      analysis::for_each_access(function, s, [&](const analysis::RegisterAccess& access) {
        const std::uint32_t reg = facts_.index().find(access.reg);
        if (access.write && reg != kNone) state.registers[reg].reset();
      });
      continue;
    }
    if ((*guard & 1) == 0) continue;
    if (has(flags, Flag::Terminator)) {
      if (!s.is(Op::bra)) break;
      const std::uint32_t to = cfg.successors(cfg.block_of(statement))[0];
      if (to >= cfg.blocks().size()) break;
      at = cfg.blocks()[to].first;
      continue;
    }
    record(state, statement, events);
    pass(state, statement);
    if (relevant_[statement]) execute(state, statement);
  }
  return events;
}

const std::vector<Event>& Witnesses::events(std::uint32_t thread, std::uint64_t parameter) {
  const auto [at, made] = events_.try_emplace({thread, parameter});
  if (made) at->second = run(thread, parameter);
  return at->second;
}

// Two threads ---------------------------------------------------------------------------------

bool Witnesses::race(const Event& a, const Event& b, bool same_warp) const {
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
  const auto operands = function.operands_of(function.body[x.statement]);
  if (x.statement != y.statement || operands.size() < 2) return true;
  return analysis::agreement(facts_.module(), function, facts_.index(), facts_.uniformity(),
                             operands[1], facts_.options()) < analysis::Agreement::Block;
}

std::optional<Witness> Witnesses::find(std::uint32_t first_access, std::uint32_t first_thread,
                                       std::uint32_t second_access, std::uint32_t second_thread) {
  if (first_thread == second_thread) return {};
  const bool same_warp = first_thread / 32 == second_thread / 32;
  for (const std::uint64_t parameter : kParameters) {
    const std::vector<Event>& a = events(first_thread, parameter);
    const std::vector<Event>& b = events(second_thread, parameter);
    // Intervals only grow along both lists.
    std::size_t begin = 0;
    for (const Event& x : a) {
      if (x.access != first_access) continue;
      while (begin < b.size() && b[begin].interval < x.interval) ++begin;
      for (std::size_t i = begin; i < b.size() && b[i].interval == x.interval; ++i) {
        if (b[i].access != second_access || !race(x, b[i], same_warp)) continue;
        Witness found{first_thread, second_thread, first_access, second_access,
                      x.address,    b[i].address,  kNone,        0,
                      parameter};
        for (std::uint32_t id = 0; id < bases_.size(); ++id) {
          if (!bases_[id] || *bases_[id] > x.address) continue;
          if (found.variable != kNone && *bases_[id] < found.variable_base) continue;
          found.variable = id;
          found.variable_base = *bases_[id];
        }
        return found;
      }
    }
  }
  return {};
}

}  // namespace ptxgen::inline v0::optimize
