// src/ptx/parser_operands.cpp - instructions and their operands
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "ptx/operand_alignment.hpp"
#include "ptx/parser_state.hpp"
#include "ptxgen/ptx/operand_specs.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

constexpr std::size_t kMaxWrittenOperands = 255;
// Digits of the largest register number, and of none after it.
constexpr std::ptrdiff_t kMaxDigits = 10;

constexpr std::string_view kSpecialText[] = {
#define PTXGEN_SPECIAL(id, text, type, components, major, minor, sm) text,
#include "ptxgen/ptx/special_registers.def"
};

constexpr auto kSortedSpecial = [] {
  std::array<std::uint8_t, std::size(kSpecialText)> sorted{};
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<std::uint8_t>(i);
  std::sort(sorted.begin(), sorted.end(),
            [](std::uint8_t a, std::uint8_t b) { return kSpecialText[a] < kSpecialText[b]; });
  return sorted;
}();

// Number of the special register, kNone if there is none. `text` is without the '%'.
std::uint32_t find_special(std::string_view text) {
  const auto at = std::lower_bound(
      kSortedSpecial.begin(), kSortedSpecial.end(), text,
      [](std::uint8_t number, std::string_view wanted) { return kSpecialText[number] < wanted; });
  return at != kSortedSpecial.end() && kSpecialText[*at] == text ? *at : kNone;
}

std::string_view view(const char* first, const char* last) {
  return {first, static_cast<std::size_t>(last - first)};
}

std::uint64_t number_of(const char* digits, const char* end) {
  std::uint64_t number = 0;
  for (; digits != end; ++digits) number = number * 10 + static_cast<std::uint64_t>(*digits - '0');
  return number;
}

}  // namespace

// The cursor is after the opcode's mnemonic, which begins at `start`.
void Parser::read_instruction(const char* start) {
  const Cursor::Mark begin{start, cursor_.line};
  const std::string_view text = read_opcode(start);
  const Opcode opcode = opcodes_.find(text);
  ++clock_;
  if (opcode.count == 0) {
    keep_unknown(begin, text);
    return;
  }
  const std::size_t pool = body_->operands.size();
  const std::size_t symbols = module_.symbols.size();
  const std::size_t statements = body_->body.size();
  operand_count_ = 0;
  lists_of_one_ = 0;
  bool known = opcode.call ? read_call_operands() : read_operands(opcode);
  const std::span<const Operand> operands(operands_.data(), operand_count_);
  const Candidate* const candidate =
      known ? &choose(opcodes_.candidates(opcode), module_, *body_, operands) : nullptr;
  // Offsets and depths that a texture is read with are operands that its rows lack.
  OperandAlignment alignment;
  if (known && opcode.texture) known = align_operands(candidate->prototype, operands, alignment);
  if (!known) {
    // Legal PTX that the IR cannot represent, such as a texture with a sampler of its own.
    body_->operands.resize(pool);
    body_->body.resize(statements);
    for (; module_.symbols.size() > symbols; module_.symbols.pop_back()) {
      std::uint32_t& bound = names_[unresolved_.back()].global;
      if (bound == module_.symbols.size() - 1) bound = kNone;
      unresolved_.pop_back();
    }
    keep_unknown(begin, text);
    return;
  }
  finish_instruction(*candidate, begin.line);
}

void Parser::finish_instruction(const Candidate& candidate, std::uint32_t line) {
  Instruction& statement = body_->body.emplace_back(candidate.prototype);
  statement.line = built_ ? 0 : line;
  statement.guard = guard_;
  const auto first = static_cast<std::uint32_t>(body_->operands.size());
  for (std::uint32_t i = 0; i < operand_count_; ++i) {
    Operand& operand = operands_[i];
    if (operand.kind != OperandKind::Label) continue;
    references_.push_back({first + i, operand.id, scopes_.back().number, operand.reserved != 0});
    operand.reserved = 0;
  }
  append_operands(statement, {operands_.data(), operand_count_});
  if (lists_of_one_ != 0) unwrap_list(statement);
}

