// src/builder/core.cpp - emission with all checks, registers, scopes, labels, errors
#include "ptxgen/builder/core.hpp"

#include <algorithm>
#include <utility>

#include "builder/rows.hpp"
#include "ptx/order_modifiers.hpp"
#include "ptx/row_shape.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::detail {

namespace {

struct ClassInfo {
  std::string_view prefix;
  ptx::Type type;
};
constexpr std::array<ClassInfo, kRegisterClasses> kClasses = {{
    {"%p", ptx::Type::pred},
    {"%rs", ptx::Type::b16},
    {"%h", ptx::Type::b16},
    {"%r", ptx::Type::b32},
    {"%rd", ptx::Type::b64},
    {"%f", ptx::Type::f32},
    {"%fd", ptx::Type::f64},
    {"%rq", ptx::Type::b128},
}};

// What a kernel of ordinary size needs, so that building one allocates each vector once.
constexpr std::size_t kUsualStatements = 256;
constexpr std::size_t kUsualOperands = 1024;

constexpr ptx::Version kAnyVersion{255, 255};

std::size_t hash_of(const ptx::Instruction& statement) {
  std::uint64_t hash = static_cast<std::uint64_t>(statement.op);
  for (const ptx::Modifier modifier : statement.modifiers) {
    hash = hash * 31 + static_cast<std::uint64_t>(modifier);
  }
  return static_cast<std::size_t>(hash ^ (hash >> 17));
}

bool name_is_legal(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto follow = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '$';
  };
  if (name.empty()) return false;
  if (!letter(name[0]) && (name.size() < 2 || (name[0] != '_' && name[0] != '$'))) return false;
  return std::all_of(name.begin() + 1, name.end(), follow);
}

// Whether the row has a place for each type among the modifiers.
bool admits_types(const ptx::OpInfo& row, const ModifierList& modifiers) {
  for (unsigned i = 0; i < modifiers.count; ++i) {
    if (ptx::as_type(modifiers.values[i]) == ptx::Type::none) continue;
    const auto slots = row.modifier_slots();
    if (std::none_of(slots.begin(), slots.end(), [&](const ptx::ModifierSlot& slot) {
          return ptx::allows(slot, modifiers.values[i]);
        })) {
      return false;
    }
  }
  return true;
}

std::string opcode_text(const Form& form) {
  std::string text(ptx::info(form.op).mnemonic);
  for (unsigned i = 0; i < form.modifiers.count; ++i) {
    text += '.';
    text += ptx::name(form.modifiers.values[i]);
  }
  return text;
}

// Why no row takes the opcode, where its memory order or scope is to blame.
std::string order_text(const Form& form) {
  const ptx::OrderFault fault = ptx::order_fault(opcode_text(form));
  return fault.found() ? fault.message + "; rule: " + fault.rule + "; cure: " + fault.cure
                       : std::string();
}

}  // namespace

Core::~Core() = default;

Core::Core(Name name, std::string_view target) : site_(name.site) {
  module_.target = target;
  module_.functions.emplace_back();
  ptx::Function& f = function();
  f.entry = true;
  f.linkage = ptx::Linkage::Visible;
  f.name = module_.names.intern(name.text);
  f.body.reserve(kUsualStatements);
  f.operands.reserve(kUsualOperands);
  f.registers.reserve(kRegisterClasses);
  module_.sites.reserve(kUsualStatements);
  scope_open_.assign(1, 1);
  scope_parents_.assign(1, 0);
  checked_.fill(ptx::kNone);
  target_ = ptx::find_target(target);
  if (target_ == nullptr) {
    std::string known;
    for (const ptx::Target& row : ptx::targets()) {
      known += known.empty() ? "" : ", ";
      known += row.name;
    }
    fail("unknown-target",
         "'" + std::string(target) + "' is not in the target table; there are " + known, site_);
  }
  target_name_ = {target_->sm, target_->variant};
  if (!name_is_legal(name.text)) {
    fail("entry-name",
         "'" + std::string(name.text) +
             "' cannot name a kernel: letters, digits, '_' and '$', a letter first",
         site_);
  }
  module_.symbols.push_back({f.name, ptx::SymbolKind::Function, 0, 0});
}

