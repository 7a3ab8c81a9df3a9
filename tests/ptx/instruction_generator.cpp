// tests/ptx/instruction_generator.cpp - random instructions from the rows of the op table
#include <algorithm>
#include <bit>

#include "ptx/function_generator.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::test {

using namespace ptx;

namespace {

bool is_integer(Type type) {
  const TypeKind k = kind(type);
  return k == TypeKind::Bits || k == TypeKind::Unsigned || k == TypeKind::Signed;
}

// "Operand type checking rules" of the PTX ISA, written down apart from the verifier's.
bool holds(Type reg, Type wanted, bool relaxed) {
  if (reg == Type::pred || wanted == Type::pred) return reg == wanted;
  if (wanted == Type::none) return true;
  if (relaxed && is_integer(wanted) && is_integer(reg) && bits(reg) > bits(wanted)) {
    return bits(reg) <= 64;
  }
  if (bits(reg) != bits(wanted)) return false;
  if (kind(wanted) == TypeKind::Bits) return true;
  if (is_integer(wanted)) return is_integer(reg);
  if (wanted == Type::f16 || wanted == Type::f32 || wanted == Type::f64 || wanted == Type::f16x2) {
    return reg == wanted || kind(reg) == TypeKind::Bits;
  }
  return kind(reg) == TypeKind::Bits;
}

bool contains(const Instruction& instruction, Modifier word) {
  return std::find(instruction.modifiers.begin(), instruction.modifiers.end(), word) !=
         instruction.modifiers.end();
}

bool all_words(const Instruction& instruction, const Need& need) {
  const auto words = condition(need);
  return std::all_of(words.begin(), words.end(),
                     [&](Modifier word) { return contains(instruction, word); });
}

}  // namespace

std::vector<Op> free_rows(TargetName target) {
  constexpr std::string_view kGroups[] = {"Integer arithmetic",
                                          "Extended-precision integer arithmetic",
                                          "Floating-point arithmetic",
                                          "Comparison and selection",
                                          "Logic and shifts",
                                          "Moves and permutation",
                                          "Conversion",
                                          "Warp operations"};
  std::vector<Op> rows;
  for (const OpInfo& row : op_table()) {
    if (std::find(std::begin(kGroups), std::end(kGroups), row.group) == std::end(kGroups)) continue;
    // The forms without .sync are refused from PTX 6.4 on.
    if (row.op == Op::shfl || row.op == Op::vote || row.op == Op::vote_ballot) continue;
    bool offered = false;
    for (const Need& need : needs(row)) {
      offered = offered || (need.condition_count == 0 && offers(target, need.requirement));
    }
    if (offered) rows.push_back(row.op);
  }
  return rows;
}

Operand random_integer(Dice& dice, unsigned width, bool is_signed) {
  const std::uint64_t mask = width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  std::uint64_t value = dice.chance(60) ? dice.below(65) : dice.bits() & mask;
  if (dice.chance(10)) value = mask;
  if (dice.chance(5)) value = (mask >> 1) + 1;
  if (!is_signed) return Operand::unsigned_integer(value & mask);
  // Sign extended from the width, so that the text has its minus sign.
  const unsigned shift = 64 - std::min(width, 64u);
  return Operand::integer(static_cast<std::int64_t>(value << shift) >> shift);
}

std::uint32_t random_f32(Dice& dice) {
  constexpr float kNice[] = {0.0f, -0.0f, 1.0f, -1.5f, 2.0f, 0.1f, 1e30f, 1e-40f};
  if (dice.chance(60)) return std::bit_cast<std::uint32_t>(dice.pick(kNice));
  return static_cast<std::uint32_t>(dice.bits());
}

std::uint64_t random_f64(Dice& dice) {
  constexpr double kNice[] = {0.0, -0.0, 1.0, -1.5, 2.0, 0.1, 1e300, 1e-310};
  if (dice.chance(60)) return std::bit_cast<std::uint64_t>(dice.pick(kNice));
  return dice.bits();
}

