// src/kernels/host/vectors.cpp - loops over arrays, compiled for each instruction set
//
// foreach_target.h includes this file once for each instruction set; functions are in
// HWY_NAMESPACE then.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/host/vectors.hpp"
#include "ptxgen/kernels/host.hpp"
#include "support/half.hpp"

// Of what Highway knows, the instruction sets with fixed widths that differ here.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/vectors.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ptxgen::inline v0::host_vectors::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using F64 = hn::ScalableTag<double>;
using HalfF32 = hn::Rebind<float, F64>;  // as many lanes as F64
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<std::uint16_t, F32>;

constexpr std::size_t kWidth = hn::MaxLanes(F32());
constexpr std::size_t kWidth64 = hn::MaxLanes(F64());
static_assert(kDotLanes % kWidth == 0 && kSumLanes % kWidth64 == 0);
// Conversions of f16 in one instruction.
constexpr bool kHasF16 = HWY_ARCH_X86 != 0 && HWY_TARGET <= HWY_AVX2;

// Elements. Each type has `load`, exact, and `store`, rounded once.

struct AsF32 {
  using Stored = float;
  static HWY_INLINE auto load(const float* from) { return hn::LoadU(F32(), from); }
  static float one(float value) { return value; }
};

struct AsBf16 {
  using Stored = std::uint16_t;
  static HWY_INLINE auto load(const std::uint16_t* from) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), hn::LoadU(U16(), from))));
  }
  static float one(std::uint16_t bits) { return bf16_to_float(bits); }
};

struct AsF16 {
  using Stored = std::uint16_t;
  static HWY_INLINE auto load(const std::uint16_t* from) {
    if constexpr (kHasF16) {
      const hn::Rebind<hwy::float16_t, F32> d;
      return hn::PromoteTo(F32(), hn::BitCast(d, hn::LoadU(U16(), from)));
    } else {
      HWY_ALIGN float values[kWidth];
      for (std::size_t i = 0; i < kWidth; ++i) values[i] = f16_to_float(from[i]);
      return hn::Load(F32(), values);
    }
  }
  static float one(std::uint16_t bits) { return f16_to_float(bits); }
};

// As many elements as are left, zeros after them.
template <class Type>
HWY_INLINE auto load_some(const typename Type::Stored* from, std::size_t count) {
  HWY_ALIGN float values[kWidth] = {};
  for (std::size_t i = 0; i < count; ++i) values[i] = Type::one(from[i]);
  return hn::Load(F32(), values);
}

template <class V>
HWY_INLINE void store_some(V v, std::size_t count, float* to) {
  HWY_ALIGN float values[kWidth];
  hn::Store(v, F32(), values);
  std::memcpy(to, values, count * sizeof(float));
}

// `out[i] = work(x[i])`
template <class F>
HWY_INLINE void map(const float* x, std::size_t count, float* out, const F& work) {
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) hn::StoreU(work(AsF32::load(x + i)), F32(), out + i);
  if (i < count) store_some(work(load_some<AsF32>(x + i, count - i)), count - i, out + i);
}

// `out[i] = work(a[i], b[i])`
template <class F>
HWY_INLINE void map(const float* a, const float* b, std::size_t count, float* out, const F& work) {
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    hn::StoreU(work(AsF32::load(a + i), AsF32::load(b + i)), F32(), out + i);
  }
  if (i == count) return;
  const std::size_t left = count - i;
  store_some(work(load_some<AsF32>(a + i, left), load_some<AsF32>(b + i, left)), left, out + i);
}

// Conversions -----------------------------------------------------------------------------------

template <class Type>
void convert(const void* from, std::size_t count, float* to) {
  const auto* const elements = static_cast<const typename Type::Stored*>(from);
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) hn::StoreU(Type::load(elements + i), F32(), to + i);
  for (; i < count; ++i) to[i] = Type::one(elements[i]);
}