std::string Core::last_statement() const {
  const ptx::Function& f = function();
  return f.body.empty() ? std::string() : ptx::print(module_, f, f.body.back());
}

// ---- errors

void Core::fail(Error error) {
  error.kernel = name();
  error.target = module_.target;
  error.refresh();
  if (first_error_.empty()) first_error_.push_back(error);
  throw error;
}

void Core::fail(std::string_view code, std::string message, SourceLocation site) {
  Error error(Stage::Build, std::string(code), std::move(message));
  error.site = site.known() ? site : site_;
  fail(std::move(error));
}

void Core::check_open(SourceLocation site) {
  if (finished_) {
    fail("already-built", "the kernel is built: nothing can be added after build()", site);
  }
}

void Core::check_new_name(std::string_view name, std::string_view what, SourceLocation site) {
  const auto clash = [&](std::string_view with) {
    fail("duplicate-name",
         std::string(what) + " '" + std::string(name) + "' has the name of " + std::string(with) +
             ": names are unique in a kernel",
         site);
  };
  if (!name_is_legal(name)) {
    fail("bad-name",
         "'" + std::string(name) + "' cannot be the name of " + std::string(what) +
             ": letters, digits, '_' and '$', a letter first",
         site);
  }
  const ptx::Function& f = function();
  const auto same = [&](ptx::NameId id) { return module_.names[id] == name; };
  if (same(f.name)) clash("the kernel");
  for (const ptx::Variable& v : f.parameters) {
    if (same(v.name)) clash("a parameter");
  }
  for (const ptx::Variable& v : f.variables) {
    if (same(v.name)) clash("an array");
  }
  for (const ptx::Variable& v : module_.variables) {
    if (same(v.name)) clash("an array");
  }
  for (const ptx::Label& l : f.labels) {
    if (same(l.name)) clash("a label");
  }
}

// ---- undoing

Checkpoint Core::checkpoint() const noexcept {
  const ptx::Function& f = function();
  Checkpoint at;
  at.body = f.body.size();
  at.operands = f.operands.size();
  at.labels = f.labels.size();
  at.variables = f.variables.size();
  at.parameters = f.parameters.size();
  at.registers = f.registers.size();
  at.module_variables = module_.variables.size();
  at.items = module_.items.size();
  at.symbols = module_.symbols.size();
  at.sites = module_.sites.size();
  at.files = module_.files.size();
  at.prototypes = f.prototypes.size();
  at.function_scopes = f.scopes;
  at.generated_labels = generated_labels_;
  at.dynamic_shared = dynamic_shared_;
  at.scope = scope_;
  at.scopes = scope_open_.size();
  at.guard = guard_;
  at.last_location = last_location_;
  for (unsigned i = 0; i < kRegisterClasses; ++i) {
    at.counts[i] = static_cast<std::uint32_t>(register_scopes_[i].size());
  }
  return at;
}

void Core::restore(const Checkpoint& to) noexcept {
  ptx::Function& f = function();
  const auto shrink = [](auto& list, std::size_t size) {
    if (list.size() > size)
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(size), list.end());
  };
  // Labels placed since then are open again; labels created since then are removed.
  for (std::size_t i = to.body; i < f.body.size(); ++i) {
    if (f.body[i].kind == ptx::StatementKind::Label) {
      f.labels[f.operands[f.body[i].first_operand].id].defined = false;
    }
  }
  shrink(f.body, to.body);
  shrink(f.operands, to.operands);
  shrink(f.labels, to.labels);
  shrink(label_sites_, to.labels);
  shrink(f.variables, to.variables);
  shrink(f.parameters, to.parameters);
  shrink(f.prototypes, to.prototypes);
  f.scopes = to.function_scopes;
  shrink(module_.variables, to.module_variables);
  shrink(module_.items, to.items);
  shrink(module_.symbols, to.symbols);
  shrink(module_.files, to.files);
  shrink(module_.sites, to.sites);
  generated_labels_ = to.generated_labels;
  dynamic_shared_ = to.dynamic_shared;
  scope_ = to.scope;
  shrink(scope_open_, to.scopes);
  shrink(scope_parents_, to.scopes);
  guard_ = to.guard;
  last_location_ = to.last_location;
  for (unsigned i = 0; i < kRegisterClasses; ++i) {
    shrink(register_scopes_[i], to.counts[i]);
    const ptx::DeclId decl = declarations_[i];
    if (decl.value == ptx::kNone) continue;
    if (decl.value >= to.registers) {
      declarations_[i] = {};
    } else {
      f.registers[decl.value].count = to.counts[i];
    }
  }
  shrink(f.registers, to.registers);
  if (!scope_open_.empty()) scope_open_[scope_] = 1;
}

