// src/emulator/vector/alu_lanes.cpp - arithmetic of 32 lanes, as loops the compiler vectorises
//
// Compiled once for each instruction set, in a namespace of its own; see memory_hot.cpp for
// what such a file must not contain.

#if defined(__AVX2__)
#include <immintrin.h>  // its functions are always inlined
#endif

#include "emulator/state/machine.hpp"
#include "emulator/vector/isa_parts.hpp"

#ifndef PTXGEN_ISA_NAMESPACE
#define PTXGEN_ISA_NAMESPACE isa_baseline
#endif

// Destination and sources are whole registers: the same one, or disjoint.
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
using f32 = float;
using f64 = double;

// Operations return PTX's canonical NaN, whatever the payload of the operands.
inline f32 canonical(f32 value) {
  u32 bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits;
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}
inline f64 canonical(f64 value) {
  u64 bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u ? 0xfff8000000000000u : bits;
  __builtin_memcpy(&value, &bits, sizeof bits);
  return value;
}

// Byte number `i`, extended.
inline u32 unsigned_byte(u32 bits, u32 i) { return bits >> (8 * i) & 0xffu; }
inline u32 signed_byte(u32 bits, u32 i) {
  return static_cast<u32>(static_cast<s32>(bits << (24 - 8 * i)) >> 24);
}
#define PTXGEN_DOT4(name, a_byte, b_byte)                                  \
  inline u32 name(u32 a, u32 b, u32 c) {                                   \
    return c + a_byte(a, 0) * b_byte(b, 0) + a_byte(a, 1) * b_byte(b, 1) + \
           a_byte(a, 2) * b_byte(b, 2) + a_byte(a, 3) * b_byte(b, 3);      \
  }
PTXGEN_DOT4(dot4_uu, unsigned_byte, unsigned_byte)
PTXGEN_DOT4(dot4_us, unsigned_byte, signed_byte)
PTXGEN_DOT4(dot4_ss, signed_byte, signed_byte)
#undef PTXGEN_DOT4

// `length` bits from `position` on; what is beyond bit 31 is zero, or the sign.
inline u32 unsigned_field(u32 a, u32 position, u32 length) {
  position &= 0xffu;
  length &= 0xffu;
  const u32 moved = position > 31 ? 0 : a >> (position & 31u);
  return length > 31 ? moved : moved & ((1u << (length & 31u)) - 1);
}
inline s32 signed_field(s32 a, u32 position, u32 length) {
  position &= 0xffu;
  length &= 0xffu;
  const s32 moved = a >> (position > 31 ? 31 : position);
  const u32 unused = length > 31 ? 0 : 32 - length;
  const s32 field = static_cast<s32>(static_cast<u32>(moved) << (unused & 31u)) >> (unused & 31u);
  return length == 0 ? 0 : field;
}

// A byte of b:a, or eight copies of its sign.
inline u32 picked_byte(u64 both, u32 selector) {
  const u32 byte = static_cast<u32>(both >> (8 * (selector & 7u))) & 0xffu;
  const u32 sign = (0u - (byte >> 7)) & 0xffu;
  return (selector & 8u) != 0 ? sign : byte;
}
inline u32 picked_bytes(u32 a, u32 b, u32 selectors) {
  const u64 both = u64{b} << 32 | a;
  return picked_byte(both, selectors) | picked_byte(both, selectors >> 4) << 8 |
         picked_byte(both, selectors >> 8) << 16 | picked_byte(both, selectors >> 12) << 24;
}

// `value` is `a` rounded. Beyond the range the nearest number in it, of a NaN 0.
inline s32 to_s32(f32 value, f32 a) {
  constexpr f32 kLimit = 2147483648.0f;
  const bool above = value >= kLimit;
  const bool outside = !(value > -kLimit) || above;  // a NaN is
  const s32 inside = static_cast<s32>(outside ? 0.0f : value);
  const u32 limit = a != a ? 0u : above ? 0x7fffffffu : 0x80000000u;
  return outside ? static_cast<s32>(limit) : inside;
}

