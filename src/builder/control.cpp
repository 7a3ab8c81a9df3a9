// src/builder/control.cpp - labels, barriers, warp operations, any instruction, raw PTX
#include "ptxgen/builder/control.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "builder/rows.hpp"
#include "ptx/row_shape.hpp"
#include "ptxgen/ptx/operand_specs.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

Operand::Operand(const Vec& elements)
    : kind_(Kind::Vector),
      elements_(elements.elements_.data()),
      count_(elements.elements_.size()) {}

Operand Operand::sink() {
  Operand operand;
  operand.argument_.operand = ptx::Operand::sink();
  return operand;
}

namespace detail {

namespace {

constexpr std::size_t kLongestVector = 128;  // accumulators of wgmma
constexpr unsigned kBarriers = 16;
constexpr unsigned kWarp = 32;

Argument number(unsigned value, SourceLocation site) {
  return {nullptr, ptx::Operand::integer(value), site};
}

void check_barrier(unsigned id, unsigned threads, bool counted, std::string& problem) {
  if (id >= kBarriers) {
    problem = format_text("barrier {} does not exist: a block has barriers 0 to 15", id);
  } else if (counted && (threads == 0 || threads % kWarp != 0)) {
    problem = format_text("a barrier counts full warps: {} is not a multiple of 32",
                          count_text(threads, "thread"));
  }
}

}  // namespace

void Control::label(Name name) {
  Transaction transaction(*this);
  place_label(named_label(name), name.site);
  transaction.keep();
}
void Control::branch(Name to) {
  Transaction transaction(*this);
  branch_to(named_label(to), to.site);
  transaction.keep();
}
void Control::branch_if(const In<pred>& p, Name to) {
  Transaction transaction(*this);
  branch_to(named_label(to), p, false, to.site);
  transaction.keep();
}
void Control::branch_unless(const In<pred>& p, Name to) {
  Transaction transaction(*this);
  branch_to(named_label(to), p, true, to.site);
  transaction.keep();
}

void Control::bar_sync(unsigned id, Site site) {
  std::string problem;
  check_barrier(id, 0, false, problem);
  if (!problem.empty()) fail("bad-operand", std::move(problem), site);
  effect({ptx::Op::bar_sync, {ptx::Modifier::sync}}, {number(id, site)}, site);
}
void Control::bar_sync(unsigned id, unsigned threads, Site site) {
  std::string problem;
  check_barrier(id, threads, true, problem);
  if (!problem.empty()) fail("bad-operand", std::move(problem), site);
  effect({ptx::Op::bar_sync, {ptx::Modifier::sync}}, {number(id, site), number(threads, site)},
         site);
}
void Control::bar_arrive(unsigned id, unsigned threads, Site site) {
  std::string problem;
  check_barrier(id, threads, true, problem);
  if (!problem.empty()) fail("bad-operand", std::move(problem), site);
  effect({ptx::Op::bar_arrive, {ptx::Modifier::arrive}}, {number(id, site), number(threads, site)},
         site);
}

void Control::membar(Scope scope, Site site) {
  ModifierList modifiers;
  if (scope == Scope::gpu) {
    modifiers.add(ptx::Modifier::gl);
  } else {
    modifiers.add(scope);
  }
  effect({ptx::Op::membar, modifiers}, {}, site);
}
void Control::fence(Order order, Scope scope, Site site) {
  ModifierList modifiers;
  modifiers.add(order);
  modifiers.add(scope);
  effect({ptx::Op::fence, modifiers}, {}, site);
}

Value<u32> Control::activemask(Site site) {
  return {this, result({ptx::Op::activemask, {ptx::Modifier::type_b32}}, u32::kClass, {}, site)};
}

Pred Control::vote(ptx::Modifier mode, const In<pred>& p, const Argument& mask, Site site) {
  return {this, result({ptx::Op::vote_sync, {ptx::Modifier::sync, mode, ptx::Modifier::type_pred}},
                       pred::kClass, {p, mask}, site)};
}

ptx::Register Control::special(ptx::SpecialRegister which, unsigned component,
                               RegisterClass register_class, ptx::Type type, Site site) {
  const ptx::SpecialInfo& row = ptx::info(which);
  if (row.components == 0 ? component != 0 : component >= 4) {
    fail("bad-operand",
         "%" + std::string(row.text) +
             (row.components == 0 ? " has no components" : " has the components x, y, z and w"),
         site);
  }
  if (ptx::bits(row.type) != ptx::bits(type) ||
      (row.type == ptx::Type::pred) != (type == ptx::Type::pred)) {
    fail("type-mismatch",
         "%" + std::string(row.text) + " is " + std::string(ptx::name(row.type)) +
             " and is read as " + std::string(ptx::name(type)),
         site);
  }
  const auto number = static_cast<std::uint8_t>(row.components == 0 ? 0 : component + 1);
  return result({ptx::Op::mov, {ptx::as_modifier(type)}}, register_class,
                {{this, ptx::Operand::special(which, number), site}}, site);
}

ptx::Register Control::joined_into(const Form& form, RegisterClass register_class,
                                   ptx::Register predicate,
                                   std::initializer_list<Argument> arguments, Site site) {
  std::array<ptx::Operand, ptx::kMaxOperands> operands;
  std::size_t count = 2;
  for (const Argument& a : arguments) operands[count++] = use(a);
  operands[1] = use({this, ptx::Operand::reg(predicate), site});
  operands[1].joined = true;
  Transaction transaction(*this);
  const ptx::Register d = new_register(register_class);
  operands[0] = ptx::Operand::reg(d);
  append(form, {operands.data(), count}, site);
  transaction.keep();
  return d;
}

ptx::Operand Control::lower(const Operand& operand) {
  const SourceLocation site = operand.argument_.site;
  ptx::Operand out;
  switch (operand.kind_) {
    case Operand::Kind::Plain:
      out = use(operand.argument_);
      break;
    case Operand::Kind::Memory:
      out = use(address(operand.pointer_, 1, operand.narrow_, site));
      break;
    case Operand::Kind::Label:
      out = ptx::Operand::label(named_label({operand.label_, site}));
      break;
    case Operand::Kind::Vector: {
      if (operand.count_ > kLongestVector) {
        fail("bad-operand", "a vector of more than 128 elements", site);
      }
      std::array<ptx::Operand, kLongestVector> elements;
      for (std::size_t i = 0; i < operand.count_; ++i) elements[i] = lower(operand.elements_[i]);
      out = pool_vector({elements.data(), operand.count_});
      break;
    }
  }
  out.joined = operand.argument_.operand.joined;
  return out;
}

void Control::emit(ptx::Op op, std::span<const ptx::Modifier> modifiers,
                   std::span<const Operand> operands, Site site) {
  if (operands.size() > ptx::kMaxOperands || modifiers.size() > ptx::kMaxModifiers) {
    fail("bad-operand", "no instruction has so many operands or modifiers", site);
  }
  Transaction transaction(*this);
  std::array<ptx::Operand, ptx::kMaxOperands> lowered;
  std::size_t count = 0;
  for (const Operand& o : operands) lowered[count++] = lower(o);
  // Registers of one width are alike in PTX; here a u32 does not pass for an f32.
  Form form{op, {}};
  for (const ptx::Modifier modifier : modifiers) form.modifiers.add(modifier);
  ptx::Instruction statement;
  std::array<const ptx::OperandSpec*, ptx::kMaxOperands> specs{};
  if (fit_row(form, {lowered.data(), count}, true, statement, &specs)) {
    for (std::size_t i = 0; i < count; ++i) {
      const Operand& operand = operands[i];
      if (specs[i]->role == ptx::OperandRole::Memory && operand.kind_ == Operand::Kind::Memory) {
        check_space(statement, *specs[i], operand.space_, i, operand.argument_.site);
      } else {
        check_element(operand, ptx::operand_type(statement, *specs[i]), specs[i]->relaxed, i);
      }
    }
  }
  append(form, {lowered.data(), count}, site, true);
  transaction.keep();
}

void Control::check_element(const Operand& operand, ptx::Type expected, bool relaxed,
                            std::size_t place) {
  if (operand.kind_ == Operand::Kind::Vector) {
    for (std::size_t i = 0; i < operand.count_; ++i) {
      check_element(operand.elements_[i], expected, relaxed, place);
    }
    return;
  }
  const ptx::Type actual = operand.element_;
  if (actual == ptx::Type::none || expected == ptx::Type::none) return;
  const auto family = [](ptx::Type type) {
    const ptx::TypeKind kind = ptx::kind(type);
    return kind == ptx::TypeKind::Signed   ? ptx::TypeKind::Unsigned
           : kind == ptx::TypeKind::Packed ? ptx::TypeKind::Bits
                                           : kind;
  };
  const bool bits =
      family(actual) == ptx::TypeKind::Bits || family(expected) == ptx::TypeKind::Bits;
  const bool kinds = bits || family(actual) == family(expected);
  const bool widths = ptx::bits(actual) == ptx::bits(expected) ||
                      (relaxed && ptx::bits(actual) > ptx::bits(expected));
  if (!kinds || !widths) {
    fail("type-mismatch",
         format_text("operand {} is {}, the instruction expects {}", place + 1, ptx::name(actual),
                     ptx::name(expected)),
         operand.argument_.site);
  }
}

namespace {

std::string opcode_of(const ptx::Instruction& statement) {
  std::string text(ptx::info(statement.op).mnemonic);
  for (const ptx::Modifier modifier : statement.modifiers) {
    if (modifier != ptx::Modifier::none) text += "." + std::string(ptx::name(modifier));
  }
  return text;
}

// "shared memory", "any memory" of a generic pointer.
std::string memory_of(ptx::Modifier space) {
  return space == ptx::Modifier::none ? "any memory (it is generic)"
                                      : std::string(ptx::name(space)) + " memory";
}

bool row_allows(const ptx::OpInfo& row, ptx::Field field, ptx::Modifier modifier) {
  for (const ptx::ModifierSlot& slot : row.modifier_slots()) {
    if (slot.field != field) continue;
    if (modifier == ptx::Modifier::none) return slot.optional;
    return ptx::allows(slot, modifier);
  }
  return modifier == ptx::Modifier::none;
}

// The cure if an opcode expects an address in `expected` and gets one in `actual`.
std::string space_cure(const ptx::Instruction& statement, ptx::Field field, ptx::Modifier expected,
                       ptx::Modifier actual) {
  const bool admitted = row_allows(ptx::info(statement.op), field, actual);
  std::string modifier;
  if (admitted) {
    if (actual == ptx::Modifier::none) {
      modifier = format_text("omit the modifier .{}", ptx::name(expected));
    } else if (expected == ptx::Modifier::none) {
      modifier = format_text("write the modifier .{}", ptx::name(actual));
    } else {
      modifier = format_text("write the modifier .{} instead of .{}", ptx::name(actual),
                             ptx::name(expected));
    }
  }
  std::string pass;
  if (expected == ptx::Modifier::none) {
    pass = "pass cvta(pointer), its generic address";
  } else if (actual == ptx::Modifier::none) {
    pass = "pass the pointer that cvta_to<>() returns";
  } else {
    pass = "pass a pointer into " + memory_of(expected);
  }
  return modifier.empty() ? pass : modifier + ", or " + pass;
}

std::string text_of(const ptx::Module& module, const ptx::Operand& operand) {
  char digits[24];
  const auto hex = [&](const char* format, unsigned long long value) {
    std::snprintf(digits, sizeof digits, format, value);
    return std::string(digits);
  };
  const ptx::Function& f = module.functions[0];
  switch (operand.kind) {
    case ptx::OperandKind::Register:
      return (operand.negated ? "!" : "") + ptx::name_of(module, f, operand.as_register());
    case ptx::OperandKind::Integer:
      return operand.is_unsigned ? std::to_string(operand.value) + "U"
                                 : std::to_string(operand.offset());
    case ptx::OperandKind::Float32:
      return hex("0f%08llX", operand.value);
    case ptx::OperandKind::Float64:
      return hex("0d%016llX", operand.value);
    case ptx::OperandKind::Memory:
      return "[" + ptx::name_of(module, f, operand.as_register()) + "+" +
             std::to_string(operand.offset()) + "]";
    case ptx::OperandKind::Label:
      return std::string(module.names[f.labels[operand.id].name]);
    case ptx::OperandKind::Vector: {
      std::string text = "{";
      for (const ptx::Operand& element : f.elements(operand)) {
        text += (text.size() == 1 ? "" : ", ") + text_of(module, element);
      }
      return text + "}";
    }
    default:
      return "_";
  }
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%';
}

}  // namespace

void Control::check_space(const ptx::Instruction& statement, const ptx::OperandSpec& spec,
                          ptx::Modifier actual, std::size_t place, Site site) {
  const ptx::Field field = ptx::address_field(ptx::info(statement.op), spec);
  const ptx::Modifier expected = statement.get(field);
  // Addresses of a block's own shared memory are addresses of its cluster's as well.
  const bool fits = expected == ptx::Modifier::shared_cta ? actual == ptx::Modifier::shared
                    : expected == ptx::Modifier::shared_cluster
                        ? ptx::space_of(actual) == ptx::Space::Shared
                        : expected == actual;
  if (fits) return;
  const std::string reading =
      expected == ptx::Modifier::none
          ? "names no state space and reads it as a generic address"
          : format_text("reads it as an address in .{}", ptx::name(expected));
  fail(
      "space-mismatch",
      format_text("operand {} of '{}' is a pointer into {}, but the opcode {}; rule: an address is "
                  "valid in one state space, which the opcode has to name; cure: {}",
                  place + 1, opcode_of(statement), memory_of(actual), reading,
                  space_cure(statement, field, expected, actual)),
      site);
}

struct Control::RawOperands {
  struct Pointer {
    ptx::Operand operand;
    ptx::Modifier space;
    SourceLocation site;
  };
  std::vector<std::string> names;
  std::vector<Pointer> pointers;
};

Control::RawOperands Control::raw_operands(std::initializer_list<Operand> outputs,
                                           std::initializer_list<Operand> inputs, Site site) {
  RawOperands operands;
  for (const auto& list : {outputs, inputs}) {
    for (const Operand& operand : list) {
      const bool output = operands.names.size() < outputs.size();
      if (output && (operand.kind_ != Operand::Kind::Plain || !operand.argument_.variable)) {
        fail("bad-operand", "an output of raw() is a Var: a Value is computed only once", site);
      }
      const ptx::Operand lowered = lower(operand);
      operands.names.push_back(text_of(module_, lowered));
      if (operand.kind_ == Operand::Kind::Memory) {
        operands.pointers.push_back({lowered, operand.space_, operand.argument_.site});
      }
    }
  }
  return operands;
}

std::string Control::replaced(std::string_view text, const RawOperands& operands, Site site) {
  const std::vector<std::string>& names = operands.names;
  std::vector<bool> used(names.size());
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = text[i] == '$' && i + 1 < text.size() && text[i + 1] >= '0' &&
                        text[i + 1] <= '9' && (i == 0 || !is_word(text[i - 1]));
    if (!starts) {
      result += text[i];
      continue;
    }
    std::size_t number = 0;
    while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9' && number < 1000) {
      number = number * 10 + static_cast<std::size_t>(text[++i] - '0');
    }
    if (number >= names.size()) {
      fail("bad-operand",
           format_text("raw PTX uses ${}, but the call has {}, outputs and inputs together", number,
                       count_text(names.size(), "operand")),
           site);
    }
    used[number] = true;
    result += names[number];
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) {
      fail("bad-operand", format_text("raw PTX does not use its operand ${}", i), site);
    }
  }
  if (result.find(".reg") != std::string::npos) result = "{\n" + result + "\n}";
  return result;
}