// ---- registers and scopes

ptx::Register Core::new_register(RegisterClass register_class) {
  const auto index = static_cast<std::size_t>(register_class);
  ptx::Function& f = function();
  if (declarations_[index].value == ptx::kNone) {
    ptx::RegisterDecl decl;
    decl.name = module_.names.intern(kClasses[index].prefix);
    decl.type = kClasses[index].type;
    decl.numbered = true;
    decl.count = 0;
    declarations_[index] = {static_cast<std::uint32_t>(f.registers.size())};
    f.registers.push_back(decl);
    register_scopes_[index].reserve(64);
  }
  register_scopes_[index].push_back(scope_);
  const std::uint32_t number = f.registers[declarations_[index].value].count++;
  return {declarations_[index], number};
}

std::uint32_t Core::open_scope() {
  scope_parents_.push_back(scope_);
  scope_open_.push_back(1);
  scope_ = static_cast<std::uint32_t>(scope_open_.size() - 1);
  return scope_;
}

void Core::close_scope(std::uint32_t scope) noexcept {
  scope_open_[scope] = 0;
  scope_ = scope_parents_[scope];
}

ptx::Operand Core::use(const Argument& argument) {
  const ptx::Operand& operand = argument.operand;
  if (argument.core == nullptr) {
    if (operand.kind == ptx::OperandKind::Register) {
      fail("bad-operand", "a variable is used that was moved from", argument.site);
    }
    if (operand.kind == ptx::OperandKind::None) {
      const auto type = static_cast<ptx::Type>(operand.component);
      fail("bad-operand",
           operand.is_unsigned
               ? format_text("the literal {} does not fit {}", operand.value, ptx::name(type))
               : format_text("the literal {} does not fit {}", operand.offset(), ptx::name(type)),
           argument.site);
    }
    return operand;
  }
  if (argument.core != this) {
    fail("bad-operand", "an operand belongs to another kernel", argument.site);
  }
  // The ids of symbols and special registers are numbers of other tables.
  const bool has_register =
      operand.kind == ptx::OperandKind::Register ||
      (operand.kind == ptx::OperandKind::Memory && operand.base == ptx::OperandKind::Register);
  for (std::size_t i = 0; has_register && i < kRegisterClasses; ++i) {
    if (declarations_[i].value != operand.id) continue;
    if (operand.index >= register_scopes_[i].size() ||
        !scope_open_[register_scopes_[i][operand.index]]) {
      fail("bad-operand",
           "an operand was computed in a body (of if_, for_, while_ or guarded) that is closed "
           "here, where it may not have been executed: keep it in a Var declared outside",
           argument.site);
    }
    break;
  }
  return operand;
}

// ---- emission

std::uint32_t Core::add_site(SourceLocation site) {
  if (!site.known()) return 0;
  if (module_.sites.empty() || module_.sites.back().line != site.line ||
      module_.sites.back().column != site.column || module_.sites.back().file != site.file) {
    module_.sites.push_back(site);
  }
  return static_cast<std::uint32_t>(module_.sites.size());
}

void Core::emit_location(SourceLocation site) {
  if (!site.known() || (last_location_.file == site.file && last_location_.line == site.line)) {
    return;
  }
  const ptx::NameId path = module_.names.intern(site.file);
  std::uint32_t number = 0;
  for (const ptx::SourceFile& file : module_.files) {
    if (file.path == path) number = file.number;
  }
  if (number == 0) {
    number = static_cast<std::uint32_t>(module_.files.size() + 1);
    module_.items.push_back({ptx::Item::Kind::File, number - 1, {}, {}});
    module_.files.push_back({number, path, false, 0, 0});
  }
  ptx::Instruction location;
  location.kind = ptx::StatementKind::Location;
  const ptx::Operand operands[] = {ptx::Operand::integer(number), ptx::Operand::integer(site.line),
                                   ptx::Operand::integer(site.column)};
  last_location_ = site;
  append_plain(location, operands, site);
}