// The exponent's bias is corrected by a product, which makes subnormals normal.
inline f32 from_half(u32 bits) {
  const u32 magnitude = (bits & 0x7fffu) << 13;
  f32 scaled;
  __builtin_memcpy(&scaled, &magnitude, sizeof scaled);
  scaled *= 0x1p112f;
  u32 result;
  __builtin_memcpy(&result, &scaled, sizeof result);
  result = (bits & 0x7c00u) == 0x7c00u ? magnitude | 0x7f800000u : result;
  result |= (bits & 0x8000u) << 16;
  result = (bits & 0x7fffu) > 0x7c00u ? 0x7fffffffu : result;
  __builtin_memcpy(&scaled, &result, sizeof scaled);
  return scaled;
}

inline u32 mask_of(const Context& context, const Step& step) {
  return context.active &
         (*reinterpret_cast<const u32*>(context.frame + step.guard) ^ step.guard_flip);
}

template <class T>
inline T* at(const Context& context, u32 offset) {
  return reinterpret_cast<T*>(context.frame + offset);
}

template <class Op>
void run_alu(Context& context, const Step& step) {
  using R = typename Op::R;
  const u32 mask = mask_of(context, step);
  R* const result = at<R>(context, step.result);
  const auto* const a = at<typename Op::A>(context, step.source[0]);
  const auto* const b = at<typename Op::B>(context, step.source[1]);
  const auto* const c = at<typename Op::C>(context, step.source[2]);
  if (mask == 0xffffffffu) {
    PTXGEN_LANES
    for (u32 lane = 0; lane < kLanes; ++lane) {
      result[lane] = Op::value(a[lane], b[lane], c[lane]);
    }
    return;
  }
  PTXGEN_LANES
  for (u32 lane = 0; lane < kLanes; ++lane) {
    const R value = Op::value(a[lane], b[lane], c[lane]);
    result[lane] = (mask >> lane & 1u) != 0 ? value : result[lane];
  }
}

#define PTXGEN_ALU(id, result, a_type, b_type, c_type, expression)                            \
  struct id {                                                                                 \
    using R = result;                                                                         \
    using A = a_type;                                                                         \
    using B = b_type;                                                                         \
    using C = c_type;                                                                         \
    static inline R value([[maybe_unused]] A a, [[maybe_unused]] B b, [[maybe_unused]] C c) { \
      return static_cast<R>(expression);                                                      \
    }                                                                                         \
  };
#include "emulator/vector/alu.def"

#if defined(__AVX2__)
// dp4a: products of bytes are exact in pairs of 16 bits, of which one instruction adds two.
#if defined(__AVX512BW__)
using Words = __m512i;
template <bool Signed>
inline Words even_bytes(const Words& v) {
  return Signed ? _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8)
                : _mm512_and_si512(v, _mm512_set1_epi16(0xff));
}
template <bool Signed>
inline Words odd_bytes(const Words& v) {
  return Signed ? _mm512_srai_epi16(v, 8) : _mm512_srli_epi16(v, 8);
}
inline Words load_words(const u32* from) { return _mm512_loadu_si512(from); }
inline Words add_words(const Words& a, const Words& b) { return _mm512_add_epi32(a, b); }
inline Words add_products(const Words& a, const Words& b) { return _mm512_madd_epi16(a, b); }
/// Stores the lanes of the lowest bits of a mask.
inline void store_words(u32* to, const Words& words, u32 mask) {
  const Words before = load_words(to);
  _mm512_storeu_si512(to, _mm512_mask_mov_epi32(before, static_cast<__mmask16>(mask), words));
}
#else
using Words = __m256i;
template <bool Signed>
inline Words even_bytes(const Words& v) {
  return Signed ? _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8)
                : _mm256_and_si256(v, _mm256_set1_epi16(0xff));
}
template <bool Signed>
inline Words odd_bytes(const Words& v) {
  return Signed ? _mm256_srai_epi16(v, 8) : _mm256_srli_epi16(v, 8);
}
inline Words load_words(const u32* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline Words add_words(const Words& a, const Words& b) { return _mm256_add_epi32(a, b); }
inline Words add_products(const Words& a, const Words& b) { return _mm256_madd_epi16(a, b); }
inline void store_words(u32* to, const Words& words, u32 mask) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask)), bits);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_blendv_epi8(load_words(to), words, _mm256_cmpeq_epi32(set, bits)));
}
#endif

