// src/ptx/parser_variables.cpp - declarations of variables and registers
#include <algorithm>
#include <bit>
#include <limits>

#include "ptx/parser_state.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

std::uint8_t vector_of(std::string_view keyword) {
  if (keyword == "v2") return 2;
  if (keyword == "v4") return 4;
  if (keyword == "v8") return 8;
  return 0;
}

bool ends_in_digit(std::string_view name) { return is(name.back(), kDigit); }

}  // namespace

Space space_from_keyword(std::string_view keyword) {
  for (const Space space : {Space::Register, Space::Global, Space::Shared, Space::Local,
                            Space::Const, Space::Param, Space::Texture}) {
    if (name(space) == keyword) return space;
  }
  return Space::Generic;
}

Type Parser::read_type_keyword(std::string_view keyword) {
  const Type type = as_type(modifier_from_text(keyword));
  if (type == Type::none) cursor_.fail_expected("a type");
  cursor_.take_keyword(keyword);
  return type;
}

std::uint32_t Parser::read_alignment() {
  const char* place = cursor_.at;
  const auto value =
      static_cast<std::uint32_t>(read_number(cursor_, "an alignment in bytes", kMax32));
  if (!std::has_single_bit(value)) {
    cursor_.fail(place,
                 format_text("expected an alignment that is a power of two, found {}", value));
  }
  return value;
}

void Parser::read_attribute(Variable& variable) {
  cursor_.expect('(', "after '.attribute'");
  do {
    if (cursor_.accept_keyword("managed")) {
      variable.managed = true;
    } else if (cursor_.accept_keyword("unified")) {
      cursor_.expect('(', "after '.unified'");
      cursor_.skip();
      std::string text;
      for (;;) {
        const char* start = cursor_.at;
        (void)read_number(cursor_, "a number of the unified identifier", kMax64);
        text.append(start, cursor_.at);
        if (!cursor_.accept(',')) break;
        cursor_.skip();
        text += ", ";
      }
      cursor_.expect(')', "after the unified identifier");
      variable.unified = intern(text);
    } else {
      cursor_.fail_expected("'.managed' or '.unified' in '.attribute'");
    }
  } while (cursor_.accept(','));
  cursor_.expect(')', "at the end of '.attribute'");
}

// `.ptr [.space] [.align n]` of a parameter.
void Parser::read_pointer(Variable& variable) {
  variable.pointer = true;
  const std::string_view keyword = cursor_.peek_keyword();
  const Space space = space_from_keyword(keyword);
  if (space != Space::Generic && space != Space::Register) {
    cursor_.take_keyword(keyword);
    variable.pointer_space = space;
  }
  if (cursor_.accept_keyword("align")) variable.pointer_alignment = read_alignment();
}

// From the state space up to the name. `place` is where a space is expected.
Variable Parser::read_variable_type(std::string_view place) {
  Variable variable;
  std::string_view keyword = cursor_.peek_keyword();
  variable.space = space_from_keyword(keyword);
  if (variable.space == Space::Generic)
    cursor_.fail_expected("a state space " + std::string(place));
  cursor_.take_keyword(keyword);
  variable.line = built_ ? 0 : cursor_.line;
  const std::string space(keyword);
  for (;;) {
    keyword = cursor_.peek_keyword();
    if (keyword.empty()) break;
    if (keyword == "align") {
      cursor_.take_keyword(keyword);
      variable.alignment = read_alignment();
    } else if (keyword == "attribute") {
      cursor_.take_keyword(keyword);
      read_attribute(variable);
    } else if (keyword == "ptr") {
      cursor_.take_keyword(keyword);
      read_pointer(variable);
    } else if (const std::uint8_t vector = vector_of(keyword); vector != 0) {
      cursor_.take_keyword(keyword);
      variable.vector = vector;
    } else if (variable.type == Type::none) {
      variable.type = read_type_keyword(keyword);
    } else {
      break;
    }
  }
  if (variable.type == Type::none) cursor_.fail_expected("a type after '." + space + "'");
  return variable;
}

