// src/ptx/parser_body.cpp - statements of a function body
#include <limits>

#include "ptx/parser_state.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMaxTargets = std::numeric_limits<std::uint16_t>::max();

}  // namespace

// After the `{`, to the `}` that ends the function.
void Parser::read_body() {
  scopes_.back().mark = cursor_.mark();
  for (;;) {
    cursor_.skip();
    if (*cursor_.at != '}') {
      read_statement();
      continue;
    }
    ++cursor_.at;
    if (scopes_.size() == 1) return;
    end_scope();
  }
}

void Parser::read_statement() {
  const char* start = cursor_.at;
  const char c = *start;
  if (is(c, kNameStart)) {
    const char* p = start + 1;
    while (is(*p, kNamePart)) ++p;
    cursor_.at = p;
    if (*p != '.') {
      const Cursor::Mark after = cursor_.mark();
      cursor_.skip();
      if (*cursor_.at == ':' && cursor_.at[1] != ':' && (c != '%' || p != start + 1)) {
        ++cursor_.at;
        read_label_statement({start, static_cast<std::size_t>(p - start)});
        return;
      }
      cursor_.rewind(after);
    }
    if (c != '%') {
      read_instruction(start);
      return;
    }
    cursor_.at = start;
  } else if (c == '@') {
    read_guard();
    return;
  } else if (c == '.') {
    read_directive_statement();
    return;
  } else if (c == '{') {
    ++cursor_.at;
    begin_scope();
    return;
  } else if (cursor_.at_end()) {
    const std::string block =
        scopes_.size() == 1 ? format_text("'{}'", cursor_.kernel) : std::string("a block");
    cursor_.fail_expected(format_text("'}}' at the end of {} (its '{{' is in line {})", block,
                                      scopes_.back().mark.line));
  }
  cursor_.fail_expected("a statement");
}

Instruction& Parser::add_statement(StatementKind kind) {
  Instruction& statement = body_->body.emplace_back();
  statement.kind = kind;
  statement.line = built_ ? 0 : cursor_.line;
  return statement;
}

// Label operands carry the name's number until the labels are resolved; `base` says which kind.
void Parser::append_operands(Instruction& statement, std::span<const Operand> operands) {
  std::vector<Operand>& pool = body_->operands;
  statement.first_operand = static_cast<std::uint32_t>(pool.size());
  statement.operand_count = static_cast<std::uint16_t>(operands.size());
  pool.insert(pool.end(), operands.begin(), operands.end());
}

void Parser::begin_scope() {
  if (scopes_.size() == kDeepestNesting) {
    cursor_.fail(cursor_.at - 1, format_text("blocks are nested deeper than {}", kDeepestNesting));
  }
  const std::uint32_t number = body_->scopes++;
  add_statement(StatementKind::ScopeBegin).scope = number;
  scopes_.push_back({number, bindings_.size(), ++clock_, cursor_.mark()});
  scope_ends_.resize(body_->scopes, kNone);
}

void Parser::end_scope() {
  add_statement(StatementKind::ScopeEnd);
  scope_ends_[scopes_.back().number] = body_->scopes;
  unbind_to(scopes_.back().bindings);
  scopes_.pop_back();
  ++clock_;
}

// `@p` or `@!p`, and the instruction that it guards.
void Parser::read_guard() {
  const char* place = cursor_.at++;
  guard_.negated = cursor_.accept('!');
  cursor_.skip();
  const char* start = cursor_.at;
  const char* p = start;
  const char* digits = start;
  if (is(*p, kNameStart)) {
    digits = ++p;
    for (; is(*p, kNamePart); ++p) {
      if (!is(*p, kDigit)) digits = p + 1;
    }
  }
  cursor_.at = p;
  const char* const sign = guard_.negated ? "@!" : "@";
  if (p == start) {
    const std::string expected = format_text("a predicate register after '{}'", sign);
    if (cursor_.at_end()) cursor_.fail_expected(expected);
    cursor_.fail(place, format_text("expected {}, found {}", expected, cursor_.describe(start)));
  }
  guard_.predicate = find_register(start, digits, p);
  if (!guard_.present()) {
    cursor_.fail(place, format_text("expected a declared predicate register after '{}', found {}, "
                                    "which is not declared",
                                    sign, cursor_.describe(start)));
  }
  cursor_.skip();
  start = cursor_.at;
  if (!is(*start, kNameStart) || *start == '%')
    cursor_.fail_expected("an instruction after the guard");
  while (is(*cursor_.at, kNamePart)) ++cursor_.at;
  read_instruction(start);
  guard_ = {};
}