void to_f32(ElementType type, const void* from, std::size_t count, float* to) {
  if (type == ElementType::f16) return convert<AsF16>(from, count, to);
  if (type == ElementType::bf16) return convert<AsBf16>(from, count, to);
  if (from != to) std::memmove(to, from, count * sizeof(float));
}

void to_f16(const float* from, std::size_t count, std::uint16_t* to) {
  std::size_t i = 0;
  if constexpr (kHasF16) {
    const hn::Rebind<hwy::float16_t, F32> d;
    for (; i + kWidth <= count; i += kWidth) {
      hn::StoreU(hn::BitCast(U16(), hn::DemoteTo(d, hn::LoadU(F32(), from + i))), U16(), to + i);
    }
  }
  for (; i < count; ++i) to[i] = float_to_f16(from[i]);
}

void to_bf16(const float* from, std::size_t count, std::uint16_t* to) {
  const U32 d;
  const auto half = hn::Set(d, 0x7fffu);
  const auto one = hn::Set(d, 1u);
  const auto nan = hn::Set(d, 0x7fffu);
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const auto value = hn::LoadU(F32(), from + i);
    const auto bits = hn::BitCast(d, value);
    // To nearest even: half a unit less one, and one more if the unit's bit is set.
    const auto odd = hn::And(hn::ShiftRight<16>(bits), one);
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, half), odd));
    const auto is_nan = hn::RebindMask(d, hn::IsNaN(value));
    const auto kept = hn::IfThenElse(is_nan, nan, rounded);
    // No instruction narrows u32 without saturation at the sign: halves of i32 are chosen instead.
    HWY_ALIGN std::uint32_t words[kWidth];
    hn::Store(kept, d, words);
    for (std::size_t j = 0; j < kWidth; ++j) to[i + j] = static_cast<std::uint16_t>(words[j]);
  }
  for (; i < count; ++i) to[i] = float_to_bf16(from[i]);
}

void from_f32(ElementType type, const float* from, std::size_t count, void* to) {
  if (type == ElementType::f16) return to_f16(from, count, static_cast<std::uint16_t*>(to));
  if (type == ElementType::bf16) return to_bf16(from, count, static_cast<std::uint16_t*>(to));
  if (from != to) std::memmove(to, from, count * sizeof(float));
}

// Elementwise -----------------------------------------------------------------------------------

void add(const float* a, const float* b, std::size_t count, float* out) {
  map(a, b, count, out, [](auto x, auto y) { return hn::Add(x, y); });
}

void multiply(const float* a, const float* b, std::size_t count, float* out) {
  map(a, b, count, out, [](auto x, auto y) { return hn::Mul(x, y); });
}

// Highway's exp is for numbers up to 104, where the result is infinite already, and 0 below -104;
// it converts them to integers. NaN stays NaN.
template <class V>
HWY_INLINE V exponential(V x) {
  const F32 d;
  const auto is_nan = hn::IsNaN(x);
  const V number = hn::IfThenZeroElse(is_nan, x);
  const V bounded = hn::Max(hn::Set(d, -105.0f), hn::Min(number, hn::Set(d, 104.0f)));
  return hn::IfThenElse(is_nan, x, hn::Exp(d, bounded));
}

void gate(float factor, const float* x, std::size_t count, float* out) {
  const F32 d;
  map(x, count, out, [&](auto v) {
    const auto one = hn::Set(d, 1.0f);
    return hn::Div(v, hn::Add(one, exponential(hn::Mul(hn::Set(d, -factor), v))));
  });
}

// 1 + tanh(u) is 2 / (1 + exp(-2 u)).
void gelu_tanh(const float* x, std::size_t count, float* out) {
  const F32 d;
  map(x, count, out, [&](auto v) {
    const auto one = hn::Set(d, 1.0f);
    const auto cube = hn::Mul(hn::Mul(v, v), hn::Mul(v, hn::Set(d, 0.044715f)));
    const auto u = hn::Mul(hn::Set(d, -1.5957691216f), hn::Add(v, cube));  // -2 sqrt(2 / pi)
    return hn::Div(v, hn::Add(one, exponential(u)));
  });
}

