// src/emulator/lane/conversion.cpp - cvt of one lane
//
// Where PTX leaves a result open, the emulator chooses:
// - tf32 results have zeros in the 13 bits that tf32 does not have.
// - A NaN without .satfinite is 0xff in ue8m0, and so is what is too large; a sign is ignored.
// - .rs to e2m1x4: a and b share the 16 random bits {c[31:24], c[15:8]}, e and f the others. The
//   random bits are aligned with the uppermost bits that rounding cuts off.
#include <algorithm>
#include <limits>

#include "emulator/lane/lane_numerics.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using namespace numerics;
using ptx::Modifier;
using ptx::Op;
using ptx::Type;

template <class F>
using Bits = typename F::Bits;

// ---- integers ----

void convert_integer(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = cut_to(extended(sources[0], op.type2), integer_width(op.type));
}

/// An integer (two's complement if `negative_possible`) clamped to a type of `width` bits.
constexpr u64 clamped(u64 value, bool source_signed, unsigned width, bool to_signed) noexcept {
  const u64 top = u64{1} << (width - 1);
  const u64 max = to_signed ? top - 1 : cut_to(~u64{0}, width);
  if (source_signed && static_cast<std::int64_t>(value) < 0) {
    if (!to_signed) return 0;
    return cut_to(0 - std::min(0 - value, top), width);
  }
  return std::min(value, max);
}
void saturate_integer(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = clamped(extended(sources[0], op.type2), is_signed(op.type2), integer_width(op.type),
                       is_signed(op.type));
}

/// Widths of the small types that cvt.pack writes.
constexpr unsigned packed_width(Type type) noexcept {
  switch (type) {
    case Type::u16:
    case Type::s16:
      return 16;
    case Type::u8:
    case Type::s8:
      return 8;
    case Type::u4:
    case Type::s4:
      return 4;
    default:
      return 2;
  }
}
constexpr bool packed_signed(Type type) noexcept {
  return type == Type::s16 || type == Type::s8 || type == Type::s4 || type == Type::s2;
}
u64 packed_pair(const LaneOp& op, const u64* sources) noexcept {
  const unsigned width = packed_width(op.type);
  const bool to_signed = packed_signed(op.type);
  const u64 high = clamped(extended(sources[0], Type::s32), true, width, to_signed);
  const u64 low = clamped(extended(sources[1], Type::s32), true, width, to_signed);
  return high << width | low;
}
void pack_integers(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = packed_pair(op, sources);
}
void pack_integers_and_shift(const LaneOp& op, const u64* sources, u64* results) {
  const u64 above = sources[2] << (2 * packed_width(op.type));
  results[0] = cut_to(above | packed_pair(op, sources), 32);
}

// ---- between floats and integers ----

template <class From>
void float_to_integer(const LaneOp& op, const u64* sources, u64* results) {
  const Bits<From> a = flushed<From>(element<From>(sources[0]), op.ftz && From::kWidth == 32);
  results[0] = to_integer<From>(a, rounding_of(op.rounding),
                                static_cast<int>(integer_width(op.type)), is_signed(op.type));
}
template <class To>
void integer_to_float(const LaneOp& op, const u64* sources, u64* results) {
  const u64 value = extended(sources[0], op.type2);
  const bool negative = is_signed(op.type2) && static_cast<std::int64_t>(value) < 0;
  const Bits<To> result =
      from_integer<To>(negative ? 0 - value : value, negative, rounding_of(op.rounding));
  results[0] = saturated<To>(result, op.sat);
}

// ---- between floats ----

/// One element: flushed if f32, converted, flushed if f32, then clamped as the row says.
template <class To, class From>
Bits<To> converted(const LaneOp& op, Bits<From> a) noexcept {
  a = flushed<From>(a, op.ftz && std::is_same_v<From, F32>);
  Bits<To> result{};
  if (std::is_same_v<To, F64> && std::is_same_v<From, F32> && is_nan<From>(a)) {
    // A NaN keeps its sign and payload, quiet.
    result = static_cast<Bits<To>>((u64{a} & F32::kSign) << 32 | 0x7ff8000000000000 |
                                   (u64{a} & 0x7fffff) << 29);
  } else {
    result = convert<To, From>(a, rounding_of(op.rounding), op.satfinite);
  }
  result = flushed<To>(result, op.ftz && std::is_same_v<To, F32>);
  return rectified<To>(saturated<To>(result, op.sat), op.relu);
}

template <class To, class From>
void convert_one(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = converted<To, From>(op, element<From>(sources[0]));
}

/// The same format: rounded to an integral value if the row says so.
template <class F>
void convert_same(const LaneOp& op, const u64* sources, u64* results) {
  Bits<F> a = flushed<F>(element<F>(sources[0]), op.ftz);
  if (op.rounding != Modifier::none) a = rounded_to_integral<F>(a, rounding_of(op.rounding));
  if (is_nan<F>(a)) a = F::kNan;
  results[0] = saturated<F>(a, op.sat);
}