// `{%r1}` where one operand needs no braces is that operand. It keeps them, since they let an
// integer register take a float, except in a move: ptxas 13.0 crashes on `mov.b32 %r1, {%r2}`. Of
// two lists of one, neither is a plain operand.
void Parser::unwrap_list(Instruction& statement) {
  const OperandSpecs specs(*body_, statement);
  const auto operands = body_->operands_of(statement);
  const bool moves = statement.is(Op::mov);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Operand& list = operands[i];
    if (list.kind != OperandKind::Vector || list.index != 1 || specs[i] == nullptr ||
        !takes_list_of_one(statement, *specs[i]) || (moves && lists_of_one_ != 1))
      continue;
    const bool joined = list.joined;
    list = Operand(body_->elements(list)[0]);
    list.joined = joined;
    list.in_braces = !moves;
  }
}

void Parser::keep_unknown(Cursor::Mark begin, std::string_view opcode) {
  Instruction& statement = body_->body.emplace_back();
  statement.kind = StatementKind::Unknown;
  statement.line = built_ ? 0 : begin.line;
  statement.guard = guard_;
  statement.text = intern(cursor_.raw_statement(begin, opcode));
}

// The mnemonic and its modifiers, which spaces may separate (`add .u32`).
std::string_view Parser::read_opcode(const char* start) {
  const char* p = cursor_.at;
  const auto skip_name = [&p] {
    for (;;) {
      if (is(*p, kNamePart) || (*p == '.' && is(p[1], kNamePart))) {
        ++p;
      } else if (*p == ':' && p[1] == ':' && is(p[2], kNamePart)) {
        p += 2;
      } else {
        return;
      }
    }
  };
  skip_name();
  cursor_.at = p;
  const char* end = p;
  cursor_.skip();
  if (*cursor_.at != '.') return view(start, end);
  std::string text(start, end);
  while (*cursor_.at == '.') {
    if (!is(cursor_.at[1], kNamePart))
      cursor_.fail(cursor_.at, format_text("expected a modifier after '.' in an opcode, found {}",
                                           cursor_.describe(cursor_.at + 1)));
    p = cursor_.at;
    skip_name();
    text.append(cursor_.at, p);
    cursor_.at = p;
    cursor_.skip();
  }
  auto& kept = opcode_texts_.emplace_back(new char[text.size() + Cursor::kPadding]{});
  std::memcpy(kept.get(), text.data(), text.size());
  return {kept.get(), text.size()};
}

// To the `;`. False if an operand is none that the IR can hold.
bool Parser::read_operands(const Opcode& opcode) {
  if (cursor_.accept(';')) return true;
  bool joined = false;
  for (;;) {
    if (operand_count_ == kMaxWrittenOperands) {
      cursor_.fail(cursor_.at, "expected at most 255 operands of '" +
                                   std::string(opcode.text, opcode.length) + "'");
    }
    Operand& operand = operands_[operand_count_];
    operand = {};
    const unsigned bit = operand_count_ < kMaxOperands ? 1u << operand_count_ : 0;
    if (((opcode.label_places | opcode.table_places) & bit) != 0) {
      read_label_operand(operand, (opcode.table_places & bit) != 0);
    } else {
      const bool memory = (opcode.memory_places & bit) != 0;
      indexed_ = false;
      indexing_ = &opcode;
      indexing_address_ = memory;
      const bool fits = read_operand(operand);
      indexing_ = nullptr;
      if (!fits) return false;
      // `ld.shared.f32 %f1, a[2]`: an address, without brackets of its own.
      if (indexed_ && memory &&
          (operand.kind == OperandKind::Symbol || operand.kind == OperandKind::Register)) {
        operand.base = operand.kind;
        operand.kind = OperandKind::Memory;
      }
    }
    operand.joined = joined;
    ++operand_count_;
    if (coordinates_ && !read_coordinates(opcode)) return false;
    cursor_.skip();
    const char c = *cursor_.at;
    if (c == ',' || c == '|') {
      joined = c == '|';
      ++cursor_.at;
    } else if (c == ';') {
      ++cursor_.at;
      return true;
    } else {
      cursor_.fail_expected(format_text("',' or ';' after operand {} of '{}'", operand_count_,
                                        std::string_view(opcode.text, opcode.length)));
    }
  }
}

// After `[map,`: the coordinates, an operand of their own.
bool Parser::read_coordinates(const Opcode& opcode) {
  coordinates_ = false;
  cursor_.skip();
  // A sampler, or one coordinate without braces.
  if (opcode.texture && *cursor_.at != '{') return false;
  cursor_.expect('{', "before the coordinates of a tensor");
  Operand& coordinates = operands_[operand_count_];
  coordinates = {};
  if (!read_vector(coordinates, '}')) return false;
  coordinates.joined = true;
  ++operand_count_;
  cursor_.expect(']', "after the coordinates of a tensor");
  return true;
}