void relu(const float* x, std::size_t count, float* out) {
  const F32 d;
  map(x, count, out,
      [&](auto v) { return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v); });
}

void scale(const float* x, float factor, const float* weight, std::size_t count, float* out) {
  const F32 d;
  if (weight == nullptr) {
    return map(x, count, out, [&](auto v) { return hn::Mul(v, hn::Set(d, factor)); });
  }
  map(x, weight, count, out,
      [&](auto v, auto w) { return hn::Mul(hn::Mul(v, hn::Set(d, factor)), w); });
}

// Reductions ------------------------------------------------------------------------------------

// The lanes of a sum in f64: lane i mod kSumLanes.
struct Lanes64 {
  static constexpr std::size_t kVectors = kSumLanes / kWidth64;
  hn::Vec<F64> lanes[kVectors];

  Lanes64() {
    for (auto& lane : lanes) lane = hn::Zero(F64());
  }
  template <class F>
  HWY_INLINE void add(const float* x, const F& term) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto part = hn::LoadU(HalfF32(), x + v * kWidth64);
      lanes[v] = hn::Add(lanes[v], term(hn::PromoteTo(F64(), part)));
    }
  }
  [[nodiscard]] double sum() const {
    HWY_ALIGN double all[kSumLanes];
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(lanes[v], F64(), all + v * kWidth64);
    for (std::size_t n = kSumLanes / 2; n != 0; n /= 2) {
      for (std::size_t i = 0; i < n; ++i) all[i] += all[i + n];
    }
    return all[0];
  }
};

// `filler`: an element whose term is 0.
template <class F>
HWY_INLINE double sum_of(const float* x, std::size_t count, float filler, const F& term) {
  Lanes64 lanes;
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) lanes.add(x + i, term);
  if (i < count) {
    float rest[kSumLanes];
    for (float& element : rest) element = filler;
    std::memcpy(rest, x + i, (count - i) * sizeof(float));
    lanes.add(rest, term);
  }
  return lanes.sum();
}

double sum(const float* x, std::size_t count) {
  return sum_of(x, count, 0.0f, [](auto v) { return v; });
}

double squares(const float* x, double centre, std::size_t count) {
  const F64 d;
  // What the last lanes are filled with adds the square of its distance, which is taken away.
  const auto filler = static_cast<float>(centre);
  const double distance = double{filler} - centre;
  const std::size_t fillers = (kSumLanes - count % kSumLanes) % kSumLanes;
  const double all = sum_of(x, count, filler, [&](auto v) {
    const auto centred = hn::Sub(v, hn::Set(d, centre));
    return hn::Mul(centred, centred);
  });
  return distance == 0 ? all : all - static_cast<double>(fillers) * distance * distance;
}

double exponentials(const float* x, float shift, float factor, std::size_t count, float* out) {
  const F32 d;
  map(x, count, out, [&](auto v) {
    return exponential(hn::Mul(hn::Sub(v, hn::Set(d, shift)), hn::Set(d, factor)));
  });
  return sum(out, count);
}