template <bool ASigned, bool BSigned>
void run_dot4(Context& context, u32 mask, u32 result, u32 a, u32 b, u32 c) {
  constexpr u32 kWords = sizeof(Words) / 4;
  for (u32 lane = 0; lane < kLanes; lane += kWords) {
    const Words x = load_words(at<u32>(context, a) + lane);
    const Words y = load_words(at<u32>(context, b) + lane);
    const Words even = add_products(even_bytes<ASigned>(x), even_bytes<BSigned>(y));
    const Words odd = add_products(odd_bytes<ASigned>(x), odd_bytes<BSigned>(y));
    const Words sum = add_words(load_words(at<u32>(context, c) + lane), add_words(even, odd));
    store_words(at<u32>(context, result) + lane, sum, mask >> lane);
  }
}

#define PTXGEN_DOT4(id, a_signed, b_signed)                                                    \
  template <>                                                                                  \
  void run_alu<id>(Context & context, const Step& step) {                                      \
    run_dot4<a_signed, b_signed>(context, mask_of(context, step), step.result, step.source[0], \
                                 step.source[1], step.source[2]);                              \
  }
PTXGEN_DOT4(Dp4aUU, false, false)
PTXGEN_DOT4(Dp4aUS, false, true)
PTXGEN_DOT4(Dp4aSU, true, false)
PTXGEN_DOT4(Dp4aSS, true, true)
#undef PTXGEN_DOT4
#endif

template <Compare Comparison, class T>
inline bool holds(T a, T b) {
  // Unordered forms are true where an operand is NaN; the others are false there, but for Ne of
  // integers. `ne` of floats is ordered too.
  if constexpr (Comparison == Compare::Eq) return a == b;
  if constexpr (Comparison == Compare::Ne) return a < b || a > b;
  if constexpr (Comparison == Compare::Lt) return a < b;
  if constexpr (Comparison == Compare::Le) return a <= b;
  if constexpr (Comparison == Compare::Gt) return a > b;
  if constexpr (Comparison == Compare::Ge) return a >= b;
  if constexpr (Comparison == Compare::EqU) return !(a < b || a > b);
  if constexpr (Comparison == Compare::NeU) return !(a == b);
  if constexpr (Comparison == Compare::LtU) return !(a >= b);
  if constexpr (Comparison == Compare::LeU) return !(a > b);
  if constexpr (Comparison == Compare::GtU) return !(a <= b);
  if constexpr (Comparison == Compare::GeU) return !(a < b);
}

template <Compare Comparison, class T>
void run_compare(Context& context, const Step& step) {
  const u32 mask = mask_of(context, step);
  const T* const a = at<T>(context, step.source[0]);
  const T* const b = at<T>(context, step.source[1]);
  u32 set = 0;
  PTXGEN_LANES
  for (u32 lane = 0; lane < kLanes; ++lane) {
    set |= holds<Comparison>(a[lane], b[lane]) ? 1u << lane : 0u;
  }
  if (step.result != kNoIndex) {
    u32* const p = at<u32>(context, step.result);
    *p = (*p & ~mask) | (set & mask);
  }
  if (step.source[2] != kNoIndex) {
    u32* const q = at<u32>(context, step.source[2]);
    *q = (*q & ~mask) | (~set & mask);
  }
}

template <class T>
void run_select(Context& context, const Step& step) {
  const u32 mask = mask_of(context, step);
  T* const result = at<T>(context, step.result);
  const T* const a = at<T>(context, step.source[0]);
  const T* const b = at<T>(context, step.source[1]);
  const u32 chosen = *at<u32>(context, step.source[2]) ^ static_cast<u32>(step.immediate);
  if (mask == 0xffffffffu) {
    PTXGEN_LANES
    for (u32 lane = 0; lane < kLanes; ++lane) {
      result[lane] = (chosen >> lane & 1u) != 0 ? a[lane] : b[lane];
    }
    return;
  }
  PTXGEN_LANES
  for (u32 lane = 0; lane < kLanes; ++lane) {
    const T value = (chosen >> lane & 1u) != 0 ? a[lane] : b[lane];
    result[lane] = (mask >> lane & 1u) != 0 ? value : result[lane];
  }
}

