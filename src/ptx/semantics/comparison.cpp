// src/ptx/semantics/comparison.cpp - integer setp and set, selection, conversion between integers
#include "ptx/semantics/compare.hpp"
#include "ptx/semantics/scalar.hpp"

namespace ptxgen::inline v0::ptx {
namespace {

using u64 = std::uint64_t;

/// A third source is the predicate that the result is combined with.
u64 outcome(const ScalarOp& op, Type type, const u64* s, bool opposite) {
  const bool value = holds(op.comparison, ordering(s[0], s[1], type)) != opposite;
  if (op.boolean == Modifier::none) return value ? 1 : 0;
  return combined(op.boolean, value, s[2] != 0) ? 1 : 0;
}

/// The second destination gets the result of the opposite comparison.
void set_predicates(const ScalarOp& op, const u64* s, u64* d) {
  d[0] = outcome(op, op.type, s, false);
  if (op.result_count == 2) d[1] = outcome(op, op.type, s, true);
}

void set_value(const ScalarOp& op, const u64* s, u64* d) {
  d[0] = outcome(op, op.type2, s, false) != 0 ? set_true(op.type) : 0;
}

void select_by_predicate(const ScalarOp&, const u64* s, u64* d) { d[0] = s[2] != 0 ? s[0] : s[1]; }

void select_by_sign(const ScalarOp&, const u64* s, u64* d) {
  d[0] = (s[2] >> 31 & 1) != 0 ? s[1] : s[0];
}

void convert(const ScalarOp& op, const u64* s, u64* d) {
  d[0] = low_bits(extended(s[0], op.type2), integer_width(op.type));
}

void convert_saturated(const ScalarOp& op, const u64* s, u64* d) {
  d[0] = clamped(extended(s[0], op.type2), is_signed(op.type2), integer_width(op.type),
                 is_signed(op.type));
}

}  // namespace

ScalarFunction comparison_function(const ScalarOp& op) noexcept {
  switch (op.op) {
    case Op::setp_bits:
    case Op::setp_bits_bool:
    case Op::setp_unsigned:
    case Op::setp_unsigned_bool:
    case Op::setp_signed:
    case Op::setp_signed_bool:
      return &set_predicates;
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
      return &set_value;
    case Op::selp:
      return &select_by_predicate;
    case Op::slct:
      return &select_by_sign;
    case Op::cvt_int:
      return &convert;
    case Op::cvt_sat_u8:
    case Op::cvt_sat_u16:
    case Op::cvt_sat_u32:
    case Op::cvt_sat_u64:
    case Op::cvt_sat_s8:
    case Op::cvt_sat_s16:
    case Op::cvt_sat_s32:
    case Op::cvt_sat_s64:
      return &convert_saturated;
    default:
      return nullptr;
  }
}

}  // namespace ptxgen::inline v0::ptx