float largest(const float* x, std::size_t count) {
  const F32 d;
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  auto maxima = hn::Set(d, kNone);
  std::size_t i = 0;
  for (; i + kWidth <= count; i += kWidth) maxima = hn::Max(maxima, AsF32::load(x + i));
  HWY_ALIGN float lanes[kWidth];
  hn::Store(maxima, d, lanes);
  float result = kNone;
  for (const float lane : lanes) result = lane > result ? lane : result;
  for (; i < count; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

void normalise(const float* x, double centre, double factor, const float* weight, const float* bias,
               std::size_t count, float* out) {
  const F64 d;
  std::size_t i = 0;
  for (; i + kWidth64 <= count; i += kWidth64) {
    const auto promoted = [&](const float* from) {
      return hn::PromoteTo(d, hn::LoadU(HalfF32(), from + i));
    };
    auto v = hn::Mul(hn::Sub(promoted(x), hn::Set(d, centre)), hn::Set(d, factor));
    if (weight != nullptr) v = hn::Add(hn::Mul(v, promoted(weight)), promoted(bias));
    hn::StoreU(hn::DemoteTo(HalfF32(), v), HalfF32(), out + i);
  }
  for (; i < count; ++i) {
    double v = (double{x[i]} - centre) * factor;
    if (weight != nullptr) v = v * double{weight[i]} + double{bias[i]};
    out[i] = static_cast<float>(v);
  }
}

// Products --------------------------------------------------------------------------------------

// kRows rows at a time: more memory is on its way, and x is read once for all of them.
template <class Type, std::size_t kRows>
void dot_of_few(const typename Type::Stored* rows, std::uint64_t pitch, const float* x,
                std::size_t count, float* lanes) {
  constexpr std::size_t kVectors = kDotLanes / kWidth;
  const F32 d;
  hn::Vec<F32> sums[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[r][v] = hn::LoadU(d, lanes + r * kDotLanes + v * kWidth);
    }
  }
  std::size_t i = 0;
  for (; i + kDotLanes <= count; i += kDotLanes) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = i + v * kWidth;
      const auto of_x = AsF32::load(x + at);
      for (std::size_t r = 0; r < kRows; ++r) {
        sums[r][v] = hn::MulAdd(Type::load(rows + r * pitch + at), of_x, sums[r][v]);
      }
    }
  }
  for (std::size_t v = 0; v < kVectors && i < count; ++v) {
    const std::size_t some = count - i < kWidth ? count - i : kWidth;
    const auto of_x = load_some<AsF32>(x + i, some);
    for (std::size_t r = 0; r < kRows; ++r) {
      sums[r][v] = hn::MulAdd(load_some<Type>(rows + r * pitch + i, some), of_x, sums[r][v]);
    }
    i += some;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], d, lanes + r * kDotLanes + v * kWidth);
    }
  }
}

template <class Type>
void dot_of(const void* rows, std::uint64_t pitch, std::size_t row_count, const float* x,
            std::size_t count, float* lanes) {
  constexpr std::size_t kTogether = kWidth >= 8 ? 4 : 2;  // their sums fit the registers
  const auto* const at = static_cast<const typename Type::Stored*>(rows);
  std::size_t r = 0;
  for (; r + kTogether <= row_count; r += kTogether) {
    dot_of_few<Type, kTogether>(at + r * pitch, pitch, x, count, lanes + r * kDotLanes);
  }
  for (; r < row_count; ++r) {
    dot_of_few<Type, 1>(at + r * pitch, pitch, x, count, lanes + r * kDotLanes);
  }
}

void dot(ElementType type, const void* rows, std::uint64_t pitch, std::size_t row_count,
         const float* x, std::size_t count, float* lanes) {
  if (type == ElementType::f16) return dot_of<AsF16>(rows, pitch, row_count, x, count, lanes);
  if (type == ElementType::bf16) return dot_of<AsBf16>(rows, pitch, row_count, x, count, lanes);
  dot_of<AsF32>(rows, pitch, row_count, x, count, lanes);
}

// kRows rows at a time: y is read and written once for all of them.
template <class Type, std::size_t kRows>
void add_few_rows(const typename Type::Stored* rows, std::uint64_t pitch, const float* x,
                  std::size_t count, float* y) {
  const F32 d;
  std::size_t j = 0;
  for (; j + kWidth <= count; j += kWidth) {
    auto sum = hn::LoadU(d, y + j);
    for (std::size_t r = 0; r < kRows; ++r) {
      sum = hn::MulAdd(Type::load(rows + r * pitch + j), hn::Set(d, x[r]), sum);
    }
    hn::StoreU(sum, d, y + j);
  }
  if (j == count) return;
  const std::size_t left = count - j;
  auto sum = load_some<AsF32>(y + j, left);
  for (std::size_t r = 0; r < kRows; ++r) {
    sum = hn::MulAdd(load_some<Type>(rows + r * pitch + j, left), hn::Set(d, x[r]), sum);
  }
  store_some(sum, left, y + j);
}

