// src/check/barrier_safety/lanes.cpp - integer arithmetic of one thread
#include "check/barrier_safety/lanes.hpp"

#include <algorithm>
#include <bit>

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;

namespace {

bool is_integer(Type type) {
  const TypeKind k = kind(type);
  return (k == TypeKind::Unsigned || k == TypeKind::Signed || k == TypeKind::Bits) &&
         bits(type) <= 64;
}
bool is_signed(Type type) { return kind(type) == TypeKind::Signed; }

std::uint64_t cut(std::uint64_t value, unsigned width) {
  return width >= 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}
std::int64_t extended(std::uint64_t value, unsigned width) {
  if (width >= 64) return static_cast<std::int64_t>(value);
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  return static_cast<std::int64_t>((cut(value, width) ^ sign) - sign);
}
/// As the type reads it.
std::uint64_t as(Type type, std::uint64_t value) {
  return is_signed(type) ? static_cast<std::uint64_t>(extended(value, bits(type)))
                         : cut(value, bits(type));
}
bool less(Type type, std::uint64_t a, std::uint64_t b) {
  return is_signed(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
}

bool compare(Modifier comparison, Type type, std::uint64_t a, std::uint64_t b) {
  a = as(type, a);
  b = as(type, b);
  switch (comparison) {
    case Modifier::eq:
      return a == b;
    case Modifier::ne:
      return a != b;
    case Modifier::lt:
    case Modifier::lo:
      return less(type, a, b);
    case Modifier::le:
    case Modifier::ls:
      return !less(type, b, a);
    case Modifier::gt:
    case Modifier::hi:
      return less(type, b, a);
    default:
      return !less(type, a, b);
  }
}

bool combined(const LaneOp& op, bool a, bool b) {
  if (op.combine == Modifier::and_) return a && b;
  return op.combine == Modifier::or_ ? a || b : a != b;
}

/// The high half of a product; 64-bit ones are not computed here.
std::uint64_t product(const LaneOp& op, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t all = as(op.type, a) * as(op.type, b);
  if (!op.high) return all;
  return is_signed(op.type)
             ? static_cast<std::uint64_t>(static_cast<std::int64_t>(all) >> bits(op.type))
             : all >> bits(op.type);
}

LaneResult divided(const LaneOp& op, std::uint64_t a, std::uint64_t b, bool remainder) {
  a = as(op.type, a);
  b = as(op.type, b);
  if (b == 0) return {};
  if (!is_signed(op.type)) return {true, remainder ? a % b : a / b, 0};
  const auto x = static_cast<std::int64_t>(a);
  const auto y = static_cast<std::int64_t>(b);
  if (y == -1) return {true, remainder ? 0 : 0 - a, 0};  // the least number has no opposite
  return {true, static_cast<std::uint64_t>(remainder ? x % y : x / y), 0};
}

std::uint64_t shifted_right(Type type, std::uint64_t value, std::uint64_t by) {
  const unsigned width = bits(type);
  const std::uint64_t places = cut(by, 32);
  if (!is_signed(type)) return places >= width ? 0 : cut(value, width) >> places;
  return static_cast<std::uint64_t>(extended(value, width) >>
                                    std::min<std::uint64_t>(places, width - 1));
}

std::uint64_t table(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t truth) {
  std::uint64_t made = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if ((truth >> row & 1) == 0) continue;
    made |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  return made;
}

}  // namespace

LaneOp lane_op(const Function& function, const Instruction& s) {
  LaneOp made;
  if (s.kind != StatementKind::Instruction) return made;
  made.op = s.op;
  made.type = s.type();
  made.from = s.type(1);
  made.comparison = s.get(Field::Comparison);
  made.combine = s.get(Field::BoolOp);
  made.high = s.get(Field::MulPart) == Modifier::hi;
  std::size_t written = 0;
  const auto operands = function.operands_of(s);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec* spec = operand_spec(function, s, i);
    if (spec == nullptr) return made;
    if (operands[i].kind == OperandKind::Vector || operands[i].kind == OperandKind::List)
      return made;
    if (spec->role == OperandRole::Destination) ++written;
  }
  made.results = static_cast<std::uint8_t>(written);
  if (operands.size() - written > kMaxSources || written == 0 || written > 2) return made;
  made.sources = static_cast<std::uint8_t>(operands.size() - written);
  switch (s.op) {
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::not_:
    case Op::mov:
      made.known = is_integer(made.type) || made.type == Type::pred;
      break;
    case Op::mul:
    case Op::mad:
      made.known = is_integer(made.type) && !(made.high && bits(made.type) == 64);
      break;
    case Op::cvt_int:
    case Op::set_bits:
    case Op::set_unsigned:
    case Op::set_signed:
      made.known = is_integer(made.from) && is_integer(made.type);
      break;
    case Op::add:
    case Op::sub:
    case Op::mul_wide:
    case Op::mad_wide:
    case Op::div:
    case Op::rem:
    case Op::abs:
    case Op::neg:
    case Op::min:
    case Op::max:
    case Op::popc:
    case Op::clz:
    case Op::bfe:
    case Op::bfi:
    case Op::brev:
    case Op::slct:
    case Op::cnot:
    case Op::lop3:
    case Op::shl:
    case Op::shr:
    case Op::selp:
    case Op::setp_bits:
    case Op::setp_bits_bool:
    case Op::setp_unsigned:
    case Op::setp_unsigned_bool:
    case Op::setp_signed:
    case Op::setp_signed_bool:
      made.known = is_integer(made.type);
      break;
    default:
      break;
  }
  return made;
}