void Parser::read_directive_statement() {
  const std::string_view keyword = cursor_.peek_keyword();
  const char* place = cursor_.at;
  const std::uint32_t line = cursor_.line;
  if (keyword == "loc") {
    cursor_.take_keyword(keyword);
    read_location();
  } else if (keyword == "reg") {
    cursor_.take_keyword(keyword);
    read_registers();
  } else if (keyword == "pragma") {
    cursor_.take_keyword(keyword);
    read_pragma();
  } else if (space_from_keyword(keyword) != Space::Generic) {
    read_variables(Linkage::None);
  } else if (keyword == "extern" || keyword == "visible" || keyword == "weak" ||
             keyword == "common") {
    cursor_.take_keyword(keyword);
    const Space space = space_from_keyword(cursor_.peek_keyword());
    if (space == Space::Generic || space == Space::Register) {
      cursor_.fail_expected("a state space after '." + std::string(keyword) + "' in a body");
    }
    read_variables(keyword == "extern"    ? Linkage::Extern
                   : keyword == "visible" ? Linkage::Visible
                   : keyword == "weak"    ? Linkage::Weak
                                          : Linkage::Common);
  } else {
    cursor_.rewind({place, line});
    cursor_.fail_expected("a statement");
  }
}

void Parser::read_location() {
  Instruction& statement = add_statement(StatementKind::Location);
  const auto at = static_cast<std::size_t>(&statement - body_->body.data());
  std::size_t count = 0;
  const auto number = [&](std::string_view what) {
    cursor_.skip();
    const char* place = cursor_.at;
    const Constant value = read_literal(cursor_, what);
    if (!value.integer() || value.bits > kMax32) {
      cursor_.fail(place, "expected " + std::string(what) + ", found " + cursor_.describe(place));
    }
    operands_[count++] = Operand::integer(static_cast<std::int64_t>(value.bits));
  };
  const auto place = [&] {
    number("a file number in '.loc'");
    number("a line number in '.loc'");
    number("a column number in '.loc'");
  };
  place();
  if (cursor_.accept(',')) {
    if (cursor_.name("'function_name' in '.loc'") != "function_name") {
      cursor_.fail_expected("'function_name' in '.loc'");
    }
    const std::string_view text = cursor_.name("a label after 'function_name'");
    const SymbolId symbol{symbol_of(text)};
    operands_[count++] = Operand::symbol(symbol, read_offset());
    if (cursor_.accept(',')) {
      if (cursor_.name("'inlined_at' in '.loc'") != "inlined_at") {
        cursor_.fail_expected("'inlined_at' in '.loc'");
      }
      place();
    }
  }
  append_operands(body_->body[at], {operands_.data(), count});
}

void Parser::read_pragma() {
  do {
    Instruction& statement = add_statement(StatementKind::Pragma);
    statement.text = intern(cursor_.string());
  } while (cursor_.accept(','));
  cursor_.expect(';', "after '.pragma'");
}