// Statements ----------------------------------------------------------------------------------

std::uint32_t FunctionGenerator::pool(const std::vector<Operand>& elements) {
  auto& operands = body().operands;
  const auto first = static_cast<std::uint32_t>(operands.size());
  operands.insert(operands.end(), elements.begin(), elements.end());
  return first;
}

Operand FunctionGenerator::group(OperandKind kind, const std::vector<Operand>& elements) {
  Operand o;
  o.kind = kind;
  o.id = pool(elements);
  o.index = static_cast<std::uint32_t>(elements.size());
  return o;
}

Instruction& FunctionGenerator::add(StatementKind kind, const std::vector<Operand>& operands) {
  Instruction s;
  s.kind = kind;
  add(s, operands);
  return body().body.back();
}

void FunctionGenerator::add(Instruction instruction, const std::vector<Operand>& operands) {
  instruction.first_operand = pool(operands);
  instruction.operand_count = static_cast<decltype(instruction.operand_count)>(operands.size());
  body().body.push_back(instruction);
}

// A row with its fixed words in place.
Instruction FunctionGenerator::row(Op op) {
  Instruction s;
  s.op = op;
  const OpInfo& table_row = info(op);
  for (std::size_t i = 0; i < table_row.slot_count; ++i) {
    if (!table_row.slots[i].optional)
      s.modifiers[i] = ptx::allowed_modifiers(table_row.slots[i])[0];
  }
  return s;
}

void FunctionGenerator::maybe_guard(Instruction& instruction, unsigned percent) {
  Operand predicate;
  if (!dice_.chance(percent) || !choose_register(Type::pred, false, predicate, false)) return;
  instruction.guard.predicate = predicate.as_register();
  instruction.guard.negated = dice_.chance(30);
}

// Words ---------------------------------------------------------------------------------------

bool FunctionGenerator::words(Instruction& s) {
  const OpInfo& table_row = info(s.op);
  for (std::size_t i = 0; i < table_row.slot_count; ++i) {
    const ModifierSlot& slot = table_row.slots[i];
    if (slot.with != Field::Literal) continue;
    if (!slot.optional || dice_.chance(35))
      s.modifiers[i] = dice_.pick(ptx::allowed_modifiers(slot));
  }
  for (std::size_t i = 0; i < table_row.slot_count; ++i) {
    const ModifierSlot& slot = table_row.slots[i];
    if (slot.with != Field::Literal && s.has(slot.with))
      s.modifiers[i] = dice_.pick(ptx::allowed_modifiers(slot));
  }
  for (const Need& need : needs(table_row)) {
    if (need.requirement.never() && all_words(s, need)) return false;
  }
  return check_target(body(), s, around_.target, {255, 255}).rule.empty();
}

bool FunctionGenerator::table_instruction() {
  for (unsigned tries = 0; tries < 20; ++tries) {
    Instruction s;
    s.op = dice_.pick(around_.rows);
    if (!words(s)) continue;
    const OpInfo& table_row = info(s.op);
    std::vector<Operand> operands;
    bool possible = true;
    bool sink_used = false;
    for (std::size_t i = 0; i < table_row.operand_count && possible; ++i) {
      const OperandSpec& spec = table_row.operands[i];
      if (spec.with != Field::Literal) {
        if (!s.has(spec.with)) continue;
      } else if (spec.optional && dice_.chance(50)) {
        // Those after it are optional too, or can be told apart.
        continue;
      }
      Operand o;
      const bool alone = spec.sink && spec.vector == 0 && !spec.vector_from_slot;
      if (alone && !sink_used && dice_.chance(10)) {
        o = Operand::sink();
        sink_used = true;
      } else {
        possible = operand(spec, s, o);
      }
      o.joined = spec.joined;
      operands.push_back(o);
    }
    if (!possible) continue;
    // `d|p` without its second half may not be `_` alone.
    if (sink_used && (operands.size() < 2 || !operands[1].joined)) continue;
    // ptxas 13.0 crashes over a guarded `setp` into `_|p`.
    if (!sink_used) maybe_guard(s, 12);
    add(s, operands);
    return true;
  }
  return false;
}