template <class Type>
void add_rows_of(const void* rows, std::uint64_t pitch, std::size_t row_count, const float* x,
                 std::size_t count, float* y) {
  constexpr std::size_t kTogether = 8;
  const auto* at = static_cast<const typename Type::Stored*>(rows);
  std::size_t r = 0;
  for (; r + kTogether <= row_count; r += kTogether) {
    add_few_rows<Type, kTogether>(at + r * pitch, pitch, x + r, count, y);
  }
  for (; r < row_count; ++r) add_few_rows<Type, 1>(at + r * pitch, pitch, x + r, count, y);
}

void add_rows(ElementType type, const void* rows, std::uint64_t pitch, std::size_t row_count,
              const float* x, std::size_t count, float* y) {
  if (type == ElementType::f16) return add_rows_of<AsF16>(rows, pitch, row_count, x, count, y);
  if (type == ElementType::bf16) return add_rows_of<AsBf16>(rows, pitch, row_count, x, count, y);
  add_rows_of<AsF32>(rows, pitch, row_count, x, count, y);
}

void add_scaled(float a, const float* x, std::size_t count, float* y) {
  const F32 d;
  map(x, y, count, y, [&](auto v, auto sum) { return hn::MulAdd(hn::Set(d, a), v, sum); });
}

// Blocks ----------------------------------------------------------------------------------------
//
// The integers of 32 values become bytes, the bytes become values.

constexpr std::size_t kPart = 32;
using Byte = std::uint8_t;
using Bytes = hn::CappedTag<std::uint8_t, 16>;
constexpr std::size_t kBytes = hn::MaxLanes(Bytes());
using I32 = hn::RebindToSigned<F32>;

float half_at(const Byte* at) {
  std::uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return f16_to_float(half);
}

// `step * (q - bias)`, and an offset after that rounding.
template <bool kOffset, class Integer>
HWY_INLINE void values_of(const Integer* q, std::size_t count, int bias, float step, float offset,
                          float* to) {
  for (std::size_t i = 0; i < count; i += kWidth) {
    const auto integers = hn::PromoteTo(I32(), hn::LoadU(hn::Rebind<Integer, I32>(), q + i));
    const auto centred = hn::ConvertTo(F32(), hn::Sub(integers, hn::Set(I32(), bias)));
    auto value = hn::Mul(hn::Set(F32(), step), centred);
    if constexpr (kOffset) value = hn::Add(value, hn::Set(F32(), offset));
    hn::StoreU(value, F32(), to + i);
  }
}

template <int kBits, class V>
HWY_INLINE V right(V bytes) {
  if constexpr (kBits == 0) {
    return bytes;
  } else {
    return hn::ShiftRight<kBits>(bytes);
  }
}

// Low or high halves of bytes.
template <bool kHigh>
HWY_INLINE auto nibbles(const Byte* from) {
  const auto bytes = hn::LoadU(Bytes(), from);
  return kHigh ? hn::ShiftRight<4>(bytes) : hn::And(bytes, hn::Set(Bytes(), Byte{15}));
}

// 32 values in 16 bytes, the low halves first; of the fives with the fifth bits in a word.
HWY_INLINE void unpack_16(const Byte* from, Byte* q) {
  for (std::size_t i = 0; i < 16; i += kBytes) {
    hn::StoreU(nibbles<false>(from + i), Bytes(), q + i);
    hn::StoreU(nibbles<true>(from + i), Bytes(), q + 16 + i);
  }
}
HWY_INLINE void unpack_five(const Byte* from, const Byte* high, Byte* q) {
  std::uint32_t fifths = 0;
  std::memcpy(&fifths, high, sizeof fifths);
  unpack_16(from, q);
  for (std::size_t i = 0; i < kPart; ++i) {
    q[i] = static_cast<Byte>(q[i] | (fifths >> i & 1) << 4);
  }
}

