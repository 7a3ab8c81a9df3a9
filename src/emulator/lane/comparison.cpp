// src/emulator/lane/comparison.cpp - setp, set, selp, slct of one lane
#include "emulator/lane/lane_numerics.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using namespace numerics;
using ptx::Modifier;
using ptx::Op;
using ptx::Type;

Order compared_integers(u64 a, u64 b, Type type) noexcept {
  const u64 x = extended(a, type);
  const u64 y = extended(b, type);
  if (x == y) return Order::Equal;
  const bool less =
      is_signed(type) ? static_cast<std::int64_t>(x) < static_cast<std::int64_t>(y) : x < y;
  return less ? Order::Less : Order::Greater;
}

constexpr bool holds(Modifier comparison, Order order) noexcept {
  const bool less = order == Order::Less;
  const bool equal = order == Order::Equal;
  const bool greater = order == Order::Greater;
  const bool unordered = order == Order::Unordered;
  switch (comparison) {
    case Modifier::eq:
      return equal;
    case Modifier::ne:
      return less || greater;
    case Modifier::lt:
    case Modifier::lo:
      return less;
    case Modifier::le:
    case Modifier::ls:
      return less || equal;
    case Modifier::gt:
    case Modifier::hi:
      return greater;
    case Modifier::ge:
    case Modifier::hs:
      return greater || equal;
    case Modifier::equ:
      return equal || unordered;
    case Modifier::neu:
      return !equal;
    case Modifier::ltu:
      return less || unordered;
    case Modifier::leu:
      return !greater;
    case Modifier::gtu:
      return greater || unordered;
    case Modifier::geu:
      return !less;
    case Modifier::num:
      return !unordered;
    case Modifier::nan:
      return unordered;
    default:
      return false;
  }
}

constexpr bool combined(Modifier boolean, bool value, u64 with) noexcept {
  switch (boolean) {
    case Modifier::and_:
      return value && with != 0;
    case Modifier::or_:
      return value || with != 0;
    case Modifier::xor_:
      return value != (with != 0);
    default:
      return value;
  }
}

/// How the elements of two sources compare.
struct Integers {
  static constexpr int kLanes = 1;
  static Order compare(const LaneOp& op, Type type, const u64* sources, int) noexcept {
    static_cast<void>(op);
    return compared_integers(sources[0], sources[1], type);
  }
};
template <class F, int lanes>
struct Floats {
  static constexpr int kLanes = lanes;
  static Order compare(const LaneOp& op, Type, const u64* sources, int lane) noexcept {
    return compared<F>(flushed<F>(element<F>(sources[0], lane), op.ftz),
                       flushed<F>(element<F>(sources[1], lane), op.ftz));
  }
};

/// A third source is the predicate that the result is combined with.
template <class Elements>
bool outcome(const LaneOp& op, Type type, const u64* sources, int lane, bool opposite) noexcept {
  const bool value = holds(op.comparison, Elements::compare(op, type, sources, lane)) != opposite;
  return op.boolean == Modifier::none ? value : combined(op.boolean, value, sources[2]);
}

/// Two destinations: of the two elements, or the comparison and its opposite.
template <class Elements>
void set_predicates(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = outcome<Elements>(op, op.type, sources, 0, false) ? 1 : 0;
  if (op.result_count < 2) return;
  constexpr bool kPacked = Elements::kLanes == 2;
  results[1] = outcome<Elements>(op, op.type, sources, kPacked ? 1 : 0, !kPacked) ? 1 : 0;
}
template <class Elements>
void set_predicate(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = outcome<Elements>(op, op.type, sources, 0, false) ? 1 : 0;
}

/// What `set` writes where the comparison holds.
constexpr u64 truth(Type type) noexcept {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return F16::kOne;
    case Type::bf16:
    case Type::bf16x2:
      return BF16::kOne;
    case Type::f32:
      return F32::kOne;
    case Type::u16:
    case Type::s16:
      return 0xffff;
    default:
      return 0xffffffff;
  }
}

