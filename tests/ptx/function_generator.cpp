// tests/ptx/function_generator.cpp - random control flow, scopes and calls
#include "ptx/function_generator.hpp"

#include <algorithm>

namespace ptxgen::test {

using namespace ptx;

namespace {

constexpr std::string_view kLabelNames[] = {"L",    "$L__BB0_", "loop", "done",
                                            "_end", "skip$",    "BB_x", "Lexit"};

struct RegisterStyle {
  std::string_view prefix;
  Type type;
};
// Prefixes end in no digit, so that `%r1` of one is not mistaken for `%r11` of another.
constexpr RegisterStyle kNumbered[] = {
    {"%p", Type::pred},  {"%b", Type::b8},     {"%rs", Type::b16},       {"%rsu", Type::u16},
    {"%rss", Type::s16}, {"%h", Type::f16},    {"%r", Type::b32},        {"%ru", Type::u32},
    {"$s_", Type::s32},  {"%f", Type::f32},    {"_half2_", Type::f16x2}, {"%rd", Type::b64},
    {"%rdu", Type::u64}, {"$long", Type::s64}, {"%fd", Type::f64},       {"%rq", Type::b128},
};
constexpr RegisterStyle kAlone[] = {
    {"done_flag", Type::pred}, {"%acc", Type::f32}, {"$index", Type::u32},
    {"_addr", Type::u64},      {"%r", Type::b32},   {"x_4_y", Type::b16},
};

}  // namespace

SymbolId add_symbol(Module& module, NameId name, SymbolKind kind, std::uint32_t function,
                    std::uint32_t index) {
  Symbol symbol;
  symbol.name = name;
  symbol.kind = kind;
  symbol.function = function;
  symbol.index = index;
  module.symbols.push_back(symbol);
  return {static_cast<std::uint32_t>(module.symbols.size() - 1)};
}

FunctionGenerator::FunctionGenerator(Dice& dice, const Surroundings& around, std::uint32_t function)
    : dice_(dice), around_(around), function_(function) {}

void FunctionGenerator::fill(unsigned count) {
  scopes_.emplace_back();
  // Parameters in registers are declared already.
  for (std::uint32_t i = 0; i < body().registers.size(); ++i) visible_.push_back({i, false});
  for (const RegisterStyle& style : kNumbered) {
    // At least one of each that instructions ask for most; the rest now and then.
    if (style.type == Type::b128 ? dice_.chance(15) : dice_.chance(90)) {
      declare_registers(style.prefix, style.type, dice_.between(1, 6));
    }
  }
  declare_registers("%base", Type::b64, 2);
  declare_registers("%sel", Type::b32, 2);
  declare_registers("%cond", Type::pred, 2);
  declare_some_registers();
  load_parameters();
  statements(count, 0);
  place_open_labels();
  store_registers();
  return_values();
  add(row(body().entry && dice_.chance(20) ? Op::exit : Op::ret), {});
}

void FunctionGenerator::statements(unsigned count, unsigned depth) {
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t choice = dice_.below(100);
    if (choice < 62) {
      table_instruction();
    } else if (choice < 76) {
      memory_instruction();
    } else if (choice < 79) {
      atomic_instruction();
    } else if (choice < 84) {
      branch();
    } else if (choice < 87) {
      place_open_label();
    } else if (choice < 89) {
      if (depth < 4) loop(dice_.between(1, 6), depth + 1);
    } else if (choice < 92) {
      if (depth < 4) nested_scope(dice_.between(1, 8));
    } else if (choice < 95) {
      call();
    } else if (choice < 96) {
      branch_table();
    } else if (choice < 97) {
      barrier();
    } else if (choice < 98) {
      Instruction& s = add(StatementKind::Pragma, {});
      s.text = module().names.intern("nounroll");
    } else {
      location();
    }
  }
}

// Declarations --------------------------------------------------------------------------------

