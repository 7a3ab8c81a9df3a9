// src/emulator/matrix/tensor_lanes.cpp - tensor-core sums of several rows at once
//
// The rule of `tensor_sum` (tensor_core.cpp) for finite elements, bit for bit. Compiled once for
// each instruction set, in a namespace of its own; see vector/memory_hot.cpp for what such a file
// must not contain.
#include "emulator/matrix/tensor_lanes.hpp"

#ifndef PTXGEN_ISA_NAMESPACE
#define PTXGEN_ISA_NAMESPACE isa_baseline
#endif

// Arrays do not overlap.
#if defined(__clang__)
#define PTXGEN_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTXGEN_LANES _Pragma("GCC ivdep")
#endif

namespace ptxgen::inline v0::emulator::PTXGEN_ISA_NAMESPACE {
namespace {

using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

#if defined(__AVX512F__)
constexpr unsigned kWidth = 16;
#elif defined(__AVX2__)
constexpr unsigned kWidth = 8;
#else
constexpr unsigned kWidth = 4;
#endif
typedef s32 Lanes __attribute__((vector_size(4 * kWidth), may_alias));
static_assert(kTensorRows % kWidth == 0);

constexpr s32 kZeroExponent = -126;
constexpr s32 kFloatFraction = 23;
constexpr s32 kHalfFraction = 10;

inline __attribute__((always_inline)) Lanes load(const s32* from) {
  Lanes lanes;
  __builtin_memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
inline __attribute__((always_inline)) void store(const Lanes& lanes, void* to) {
  __builtin_memcpy(to, &lanes, sizeof lanes);
}

inline bool any(const Lanes& lanes) {
  u64 words[sizeof(Lanes) / 8];
  __builtin_memcpy(words, &lanes, sizeof lanes);
  u64 all = 0;
  for (const u64 word : words) all |= word;
  return all != 0;
}

// Where the fields of a type are in its bits.
template <unsigned kWidthOfType, int kFraction, int kBias, int kDropped>
struct Fields {
  static constexpr int kStored = kFraction + kDropped;
  static constexpr s32 kSpecial = (1 << (kWidthOfType - 1 - kStored)) - 1;
  static constexpr s32 kHidden = 1 << kFraction;

  static s32 biased(u32 bits) { return static_cast<s32>(bits >> kStored) & kSpecial; }
  static bool special(u32 bits) { return biased(bits) == kSpecial; }
  static s32 significand(u32 bits) {
    const s32 fraction = static_cast<s32>(bits >> kDropped & u32{kHidden - 1});
    const s32 magnitude = fraction | (biased(bits) != 0 ? kHidden : 0);
    return (bits >> (kWidthOfType - 1) & 1u) != 0 ? -magnitude : magnitude;
  }
  static s32 exponent(u32 bits) { return (biased(bits) != 0 ? biased(bits) : 1) - kBias; }
};
using F16 = Fields<16, kHalfFraction, 15, 0>;
using Bf16 = Fields<16, 7, 127, 0>;
using Tf32 = Fields<32, 10, 127, 13>;
struct E5m2 {
  static bool special(u32 bits) { return F16::special(bits << 8); }
  static s32 significand(u32 bits) { return F16::significand(bits << 8); }
  static s32 exponent(u32 bits) { return F16::exponent(bits << 8); }
};
// With the fraction bits of f16; no infinities, and one NaN of each sign.
struct E4m3 : Fields<8, 3, 7, 0> {
  static bool special(u32 bits) { return (bits & 0x7fu) == 0x7fu; }
  static s32 significand(u32 bits) {
    return Fields::significand(bits) * (1 << (kHalfFraction - 3));
  }
};

template <class Type>
bool decode_as(int shift, const u32* bits, std::size_t count, s32* significands, s32* exponents) {
  u32 special = 0;
  PTXGEN_LANES
  for (std::size_t i = 0; i < count; ++i) {
    const s32 significand = Type::significand(bits[i]);
    significands[i] = significand * (1 << shift);
    exponents[i] = significand == 0 ? kZeroExponent : Type::exponent(bits[i]);
    special |= Type::special(bits[i]) ? 1u : 0u;
  }
  return special == 0;
}

bool decode(ptx::Type type, int shift, const u32* bits, std::size_t count, s32* significands,
            s32* exponents) {
  switch (type) {
    case ptx::Type::f16:
      return decode_as<F16>(shift, bits, count, significands, exponents);
    case ptx::Type::bf16:
      return decode_as<Bf16>(shift, bits, count, significands, exponents);
    case ptx::Type::e4m3:
      return decode_as<E4m3>(shift, bits, count, significands, exponents);
    case ptx::Type::e5m2:
      return decode_as<E5m2>(shift, bits, count, significands, exponents);
    default:  // tf32
      return decode_as<Tf32>(shift, bits, count, significands, exponents);
  }
}

// value * 2^-by, truncated toward zero.
inline __attribute__((always_inline)) Lanes shifted(const Lanes& value, const Lanes& by) {
  const Lanes sign = value >> 31;
  const Lanes magnitude = (value ^ sign) - sign;
  const Lanes moved = magnitude >> (by > 31 ? 31 : by);
  return (moved ^ sign) - sign;
}

// Elements of c, f32 or f16.
template <bool kHalf>
struct Accumulator {
  Lanes significand;
  Lanes exponent;
  Lanes special;  // not 0 where not finite

  explicit __attribute__((always_inline)) Accumulator(const Lanes& bits) {
    constexpr s32 kFraction = kHalf ? kHalfFraction : kFloatFraction;
    constexpr s32 kMask = kHalf ? 31 : 255;
    constexpr s32 kBias = kHalf ? 15 : 127;
    const Lanes biased = bits >> kFraction & kMask;
    special = biased == kMask;
    const Lanes fraction = bits & ((1 << kFraction) - 1);
    const Lanes magnitude = fraction | (biased != 0 ? 1 << kFraction : 0);
    const Lanes sign = kHalf ? (bits << 16) >> 31 : bits >> 31;
    significand = (magnitude ^ sign) - sign;
    exponent = magnitude == 0 ? kZeroExponent : (biased > 1 ? biased : 1) - kBias;
  }
};

inline double as_double(u64 bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline u64 bits_of(double value) {
  u64 bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline u32 float_toward_zero(double value, u32 mask) {
  const float nearest = static_cast<float>(value);
  u32 bits;
  __builtin_memcpy(&bits, &nearest, sizeof bits);
  const double back = static_cast<double>(nearest);
  const bool away = (back < 0 ? -back : back) > (value < 0 ? -value : value);
  bits -= away && (bits & 0x7fffffffu) != 0x7f800000u ? 1u : 0u;
  return bits & mask;
}

// To nearest even, as to_half (half.hpp).
inline u32 half_to_nearest(double value) {
  const u64 bits = bits_of(value);
  const u64 sign = bits >> 48 & 0x8000u;
  const u64 magnitude = bits & 0x7fffffffffffffffu;
  const u64 tiny = bits_of(as_double(magnitude) + 0x1p28) & 0x7ffu;
  const u64 unit = u64{1} << 42;
  const u64 normal =
      ((magnitude + (unit / 2 - 1) + (magnitude >> 42 & 1u)) >> 42) - (u64{1023 - 15} << 10);
  const u64 finite = magnitude < 0x3f10000000000000u ? tiny : normal;          // 2^-14
  const u64 result = magnitude >= 0x40effe0000000000u ? u64{0x7c00} : finite;  // 65520
  return static_cast<u32>(sign | result);
}

// (even + odd) * 2^(exponent - fraction_bits), rounded to the type of d.
template <bool kHalf>
inline __attribute__((always_inline)) Lanes rounded(const TensorSums& sums, const Lanes& even,
                                                    const Lanes& odd, const Lanes& exponent) {
  alignas(64) s32 evens[kWidth], odds[kWidth], exponents[kWidth];
  alignas(64) u32 results[kWidth];
  store(even, evens);
  store(odd, odds);
  store(exponent - sums.fraction_bits, exponents);
  const u32 mask = ~u32{0} << (kFloatFraction - sums.kept);
  PTXGEN_LANES
  for (unsigned i = 0; i < kWidth; ++i) {
    const double sum = static_cast<double>(evens[i]) + static_cast<double>(odds[i]);
    const double scale = as_double(static_cast<u64>(static_cast<s64>(exponents[i]) + 1023) << 52);
    results[i] = kHalf ? half_to_nearest(sum * scale) : float_toward_zero(sum * scale, mask);
  }
  Lanes lanes;
  __builtin_memcpy(&lanes, results, sizeof lanes);
  return lanes;
}

// One column of kWidth rows from `row` on. Terms are below 2^27 (22 bits of a product, 24 of c, at
// most 25 fraction bits), and up to 32 products and c are added: two sums of 32 bits.
template <bool kHalf>
inline bool column(const TensorSums& sums, unsigned row, std::size_t column, u32* d) {
  const s32* const b_significands = sums.b_significands + column * sums.depth;
  const s32* const b_exponents = sums.b_exponents + column * sums.depth;
  const int up = sums.fraction_bits - (kHalf ? kHalfFraction : kFloatFraction);
  const int left = up > 0 ? up : 0;
  const int right = up > 0 ? 0 : -up;
  Lanes bits;
  __builtin_memcpy(&bits, d, sizeof bits);
  Lanes special = bits ^ bits;
  for (unsigned first = 0; first < sums.depth; first += sums.at_once) {
    const unsigned rest = sums.depth - first;
    const unsigned end = first + (rest < sums.at_once ? rest : sums.at_once);
    const Accumulator<kHalf> c(bits);
    special |= c.special;
    Lanes largest = c.exponent;
    for (unsigned i = first; i < end; ++i) {
      const Lanes exponent = load(sums.a_exponents + i * kTensorRows + row) + b_exponents[i];
      largest = exponent > largest ? exponent : largest;
    }
    Lanes even = shifted(c.significand << left, largest - c.exponent + right);
    Lanes odd = even ^ even;
    const Lanes from = largest + sums.shift_right;
    const auto term = [&](unsigned i) __attribute__((always_inline)) {
      const Lanes by = from - load(sums.a_exponents + i * kTensorRows + row) - b_exponents[i];
      return shifted(load(sums.a_significands + i * kTensorRows + row) * b_significands[i], by);
    };
    unsigned i = first;
    for (; i + 1 < end; i += 2) {
      even += term(i);
      odd += term(i + 1);
    }
    if (i < end) odd += term(i);
    bits = rounded<kHalf>(sums, even, odd, largest);
  }
  if (any(special)) return false;
  store(bits, d);
  return true;
}

template <bool kHalf>
void sums_as(const TensorSums& sums, u32* d, bool* not_finite) {
  for (std::size_t at = 0; at < sums.columns; ++at) {
    u32 results[kTensorRows];
    __builtin_memcpy(results, d + at * kTensorRows, sizeof results);
    bool finite = true;
    for (unsigned row = 0; row < kTensorRows; row += kWidth) {
      finite &= column<kHalf>(sums, row, at, results + row);
    }
    not_finite[at] = !finite;
    if (finite) __builtin_memcpy(d + at * kTensorRows, results, sizeof results);
  }
}

}  // namespace

const TensorLanes kTensorLanes = {&decode, &sums_as<false>, &sums_as<true>};

}  // namespace ptxgen::inline v0::emulator::PTXGEN_ISA_NAMESPACE
#undef PTXGEN_LANES