// `(results), callee, (arguments), table`, of which all but the callee may be missing.
bool Parser::read_call_operands() {
  Operand empty;
  empty.kind = OperandKind::List;
  for (std::size_t i = 0; i < 3; ++i) operands_[i] = empty;
  operand_count_ = 3;
  if (cursor_.accept('(')) {
    if (!read_vector(operands_[0], ')')) return false;
    cursor_.expect(',', "after the results of 'call'");
  }
  cursor_.skip();
  if (!is(*cursor_.at, kNameStart)) cursor_.fail_expected("a function or a register after 'call'");
  operands_[1] = {};
  if (!read_name(operands_[1])) return false;
  if (cursor_.accept(',')) {
    bool more = true;
    if (cursor_.accept('(')) {
      if (!read_vector(operands_[2], ')')) return false;
      more = cursor_.accept(',');
    }
    if (more) {
      operands_[3] = {};
      read_label_operand(operands_[3], true);
      operand_count_ = 4;
    }
  }
  cursor_.expect(';', "after the operands of 'call'");
  return true;
}

void Parser::read_label_operand(Operand& out, bool table) {
  out.kind = OperandKind::Label;
  out.id = names_.find_or_add(cursor_.name(table ? "the label of a table" : "a label"));
  out.reserved = table ? 1 : 0;
}

bool Parser::read_operand(Operand& out) {
  cursor_.skip();
  const char c = *cursor_.at;
  if (is(c, kNameStart) && !starts_warp_size(cursor_.at)) return read_name(out);
  if (c == '[') return read_memory(out);
  if (c == '{') {
    ++cursor_.at;
    return read_vector(out, '}');
  }
  if (c == '!') {
    const Cursor::Mark mark = cursor_.mark();
    ++cursor_.at;
    cursor_.skip();
    if (is(*cursor_.at, kNameStart) && !starts_warp_size(cursor_.at)) {
      out.negated = true;
      return read_name(out);
    }
    cursor_.rewind(mark);
  }
  const Constant constant = read_constant(cursor_, "an operand");
  switch (constant.kind) {
    case Constant::Kind::Float32:
      out.kind = OperandKind::Float32;
      break;
    case Constant::Kind::Float64:
      out.kind = OperandKind::Float64;
      break;
    default:
      out.kind = OperandKind::Integer;
      break;
  }
  out.is_unsigned = constant.above_signed();
  out.value = constant.bits;
  return true;
}

// A register, a special register, `_`, or a symbol with an offset.
bool Parser::read_name(Operand& out) {
  const char* start = cursor_.at;
  const char* p = start + 1;
  const char* digits = p;
  for (; is(*p, kNamePart); ++p) {
    if (!is(*p, kDigit)) digits = p + 1;
  }
  if (const Register found = find_register(start, digits, p); found.decl.value != kNone) {
    out.kind = OperandKind::Register;
    out.id = found.decl.value;
    out.index = found.index;
    cursor_.at = p;
    if (*p == '.') out.component = read_component();
    return true;
  }
  if (p == start + 1 && *start == '_') {
    out.kind = OperandKind::Sink;
    cursor_.at = p;
    return true;
  }
  if (*start == '%') {
    if (p == start + 1) cursor_.fail_expected("an operand");
    if (const std::uint32_t special = find_special(view(start + 1, p)); special != kNone) {
      names_[names_.find_or_add(view(start, p))].last_use = clock_;
      touch_odd(start, digits, p);
      out.kind = OperandKind::Special;
      out.id = special;
      cursor_.at = p;
      if (*p == '.' && info(static_cast<SpecialRegister>(special)).components > 0)
        out.component = read_component();
      return true;
    }
    touch_odd(start, digits, p);
    // An unknown special register is named with its component.
    if (*p == '.' && is(p[1], kNamePart)) {
      for (++p; is(*p, kNamePart);) ++p;
    }
  }
  if (*start != '%') touch_odd(start, digits, p);
  cursor_.at = p;
  out.kind = OperandKind::Symbol;
  out.id = symbol_of(view(start, p));
  names_[names_.find_or_add(view(start, p))].last_use = clock_;
  cursor_.skip();
  if (*cursor_.at == '[') return read_index(out);
  out.value = static_cast<std::uint64_t>(read_offset());
  return true;
}