void FunctionGenerator::add_registers(RegisterDecl decl) {
  Function& f = body();
  Scope& scope = scopes_.back();
  // What has that name further out is out of sight until the scope ends; here it must be new.
  for (std::uint32_t i = 0; i < visible_.size(); ++i) {
    const RegisterDecl& other = f.registers[visible_[i].decl];
    if (other.name != decl.name) continue;
    if (i >= scope.first_visible) return;
    if (visible_[i].hidden) continue;
    visible_[i].hidden = true;
    scope.hid.push_back(i);
  }
  decl.scope = scope.number;
  f.registers.push_back(decl);
  visible_.push_back({static_cast<std::uint32_t>(f.registers.size() - 1), false});
}

void FunctionGenerator::declare_registers(std::string_view prefix, Type type, std::uint32_t count) {
  RegisterDecl decl;
  decl.name = module().names.intern(prefix);
  decl.type = type;
  decl.numbered = true;
  decl.count = count;
  add_registers(decl);
}

void FunctionGenerator::declare_register(std::string_view name, Type type, std::uint8_t vector) {
  RegisterDecl decl;
  decl.name = module().names.intern(name);
  decl.type = type;
  decl.vector = vector;
  add_registers(decl);
}

void FunctionGenerator::declare_some_registers() {
  for (const RegisterStyle& style : kAlone) {
    if (!dice_.chance(30)) continue;
    // A register `%r` alone beside `%r<4>` is another one; inside of one scope that is asking much.
    const std::string name = style.prefix == "%r" ? "%r_alone" : std::string(style.prefix);
    declare_register(name, style.type, 1);
  }
  if (dice_.chance(25)) declare_register("vec_f", Type::f32, dice_.chance(50) ? 2 : 4);
  if (dice_.chance(15)) declare_register("%vec_r", Type::b32, dice_.chance(50) ? 2 : 4);
}

Place FunctionGenerator::declare_variable(Variable variable) {
  variable.scope = scopes_.back().number;
  Function& f = body();
  f.variables.push_back(variable);
  const auto index = static_cast<std::uint32_t>(f.variables.size() - 1);
  add(StatementKind::Variable, {}).variable = index;
  Place place;
  place.symbol =
      add_symbol(module(), variable.name, SymbolKind::FunctionVariable, function_, index);
  place.space = variable.space;
  place.bytes = size_in_bytes(variable);
  place.alignment = natural_alignment(variable);
  return place;
}

// Labels and branches -------------------------------------------------------------------------

std::uint32_t FunctionGenerator::new_label(Scope& scope) {
  // Few names, so that inner scopes take those of outer ones.
  std::string name;
  unsigned tries = 0;
  do {
    name = std::string(dice_.pick(kLabelNames)) +
           std::to_string(tries++ < 8 ? dice_.below(3) : 100 + next_name_++);
  } while (!scope.label_names.insert(name).second);
  Label label;
  label.name = module().names.intern(name);
  label.scope = scope.number;
  label.defined = true;
  body().labels.push_back(label);
  const auto number = static_cast<std::uint32_t>(body().labels.size() - 1);
  LabelHere here;
  here.label = number;
  scope.labels.push_back(here);
  return number;
}

// Not a place to branch to; ptxas looks no further when it finds one of that name.
std::uint32_t FunctionGenerator::table_label(std::string_view stem) {
  Label label;
  label.name = module().names.intern(std::string(stem) + std::to_string(next_name_++));
  label.scope = scopes_.back().number;
  label.defined = true;
  body().labels.push_back(label);
  return static_cast<std::uint32_t>(body().labels.size() - 1);
}

// A label that code here can name: of this scope or of one around it.
std::uint32_t FunctionGenerator::label_to_reach(bool here_only) {
  const std::size_t innermost = scopes_.size() - 1;
  const std::size_t level = here_only || dice_.chance(60) ? innermost : dice_.below(scopes_.size());
  Scope& scope = scopes_[level];
  const bool crowded = scope.label_names.size() > 60;
  if (!crowded && (scope.labels.empty() || dice_.chance(40))) {
    // Fall through to a new one below.
  } else if (!scope.labels.empty()) {
    const std::uint32_t label = dice_.pick(scope.labels).label;
    const std::string name(module().text(body().labels[label].name));
    bool shadowed = false;
    for (std::size_t i = level + 1; i <= innermost; ++i) {
      shadowed = shadowed || scopes_[i].label_names.count(name) != 0;
    }
    if (!shadowed) {
      for (std::size_t i = level + 1; i <= innermost; ++i) scopes_[i].label_names.insert(name);
      return label;
    }
  }
  if (level == innermost) return new_label(scopes_[innermost]);
  // A new label further out must not be taken for one in between.
  const std::uint32_t label = new_label(scope);
  std::string name(module().text(body().labels[label].name));
  for (std::size_t i = level + 1; i <= innermost; ++i) {
    if (scopes_[i].label_names.count(name) != 0) return new_label(scopes_[innermost]);
  }
  for (std::size_t i = level + 1; i <= innermost; ++i) scopes_[i].label_names.insert(name);
  return label;
}