constexpr int kTf32Shift = F32::kFractionBits - TF32::kFractionBits;
void convert_to_tf32(const LaneOp& op, const u64* sources, u64* results) {
  const u32 a = element<F32>(sources[0]);
  const u32 rounded = convert<TF32, F32>(a, rounding_of(op.rounding), op.satfinite);
  const u32 result = is_nan<F32>(a) ? F32::kNan : rounded << kTf32Shift;
  results[0] = rectified<F32>(result, op.relu);
}

/// Two f32 in two of a smaller format, the first operand uppermost; each takes `stride` bits.
template <class To, int stride>
void convert_pair(const LaneOp& op, const u64* sources, u64* results) {
  const u64 high = converted<To, F32>(op, element<F32>(sources[0]));
  const u64 low = converted<To, F32>(op, element<F32>(sources[1]));
  results[0] = high << stride | low;
}
template <class To, int to_stride, class From, int from_stride>
void convert_packed(const LaneOp& op, const u64* sources, u64* results) {
  const auto part = [&](int index) -> u64 {
    const u64 bits = cut_to(sources[0] >> (index * from_stride), From::kWidth);
    return converted<To, From>(op, static_cast<Bits<From>>(bits));
  };
  results[0] = part(1) << to_stride | part(0);
}

/// f32 rounded with `count` random bits.
template <class To>
u64 converted_stochastically(const LaneOp& op, u64 source, u32 random, int count) noexcept {
  const Bits<To> result =
      pack_stochastic<To>(unpack<F32, u64>(element<F32>(source)), random, count, op.satfinite);
  return rectified<To>(result, op.relu);
}
template <class To>
void convert_pair_stochastically(const LaneOp& op, const u64* sources, u64* results) {
  constexpr int kRandomBits = F32::kFractionBits - To::kFractionBits;
  const auto random = [&](int shift) {
    return static_cast<u32>(cut_to(sources[2] >> shift, kRandomBits));
  };
  results[0] = converted_stochastically<To>(op, sources[0], random(16), kRandomBits) << 16 |
               converted_stochastically<To>(op, sources[1], random(0), kRandomBits);
}
template <class To, int stride>
void convert_four_stochastically(const LaneOp& op, const u64* sources, u64* results) {
  const u64 bits = sources[4];
  u64 upper = bits >> 16 & 0xffff;
  u64 lower = bits & 0xffff;
  if constexpr (stride == 4) {
    upper = (bits >> 24 & 0xff) << 8 | (bits >> 8 & 0xff);
    lower = (bits >> 16 & 0xff) << 8 | (bits & 0xff);
  }
  u64 result = 0;
  for (int index = 0; index < 4; ++index) {
    const auto random = static_cast<u32>(index < 2 ? upper : lower);
    result = result << stride | converted_stochastically<To>(op, sources[index], random, 16);
  }
  results[0] = result;
}

// ---- ue8m0: 2^(code - 127), 0xff is NaN ----

constexpr u64 kUe8m0Nan = 0xff;

/// The exponent of |a|, rounded down (rz) or up (rp).
template <class F>
u64 exponent_code(const LaneOp& op, Bits<F> a) noexcept {
  if (is_nan<F>(a)) return kUe8m0Nan;
  const auto magnitude = static_cast<Bits<F>>(a & F::kMagnitude);
  u64 code = magnitude >> F::kFractionBits;
  constexpr Bits<F> kMin = F::kMinNormal >> 1;  // 2^-127, code 0
  const bool inexact = (magnitude & (F::kMinNormal - 1)) != 0 && magnitude > kMin;
  if (rounding_of(op.rounding) == Rounding::Up && inexact) ++code;
  return op.satfinite ? std::min<u64>(code, kUe8m0Nan - 1) : code;
}
void exponents_of_f32(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = exponent_code<F32>(op, element<F32>(sources[0])) << 8 |
               exponent_code<F32>(op, element<F32>(sources[1]));
}
void exponents_of_bf16(const LaneOp& op, const u64* sources, u64* results) {
  results[0] = exponent_code<BF16>(op, element<BF16>(sources[0], 1)) << 8 |
               exponent_code<BF16>(op, element<BF16>(sources[0], 0));
}
u64 power_from_code(u64 code) noexcept {
  if (code == kUe8m0Nan) return BF16::kNan;
  return code == 0 ? BF16::kMinNormal >> 1 : code << BF16::kFractionBits;
}
void powers_as_bf16(const LaneOp&, const u64* sources, u64* results) {
  results[0] = power_from_code(sources[0] >> 8 & 0xff) << 16 | power_from_code(sources[0] & 0xff);
}