// lop3: the table as a polynomial over GF(2), whose coefficients are all ones or zero.
void run_lookup(Context& context, const Step& step) {
  const u32 mask = mask_of(context, step);
  u32* const result = at<u32>(context, step.result);
  const u32* const a = at<u32>(context, step.source[0]);
  const u32* const b = at<u32>(context, step.source[1]);
  const u32* const c = at<u32>(context, step.source[2]);
  // The same in every lane: PTX has it as a constant. Bit 4 of a row is that of a, 1 that of c.
  u32 table = *at<u32>(context, static_cast<u32>(step.immediate));
  table ^= table << 1 & 0xaau;
  table ^= table << 2 & 0xccu;
  table ^= table << 4 & 0xf0u;
  u32 k[8];
  for (u32 i = 0; i < 8; ++i) k[i] = 0u - (table >> i & 1u);
  u32 values[kLanes];
  PTXGEN_LANES
  for (u32 lane = 0; lane < kLanes; ++lane) {
    const u32 without = k[0] ^ (k[1] & c[lane]) ^ (b[lane] & (k[2] ^ (k[3] & c[lane])));
    const u32 with = k[4] ^ (k[5] & c[lane]) ^ (b[lane] & (k[6] ^ (k[7] & c[lane])));
    values[lane] = without ^ (a[lane] & with);
  }
  PTXGEN_LANES
  for (u32 lane = 0; lane < kLanes; ++lane) {
    result[lane] = (mask >> lane & 1u) != 0 ? values[lane] : result[lane];
  }
}

template <class T>
Handler compare_of(Compare comparison) {
  switch (comparison) {
    case Compare::Eq:
      return &run_compare<Compare::Eq, T>;
    case Compare::Ne:
      return &run_compare<Compare::Ne, T>;
    case Compare::Lt:
      return &run_compare<Compare::Lt, T>;
    case Compare::Le:
      return &run_compare<Compare::Le, T>;
    case Compare::Gt:
      return &run_compare<Compare::Gt, T>;
    case Compare::Ge:
      return &run_compare<Compare::Ge, T>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler alu_handler(Alu which) noexcept {
  switch (which) {
#define PTXGEN_ALU(id, result, a, b, c, value) \
  case Alu::id:                                \
    return &run_alu<id>;
#include "emulator/vector/alu.def"
    case Alu::None:
      break;
  }
  return nullptr;
}

Handler compare_handler(Compare comparison, CompareType type) noexcept {
  switch (type) {
    case CompareType::U32:
      return compare_of<u32>(comparison);
    case CompareType::S32:
      return compare_of<s32>(comparison);
    case CompareType::U64:
      return compare_of<u64>(comparison);
    case CompareType::S64:
      return compare_of<s64>(comparison);
    case CompareType::F32:
      break;
  }
  switch (comparison) {
    case Compare::EqU:
      return &run_compare<Compare::EqU, f32>;
    case Compare::NeU:
      return &run_compare<Compare::NeU, f32>;
    case Compare::LtU:
      return &run_compare<Compare::LtU, f32>;
    case Compare::LeU:
      return &run_compare<Compare::LeU, f32>;
    case Compare::GtU:
      return &run_compare<Compare::GtU, f32>;
    case Compare::GeU:
      return &run_compare<Compare::GeU, f32>;
    default:
      return compare_of<f32>(comparison);
  }
}

Handler select_handler(unsigned lane_bytes) noexcept {
  if (lane_bytes == 4) return &run_select<u32>;
  return lane_bytes == 8 ? &run_select<u64> : nullptr;
}

Handler lookup_handler() noexcept { return &run_lookup; }

}  // namespace ptxgen::inline v0::emulator::PTXGEN_ISA_NAMESPACE

#undef PTXGEN_LANES