void unpack_q4_0(const Byte* block, float* to) {
  Byte q[kPart];
  unpack_16(block + 2, q);
  values_of<false>(q, kPart, 8, half_at(block), 0, to);
}
void unpack_q4_1(const Byte* block, float* to) {
  Byte q[kPart];
  unpack_16(block + 4, q);
  values_of<true>(q, kPart, 0, half_at(block), half_at(block + 2), to);
}
void unpack_q5_0(const Byte* block, float* to) {
  Byte q[kPart];
  unpack_five(block + 6, block + 2, q);
  values_of<false>(q, kPart, 16, half_at(block), 0, to);
}
void unpack_q5_1(const Byte* block, float* to) {
  Byte q[kPart];
  unpack_five(block + 8, block + 4, q);
  values_of<true>(q, kPart, 0, half_at(block), half_at(block + 2), to);
}
void unpack_q8_0(const Byte* block, float* to) {
  values_of<false>(reinterpret_cast<const std::int8_t*>(block + 2), kPart, 0, half_at(block), 0,
                   to);
}
void unpack_q8_1(const Byte* block, float* to) {
  values_of<false>(reinterpret_cast<const std::int8_t*>(block + 4), kPart, 0, half_at(block), 0,
                   to);
}

// One part of 32 values of q4_k or q5_k. `fifths`: bytes whose bit `kIndex` is the fifth bit, or
// null.
template <int kIndex>
HWY_INLINE void unpack_k_part(const Byte* block, const Byte* quants, const Byte* fifths,
                              float* to) {
  const Byte* const s = block + 4;
  const int scale =
      kIndex < 4 ? s[kIndex] & 63 : (s[kIndex + 4] & 15) | (s[(kIndex + 4) % 8] >> 6) << 4;
  const int min = kIndex < 4 ? s[kIndex + 4] & 63 : s[kIndex + 4] >> 4 | (s[kIndex] >> 6) << 4;
  Byte q[kPart];
  for (std::size_t i = 0; i < kPart; i += kBytes) {
    auto integers = nibbles<kIndex % 2 != 0>(quants + kIndex / 2 * kPart + i);
    if (fifths != nullptr) {
      const auto bits = right<kIndex>(hn::LoadU(Bytes(), fifths + i));
      const auto fifth = hn::And(bits, hn::Set(Bytes(), Byte{1}));
      integers = hn::Or(integers, hn::ShiftLeft<4>(fifth));
    }
    hn::StoreU(integers, Bytes(), q + i);
  }
  const float offset = half_at(block + 2) * static_cast<float>(min);
  values_of<true>(q, kPart, 0, half_at(block) * static_cast<float>(scale), -offset,
                  to + kIndex * kPart);
}

void unpack_k(const Byte* block, const Byte* quants, const Byte* fifths, float* to) {
  unpack_k_part<0>(block, quants, fifths, to);
  unpack_k_part<1>(block, quants, fifths, to);
  unpack_k_part<2>(block, quants, fifths, to);
  unpack_k_part<3>(block, quants, fifths, to);
  unpack_k_part<4>(block, quants, fifths, to);
  unpack_k_part<5>(block, quants, fifths, to);
  unpack_k_part<6>(block, quants, fifths, to);
  unpack_k_part<7>(block, quants, fifths, to);
}
void unpack_q4_k(const Byte* block, float* to) { unpack_k(block, block + 16, nullptr, to); }
void unpack_q5_k(const Byte* block, float* to) { unpack_k(block, block + 48, block + 16, to); }