void Core::append_plain(ptx::Instruction statement, std::span<const ptx::Operand> operands,
                        SourceLocation site) {
  ptx::Function& f = function();
  statement.first_operand = static_cast<std::uint32_t>(f.operands.size());
  statement.operand_count = static_cast<std::uint16_t>(operands.size());
  statement.site = add_site(site);
  f.operands.insert(f.operands.end(), operands.begin(), operands.end());
  f.body.push_back(statement);
}

void Core::append(const Form& form, std::span<const ptx::Operand> operands, SourceLocation site,
                  bool exact_row) {
  check_open(site);
  ptx::Instruction statement;
  if (!(exact_row ? fit_row(form, operands, true, statement)
                  : find_row(form, operands, statement))) {
    std::string message =
        "'" + opcode_text(form) + "' with " + count_text(operands.size(), "operand");
    const ptx::OpInfo& row = ptx::info(form.op);
    const auto rows = ptx::ops_with_mnemonic(row.mnemonic);
    const auto syntax = [](const ptx::OpInfo& r) {
      return "'" + std::string(r.mnemonic) + std::string(r.pattern) + " " +
             std::string(r.operand_pattern) + "'";
    };
    if (exact_row) {
      message += " does not fit the row " + std::string(row.id) + ": " + syntax(row);
    } else if (std::string why = order_text(form); !why.empty()) {
      message = std::move(why);
    } else {
      message += " is no instruction of PTX";
      // The forms for these types say more than all forms.
      std::string forms;
      for (const bool typed : {true, false}) {
        for (const ptx::Op op : rows) {
          if (forms.size() > 200 || (typed && !admits_types(ptx::info(op), form.modifiers)))
            continue;
          forms += (forms.empty() ? "" : ", ") + syntax(ptx::info(op));
        }
        if (!forms.empty()) break;
      }
      message += "; there are " + forms;
    }
    fail("bad-operand", std::move(message), site);
  }
  statement.guard = guard_;
  statement.contract = form.contract;
  ptx::Function& f = function();
  // A statement of the same row and modifiers that passed the check speaks for this one.
  std::uint32_t& last = checked_[hash_of(statement) % checked_.size()];
  const bool known = last < f.body.size() && f.body[last].is(statement.op) &&
                     f.body[last].modifiers == statement.modifiers;
  if (!known || exact_row) {
    const std::size_t operand_end = f.operands.size();
    statement.first_operand = static_cast<std::uint32_t>(operand_end);
    statement.operand_count = static_cast<std::uint16_t>(operands.size());
    f.operands.insert(f.operands.end(), operands.begin(), operands.end());
    ptx::InstructionFault fault = ptx::check_target(f, statement, target_name_, kAnyVersion);
    if (fault.rule.empty() && exact_row) fault = ptx::check_operands(module_, f, statement);
    f.operands.resize(operand_end);
    if (!fault.rule.empty()) fail(fault.rule, std::move(fault.message), site);
  }
  if (line_info_) emit_location(site);
  last = static_cast<std::uint32_t>(f.body.size());
  append_plain(statement, operands, site);
}

ptx::Register Core::result(const Form& form, RegisterClass register_class,
                           std::initializer_list<Argument> arguments, SourceLocation site) {
  std::array<ptx::Operand, ptx::kMaxOperands> operands;
  std::size_t count = 1;
  for (const Argument& a : arguments) operands[count++] = use(a);
  const ptx::Register d = new_register(register_class);
  operands[0] = ptx::Operand::reg(d);
  // A full Transaction per instruction would be the dearest part of it.
  struct Undo {
    Core* core;
    RegisterClass register_class;
    ~Undo() {
      if (core != nullptr) core->drop_register(register_class);
    }
  } undo{this, register_class};
  append(form, {operands.data(), count}, site);
  undo.core = nullptr;
  return d;
}