// Operands ------------------------------------------------------------------------------------

bool FunctionGenerator::choose_register(Type wanted, bool relaxed, Operand& out,
                                        bool allow_component, Type like) {
  std::vector<std::uint32_t> fitting;
  const Function& f = body();
  for (const Visible& entry : visible_) {
    const RegisterDecl& decl = f.registers[entry.decl];
    if (entry.hidden || (decl.vector > 1 && !allow_component)) continue;
    if (like != Type::none && decl.type != like) continue;
    if (holds(decl.type, wanted, relaxed)) fitting.push_back(entry.decl);
  }
  if (fitting.empty()) return false;
  const std::uint32_t decl = dice_.pick(fitting);
  const RegisterDecl& chosen = f.registers[decl];
  out = Operand::reg({{decl}, chosen.numbered ? dice_.below(chosen.count) : 0});
  if (chosen.vector > 1) out.component = static_cast<std::uint8_t>(dice_.between(1, chosen.vector));
  return true;
}

bool FunctionGenerator::constant(Type wanted, Op op, Operand& out) {
  switch (kind(wanted)) {
    case TypeKind::Unsigned:
    case TypeKind::Signed:
    case TypeKind::Bits: {
      if (bits(wanted) < 16 || bits(wanted) > 64) return false;
      out = random_integer(dice_, bits(wanted), kind(wanted) == TypeKind::Signed);
      if ((op == Op::div || op == Op::rem) && out.value == 0) out = Operand::integer(3);
      return true;
    }
    case TypeKind::Float:
      out.kind = wanted == Type::f32 ? OperandKind::Float32 : OperandKind::Float64;
      if (wanted == Type::f32) out.value = random_f32(dice_);
      if (wanted == Type::f64) out.value = random_f64(dice_);
      return wanted == Type::f32 || wanted == Type::f64;
    default:
      return false;
  }
}

bool FunctionGenerator::scalar(const OperandSpec& spec, Op op, Type wanted, Operand& out,
                               Type like) {
  if (spec.role == OperandRole::Immediate) {
    out = Operand::integer(dice_.below(256));
    return true;
  }
  const bool source = spec.role == OperandRole::Source || spec.role == OperandRole::Value;
  if (source && dice_.chance(20)) {
    // Bit positions and counts have narrow ranges.
    if (spec.type_source == TypeSource::Fixed && is_integer(wanted)) {
      out = Operand::integer(dice_.below(32));
      return true;
    }
    if (constant(wanted, op, out)) return true;
  }
  if (op == Op::mov && spec.role == OperandRole::Value && dice_.chance(40)) {
    if (bits(wanted) == 64 && is_integer(wanted) && dice_.chance(50)) {
      const Place& place = dice_.pick(around_.places);
      if (place.space != Space::Param) {
        out = Operand::symbol(place.symbol, dice_.chance(30) ? dice_.below(64) : 0);
        return true;
      }
    }
    const auto all = special_registers();
    const std::uint32_t number = dice_.below(all.size());
    const SpecialInfo& special = all[number];
    if (bits(special.type) == bits(wanted) && (is_integer(wanted) || wanted == Type::pred) &&
        offers(around_.target, special.requirement)) {
      out = Operand::special(static_cast<SpecialRegister>(number),
                             special.components == 0
                                 ? std::uint8_t{0}
                                 : static_cast<std::uint8_t>(dice_.between(1, 3)));
      return true;
    }
  }
  out = {};
  // ptxas reads components of vectors only where one instruction of the machine follows.
  const bool component = op == Op::mov || op == Op::add || op == Op::add_f32;
  // The random bits of cvt.rs are .b32 and nothing else for it.
  if (spec.role == OperandRole::RegisterSource && spec.type_source == TypeSource::Fixed)
    like = wanted;
  if (!choose_register(wanted, spec.relaxed, out, component, like)) return false;
  if (spec.role == OperandRole::Predicate) out.negated = dice_.chance(25);
  return true;
}