template <class Elements>
void set_value(const LaneOp& op, const u64* sources, u64* results) {
  const u64 value = truth(op.type);
  if constexpr (Elements::kLanes == 1) {
    results[0] = outcome<Elements>(op, op.type2, sources, 0, false) ? value : 0;
  } else {
    const bool low = outcome<Elements>(op, op.type2, sources, 0, false);
    const bool high = outcome<Elements>(op, op.type2, sources, 1, false);
    results[0] = (low ? value & 0xffff : 0) | (high ? (value & 0xffff) << 16 : 0);
  }
}

void select_by_predicate(const LaneOp&, const u64* sources, u64* results) {
  results[0] = sources[2] != 0 ? sources[0] : sources[1];
}
void select_by_sign(const LaneOp&, const u64* sources, u64* results) {
  const bool negative = (sources[2] >> 31 & 1) != 0;
  results[0] = negative ? sources[1] : sources[0];
}
void select_by_float(const LaneOp& op, const u64* sources, u64* results) {
  const u32 c = flushed<F32>(element<F32>(sources[2]), op.ftz);
  const Order order = compared<F32>(c, 0);
  results[0] = order == Order::Greater || order == Order::Equal ? sources[0] : sources[1];
}

}  // namespace

LaneFunction comparison_function(const LaneOp& op) {
  switch (op.op) {
    case Op::setp_bits:
    case Op::setp_bits_bool:
    case Op::setp_unsigned:
    case Op::setp_unsigned_bool:
    case Op::setp_signed:
    case Op::setp_signed_bool:
      return &set_predicates<Integers>;
    case Op::setp_f32:
    case Op::setp_f32_bool:
    case Op::setp_f64:
    case Op::setp_f64_bool:
    case Op::setp_f16x2:
    case Op::setp_f16x2_bool:
    case Op::setp_bf16x2:
    case Op::setp_bf16x2_bool:
      return with_format(op.type, []<class F, int lanes>() -> LaneFunction {
        return &set_predicates<Floats<F, lanes>>;
      });
    case Op::setp_f16:
    case Op::setp_f16_bool:
    case Op::setp_bf16:
    case Op::setp_bf16_bool:
      return with_format(op.type, []<class F, int lanes>() -> LaneFunction {
        return &set_predicate<Floats<F, lanes>>;
      });
    case Op::set_bits:
    case Op::set_bits_bool:
    case Op::set_unsigned:
    case Op::set_unsigned_bool:
    case Op::set_signed:
    case Op::set_signed_bool:
    case Op::set_f16_from_bits:
    case Op::set_f16_from_bits_bool:
    case Op::set_f16_from_unsigned:
    case Op::set_f16_from_unsigned_bool:
    case Op::set_f16_from_signed:
    case Op::set_f16_from_signed_bool:
      return &set_value<Integers>;
    case Op::set_f32:
    case Op::set_f32_bool:
    case Op::set_f64:
    case Op::set_f64_bool:
    case Op::set_f16_from_f32:
    case Op::set_f16_from_f32_bool:
    case Op::set_bf16_from_f32:
    case Op::set_bf16_from_f32_bool:
    case Op::set_f16_from_f64:
    case Op::set_f16_from_f64_bool:
    case Op::set_f16:
    case Op::set_f16_bool:
    case Op::set_bf16:
    case Op::set_bf16_bool:
    case Op::set_f16x2:
    case Op::set_f16x2_bool:
    case Op::set_bf16x2:
    case Op::set_bf16x2_bool:
      return with_format(op.type2, []<class F, int lanes>() -> LaneFunction {
        return &set_value<Floats<F, lanes>>;
      });
    case Op::selp:
      return &select_by_predicate;
    case Op::slct:
      return &select_by_sign;
    case Op::slct_f32:
      return &select_by_float;
    default:
      return nullptr;
  }
}

}  // namespace ptxgen::inline v0::emulator