LaneResult compute(const LaneOp& op, const std::uint64_t* in) {
  const unsigned width = bits(op.type) == 0 ? 1 : bits(op.type);
  const auto whole = [&](std::uint64_t value) { return LaneResult{true, cut(value, width), 0}; };
  switch (op.op) {
    case Op::mov:
      return whole(in[0]);
    case Op::and_:
      return whole(in[0] & in[1]);
    case Op::or_:
      return whole(in[0] | in[1]);
    case Op::xor_:
      return whole(in[0] ^ in[1]);
    case Op::not_:
      return whole(~in[0]);
    case Op::cnot:
      return whole(cut(in[0], width) == 0 ? 1 : 0);
    case Op::lop3:
      return whole(table(in[0], in[1], in[2], in[3]));
    case Op::add:
      return whole(in[0] + in[1]);
    case Op::sub:
      return whole(in[0] - in[1]);
    case Op::mul:
      return whole(product(op, in[0], in[1]));
    case Op::mad:
      return whole(product(op, in[0], in[1]) + in[2]);
    case Op::mul_wide:
      return {true, cut(as(op.type, in[0]) * as(op.type, in[1]), 2 * width), 0};
    case Op::mad_wide:
      return {true, cut(as(op.type, in[0]) * as(op.type, in[1]) + in[2], 2 * width), 0};
    case Op::div:
    case Op::rem: {
      LaneResult made = divided(op, in[0], in[1], op.op == Op::rem);
      made.value = cut(made.value, width);
      return made;
    }
    case Op::abs:
      return whole(extended(in[0], width) < 0 ? 0 - in[0] : in[0]);
    case Op::neg:
      return whole(0 - in[0]);
    case Op::min:
      return whole(less(op.type, as(op.type, in[0]), as(op.type, in[1])) ? in[0] : in[1]);
    case Op::max:
      return whole(less(op.type, as(op.type, in[0]), as(op.type, in[1])) ? in[1] : in[0]);
    case Op::popc:
      return {true, static_cast<std::uint64_t>(std::popcount(cut(in[0], width))), 0};
    case Op::clz:
      return {true, static_cast<std::uint64_t>(std::countl_zero(cut(in[0], width))) - (64 - width),
              0};
    case Op::bfe: {
      const std::uint64_t from = cut(in[1], 8);
      const std::uint64_t length = cut(in[2], 8);
      // Beyond the width PTX repeats the sign.
      if (is_signed(op.type) && (length == 0 || from + length > width)) return {};
      const std::uint64_t field =
          from >= 64 ? 0 : cut(cut(in[0], width) >> from, static_cast<unsigned>(length));
      return whole(is_signed(op.type)
                       ? static_cast<std::uint64_t>(extended(field, static_cast<unsigned>(length)))
                       : field);
    }
    case Op::bfi: {
      const std::uint64_t from = cut(in[2], 8);
      const std::uint64_t length = std::min<std::uint64_t>(cut(in[3], 8), 64);
      const std::uint64_t field =
          from >= 64 ? 0 : cut(~std::uint64_t{0}, static_cast<unsigned>(length)) << from;
      return whole((in[1] & ~field) | ((from >= 64 ? 0 : in[0] << from) & field));
    }
    case Op::brev: {
      std::uint64_t made = 0;
      for (unsigned i = 0; i < width; ++i) made |= (in[0] >> i & 1) << (width - 1 - i);
      return whole(made);
    }
    case Op::slct:
      return whole(extended(in[2], 32) >= 0 ? in[0] : in[1]);
    case Op::set_bits:
    case Op::set_unsigned:
    case Op::set_signed:
      return whole(compare(op.comparison, op.from, in[0], in[1]) ? ~std::uint64_t{0} : 0);
    case Op::shl:
      return whole(cut(in[1], 32) >= width ? 0 : in[0] << cut(in[1], 32));
    case Op::shr:
      return whole(shifted_right(op.type, in[0], in[1]));
    case Op::selp:
      return whole(in[2] != 0 ? in[0] : in[1]);
    case Op::cvt_int:
      // Narrow results are extended to their register, which may be wider.
      return {true, as(op.type, as(op.from, in[0])), 0};
    case Op::setp_bits:
    case Op::setp_unsigned:
    case Op::setp_signed: {
      const bool holds = compare(op.comparison, op.type, in[0], in[1]);
      return {true, holds ? 1u : 0u, holds ? 0u : 1u};
    }
    case Op::setp_bits_bool:
    case Op::setp_unsigned_bool:
    case Op::setp_signed_bool: {
      const bool holds = compare(op.comparison, op.type, in[0], in[1]);
      return {true, combined(op, holds, in[2] != 0) ? 1u : 0u,
              combined(op, !holds, in[2] != 0) ? 1u : 0u};
    }
    default:
      return {};
  }
}

}  // namespace ptxgen::inline v0::gates::barriers