// `.x` and the like, after a register.
std::uint8_t Parser::read_component() {
  constexpr std::string_view kLetters = "xyzwrgba";
  const std::size_t letter = kLetters.find(cursor_.at[1]);
  if (letter == std::string_view::npos || cursor_.at[1] == '\0' || is(cursor_.at[2], kNamePart)) {
    cursor_.fail_expected("a component .x, .y, .z or .w");
  }
  cursor_.at += 2;
  return static_cast<std::uint8_t>(letter % 4 + 1);
}

// `+n`, `-n` or nothing.
std::int64_t Parser::read_offset() {
  cursor_.skip();
  if (*cursor_.at != '+' && *cursor_.at != '-') return 0;
  // A minus belongs to the expression's first term.
  if (*cursor_.at == '+') ++cursor_.at;
  cursor_.skip();
  const char* place = cursor_.at;
  const Constant value = read_constant(cursor_, "a byte offset");
  if (!value.integer())
    cursor_.fail(place, "expected an integer as byte offset, found " + cursor_.describe(place));
  return static_cast<std::int64_t>(value.bits);
}

// `[base+n]`.
bool Parser::read_memory(Operand& out) {
  ++cursor_.at;
  cursor_.skip();
  if (is(*cursor_.at, kNameStart) && !starts_warp_size(cursor_.at)) {
    const char* place = cursor_.at;
    indexed_ = false;
    if (!read_name(out)) return false;
    if (indexed_) {
      cursor_.fail(place, "expected an address such as a+4, found an index in brackets; write " +
                              std::string(module_.text(module_.symbols[out.id].name)) +
                              "[n] without brackets around it");
    }
    if (out.kind != OperandKind::Register && out.kind != OperandKind::Symbol) {
      cursor_.fail(place, "expected a register, a variable or a number as address, found " +
                              cursor_.describe(place));
    }
    out.base = out.kind;
    if (out.kind == OperandKind::Register) {
      cursor_.skip();
      const bool written = *cursor_.at == '+' || *cursor_.at == '-';
      out.value = static_cast<std::uint64_t>(read_offset());
      out.zero_offset = written && out.value == 0;
    }
  } else {
    const char* place = cursor_.at;
    const Constant value = read_constant(cursor_, "an address");
    if (!value.integer())
      cursor_.fail(place, "expected an integer as address, found " + cursor_.describe(place));
    out.base = OperandKind::Integer;
    out.value = value.bits;
  }
  out.kind = OperandKind::Memory;
  cursor_.skip();
  if (*cursor_.at == ',') {
    coordinates_ = indexing_ != nullptr && indexing_->coordinates;
    ++cursor_.at;
    return coordinates_;
  }
  cursor_.expect(']', "at the end of the address");
  return true;
}

// After `{` or `(`, to `close`. The elements go to the function's pool.
bool Parser::read_vector(Operand& out, char close) {
  out.kind = close == ')' ? OperandKind::List : OperandKind::Vector;
  indexing_ = nullptr;
  const std::size_t first = body_->operands.size();
  if (close != ')' || !cursor_.accept(close)) {
    for (;;) {
      cursor_.skip();
      if (*cursor_.at == '{' || *cursor_.at == '[') return false;
      Operand element;
      if (!read_operand(element)) return false;
      body_->operands.push_back(element);
      if (cursor_.accept(',')) continue;
      if (cursor_.accept(close)) break;
      cursor_.fail_expected(
          format_text("',' or '{}' after element {}", close, body_->operands.size() - first));
    }
  }
  out.index = static_cast<std::uint32_t>(body_->operands.size() - first);
  out.id = out.index == 0 ? 0 : static_cast<std::uint32_t>(first);
  if (out.index == 1 && close == '}') ++lists_of_one_;
  return true;
}