void Core::drop_register(RegisterClass register_class) noexcept {
  const auto index = static_cast<std::size_t>(register_class);
  ptx::Function& f = function();
  register_scopes_[index].pop_back();
  if (--f.registers[declarations_[index].value].count == 0 &&
      declarations_[index].value + 1 == f.registers.size()) {
    f.registers.pop_back();
    declarations_[index] = {};
  }
}

void Core::into(const Form& form, ptx::Register destination,
                std::initializer_list<Argument> arguments, SourceLocation site) {
  std::array<ptx::Operand, ptx::kMaxOperands> operands;
  std::size_t count = 1;
  for (const Argument& a : arguments) operands[count++] = use(a);
  operands[0] = use({this, ptx::Operand::reg(destination), site});
  append(form, {operands.data(), count}, site);
}

void Core::effect(const Form& form, std::initializer_list<Argument> arguments,
                  SourceLocation site) {
  std::array<ptx::Operand, ptx::kMaxOperands> operands;
  std::size_t count = 0;
  for (const Argument& a : arguments) operands[count++] = use(a);
  append(form, {operands.data(), count}, site);
}

ptx::Operand Core::pool_vector(std::span<const ptx::Operand> elements) {
  ptx::Function& f = function();
  ptx::Operand vector;
  vector.kind = ptx::OperandKind::Vector;
  vector.id = static_cast<std::uint32_t>(f.operands.size());
  vector.index = static_cast<std::uint32_t>(elements.size());
  f.operands.insert(f.operands.end(), elements.begin(), elements.end());
  return vector;
}

void Core::vector_load(const Form& form, RegisterClass register_class, std::span<ptx::Register> out,
                       const Argument& from, SourceLocation site) {
  const ptx::Operand source = use(from);
  Transaction transaction(*this);
  std::array<ptx::Operand, 8> elements;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = new_register(register_class);
    elements[i] = ptx::Operand::reg(out[i]);
  }
  const ptx::Operand operands[] = {pool_vector({elements.data(), out.size()}), source};
  append(form, operands, site);
  transaction.keep();
}

void Core::vector_store(const Form& form, const Argument& to, std::span<const Argument> values,
                        SourceLocation site) {
  const ptx::Operand destination = use(to);
  std::array<ptx::Operand, 8> elements;
  for (std::size_t i = 0; i < values.size(); ++i) elements[i] = use(values[i]);
  Transaction transaction(*this);
  const ptx::Operand operands[] = {destination, pool_vector({elements.data(), values.size()})};
  append(form, operands, site);
  transaction.keep();
}

ptx::Register Core::pack(const Form& form, RegisterClass register_class,
                         std::span<const Argument> values, SourceLocation site) {
  std::array<ptx::Operand, 8> elements;
  for (std::size_t i = 0; i < values.size(); ++i) elements[i] = use(values[i]);
  Transaction transaction(*this);
  const ptx::Register d = new_register(register_class);
  const ptx::Operand operands[] = {ptx::Operand::reg(d),
                                   pool_vector({elements.data(), values.size()})};
  append(form, operands, site);
  transaction.keep();
  return d;
}

void Core::redirect_result(RegisterClass register_class, ptx::Register to) {
  ptx::Function& f = function();
  f.operands[f.body.back().first_operand] = ptx::Operand::reg(to);
  drop_register(register_class);
}

Argument Core::plain(const Argument& predicate) {
  if (!predicate.operand.negated) return predicate;
  Argument positive = predicate;
  positive.operand.negated = false;
  Argument out = predicate;
  out.operand = ptx::Operand::reg(result({ptx::Op::not_, {ptx::Modifier::type_pred}},
                                         RegisterClass::p, {positive}, predicate.site));
  return out;
}

Argument Core::stable(const Argument& argument, RegisterClass register_class, ptx::Type move_type) {
  if (!argument.variable) {
    use(argument);
    return argument;
  }
  return {this, ptx::Operand::reg(move_to_new(this, register_class, move_type, argument)),
          argument.site};
}

// ---- labels and branches

