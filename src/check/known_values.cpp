// src/check/known_values.cpp - executes threads as far as a launch determines their values
#include "check/known_values.hpp"

#include <algorithm>

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::RegisterAccess;

namespace {

// Values of all threads: 9 bytes each.
constexpr std::size_t kMaxCells = std::size_t{1} << 22;
constexpr std::size_t kNoCell = ~std::size_t{0};

}  // namespace

RegisterRow::RegisterRow(const Function& function, const Instruction& instruction)
    : RegisterRow(function, instruction, OperandSpecs(function, instruction)) {}

RegisterRow::RegisterRow(const Function& function, const Instruction& instruction,
                         const OperandSpecs& specs)
    : evaluator_(function, instruction, specs), operands_(instruction.operand_count) {
  const ScalarRow& row = evaluator_.row();
  for (std::size_t i = 0; i < row.sources(); ++i) {
    source_types_[i] = operand_type(instruction, *specs[row.operand(i)]);
    source_masks_[i] = low_bits(~std::uint64_t{0}, bits(source_types_[i]));
  }
  const auto operands = function.operands_of(instruction);
  for (std::size_t i = 0; i < row.destinations(); ++i) {
    const Type type = operand_type(instruction, *specs[i]);
    results_[i] = {bits(type), kind(type) == TypeKind::Signed, 0};
    if (operands[i].kind == OperandKind::Register && operands[i].id < function.registers.size())
      results_[i].register_bits = bits(function.registers[operands[i].id].type);
  }
}

std::optional<ScalarRow::Results> RegisterRow::operator()(std::span<const Value> sources) const {
  const ScalarRow& row = evaluator_.row();
  std::array<std::uint64_t, ScalarRow::kMaxSources> known;
  bool all = true;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    known[i] = sources[i].bits & source_masks_[i];
    all = all && sources[i].mark != Mark::Unknown;
  }
  std::optional<ScalarRow::Results> results = all ? row(known) : partly_known(sources, known);
  if (!results) return results;
  // Narrow results are extended to their register, which may be wider.
  for (std::size_t i = 0; i < row.destinations(); ++i) {
    const Destination& to = results_[i];
    if (to.bits != 0)
      (*results)[i] = low_bits(extended((*results)[i], to.bits, to.is_signed), to.register_bits);
  }
  return results;
}

std::optional<ScalarRow::Results> RegisterRow::partly_known(
    std::span<const Value> sources, std::span<const std::uint64_t> bits) const {
  std::array<std::optional<std::uint64_t>, kMaxOperands> known;
  bool any = false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].mark == Mark::Unknown) continue;
    known[evaluator_.row().operand(i)] = bits[i];
    any = true;
  }
  if (!any && sources.size() < 2) return {};
  const analysis::Outcome outcome = evaluator_(std::span(known).first(operands_));
  if (outcome.kind != analysis::Outcome::Kind::Values) return {};
  return outcome.values;
}

NeededRegisters::NeededRegisters(const Function& function, const analysis::RegisterIndex& index,
                                 const std::vector<std::uint32_t>& roots)
    : slots(index.size(), kNone), statements(function.body.size(), false) {
  std::vector<std::vector<std::uint32_t>> writers(index.size());
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    analysis::for_each_access(function, function.body[i], [&](const RegisterAccess& a) {
      const std::uint32_t reg = a.write ? index.find(a.reg) : kNone;
      if (reg != kNone) writers[reg].push_back(i);
    });
  }
  std::vector<std::uint32_t> open;
  const auto need = [&](std::uint32_t reg) {
    if (reg == kNone || slots[reg] != kNone) return;
    slots[reg] = count++;
    open.push_back(reg);
  };
  for (const std::uint32_t reg : roots) need(reg);
  while (!open.empty()) {
    const std::uint32_t reg = open.back();
    open.pop_back();
    for (const std::uint32_t writer : writers[reg]) {
      if (statements[writer]) continue;
      statements[writer] = true;
      // Memory is not followed, so the addresses of loads are not needed.
      const Instruction& statement = function.body[writer];
      if (has(info(statement.op).flags, Flag::ReadsMemory)) continue;
      analysis::for_each_access(function, statement, [&](const RegisterAccess& a) {
        if (!a.write) need(index.find(a.reg));
      });
    }
  }
}