void FunctionGenerator::place_label(std::uint32_t label) {
  for (LabelHere& here : scopes_.back().labels) {
    if (here.label == label) here.placed = true;
  }
  add(StatementKind::Label, {Operand::label({label})});
}

void FunctionGenerator::place_open_label() {
  std::vector<std::uint32_t> open;
  for (const LabelHere& here : scopes_.back().labels) {
    if (!here.placed) open.push_back(here.label);
  }
  if (!open.empty()) place_label(dice_.pick(open));
}

void FunctionGenerator::place_open_labels() {
  bool any = false;
  for (std::size_t i = 0; i < scopes_.back().labels.size(); ++i) {
    if (scopes_.back().labels[i].placed) continue;
    place_label(scopes_.back().labels[i].label);
    any = true;
  }
  if (any) table_instruction();
}

void FunctionGenerator::branch() {
  Instruction bra = row(Op::bra);
  const std::uint32_t label = label_to_reach(false);
  if (dice_.chance(85)) {
    maybe_guard(bra, 100);
  } else if (dice_.chance(50)) {
    bra.set(Field::Uniform, Modifier::uni);
  }
  add(bra, {Operand::label({label})});
}

void FunctionGenerator::branch_table() {
  const std::uint32_t table = table_label("table_");
  std::vector<Operand> operands{Operand::label({table})};
  for (std::uint32_t i = dice_.between(2, 5); i > 0; --i) {
    operands.push_back(Operand::label({label_to_reach(true)}));
  }
  add(StatementKind::BranchTargets, operands);
  Instruction brx = row(Op::brx_idx);
  Operand selector;
  if (!choose_register(Type::u32, false, selector, false)) return;
  maybe_guard(brx, 20);
  add(brx, {selector, Operand::label({table})});
}

void FunctionGenerator::loop(unsigned count, unsigned depth) {
  const std::uint32_t label = new_label(scopes_.back());
  place_label(label);
  statements(count, depth);
  Instruction back = row(Op::bra);
  maybe_guard(back, 100);
  add(back, {Operand::label({label})});
}

// Scopes --------------------------------------------------------------------------------------

void FunctionGenerator::begin_scope() {
  Scope scope;
  scope.number = body().scopes++;
  scope.first_visible = visible_.size();
  add(StatementKind::ScopeBegin, {}).scope = scope.number;
  scopes_.push_back(std::move(scope));
}

void FunctionGenerator::end_scope() {
  place_open_labels();
  add(StatementKind::ScopeEnd, {});
  Scope& scope = scopes_.back();
  visible_.resize(scope.first_visible);
  for (const std::uint32_t hid : scope.hid) visible_[hid].hidden = false;
  scopes_.pop_back();
}

void FunctionGenerator::nested_scope(unsigned count) {
  begin_scope();
  const std::size_t places = places_.size();
  for (const RegisterStyle& style : kNumbered) {
    if (style.type != Type::b128 && dice_.chance(15)) {
      declare_registers(style.prefix, style.type, dice_.between(1, 4));
    }
  }
  declare_some_registers();
  if (dice_.chance(50)) {
    constexpr Type kTypes[] = {Type::b8, Type::u32, Type::f32, Type::b64};
    Variable v;
    v.space = dice_.chance(60) ? Space::Local : Space::Shared;
    v.type = dice_.pick(kTypes);
    // The same name in sibling scopes is another variable.
    v.name = module().names.intern("frame" + std::to_string(scopes_.size()));
    v.alignment = 16;
    v.dimensions = {dice_.between(16, 40)};
    places_.push_back(declare_variable(v));
  }
  statements(count, static_cast<unsigned>(scopes_.size()));
  end_scope();
  places_.resize(places);
}

