// src/builder/control.cpp - labels, barriers, warp operations, any instruction, raw PTX
#include "ptxgen/builder/control.hpp"

#include <cstdio>
#include <utility>

#include "builder/rows.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"

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

constexpr std::size_t kLongestVector = 64;
constexpr unsigned kBarriers = 16;
constexpr unsigned kWarp = 32;

Argument number(unsigned value, SourceLocation site) {
  return {nullptr, ptx::Operand::integer(value), site};
}

void check_barrier(unsigned id, unsigned threads, bool counted, std::string& problem) {
  if (id >= kBarriers) {
    problem = "barrier " + std::to_string(id) + " does not exist: a block has barriers 0 to 15";
  } else if (counted && (threads == 0 || threads % kWarp != 0)) {
    problem = "a barrier counts whole warps: " + std::to_string(threads) +
              " threads is no multiple of 32";
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
  Words words;
  if (scope == Scope::gpu) {
    words.add(ptx::Modifier::gl);
  } else {
    words.add(scope);
  }
  effect({ptx::Op::membar, words}, {}, site);
}
void Control::fence(Order order, Scope scope, Site site) {
  Words words;
  words.add(order);
  words.add(scope);
  effect({ptx::Op::fence, words}, {}, site);
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
        fail("bad-operand", "a vector of more than 64 elements", site);
      }
      std::array<ptx::Operand, kLongestVector> elements;
      for (std::size_t i = 0; i < operand.count_; ++i) elements[i] = lower(operand.elements_[i]);
      return pool_vector({elements.data(), operand.count_});
    }
  }
  out.joined = operand.argument_.operand.joined;
  return out;
}

void Control::emit(ptx::Op op, std::span<const ptx::Modifier> words,
                   std::span<const Operand> operands, Site site) {
  if (operands.size() > ptx::kMaxOperands || words.size() > ptx::kMaxModifiers) {
    fail("bad-operand", "no instruction has so many operands or words", site);
  }
  Transaction transaction(*this);
  std::array<ptx::Operand, ptx::kMaxOperands> lowered;
  std::size_t count = 0;
  for (const Operand& o : operands) lowered[count++] = lower(o);
  // Registers of one width are alike in PTX; here a u32 does not pass for an f32.
  Form form{op, {}};
  for (const ptx::Modifier word : words) form.words.add(word);
  ptx::Instruction statement;
  std::array<const ptx::OperandSpec*, ptx::kMaxOperands> specs{};
  if (fit_row(form, {lowered.data(), count}, true, statement, &specs)) {
    for (std::size_t i = 0; i < count; ++i) {
      check_element(operands[i], ptx::operand_type(statement, *specs[i]), specs[i]->relaxed, i);
    }
  }
  append(form, {lowered.data(), count}, site, true);
  transaction.keep();
}

void Control::check_element(const Operand& operand, ptx::Type wanted, bool relaxed,
                            std::size_t place) {
  if (operand.kind_ == Operand::Kind::Vector) {
    for (std::size_t i = 0; i < operand.count_; ++i) {
      check_element(operand.elements_[i], wanted, relaxed, place);
    }
    return;
  }
  const ptx::Type given = operand.element_;
  if (given == ptx::Type::none || wanted == ptx::Type::none) return;
  const auto family = [](ptx::Type type) {
    const ptx::TypeKind kind = ptx::kind(type);
    return kind == ptx::TypeKind::Signed   ? ptx::TypeKind::Unsigned
           : kind == ptx::TypeKind::Packed ? ptx::TypeKind::Bits
                                           : kind;
  };
  const bool bits = family(given) == ptx::TypeKind::Bits || family(wanted) == ptx::TypeKind::Bits;
  const bool kinds = bits || family(given) == family(wanted);
  const bool widths =
      ptx::bits(given) == ptx::bits(wanted) || (relaxed && ptx::bits(given) > ptx::bits(wanted));
  if (!kinds || !widths) {
    fail("type-mismatch",
         "operand " + std::to_string(place + 1) + " is " + std::string(ptx::name(given)) +
             ", the instruction takes " + std::string(ptx::name(wanted)) + " there",
         operand.argument_.site);
  }
}

namespace {

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

void Control::raw(std::string_view text, std::initializer_list<Operand> outputs,
                  std::initializer_list<Operand> inputs, Site site) {
  check_open(site);
  if (guard_.present()) {
    fail("bad-operand", "raw PTX cannot stand in guarded(): write the guard into the text", site);
  }
  Transaction transaction(*this);
  std::vector<std::string> names;
  for (const auto& list : {outputs, inputs}) {
    for (const Operand& operand : list) {
      const bool output = names.size() < outputs.size();
      if (output && (operand.kind_ != Operand::Kind::Plain || !operand.argument_.variable)) {
        fail("bad-operand", "an output of raw() is a Var: a Value is computed only once", site);
      }
      names.push_back(text_of(module_, lower(operand)));
    }
  }
  std::vector<bool> used(names.size());
  std::string replaced;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = text[i] == '$' && i + 1 < text.size() && text[i + 1] >= '0' &&
                        text[i + 1] <= '9' && (i == 0 || !is_word(text[i - 1]));
    if (!starts) {
      replaced += text[i];
      continue;
    }
    std::size_t number = 0;
    while (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9' && number < 1000) {
      number = number * 10 + static_cast<std::size_t>(text[++i] - '0');
    }
    if (number >= names.size()) {
      fail("bad-operand",
           "raw PTX names $" + std::to_string(number) + ", but has " +
               std::to_string(names.size()) + " outputs and inputs",
           site);
    }
    used[number] = true;
    replaced += names[number];
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) {
      fail("bad-operand", "raw PTX does not use its operand $" + std::to_string(i), site);
    }
  }
  if (replaced.find(".reg") != std::string::npos) replaced = "{\n" + replaced + "\n}";

  ptx::Function& f = function();
  const std::size_t first = f.body.size();
  const std::size_t symbols = module_.symbols.size();
  try {
    ptx::parse_into(module_, 0, replaced);
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
  const std::uint32_t number = add_site(site);
  for (std::size_t i = first; i < f.body.size(); ++i) {
    f.body[i].site = number;
    f.body[i].line = 0;
    if (f.body[i].kind != ptx::StatementKind::Instruction) continue;
    ptx::InstructionFault fault = ptx::check_operands(module_, f, f.body[i]);
    if (fault.rule.empty()) fault = ptx::check_target(f, f.body[i], target_name_, {255, 255});
    if (!fault.rule.empty()) fail(fault.rule, std::move(fault.message), site);
  }
  transaction.keep();
}

}  // namespace detail

}  // namespace ptxgen::inline v0