void Control::insert(std::string_view text, std::initializer_list<Operand> outputs,
                     std::initializer_list<Operand> inputs, bool unknown, Site site) {
  check_open(site);
  if (guard_.present()) {
    fail("bad-operand", "raw PTX is not allowed in guarded(): write the guard into the text", site);
  }
  Transaction transaction(*this);
  const RawOperands operands = raw_operands(outputs, inputs, site);
  const std::string statements = replaced(text, operands, site);
  ptx::Function& f = function();
  const std::size_t first = f.body.size();
  const std::size_t symbols = module_.symbols.size();
  try {
    ptx::parse_into(module_, 0, statements);
  } catch (Error& error) {
    error.stage = Stage::Build;
    error.site = site;
    fail(error);
  }
  label_sites_.resize(f.labels.size(), site);
  for (std::size_t i = symbols; i < module_.symbols.size(); ++i) {
    if (module_.symbols[i].kind == ptx::SymbolKind::Unresolved) {
      fail("undefined-symbol",
           "raw PTX names '" + std::string(module_.names[module_.symbols[i].name]) +
               "', which is declared nowhere",
           site);
    }
  }
  check_inserted(first, operands, unknown, site);
  transaction.keep();
}

void Control::check_inserted(std::size_t first, const RawOperands& operands, bool unknown,
                             Site site) {
  ptx::Function& f = function();
  const std::uint32_t number = add_site(site);
  for (std::size_t i = first; i < f.body.size(); ++i) {
    ptx::Instruction& statement = f.body[i];
    statement.site = number;
    statement.line = 0;
    if (statement.kind == ptx::StatementKind::Unknown && !unknown) {
      fail("unknown-instruction",
           "raw PTX has an instruction that the op table lacks: '" +
               std::string(module_.text(statement.text)) +
               "'; rule: raw() takes what the table can check; cure: mend the spelling, or use "
               "raw_unchecked() for an instruction newer than the table",
           site);
    }
    if (statement.kind != ptx::StatementKind::Instruction) continue;
    ptx::InstructionFault fault = ptx::check_operands(module_, f, statement);
    if (fault.rule.empty()) fault = ptx::check_target(f, statement, target_name_, {255, 255});
    if (!fault.rule.empty()) fail(fault.rule, std::move(fault.message), site);
    const ptx::OperandSpecs specs(f, statement);
    for (std::size_t n = 0; n < statement.operand_count; ++n) {
      if (specs[n] == nullptr || specs[n]->role != ptx::OperandRole::Memory) continue;
      const ptx::Operand& address = f.operands_of(statement)[n];
      for (const RawOperands::Pointer& pointer : operands.pointers) {
        if (address.base == ptx::OperandKind::Register && address.id == pointer.operand.id &&
            address.index == pointer.operand.index && address.value == pointer.operand.value) {
          check_space(statement, *specs[n], pointer.space, n, pointer.site);
        }
      }
    }
  }
}

}  // namespace detail

}  // namespace ptxgen::inline v0