// Values 32 * kGroup to 32 * kGroup + 31 of one half of a block of q6_k.
template <int kGroup>
HWY_INLINE void unpack_q6_group(const Byte* block, std::size_t half, float d, float* to) {
  const Byte* const low = block + 64 * half + 32 * (kGroup & 1);
  const Byte* const high = block + 128 + 32 * half;
  for (std::size_t i = 0; i < kPart; i += 16) {
    Byte q[16];
    for (std::size_t j = 0; j < 16; j += kBytes) {
      const auto bits =
          hn::And(right<2 * kGroup>(hn::LoadU(Bytes(), high + i + j)), hn::Set(Bytes(), Byte{3}));
      hn::StoreU(hn::Or(nibbles<(kGroup >= 2)>(low + i + j), hn::ShiftLeft<4>(bits)), Bytes(),
                 q + j);
    }
    const auto scale = static_cast<std::int8_t>(block[192 + 8 * half + i / 16 + 2 * kGroup]);
    values_of<false>(q, 16, 32, d * static_cast<float>(scale), 0,
                     to + 128 * half + 32 * kGroup + i);
  }
}

void unpack_q6_k(const Byte* block, float* to) {
  const float d = half_at(block + 208);
  for (std::size_t half = 0; half < 2; ++half) {
    unpack_q6_group<0>(block, half, d, to);
    unpack_q6_group<1>(block, half, d, to);
    unpack_q6_group<2>(block, half, d, to);
    unpack_q6_group<3>(block, half, d, to);
  }
}

using Unpack = void (*)(const Byte*, float*);

Unpack unpack_of(ElementType type) {
  switch (type) {
    case ElementType::q4_0:
      return unpack_q4_0;
    case ElementType::q4_1:
      return unpack_q4_1;
    case ElementType::q5_0:
      return unpack_q5_0;
    case ElementType::q5_1:
      return unpack_q5_1;
    case ElementType::q8_0:
      return unpack_q8_0;
    case ElementType::q8_1:
      return unpack_q8_1;
    case ElementType::q4_k:
      return unpack_q4_k;
    case ElementType::q5_k:
      return unpack_q5_k;
    default:
      return unpack_q6_k;
  }
}

void dequantize(ElementType type, const void* blocks, std::size_t values, float* to) {
  const Unpack unpack = unpack_of(type);
  const auto* at = static_cast<const Byte*>(blocks);
  const std::size_t size = info(type).block_values;
  for (std::size_t i = 0; i < values; i += size) {
    unpack(at, to + i);
    at += info(type).block_bytes;
  }
}

const HostVectors& vectors() {
  static constexpr HostVectors kVectors = {
      to_f32, from_f32, add,   multiply,  gate, gelu_tanh, relu,       exponentials, largest,
      sum,    squares,  scale, normalise, dot,  add_rows,  add_scaled, dequantize};
  return kVectors;
}

}  // namespace ptxgen::inline v0::host_vectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ptxgen::inline v0 {

namespace host_vectors {

namespace {

struct Compiled {
  std::int64_t target;
  std::string_view name;
  const HostVectors& (*vectors)();  // null: not compiled for this architecture
};

constexpr Compiled kCompiled[] = {{HWY_AVX3, "avx512", HWY_CHOOSE_AVX3(vectors)},
                                  {HWY_AVX2, "avx2", HWY_CHOOSE_AVX2(vectors)},
                                  {HWY_SSE4, "sse4", HWY_CHOOSE_SSE4(vectors)},
                                  {HWY_NEON, "neon", HWY_CHOOSE_NEON(vectors)},
                                  {HWY_STATIC_TARGET, "portable", &HWY_STATIC_DISPATCH(vectors)}};

struct Targets {
  HostTarget rows[std::size(kCompiled)];
  std::size_t count = 0;
};

Targets find_targets() noexcept {
  Targets targets;
  const std::int64_t supported = hwy::SupportedTargets();
  for (const Compiled& one : kCompiled) {
    if (one.vectors == nullptr) continue;
    const bool runs = one.target == HWY_STATIC_TARGET || (supported & one.target) != 0;
    targets.rows[targets.count++] = {one.name, runs, &one.vectors()};
  }
  return targets;
}

}  // namespace

}  // namespace host_vectors

std::span<const HostTarget> host_targets() noexcept {
  static const host_vectors::Targets targets = host_vectors::find_targets();
  return {targets.rows, targets.count};
}

}  // namespace ptxgen::inline v0
#endif  // HWY_ONCE