ptx::LabelId Core::new_label() {
  std::string name = "$L" + std::to_string(generated_labels_++);
  ptx::Function& f = function();
  f.labels.push_back({module_.names.intern(name), 0, false});
  label_sites_.push_back({});
  return {static_cast<std::uint32_t>(f.labels.size() - 1)};
}

ptx::LabelId Core::named_label(const Name& name) {
  ptx::Function& f = function();
  for (std::size_t i = 0; i < f.labels.size(); ++i) {
    if (module_.names[f.labels[i].name] == name.text && name.text.substr(0, 2) != "$L") {
      return {static_cast<std::uint32_t>(i)};
    }
  }
  check_open(name.site);
  if (name.text.substr(0, 2) == "$L") {
    fail("bad-name", "labels beginning with '$L' are those of if_, for_ and while_", name.site);
  }
  check_new_name(name.text, "label", name.site);
  f.labels.push_back({module_.names.intern(name.text), 0, false});
  label_sites_.push_back(name.site);
  return {static_cast<std::uint32_t>(f.labels.size() - 1)};
}

void Core::place_label(ptx::LabelId label, SourceLocation site) {
  check_open(site);
  if (guard_.present()) {
    fail("bad-operand", "a label is not allowed in guarded(): use if_ for control flow", site);
  }
  ptx::Label& row = function().labels[label.value];
  if (row.defined) {
    fail("duplicate-name",
         "label '" + std::string(module_.names[row.name]) +
             "' is placed twice: names are unique in a kernel",
         site);
  }
  row.defined = true;
  ptx::Instruction statement;
  statement.kind = ptx::StatementKind::Label;
  const ptx::Operand operand = ptx::Operand::label(label);
  append_plain(statement, {&operand, 1}, site);
}

void Core::branch_to(ptx::LabelId label, SourceLocation site) {
  const ptx::Operand operand = ptx::Operand::label(label);
  append({ptx::Op::bra, {}}, {&operand, 1}, site);
}

void Core::branch_to(ptx::LabelId label, const Argument& predicate, bool negated,
                     SourceLocation site) {
  check_open(site);
  if (guard_.present()) {
    fail("bad-operand", "a branch is not allowed in guarded(): use if_ for control flow", site);
  }
  const ptx::Operand p = use(predicate);
  Transaction transaction(*this);
  if (p.kind != ptx::OperandKind::Register) {
    fail("bad-operand", "the condition of a branch is a constant: decide it in C++", site);
  }
  guard_ = {p.as_register(), p.negated != negated};
  const ptx::Operand operand = ptx::Operand::label(label);
  append({ptx::Op::bra, {}}, {&operand, 1}, site);
  guard_ = {};
  transaction.keep();
}

ptx::Module Core::take_module() {
  ptx::Module taken = std::move(module_);
  // What is left has the kernel's name, for messages about later calls.
  module_ = ptx::Module{};
  module_.target = taken.target;
  module_.functions.emplace_back();
  function().name = module_.names.intern(taken.names[taken.functions[0].name]);
  finished_ = true;
  return taken;
}

bool Core::ends_with_terminator() const noexcept {
  const ptx::Function& f = function();
  if (f.body.empty()) return false;
  const ptx::Instruction& last = f.body.back();
  return last.kind == ptx::StatementKind::Instruction && !last.guard.present() &&
         ptx::has(ptx::info(last.op).flags, ptx::Flag::Terminator);
}

// ---- called from values

namespace {

Core& living(Core* core) {
  if (core == nullptr) {
    throw Error(Stage::Build, "bad-operand", "a variable is used that was moved from");
  }
  return *core;
}

}  // namespace

ptx::Register move_to_new(Core* core, RegisterClass register_class, ptx::Type type,
                          const Argument& from) {
  Core& k = living(core);
  return k.result({ptx::Op::mov, {ptx::as_modifier(type)}}, register_class,
                  {type == ptx::Type::pred ? k.plain(from) : from}, from.site);
}

void move_into(Core* core, ptx::Register to, ptx::Type type, const Argument& from) {
  Core& k = living(core);
  k.into({ptx::Op::mov, {ptx::as_modifier(type)}}, to,
         {type == ptx::Type::pred ? k.plain(from) : from}, from.site);
}

}  // namespace ptxgen::inline v0::detail