bool FunctionGenerator::operand(const OperandSpec& spec, const Instruction& instruction,
                                Operand& out) {
  switch (spec.role) {
    case OperandRole::Destination:
    case OperandRole::Source:
    case OperandRole::RegisterSource:
    case OperandRole::Immediate:
    case OperandRole::Value:
    case OperandRole::Predicate:
      break;
    default:
      return false;
  }
  const Type wanted = operand_type(instruction, spec);
  const unsigned count = operand_elements(instruction, spec);
  if (count == 0) return scalar(spec, instruction.op, wanted, out);
  OperandSpec element = spec;
  if (element.role == OperandRole::Source || element.role == OperandRole::Value) {
    element.role = OperandRole::RegisterSource;
  }
  std::vector<Operand> elements;
  const std::uint32_t sink = spec.sink && dice_.chance(20) ? dice_.below(count) : count;
  Type like = Type::none;  // one type for all in braces
  for (std::uint32_t i = 0; i < count; ++i) {
    Operand o = Operand::sink();
    if (i != sink) {
      if (!scalar(element, instruction.op, wanted, o, like)) return false;
      if (o.kind == OperandKind::Register) like = body().type_of(o.as_register());
    }
    elements.push_back(o);
  }
  out = group(OperandKind::Vector, elements);
  return true;
}

// Memory --------------------------------------------------------------------------------------

void FunctionGenerator::memory_instruction() {
  constexpr Type kTypes[] = {Type::b8,  Type::b16, Type::b32, Type::b64, Type::u8,
                             Type::u16, Type::u32, Type::u64, Type::s8,  Type::s16,
                             Type::s32, Type::s64, Type::f32, Type::f64};
  constexpr Modifier kSpaces[] = {Modifier::none,   Modifier::none,  Modifier::global,
                                  Modifier::shared, Modifier::local, Modifier::const_};
  const auto& places = !places_.empty() && dice_.chance(40) ? places_ : around_.places;
  const Place place = dice_.pick(places);
  Modifier space = kSpaces[static_cast<std::size_t>(place.space)];
  const bool store = place.space != Space::Const && dice_.chance(45);
  Instruction s = row(store ? Op::st : Op::ld);
  const Type type = dice_.pick(kTypes);
  unsigned elements = 1;
  if (dice_.chance(20)) elements = dice_.chance(50) ? 2 : 4;
  if (bytes(type) * elements > 16) elements = 1;
  const std::uint32_t access = bytes(type) * elements;
  Operand address;
  Operand base;
  if (dice_.chance(35) && choose_register(Type::b64, false, base, false) &&
      is_integer(body().type_of(base.as_register()))) {
    const auto offset = static_cast<std::int64_t>(dice_.below(64)) - 32;
    address = Operand::memory(base.as_register(), offset * access);
    if (place.space != Space::Const && dice_.chance(30)) space = Modifier::none;
  } else {
    if (access > place.alignment || access > place.bytes) return;
    const std::uint64_t slots = place.bytes / access;
    const auto offset = static_cast<std::int64_t>(dice_.below(slots) * access);
    address = Operand::memory(place.symbol, dice_.chance(30) ? 0 : offset);
  }
  address.zero_offset =
      address.base == OperandKind::Register && address.value == 0 && dice_.chance(50);
  s.set(Field::Space, space);
  s.set(Field::Type, as_modifier(type));
  if (elements > 1) s.set(Field::Vector, elements == 2 ? Modifier::v2 : Modifier::v4);
  if (dice_.chance(15) && space == Modifier::global) {
    s.set(Field::CacheOperator, dice_.chance(50) ? Modifier::cg : Modifier::cs);
  } else if (dice_.chance(10) && !store && space == Modifier::global) {
    s.set(Field::Prefetch, Modifier::L2_128B);
  }
  Operand value;
  if (elements == 1) {
    if (!(store && dice_.chance(20) && constant(type, s.op, value)) &&
        !choose_register(type, true, value, true)) {
      return;
    }
  } else {
    std::vector<Operand> parts;
    for (unsigned i = 0; i < elements; ++i) {
      Operand part;
      const Type like = i == 0 ? Type::none : body().type_of(parts[0].as_register());
      if (!choose_register(type, true, part, false, like)) return;
      parts.push_back(part);
    }
    value = group(OperandKind::Vector, parts);
  }
  maybe_guard(s, 15);
  add(s, store ? std::vector<Operand>{address, value} : std::vector<Operand>{value, address});
}

