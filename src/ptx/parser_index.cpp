// src/ptx/parser_index.cpp - elements of arrays: `name[index]`
#include <algorithm>
#include <array>

#include "ptx/parser_state.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

// Opcodes with the bytes after them that the opcode table reads.
struct Conversion {
  Type type;
  char text[24];
};
constexpr Conversion kToIndex[] = {
    {Type::b8, "cvt.u32.u8"},
    {Type::u8, "cvt.u32.u8"},
    {Type::s8, "cvt.s32.s8"},
    {Type::b16, "cvt.u32.u16"},
    {Type::u16, "cvt.u32.u16"},
    {Type::s16, "cvt.s32.s16"},
    {Type::b32, ""},
    {Type::u32, ""},
    {Type::s32, ""},
    {Type::b64, "cvt.u32.u64"},
    {Type::u64, "cvt.u32.u64"},
    {Type::s64, "cvt.u32.u64"},
};
constexpr char kAdd32[24] = "add.u32";
constexpr char kAdd64[24] = "add.u64";
constexpr char kMultiply[24] = "mul.lo.u32";
constexpr char kWiden[24] = "cvt.u64.u32";
constexpr char kMove32[24] = "mov.u32";
constexpr char kMove64[24] = "mov.u64";

const Conversion* conversion_of(Type type) {
  const auto* found = std::find_if(std::begin(kToIndex), std::end(kToIndex),
                                   [&](const Conversion& c) { return c.type == type; });
  return found == std::end(kToIndex) ? nullptr : found;
}

// ptxas 13.0 takes the address of an element with these; elsewhere it expects a register.
bool takes_address(const Opcode& opcode) {
  const std::string_view text(opcode.text, opcode.length);
  return text.starts_with("mov.") || text.starts_with("cvta.");
}

constexpr std::string_view kStem = "%element";

// The longest run of '_' after the stem in the text.
std::size_t longest_tail(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t at = text.find(kStem); at != std::string_view::npos; at = text.find(kStem, at)) {
    at += kStem.size();
    const std::size_t end = std::min(text.find_first_not_of('_', at), text.size());
    longest = std::max(longest, end - at);
  }
  return longest;
}

}  // namespace

// `[index]` after the name of an array: a constant, or a register to which a constant may be
// added. As ptxas 13.0 compiles it, the index counts elements of the type, whatever the other
// dimensions and the vector are. False if the name is that of no array.
bool Parser::read_index(Operand& out) {
  const Symbol& symbol = module_.symbols[out.id];
  const Variable* array = nullptr;
  if (symbol.kind == SymbolKind::Variable) array = &module_.variables[symbol.index];
  if (symbol.kind == SymbolKind::FunctionVariable) {
    array = &module_.functions[symbol.function].variables[symbol.index];
  }
  if (array == nullptr || array->dimensions.empty()) return false;
  ++cursor_.at;
  cursor_.skip();
  const char* place = cursor_.at;
  Register varying;
  std::uint64_t constant = 0;
  if (is(*place, kNameStart) && !starts_warp_size(place)) varying = read_index_register(place);
  const bool varies = varying.decl.value != kNone;
  if (!varies || cursor_.accept('+')) {
    cursor_.skip();
    place = cursor_.at;
    const Constant index = read_constant(cursor_, "an index");
    if (!index.integer())
      cursor_.fail(place, "expected an integer as index, found " + cursor_.describe(place));
    constant = index.bits;
  }
  cursor_.expect(']', "after the index");
  indexed_ = true;
  if (varies) {
    add_element_address(out, *array, varying, constant);
  } else {
    out.value = constant * bytes(array->type);
  }
  return true;
}