KnownValues::KnownValues(const Module& module, const Function& function,
                         const analysis::RegisterIndex& index, const NeededRegisters& needed,
                         const KnownLaunch& launch, std::optional<std::uint32_t> only_thread)
    : module_(module),
      function_(function),
      index_(index),
      needed_(needed),
      launch_(launch),
      first_(only_thread.value_or(0)),
      count_(only_thread ? 1 : launch.launch.threads()) {
  const std::size_t cells = std::size_t{needed.count} * count_;
  fits_ = cells <= kMaxCells;
  if (!fits_) return;
  values_.assign(cells, 0);
  marks_.assign(cells, Mark::Unknown);
}

std::size_t KnownValues::first_cell(Register reg) const {
  const std::uint32_t at = index_.find(reg);
  if (at == kNone || needed_.slots[at] == kNone) return kNoCell;
  return std::size_t{needed_.slots[at]} * count_;
}

Value KnownValues::register_value(Register reg, std::uint32_t thread) const {
  const std::size_t first = first_cell(reg);
  return first == kNoCell ? Value{} : get(first, thread);
}

void KnownValues::write(Register reg, std::uint32_t thread, Value value) {
  const std::size_t first = first_cell(reg);
  if (first != kNoCell) set(first, thread, value);
}

Value KnownValues::of(const Operand& operand, std::uint32_t thread) const {
  switch (operand.kind) {
    case OperandKind::Integer:
      return {operand.value, Mark::Exact};
    case OperandKind::Register: {
      if (operand.component != 0) return {};
      Value value = register_value(operand.as_register(), thread);
      if (operand.negated) value.bits = value.bits == 0 ? 1 : 0;
      return value;
    }
    case OperandKind::Special:
      return special(operand, thread);
    case OperandKind::Symbol:
      if (launch_.shared != nullptr) {
        const auto base = launch_.shared->find(operand.id);
        if (base != launch_.shared->end()) return {base->second + operand.value, Mark::Exact};
      }
      return {};
    default:
      return {};
  }
}

Value KnownValues::special(const Operand& operand, std::uint32_t thread) const {
  const Launch& launch = launch_.launch;
  const auto reg = static_cast<SpecialRegister>(operand.id);
  if (const auto known = index_value(reg, operand.component, thread, launch.block, true)) {
    const bool of_shape = reg == SpecialRegister::ntid || reg == SpecialRegister::nwarpid;
    return {*known, of_shape && !launch.exact ? Mark::Sampled : Mark::Exact};
  }
  const bool x = operand.component == 1;
  if (reg == SpecialRegister::ctaid) return {x ? launch.ctaid : 0, Mark::Sampled};
  if (reg == SpecialRegister::nctaid && launch_.grid) return {x ? 4u : 1u, Mark::Sampled};
  return {};
}

Value KnownValues::holds(const Guard& guard, std::uint32_t thread) const {
  if (!guard.present()) return {1, Mark::Exact};
  Value value = register_value(guard.predicate, thread);
  value.bits = (value.bits != 0) != guard.negated ? 1 : 0;
  return value;
}

/// What a load of a kernel's parameter gives; nothing for other statements.
std::optional<Value> KnownValues::parameter(const Instruction& statement) const {
  if (statement.op != Op::ld || space_of(statement.get(Field::Space)) != Space::Param) return {};
  if (!function_.entry || statement.has(Field::Vector)) return {};
  const TypeKind type = kind(statement.type());
  if (type == TypeKind::Float || type == TypeKind::Packed) return {};
  for (const Operand& o : function_.operands_of(statement)) {
    if (o.kind != OperandKind::Memory) continue;
    if (o.base != OperandKind::Symbol || o.id >= module_.symbols.size() ||
        module_.symbols[o.id].kind != SymbolKind::Parameter)
      return {};
    if (!launch_.parameters) return Value{};
    if (launch_.pointer && bits(statement.type()) == 64)
      return Value{*launch_.pointer, Mark::Sampled};
    return Value{low_bits(launch_.launch.parameter, bits(statement.type())), Mark::Sampled};
  }
  return {};
}