// The register named from `start` to `end`, of which the part from `digits` on is digits.
Register Parser::find_register(const char* start, const char* digits, const char* end) {
  if (odd_registers_ != 0) return find_odd_register(start, digits, end);
  const std::uint32_t found = names_.find(start, static_cast<std::size_t>(digits - start));
  if (found == kNone) return {};
  Name& name = names_[found];
  if (digits == end) {
    if (name.exact == kNone) return {};
    name.last_use = clock_;
    return {{name.exact}, 0};
  }
  if (name.prefix == kNone || end - digits > kMaxDigits) return {};
  const std::uint64_t number = number_of(digits, end);
  if (number >= body_->registers[name.prefix].count) return {};
  name.last_prefix_use = clock_;
  return {{name.prefix}, static_cast<std::uint32_t>(number)};
}

// The same where a name may be split in several ways: `%r12` may be a name of its own, or number 12
// of `%r`; the innermost declaration counts. ptxas reads it as number 2 of `%r1` never. Here it is,
// if it has no other meaning, for the verifier to refuse it.
Register Parser::find_odd_register(const char* start, const char* digits, const char* end) {
  Register best;
  std::uint32_t best_name = kNone;
  const auto scope_of = [&](std::uint32_t decl) { return body_->registers[decl].scope; };
  const std::uint32_t full_name = names_.find(start, static_cast<std::size_t>(end - start));
  if (full_name != kNone && names_[full_name].exact != kNone) {
    best = {{names_[full_name].exact}, 0};
    best_name = full_name;
  }
  bool prefixed = false;
  for (const char* p = std::max(digits, end - kMaxDigits); p < end; ++p) {
    const std::uint32_t found = names_.find(start, static_cast<std::size_t>(p - start));
    if (found == kNone || names_[found].prefix == kNone) continue;
    const std::uint32_t decl = names_[found].prefix;
    const std::uint64_t number = number_of(p, end);
    if (number >= body_->registers[decl].count) continue;
    if (best_name != kNone && (p != digits || scope_of(best.decl.value) >= scope_of(decl)))
      continue;
    best = {{decl}, static_cast<std::uint32_t>(number)};
    best_name = found;
    prefixed = true;
  }
  if (best_name == kNone) return {};
  if (prefixed) {
    names_[best_name].last_prefix_use = clock_;
  } else {
    names_[best_name].last_use = clock_;
  }
  touch_odd(start, digits, end);
  return best;
}

// Remembers the use of a name that numbered registers declared later could claim.
void Parser::touch_odd(const char* start, const char* digits, const char* end) {
  for (const char* p = std::max(digits, end - kMaxDigits); p < end && is(*p, kDigit); ++p) {
    Name& prefix = names_[names_.find_or_add(view(start, p))];
    const auto number =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(number_of(p, end), kNone - 1));
    prefix.lowest_number = std::min(prefix.lowest_number, number);
    prefix.last_prefix_use = clock_;
  }
}

std::uint32_t Parser::symbol_of(std::string_view text) {
  const std::uint32_t name = names_.find_or_add(text);
  if (names_[name].local != kNone) return names_[name].local;
  if (!ranged_.empty()) {
    const std::uint32_t symbol = ranged_symbol(text);
    if (symbol != kNone) return symbol;
  }
  if (names_[name].global == kNone) {
    names_[name].global = add_symbol(name, SymbolKind::Unresolved, kNone, kNone);
    unresolved_.push_back(name);
  }
  return names_[name].global;
}

// The symbol of a variable declared as `name<range>`, kNone if it is none.
std::uint32_t Parser::ranged_symbol(std::string_view text) {
  const char* end = text.data() + text.size();
  for (const char* p = end; p - 1 > text.data() && is(p[-1], kDigit) && end - p < kMaxDigits;) {
    --p;
    const std::uint32_t found = names_.find(text.data(), static_cast<std::size_t>(p - text.data()));
    if (found == kNone || names_[found].ranged == kNone) continue;
    const Ranged& ranged = ranged_[names_[found].ranged];
    if (number_of(p, end) >= ranged.range) continue;
    const std::uint32_t name = names_.find_or_add(text);
    if (ranged.function == kNone) {
      if (names_[name].global == kNone) {
        names_[name].global = add_symbol(name, SymbolKind::Variable, kNone, ranged.variable);
        unresolved_.push_back(name);
      }
      return names_[name].global;
    }
    const std::uint32_t symbol =
        add_symbol(name, SymbolKind::FunctionVariable, ranged.function, ranged.variable);
    unresolved_.push_back(name);
    return symbol;
  }
  return kNone;
}

}  // namespace ptxgen::inline v0::ptx::reading