void FunctionGenerator::atomic_instruction() {
  const Place place = dice_.pick(around_.places);
  if ((place.space != Space::Global && place.space != Space::Shared) || place.alignment < 4 ||
      place.bytes < 4) {
    return;
  }
  Instruction s = row(Op::atom_add);
  s.set(Field::Space, place.space == Space::Global ? Modifier::global : Modifier::shared);
  const Type type = dice_.chance(50) ? Type::u32 : Type::f32;
  s.set(Field::Type, as_modifier(type));
  if (dice_.chance(30)) {
    s.set(Field::Order, dice_.chance(50) ? Modifier::relaxed : Modifier::acq_rel);
    s.set(Field::Scope, dice_.chance(50) ? Modifier::gpu : Modifier::cta);
  }
  Operand d = Operand::sink();
  Operand b;
  if (dice_.chance(80) && !choose_register(type, false, d, false)) return;
  if (!choose_register(type, false, b, false)) return;
  maybe_guard(s, 15);
  add(s, {d, Operand::memory(place.symbol), b});
}

void FunctionGenerator::load_parameters() {
  const std::vector<Variable> parameters = body().parameters;
  for (std::uint32_t i = 0; i < parameters.size(); ++i) {
    const Variable& v = parameters[i];
    if (v.space != Space::Param) continue;
    const SymbolId symbol = add_symbol(module(), v.name, SymbolKind::Parameter, function_, i);
    Operand value;
    if (!choose_register(v.type, true, value, true)) continue;
    Instruction ld = row(Op::ld);
    ld.set(Field::Space, Modifier::param);
    ld.set(Field::Type, as_modifier(v.type));
    const std::uint64_t count = size_in_bytes(v) / bytes(v.type);
    add(ld, {value, Operand::memory(
                        symbol, static_cast<std::int64_t>(dice_.below(count)) * bytes(v.type))});
  }
}

// Every register that is seen from the outermost scope reaches memory, so that an optimising
// assembler has to compute it.
void FunctionGenerator::store_registers() {
  std::int64_t offset = 0;
  for (const Visible& entry : visible_) {
    const RegisterDecl decl = body().registers[entry.decl];
    if (entry.hidden || decl.type == Type::pred || decl.type == Type::b128 || decl.vector > 1)
      continue;
    Operand value = Operand::reg({{entry.decl}, decl.numbered ? dice_.below(decl.count) : 0});
    Instruction st = row(Op::st);
    st.set(Field::Space, Modifier::global);
    st.set(Field::Type, as_modifier(untyped(bits(decl.type))));
    add(st, {Operand::memory(around_.places[0].symbol, offset), value});
    offset += 8;
  }
}

void FunctionGenerator::barrier() {
  Instruction s = row(Op::bar_sync);
  add(s, {Operand::integer(dice_.below(3))});
}

void FunctionGenerator::location() {
  const Module& m = module();
  if (m.files.empty()) return;
  const SourceFile& file = m.files[dice_.below(m.files.size())];
  add(StatementKind::Location,
      {Operand::integer(file.number), Operand::integer(dice_.between(1, 99)),
       Operand::integer(dice_.between(0, 40))});
}

}  // namespace ptxgen::test