// Calls ---------------------------------------------------------------------------------------

void FunctionGenerator::call() {
  if (around_.callables.empty()) return;
  const Callable callee = dice_.pick(around_.callables);
  const std::vector<Variable> parameters = module().functions[callee.function].parameters;
  const std::vector<Variable> returns = module().functions[callee.function].returns;
  begin_scope();
  std::vector<Operand> arguments;
  std::vector<Operand> results;
  std::vector<Place> result_places;
  bool possible = true;
  bool in_registers = false;
  const auto name = [&](std::string_view stem, std::size_t i) {
    return module().names.intern(std::string(stem) + std::to_string(i));
  };
  for (std::size_t i = 0; i < parameters.size() && possible; ++i) {
    Operand value;
    if (parameters[i].space == Space::Register) {
      in_registers = true;
      possible = choose_register(parameters[i].type, false, value, false);
      arguments.push_back(value);
      continue;
    }
    Variable v = parameters[i];
    v.name = name("param", i);
    const Place place = declare_variable(v);
    arguments.push_back(Operand::symbol(place.symbol));
    Instruction st = row(Op::st);
    st.set(Field::Space, Modifier::param);
    st.set(Field::Type, as_modifier(v.type));
    possible = choose_register(v.type, true, value, false);
    if (possible) add(st, {Operand::memory(place.symbol), value});
  }
  for (std::size_t i = 0; i < returns.size() && possible; ++i) {
    if (returns[i].space == Space::Register) {
      in_registers = true;
      Operand value;
      possible = choose_register(returns[i].type, false, value, false);
      results.push_back(value);
      continue;
    }
    Variable v = returns[i];
    v.name = name("retval", i);
    result_places.push_back(declare_variable(v));
    results.push_back(Operand::symbol(result_places.back().symbol));
  }
  if (possible) {
    Instruction call = row(Op::call);
    if (dice_.chance(50)) call.set(Field::Uniform, Modifier::uni);
    Operand target = Operand::symbol(callee.symbol);
    std::vector<Operand> operands{group(OperandKind::List, results), target,
                                  group(OperandKind::List, arguments)};
    Operand address;
    if (!in_registers && dice_.chance(25) && choose_register(Type::u64, false, address, false)) {
      Instruction mov = row(Op::mov);
      mov.set(Field::Type, Modifier::type_u64);
      add(mov, {address, target});
      operands[1] = address;
      Prototype prototype{returns, parameters, false};
      for (auto* list : {&prototype.returns, &prototype.parameters}) {
        for (Variable& v : *list) v.name = module().names.intern("_");
      }
      body().prototypes.push_back(prototype);
      const std::uint32_t label = table_label("prototype$");
      add(StatementKind::CallPrototype, {Operand::label({label})}).variable =
          static_cast<std::uint32_t>(body().prototypes.size() - 1);
      operands.push_back(Operand::label({label}));
    }
    add(call, operands);
    for (std::size_t i = 0; i < result_places.size(); ++i) {
      Operand value;
      if (!choose_register(returns[i].type, true, value, false)) continue;
      Instruction ld = row(Op::ld);
      ld.set(Field::Space, Modifier::param);
      ld.set(Field::Type, as_modifier(returns[i].type));
      add(ld, {value, Operand::memory(result_places[i].symbol)});
    }
  }
  end_scope();
}

void FunctionGenerator::return_values() {
  const std::vector<Variable> returns = body().returns;
  for (std::uint32_t i = 0; i < returns.size(); ++i) {
    if (returns[i].space == Space::Register) continue;
    Operand value;
    if (!choose_register(returns[i].type, true, value, false)) continue;
    const SymbolId symbol = add_symbol(module(), returns[i].name, SymbolKind::Return, function_, i);
    Instruction st = row(Op::st);
    st.set(Field::Space, Modifier::param);
    st.set(Field::Type, as_modifier(returns[i].type));
    add(st, {Operand::memory(symbol), value});
  }
}

}  // namespace ptxgen::test