/// Looks up the sources and destinations of a statement for all threads.
void KnownValues::look_up(const Instruction& statement, const RegisterRow& row) {
  const auto operands = function_.operands_of(statement);
  for (std::size_t i = 0; i < row.sources(); ++i) {
    Source& source = sources_[i];
    source = {.operand = &operands[row.destinations() + i]};
    const Operand& operand = *source.operand;
    if (const auto constant = row.constant(operand, i)) {
      source.constant = {*constant, Mark::Exact};
      source.operand = nullptr;
    } else if (operand.kind == OperandKind::Register && operand.component == 0) {
      source.first = first_cell(operand.as_register());
      source.negated = operand.negated;
      if (source.first == kNoCell) source.operand = nullptr;  // unknown
    }
  }
  writes_.clear();
  analysis::for_each_access(function_, statement, [&](const RegisterAccess& a) {
    if (!a.write) return;
    const std::size_t first = first_cell(a.reg);
    const bool plain = a.component == 0 && operands[a.operand].kind == OperandKind::Register;
    if (first != kNoCell) writes_.push_back({first, plain ? a.operand : kMaxOperands});
  });
}

Value KnownValues::source(const Source& source, std::uint32_t thread) const {
  if (source.operand == nullptr) return source.constant;
  if (source.first == kNoCell) return of(*source.operand, thread);
  Value value = get(source.first, thread);
  if (source.negated) value.bits = value.bits == 0 ? 1 : 0;
  return value;
}

Value KnownValues::computed(const RegisterRow& row, std::uint32_t thread, Mark guard,
                            Value& second) const {
  std::array<Value, ScalarRow::kMaxSources> sources;
  Mark mark = guard;
  for (std::size_t i = 0; i < row.sources(); ++i) {
    sources[i] = source(sources_[i], thread);
    if (sources[i].mark != Mark::Unknown) mark = std::max(mark, sources[i].mark);
  }
  const auto results = row(std::span(sources).first(row.sources()));
  if (!results) return {};
  second = {(*results)[1], mark};
  return {(*results)[0], mark};
}

void KnownValues::execute(std::uint32_t number, const Threads& threads, const Threads& left) {
  const Instruction& statement = function_.body[number];
  const auto operands = function_.operands_of(statement);
  if (statement.op == Op::vote_sync || statement.op == Op::vote_sync_ballot) {
    if (vote(statement, threads, left)) return;
  }
  const RegisterRow row(function_, statement);
  look_up(statement, row);
  // The shared window's addresses are taken as generic addresses too.
  const bool address = launch_.shared != nullptr && operands.size() == 2 &&
                       (statement.op == Op::cvta || statement.op == Op::cvta_to);
  const std::optional<Value> loaded = parameter(statement);
  for_each(threads, [&](std::uint32_t t) {
    const Value guard = holds(statement.guard, t);
    if (guard.mark != Mark::Unknown && guard.bits == 0) {
      // The guard decided that the old values stay.
      for (const Write& to : writes_) {
        Value old = get(to.first, t);
        old.mark = std::max(old.mark, guard.mark);
        set(to.first, t, old);
      }
      return;
    }
    std::array<Value, 2> results;
    if (guard.mark == Mark::Unknown) {
      // Either the old value or the new one.
    } else if (loaded) {
      results[0] = *loaded;
    } else if (address) {
      results[0] = of(operands[1], t);
    } else if (row) {
      results[0] = computed(row, t, guard.mark, results[1]);
    }
    for (const Write& to : writes_)
      set(to.first, t, to.result < results.size() ? results[to.result] : Value{});
  });
}