// The name, dimensions and initialiser.
void Parser::read_declarator(Variable& variable, bool range_allowed) {
  const std::string_view text = cursor_.name("the name of a variable");
  declared_name_ = text;
  variable.name = intern(text);
  if (range_allowed && cursor_.accept('<')) {
    const char* place = cursor_.at;
    const Constant count = read_literal(cursor_, "the number of variables after '<'");
    if (!count.integer() || count.bits == 0 || count.bits > kMax32) {
      cursor_.fail(place, "expected a number of variables from 1 to 4294967295, found " +
                              cursor_.describe(place));
    }
    variable.range = static_cast<std::uint32_t>(count.bits);
    cursor_.expect('>', "after the number of variables");
  }
  while (cursor_.accept('[')) {
    if (cursor_.accept(']')) {
      variable.dimensions.push_back(0);
      continue;
    }
    const char* place = cursor_.at;
    const std::uint64_t count = read_number(cursor_, "a number of elements", kMax64);
    // 0 would mean `[]`.
    if (count == 0) cursor_.fail(place, "expected at least one element, found 0");
    variable.dimensions.push_back(count);
    cursor_.expect(']', "after the number of elements");
  }
}

void Parser::read_initialiser(Variable& variable) {
  variable.initialised = true;
  cursor_.skip();
  const char* place = cursor_.at;
  unsigned depth = 0;
  for (;;) {
    if (cursor_.accept('{')) {
      if (++depth > kDeepestNesting) {
        cursor_.fail(cursor_.at - 1,
                     format_text("initialiser is nested deeper than {}", kDeepestNesting));
      }
      variable.initial.emplace_back().kind = InitialValue::Kind::Open;
      if (!cursor_.accept('}')) continue;
      --depth;
      variable.initial.emplace_back().kind = InitialValue::Kind::Close;
    } else {
      read_initial_value(variable);
    }
    while (depth > 0 && cursor_.accept('}')) {
      --depth;
      variable.initial.emplace_back().kind = InitialValue::Kind::Close;
    }
    if (depth == 0) break;
    cursor_.expect(',', "or '}' in the initialiser");
  }
  check_initial_count(variable, place);
}

void Parser::read_initial_value(Variable& variable) {
  using Kind = InitialValue::Kind;
  cursor_.skip();
  InitialValue value;
  if (is(*cursor_.at, kNameStart) && !starts_warp_size(cursor_.at)) {
    read_initial_symbol(variable, value, "an initial value");
    return;
  }
  const char* place = cursor_.at;
  const Constant constant = read_constant(cursor_, "an initial value");
  if (cursor_.accept('(')) {
    if (!constant.integer())
      cursor_.fail(place, "expected an integer as mask, found " + cursor_.describe(place));
    value.kind = Kind::Masked;
    value.mask = constant.bits;
    read_initial_symbol(variable, value, "a variable or function after the mask");
    cursor_.expect(')', "after the masked symbol");
    return;
  }
  switch (constant.kind) {
    case Constant::Kind::Float32:
      value.kind = Kind::Float32;
      break;
    case Constant::Kind::Float64:
      value.kind = Kind::Float64;
      break;
    default:
      value.kind = Kind::Integer;
      break;
  }
  value.is_unsigned = constant.above_signed();
  value.value = constant.bits;
  variable.initial.push_back(value);
}

// `symbol+n` or `generic(symbol)+n`, after a mask or alone.
void Parser::read_initial_symbol(Variable& variable, InitialValue value, std::string_view what) {
  const bool masked = value.kind == InitialValue::Kind::Masked;
  std::string_view text = cursor_.name(what);
  const bool generic = text == "generic" && cursor_.accept('(');
  if (generic) text = cursor_.name("a variable in 'generic'");
  if (!masked) value.kind = generic ? InitialValue::Kind::Generic : InitialValue::Kind::Symbol;
  value.masked_generic = masked && generic;
  value.symbol = {symbol_of(text)};
  if (generic) cursor_.expect(')', "after the variable in 'generic'");
  value.value = static_cast<std::uint64_t>(read_offset());
  variable.initial.push_back(value);
}