Register Parser::read_index_register(const char* place) {
  const char* p = place + 1;
  const char* digits = p;
  for (; is(*p, kNamePart); ++p) {
    if (!is(*p, kDigit)) digits = p + 1;
  }
  const Register found = find_register(place, digits, p);
  if (found.decl.value == kNone) {
    cursor_.fail(place, "expected an integer or a declared register as index, found " +
                            cursor_.describe(place));
  }
  const RegisterDecl& decl = body_->registers[found.decl.value];
  if (decl.vector != 1 || conversion_of(decl.type) == nullptr) {
    cursor_.fail(place, "expected a register of an integer or bit type as index, found " +
                            cursor_.describe(place));
  }
  if (indexing_ == nullptr || !(indexing_address_ || takes_address(*indexing_))) {
    cursor_.fail(place,
                 "expected a constant index here, found " + cursor_.describe(place) +
                     "; an element that a register chooses can be an address (ld, st) or the "
                     "source of mov and cvta");
  }
  cursor_.at = p;
  return found;
}

// Puts the address of the element into a register of its own, in front of the instruction. The IR
// has no operand for it: every analysis sees the arithmetic. ptxas 13.0 computes the offset in 32
// bits, whatever the type of the index, and takes it for unsigned.
void Parser::add_element_address(Operand& out, const Variable& array, Register index,
                                 std::uint64_t added) {
  const bool wide = module_.address_size != 32;
  const Type pointer = wide ? Type::u64 : Type::u32;
  if (first_element_register_ == kNone) {
    first_element_register_ = static_cast<std::uint32_t>(body_->registers.size());
    add_element_register(Type::u32, "offset");
    add_element_register(pointer, "wide_offset");
    add_element_register(pointer, "address");
  }
  const auto own = [&](std::uint32_t n) {
    return Operand::reg({{first_element_register_ + n}, 0});
  };
  const Operand offset = own(0), wide_offset = own(1);
  Operand address = own(2);
  const auto integer = [](std::uint64_t value) {
    return Operand::integer(static_cast<std::int64_t>(value & 0xffffffff));
  };
  const bool negated = out.negated;
  out.negated = false;
  Operand at = Operand::reg(index);
  const Conversion* conversion = conversion_of(body_->registers[index.decl.value].type);
  if (conversion->text[0] != '\0') {
    add_computation(conversion->text, std::array{offset, at});
    at = offset;
  }
  if (added != 0) {
    add_computation(kAdd32, std::array{offset, at, integer(added)});
    at = offset;
  }
  add_computation(kMultiply, std::array{offset, at, integer(bytes(array.type))});
  add_computation(wide ? kMove64 : kMove32, std::array{address, out});
  if (wide) {
    add_computation(kWiden, std::array{wide_offset, offset});
    add_computation(kAdd64, std::array{address, address, wide_offset});
  } else {
    add_computation(kAdd32, std::array{address, address, offset});
  }
  address.negated = negated;
  out = address;
}

// An instruction in front of the one that is being read, under the same guard.
void Parser::add_computation(std::string_view text, std::span<const Operand> operands) {
  const Opcode opcode = opcodes_.find(text);
  Instruction& statement = body_->body.emplace_back(
      choose(opcodes_.candidates(opcode), module_, *body_, operands).prototype);
  statement.line = built_ ? 0 : cursor_.line;
  statement.guard = guard_;
  append_operands(statement, operands);
}

// A register of the function that no text names: its stem goes on with one '_' more than any.
void Parser::add_element_register(Type type, std::string_view word) {
  if (element_tail_ == 0) {
    element_tail_ = 1 + longest_tail({cursor_.begin(),
                                      static_cast<std::size_t>(cursor_.end() - cursor_.begin())});
  }
  std::size_t tail = element_tail_;
  for (const RegisterDecl& decl : std::span(body_->registers).first(first_element_register_))
    tail = std::max(tail, 1 + longest_tail(module_.text(decl.name)));
  std::string name(kStem);
  name.append(tail, '_');
  name += word;
  RegisterDecl decl;
  decl.name = intern(name);
  decl.type = type;
  decl.line = built_ ? 0 : cursor_.line;
  body_->registers.push_back(decl);
}

}  // namespace ptxgen::inline v0::ptx::reading