/// A vote of all lanes in its mask.
bool KnownValues::vote(const Instruction& statement, const Threads& threads, const Threads& left) {
  const auto operands = function_.operands_of(statement);
  if (count_ != launch_.launch.threads() || statement.guard.present() || operands.size() != 3 ||
      operands[0].kind != OperandKind::Register)
    return false;
  for (std::uint32_t first = 0; first < count_; first += 32) {
    std::uint32_t named = 0, there = 0, set = 0;
    Mark mark = Mark::Exact;
    bool same_mask = true;
    for (std::uint32_t t = first; t < std::min(first + 32, count_); ++t) {
      if (!threads[t]) continue;
      const Value mask = of(operands[2], t);
      const Value own = of(operands[1], t);
      mark = std::max({mark, mask.mark, own.mark});
      same_mask = same_mask && (there == 0 || named == static_cast<std::uint32_t>(mask.bits));
      named = static_cast<std::uint32_t>(mask.bits);
      there |= 1u << (t - first);
      if (own.bits != 0) set |= 1u << (t - first);
    }
    if (there == 0) continue;
    std::uint32_t live = 0;
    for (std::uint32_t t = first; t < std::min(first + 32, count_); ++t) {
      if (!left[t]) live |= 1u << (t - first);
    }
    Value result{0, (named & live) == there && same_mask ? mark : Mark::Unknown};
    const Modifier mode = statement.get(Field::VoteMode);
    if (mode == Modifier::ballot || statement.op == Op::vote_sync_ballot) result.bits = set;
    if (mode == Modifier::all) result.bits = set == there;
    if (mode == Modifier::any) result.bits = set != 0;
    if (mode == Modifier::uni) result.bits = set == 0 || set == there;
    for (std::uint32_t t = first; t < std::min(first + 32, count_); ++t) {
      if (threads[t]) write(operands[0].as_register(), t, result);
    }
  }
  return true;
}

void KnownValues::forget(std::uint32_t statement, const Threads& threads) {
  analysis::for_each_access(function_, function_.body[statement], [&](const RegisterAccess& a) {
    if (a.write) for_each(threads, [&](std::uint32_t t) { write(a.reg, t, {}); });
  });
}

std::optional<std::uint64_t> index_value(SpecialRegister reg, unsigned component,
                                         std::uint32_t thread,
                                         const std::array<std::uint32_t, 3>& block,
                                         bool shape_known) {
  const std::uint32_t lane = thread % 32;
  switch (reg) {
    case SpecialRegister::tid:
      if (component == 4) return 0;
      if (component == 1) return thread % block[0];
      if (!shape_known) return std::nullopt;
      if (component == 2) return thread / block[0] % block[1];
      if (component == 3) return thread / block[0] / block[1];
      return std::nullopt;
    case SpecialRegister::ntid:
      if (!shape_known) return std::nullopt;
      if (component == 4) return 1;
      return component >= 1 && component <= 3 ? std::optional<std::uint64_t>(block[component - 1])
                                              : std::nullopt;
    case SpecialRegister::laneid:
      if (!shape_known) return std::nullopt;
      return lane;
    case SpecialRegister::warpid:
      if (!shape_known) return std::nullopt;
      return thread / 32;
    case SpecialRegister::lanemask_eq:
      return shape_known ? std::optional<std::uint64_t>(1u << lane) : std::nullopt;
    case SpecialRegister::lanemask_lt:
      return shape_known ? std::optional<std::uint64_t>((1u << lane) - 1) : std::nullopt;
    case SpecialRegister::lanemask_le:
      return shape_known ? std::optional<std::uint64_t>((2u << lane) - 1) : std::nullopt;
    case SpecialRegister::lanemask_gt:
      return shape_known ? std::optional<std::uint64_t>(~((2u << lane) - 1)) : std::nullopt;
    case SpecialRegister::lanemask_ge:
      return shape_known ? std::optional<std::uint64_t>(~((1u << lane) - 1)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace ptxgen::inline v0::gates