void Parser::read_variables(Linkage linkage) {
  const std::uint32_t line = cursor_.line;
  const Variable type = read_variable_type("in a body");
  do {
    Variable variable = type;
    variable.linkage = linkage;
    variable.scope = scopes_.back().number;
    read_declarator(variable, true);
    const std::uint32_t name = names_.find_or_add(declared_name_);
    if (cursor_.accept('=')) read_initialiser(variable);
    const auto index = static_cast<std::uint32_t>(body_->variables.size());
    body_->variables.push_back(variable);
    Instruction& statement = add_statement(StatementKind::Variable);
    statement.line = built_ ? 0 : line;
    statement.variable = index;
    if (variable.range != 0) {
      bind(Unbind::Slot::Ranged, name, static_cast<std::uint32_t>(ranged_.size()));
      ranged_.push_back({function_, index, variable.range});
    } else {
      bind(Unbind::Slot::Local, name,
           add_symbol(name, SymbolKind::FunctionVariable, function_, index));
    }
  } while (cursor_.accept(','));
  cursor_.expect(';', "after the declaration of '" +
                          std::string(module_.text(body_->variables.back().name)) + "'");
}

// After `name:`.
void Parser::read_label_statement(std::string_view text) {
  const std::uint32_t name = names_.find_or_add(text);
  const std::uint32_t line = cursor_.line;
  cursor_.skip();
  if (*cursor_.at == '.') {
    const std::string_view keyword = cursor_.peek_keyword();
    if (keyword == "branchtargets" || keyword == "calltargets") {
      cursor_.take_keyword(keyword);
      read_table(name, keyword == "branchtargets" ? StatementKind::BranchTargets
                                                  : StatementKind::CallTargets);
      return;
    }
    if (keyword == "callprototype") {
      cursor_.take_keyword(keyword);
      read_prototype(name);
      return;
    }
  }
  Instruction& statement = add_statement(StatementKind::Label);
  statement.line = built_ ? 0 : line;
  const Operand operand = Operand::label({add_label(name, true)});
  append_operands(statement, {&operand, 1});
}

void Parser::read_table(std::uint32_t label_name, StatementKind kind) {
  const std::uint32_t line = cursor_.line;
  std::vector<Operand> operands = {Operand::label({add_label(label_name, true)})};
  const bool branches = kind == StatementKind::BranchTargets;
  const auto first = static_cast<std::uint32_t>(body_->operands.size());
  do {
    if (operands.size() == kMaxTargets) {
      cursor_.fail(cursor_.at, "expected fewer than " + count_text(kMaxTargets, "target"));
    }
    const std::string_view text = cursor_.name(branches ? "a label" : "the name of a function");
    if (branches) {
      const std::uint32_t name = names_.find_or_add(text);
      references_.push_back({static_cast<std::uint32_t>(first + operands.size()), name,
                             scopes_.back().number, false});
      operands.push_back(Operand::label({kNone}));
    } else {
      operands.push_back(Operand::symbol({symbol_of(text)}));
    }
  } while (cursor_.accept(','));
  cursor_.expect(';', "after the targets");
  Instruction& statement = add_statement(kind);
  statement.line = built_ ? 0 : line;
  append_operands(statement, operands);
}

void Parser::read_prototype(std::uint32_t label_name) {
  const std::uint32_t line = cursor_.line;
  Prototype prototype;
  if (cursor_.accept('(')) read_parameters(prototype.returns, SymbolKind::Unresolved);
  (void)cursor_.name("'_' or a name in '.callprototype'");
  if (cursor_.accept('(')) read_parameters(prototype.parameters, SymbolKind::Unresolved);
  prototype.noreturn = cursor_.accept_keyword("noreturn");
  cursor_.expect(';', "after '.callprototype'");
  const auto index = static_cast<std::uint32_t>(body_->prototypes.size());
  body_->prototypes.push_back(std::move(prototype));
  const Operand operand = Operand::label({add_label(label_name, true)});
  Instruction& statement = add_statement(StatementKind::CallPrototype);
  statement.line = built_ ? 0 : line;
  statement.variable = index;
  append_operands(statement, {&operand, 1});
}

}  // namespace ptxgen::inline v0::ptx::reading