void Parser::check_initial_count(const Variable& variable, const char* place) {
  std::uint64_t capacity = variable.vector;
  for (const std::uint64_t dimension : variable.dimensions) {
    if (dimension == 0 || capacity > kMax64 / dimension) return;
    capacity *= dimension;
  }
  const auto found = static_cast<std::uint64_t>(
      std::count_if(variable.initial.begin(), variable.initial.end(), [](const InitialValue& v) {
        return v.kind != InitialValue::Kind::Open && v.kind != InitialValue::Kind::Close;
      }));
  if (found > capacity) {
    cursor_.fail(place, format_text("expected at most {} initial values for '{}', found {}",
                                    capacity, module_.text(variable.name), found));
  }
}

// After `.reg`: `[.v4] .type name, name<count>, ...;`
void Parser::read_registers() {
  RegisterDecl decl;
  decl.line = built_ ? 0 : cursor_.line;
  decl.scope = scopes_.back().number;
  std::string_view keyword = cursor_.peek_keyword();
  // Alignment of a register means nothing, and old producers wrote it.
  if (keyword == "align") {
    cursor_.take_keyword(keyword);
    (void)read_alignment();
    keyword = cursor_.peek_keyword();
  }
  if (const std::uint8_t vector = vector_of(keyword); vector != 0) {
    decl.vector = vector;
    cursor_.take_keyword(keyword);
    keyword = cursor_.peek_keyword();
  }
  decl.type = read_type_keyword(keyword);
  do {
    const std::string_view text = cursor_.name("the name of a register");
    const char* place = text.data();
    RegisterDecl one = decl;
    if (cursor_.accept('<')) {
      cursor_.skip();
      const char* number = cursor_.at;
      const Constant count = read_literal(cursor_, "the number of registers after '<'");
      if (!count.integer() || count.bits > kMax32) {
        cursor_.fail(number, "expected a number of registers up to 4294967295, found " +
                                 cursor_.describe(number));
      }
      cursor_.expect('>', "after the number of registers");
      one.numbered = true;
      one.count = static_cast<std::uint32_t>(count.bits);
    }
    (void)declare_register(text, one, place);
  } while (cursor_.accept(','));
  cursor_.expect(';', "after '.reg'");
}

std::uint32_t Parser::declare_register(std::string_view text, RegisterDecl decl,
                                       const char* place) {
  const std::uint32_t name = names_.find_or_add(text);
  decl.name = id_of(name);
  refuse_late_declaration(text, decl, place);
  const auto index = static_cast<std::uint32_t>(body_->registers.size());
  body_->registers.push_back(decl);
  // The first of two declarations in one scope counts; the verifier reports the second.
  const Name& entry = names_[name];
  const std::uint32_t before = decl.numbered ? entry.prefix : entry.exact;
  if (before == kNone || body_->registers[before].scope != decl.scope) {
    bind(decl.numbered ? Unbind::Slot::Prefix : Unbind::Slot::Exact, name, index);
  }
  if (ends_in_digit(text)) ++odd_registers_;
  return index;
}

// The IR, and therefore the printed text, declares the registers of a block at its begin. Moving a
// declaration before a use of the same name (of an outer register, or undeclared) would change it.
void Parser::refuse_late_declaration(std::string_view text, const RegisterDecl& decl,
                                     const char* place) {
  const std::uint32_t begin = scopes_.back().begin_clock;
  if (clock_ == begin) return;
  const auto refuse = [&] {
    cursor_.fail(place, "expected the declaration of '" + std::string(text) +
                            "' before the name is used in its block");
  };
  const Name& own = names_[names_.find_or_add(text)];
  if (decl.numbered) {
    const bool meant = own.prefix != kNone || own.lowest_number < decl.count;
    if (own.last_prefix_use >= begin && meant) refuse();
    return;
  }
  if (own.last_use >= begin) refuse();
  const char* end = text.data() + text.size();
  const char* digits = end;
  while (digits - 1 > text.data() && is(digits[-1], kDigit) && end - digits < 10) --digits;
  for (; digits < end; ++digits) {
    const std::uint32_t found =
        names_.find(text.data(), static_cast<std::size_t>(digits - text.data()));
    if (found == kNone || names_[found].prefix == kNone || names_[found].last_prefix_use < begin)
      continue;
    std::uint64_t number = 0;
    for (const char* p = digits; p != end; ++p)
      number = number * 10 + static_cast<std::uint64_t>(*p - '0');
    if (number < body_->registers[names_[found].prefix].count) refuse();
  }
}

}  // namespace ptxgen::inline v0::ptx::reading