LaneFunction integer_conversion(const LaneOp& op) {
  switch (op.op) {
    case Op::cvt_int:
      return &convert_integer;
    case Op::cvt_sat_u8:
    case Op::cvt_sat_u16:
    case Op::cvt_sat_u32:
    case Op::cvt_sat_u64:
    case Op::cvt_sat_s8:
    case Op::cvt_sat_s16:
    case Op::cvt_sat_s32:
    case Op::cvt_sat_s64:
      return &saturate_integer;
    case Op::cvt_pack:
      return &pack_integers;
    case Op::cvt_pack_shift:
      return &pack_integers_and_shift;
    case Op::cvt_int_f32:
      return &float_to_integer<F32>;
    case Op::cvt_int_f64:
      return &float_to_integer<F64>;
    case Op::cvt_int_f16:
      return &float_to_integer<F16>;
    case Op::cvt_int_bf16:
      return &float_to_integer<BF16>;
    case Op::cvt_f32_int:
      return &integer_to_float<F32>;
    case Op::cvt_f64_int:
      return &integer_to_float<F64>;
    case Op::cvt_f16_int:
      return &integer_to_float<F16>;
    case Op::cvt_bf16_int:
      return &integer_to_float<BF16>;
    default:
      return nullptr;
  }
}

LaneFunction float_conversion(const LaneOp& op) {
  switch (op.op) {
    case Op::cvt_f32_f16:
      return &convert_one<F32, F16>;
    case Op::cvt_f64_f16:
      return &convert_one<F64, F16>;
    case Op::cvt_f64_f32:
      return &convert_one<F64, F32>;
    case Op::cvt_f32_bf16:
      return &convert_one<F32, BF16>;
    case Op::cvt_f64_bf16:
      return &convert_one<F64, BF16>;
    case Op::cvt_f16_bf16:
      return &convert_one<F16, BF16>;
    case Op::cvt_bf16_f16:
      return &convert_one<BF16, F16>;
    case Op::cvt_f32_f32:
      return &convert_same<F32>;
    case Op::cvt_f64_f64:
      return &convert_same<F64>;
    case Op::cvt_f16_f16:
      return &convert_same<F16>;
    case Op::cvt_bf16_bf16:
      return &convert_same<BF16>;
    case Op::cvt_f32_f64:
      return &convert_one<F32, F64>;
    case Op::cvt_f16_f64:
      return &convert_one<F16, F64>;
    case Op::cvt_bf16_f64:
      return &convert_one<BF16, F64>;
    case Op::cvt_f16_f32:
    case Op::cvt_f16_f32_satfinite:
    case Op::cvt_f16_f32_relu:
      return &convert_one<F16, F32>;
    case Op::cvt_bf16_f32:
    case Op::cvt_bf16_f32_satfinite:
    case Op::cvt_bf16_f32_relu:
      return &convert_one<BF16, F32>;
    case Op::cvt_tf32_rna:
    case Op::cvt_tf32:
      return &convert_to_tf32;
    default:
      return nullptr;
  }
}

LaneFunction packed_conversion(const LaneOp& op) {
  const bool first = op.type == Type::f16x2 || op.type == Type::e4m3x2 || op.type == Type::e2m3x2;
  switch (op.op) {
    case Op::cvt_half2_f32:
      return first ? &convert_pair<F16, 16> : &convert_pair<BF16, 16>;
    case Op::cvt_half2_f32_rs:
      return first ? &convert_pair_stochastically<F16> : &convert_pair_stochastically<BF16>;
    case Op::cvt_fp8x2_f32:
      return first ? &convert_pair<E4M3, 8> : &convert_pair<E5M2, 8>;
    case Op::cvt_fp8x2_f16x2:
      return first ? &convert_packed<E4M3, 8, F16, 16> : &convert_packed<E5M2, 8, F16, 16>;
    case Op::cvt_f16x2_fp8x2:
      return op.type2 == Type::e4m3x2 ? &convert_packed<F16, 16, E4M3, 8>
                                      : &convert_packed<F16, 16, E5M2, 8>;
    case Op::cvt_fp6x2_f32:
      return first ? &convert_pair<E2M3, 8> : &convert_pair<E3M2, 8>;
    case Op::cvt_f16x2_fp6x2:
      return op.type2 == Type::e2m3x2 ? &convert_packed<F16, 16, E2M3, 8>
                                      : &convert_packed<F16, 16, E3M2, 8>;
    case Op::cvt_fp4x2_f32:
      return &convert_pair<E2M1, 4>;
    case Op::cvt_f16x2_fp4x2:
      return &convert_packed<F16, 16, E2M1, 4>;
    case Op::cvt_ue8m0x2_f32:
      return &exponents_of_f32;
    case Op::cvt_ue8m0x2_bf16x2:
      return &exponents_of_bf16;
    case Op::cvt_bf16x2_ue8m0x2:
      return &powers_as_bf16;
    case Op::cvt_fp_x4_f32_rs:
      switch (op.type) {
        case Type::e4m3x4:
          return &convert_four_stochastically<E4M3, 8>;
        case Type::e5m2x4:
          return &convert_four_stochastically<E5M2, 8>;
        case Type::e2m3x4:
          return &convert_four_stochastically<E2M3, 8>;
        case Type::e3m2x4:
          return &convert_four_stochastically<E3M2, 8>;
        default:
          return &convert_four_stochastically<E2M1, 4>;
      }
    default:
      return nullptr;
  }
}

}  // namespace

LaneFunction conversion_function(const LaneOp& op) {
  if (const LaneFunction found = integer_conversion(op)) return found;
  if (const LaneFunction found = float_conversion(op)) return found;
  return packed_conversion(op);
}

}  // namespace ptxgen::inline v0::emulator
