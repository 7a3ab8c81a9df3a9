// src/ptx/semantics/integer.cpp - integer and extended-precision arithmetic
//
// Where PTX leaves a result undefined:
// - x / 0 is all ones, signed and unsigned; x % 0 is x.
// - The most negative number / -1 is itself, and its remainder is 0 (as on hardware).
// - fns with a base above 31 finds nothing (all ones).
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "ptx/semantics/scalar.hpp"

namespace ptxgen::inline v0::ptx {
namespace {

using u64 = std::uint64_t;
using s64 = std::int64_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;

template <class T>
inline constexpr unsigned kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;

/// The value that these register bits have as a T.
template <class T>
constexpr T as(u64 bits) {
  return static_cast<T>(bits);
}

/// Register bits of a value, cut to the width of T.
template <class T, class Value>
constexpr u64 cut(Value value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

/// The value of these bits, extended to 64 bits by the rule of T.
template <class T>
constexpr u64 extended(u64 bits) {
  return static_cast<u64>(as<T>(bits));
}

constexpr u64 high_product(u64 a, u64 b) {
  const u64 a0 = static_cast<u32>(a);
  const u64 a1 = a >> 32;
  const u64 b0 = static_cast<u32>(b);
  const u64 b1 = b >> 32;
  const u64 middle = a1 * b0 + (a0 * b0 >> 32);
  const u64 other = a0 * b1 + static_cast<u32>(middle);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/// The upper half of the product of two T.
template <class T>
constexpr u64 high(u64 a, u64 b) {
  if constexpr (kBits<T> == 64) {
    u64 result = high_product(a, b);
    if constexpr (std::is_signed_v<T>) {
      if (as<s64>(a) < 0) result -= b;
      if (as<s64>(b) < 0) result -= a;
    }
    return result;
  } else {
    return cut<T>(extended<T>(a) * extended<T>(b) >> kBits<T>);
  }
}

template <class T>
constexpr u64 part_of_product(const ScalarOp& op, u64 a, u64 b) {
  return op.mode == Modifier::hi ? high<T>(a, b) : cut<T>(a * b);
}

constexpr u64 clamped_s32(s64 value) {
  return cut<s32>(
      std::clamp<s64>(value, std::numeric_limits<s32>::min(), std::numeric_limits<s32>::max()));
}

// One struct for each row or group of rows that differ in type alone.

struct Add {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    d[0] = cut<T>(s[0] + s[1]);
  }
};

struct Sub {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    d[0] = cut<T>(s[0] - s[1]);
  }
};

struct Mul {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    d[0] = part_of_product<T>(op, s[0], s[1]);
  }
};

struct Mad {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    d[0] = cut<T>(part_of_product<T>(op, s[0], s[1]) + s[2]);
  }
};

/// mul.wide without, mad.wide with a third source.
template <bool kAdds>
struct Wide {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    using Result = std::conditional_t<kBits<T> == 16, u32, u64>;
    const u64 product = extended<T>(s[0]) * extended<T>(s[1]);
    d[0] = static_cast<Result>(kAdds ? product + s[2] : product);
  }
};

struct Sad {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    const bool less = as<T>(s[0]) < as<T>(s[1]);
    d[0] = cut<T>(s[2] + (less ? s[1] - s[0] : s[0] - s[1]));
  }
};

template <class T>
constexpr bool is_minus_one(u64 bits) {
  return std::is_signed_v<T> && cut<T>(bits) == cut<T>(~u64{0});
}

struct Div {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    if (as<T>(s[1]) == 0) {
      d[0] = cut<T>(~u64{0});
    } else if (is_minus_one<T>(s[1])) {
      d[0] = cut<T>(0 - s[0]);
    } else {
      d[0] = cut<T>(as<T>(s[0]) / as<T>(s[1]));
    }
  }
};

struct Rem {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    if (as<T>(s[1]) == 0) {
      d[0] = cut<T>(s[0]);
    } else if (is_minus_one<T>(s[1])) {
      d[0] = 0;
    } else {
      d[0] = cut<T>(as<T>(s[0]) % as<T>(s[1]));
    }
  }
};

struct Abs {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    d[0] = cut<T>(as<T>(s[0]) < 0 ? 0 - s[0] : s[0]);
  }
};

struct Neg {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    d[0] = cut<T>(0 - s[0]);
  }
};

template <bool kMax>
struct Extreme {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    T result = kMax ? std::max(as<T>(s[0]), as<T>(s[1])) : std::min(as<T>(s[0]), as<T>(s[1]));
    if (op.relu && std::is_signed_v<T>) result = std::max(result, T{0});
    d[0] = cut<T>(result);
  }
};

/// The same on both halves of a 32-bit register.
template <class Operation>
struct Halves {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    const u64 low[2] = {cut<T>(s[0]), cut<T>(s[1])};
    const u64 upper[2] = {cut<T>(s[0] >> 16), cut<T>(s[1] >> 16)};
    u64 results[2] = {};
    Operation::template run<T>(op, low, &results[0]);
    Operation::template run<T>(op, upper, &results[1]);
    d[0] = results[0] | results[1] << 16;
  }
};

struct Popc {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    d[0] = static_cast<u64>(std::popcount(as<T>(s[0])));
  }
};

struct Clz {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    d[0] = static_cast<u64>(std::countl_zero(as<T>(s[0])));
  }
};

struct Bfind {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(as<T>(s[0]) < 0 ? ~s[0] : s[0]);
    const unsigned zeros = static_cast<unsigned>(std::countl_zero(bits));
    if (bits == 0) {
      d[0] = cut<u32>(~u64{0});
    } else {
      d[0] = op.shiftamt ? zeros : kBits<T> - 1 - zeros;
    }
  }
};

void fns(const ScalarOp&, const u64* s, u64* d) {
  const u64 mask = cut<u32>(s[0]);
  const u64 base = cut<u32>(s[1]);
  const s64 offset = as<s32>(s[2]);
  d[0] = cut<u32>(~u64{0});
  if (base > 31) return;
  if (offset == 0) {
    if ((mask >> base & 1) != 0) d[0] = base;
    return;
  }
  // Drop the bits on the wrong side of the base, then all but the wanted one of the others.
  u64 left = offset > 0 ? mask >> base << base : mask & ((u64{2} << base) - 1);
  const s64 wanted = offset > 0 ? offset : std::popcount(left) + offset + 1;
  if (wanted < 1 || wanted > std::popcount(left)) return;
  for (s64 skipped = 1; skipped < wanted; ++skipped) left &= left - 1;
  d[0] = static_cast<u64>(std::countr_zero(left));
}

struct Brev {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    u64 x = s[0];
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ff00ff00ffu) | (x & 0x00ff00ff00ff00ffu) << 8;
    x = (x >> 16 & 0x0000ffff0000ffffu) | (x & 0x0000ffff0000ffffu) << 16;
    x = x >> 32 | x << 32;
    d[0] = cut<T>(x >> (64 - kBits<T>));
  }
};

/// `count` low one bits; all of them from 64 on.
constexpr u64 ones(u64 count) { return count >= 64 ? ~u64{0} : (u64{1} << count) - 1; }

struct Bfe {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    const u64 position = s[1] & 0xff;
    const u64 length = s[2] & 0xff;
    const u64 last = kBits<T> - 1;
    bool sign = false;
    if (std::is_signed_v<T> && length != 0) {
      sign = (s[0] >> std::min(position + length - 1, last) & 1) != 0;
    }
    const u64 there = position > last ? 0 : ones(std::min(length, kBits<T> - position));
    const u64 field = position > last ? 0 : cut<T>(s[0]) >> position & there;
    d[0] = cut<T>(sign ? field | ~there : field);
  }
};

struct Bfi {
  template <class T>
  static void run(const ScalarOp&, const u64* s, u64* d) {
    const u64 position = s[2] & 0xff;
    const u64 length = s[3] & 0xff;
    if (position >= kBits<T>) {
      d[0] = cut<T>(s[1]);
      return;
    }
    const u64 there = ones(length) << position;
    d[0] = cut<T>((s[1] & ~there) | (s[0] << position & there));
  }
};

void bmsk(const ScalarOp& op, const u64* s, u64* d) {
  u64 first = cut<u32>(s[0]);
  u64 count = cut<u32>(s[1]);
  if (op.clamp) {
    first = std::min<u64>(first, 32);
    count = std::min<u64>(count, 32);
  } else {
    first &= 31;
    count &= 31;
  }
  d[0] = cut<u32>(ones(count) << first);
}

template <class T>
void szext(const ScalarOp& op, const u64* s, u64* d) {
  u64 width = cut<u32>(s[1]);
  if (!op.clamp) width &= 31;
  if (width >= 32) {
    d[0] = cut<u32>(s[0]);
    return;
  }
  const u64 low = s[0] & ones(width);
  const bool sign = std::is_signed_v<T> && width != 0 && (low >> (width - 1) & 1) != 0;
  d[0] = cut<u32>(sign ? low | ~ones(width) : low);
}

/// A source of mul24: its low 24 bits, extended.
template <class T>
constexpr s64 low24(u64 bits) {
  const s64 value = static_cast<s64>(bits & 0xffffff);
  return std::is_signed_v<T> && value >= 0x800000 ? value - 0x1000000 : value;
}

template <class T>
constexpr u64 product24(const ScalarOp& op, const u64* s) {
  const s64 product = low24<T>(s[0]) * low24<T>(s[1]);
  return cut<u32>(op.mode == Modifier::hi ? product >> 16 : product);
}

template <bool kAdds>
struct Mul24 {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    d[0] = cut<u32>(product24<T>(op, s) + (kAdds ? s[2] : 0));
  }
};

void add_sat(const ScalarOp&, const u64* s, u64* d) {
  d[0] = clamped_s32(s64{as<s32>(s[0])} + as<s32>(s[1]));
}

void sub_sat(const ScalarOp&, const u64* s, u64* d) {
  d[0] = clamped_s32(s64{as<s32>(s[0])} - as<s32>(s[1]));
}

void mad_sat(const ScalarOp&, const u64* s, u64* d) {
  d[0] = clamped_s32(s64{as<s32>(high<s32>(s[0], s[1]))} + as<s32>(s[2]));
}

void mad24_sat(const ScalarOp& op, const u64* s, u64* d) {
  d[0] = clamped_s32(s64{as<s32>(product24<s32>(op, s))} + as<s32>(s[2]));
}

/// Byte number `i`, or half number `i`, extended as its type says.
constexpr s64 byte_of(Type type, u64 bits, unsigned i) {
  return type == Type::s32 ? s64{as<std::int8_t>(bits >> 8 * i)}
                           : s64{as<std::uint8_t>(bits >> 8 * i)};
}
constexpr s64 half_of(Type type, u64 bits, unsigned i) {
  return type == Type::s32 ? s64{as<std::int16_t>(bits >> 16 * i)}
                           : s64{as<std::uint16_t>(bits >> 16 * i)};
}

void dp4a(const ScalarOp& op, const u64* s, u64* d) {
  u64 sum = s[2];
  for (unsigned i = 0; i < 4; ++i) {
    sum += static_cast<u64>(byte_of(op.type, s[0], i) * byte_of(op.type2, s[1], i));
  }
  d[0] = cut<u32>(sum);
}

void dp2a(const ScalarOp& op, const u64* s, u64* d) {
  const unsigned first = op.mode == Modifier::hi ? 2 : 0;
  u64 sum = s[2];
  for (unsigned i = 0; i < 2; ++i) {
    sum += static_cast<u64>(half_of(op.type, s[0], i) * byte_of(op.type2, s[1], first + i));
  }
  d[0] = cut<u32>(sum);
}

/// a + b + carry, as unsigned numbers of the width of T whatever its sign; the carry after d.
template <class T>
void add_with_carry(const ScalarOp& op, u64 a, u64 b, u64 carry, u64* d) {
  const u64 first = cut<T>(a);
  const u64 partial = cut<T>(first + cut<T>(b));
  const u64 sum = cut<T>(partial + carry);
  d[0] = sum;
  if (op.carry_out) d[1] = (partial < first || sum < partial) ? 1 : 0;
}

template <bool kCarryIn>
struct AddCarry {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    add_with_carry<T>(op, s[0], s[1], kCarryIn ? s[2] & 1 : 0, d);
  }
};

/// a + ~b + flag: the flag is the carry of that sum, 0 where the difference is negative. The manual
/// speaks of a borrow, but ptxas 13.0 makes of `sub.cc` and `addc` one IADD3 and one IADD3.X with
/// the carry between them as it is, and folds constants alike.
template <bool kCarryIn>
struct SubCarry {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    add_with_carry<T>(op, s[0], ~s[1], kCarryIn ? s[2] & 1 : 1, d);
  }
};

template <bool kCarryIn>
struct MadCarry {
  template <class T>
  static void run(const ScalarOp& op, const u64* s, u64* d) {
    add_with_carry<T>(op, part_of_product<T>(op, s[0], s[1]), s[2], kCarryIn ? s[3] & 1 : 0, d);
  }
};

template <class Operation>
ScalarFunction for_signed(Type type) {
  switch (type) {
    case Type::s16:
      return &Operation::template run<std::int16_t>;
    case Type::s32:
      return &Operation::template run<s32>;
    case Type::s64:
      return &Operation::template run<s64>;
    default:
      return nullptr;
  }
}

template <class Operation>
ScalarFunction for_integer(Type type) {
  switch (type) {
    case Type::u16:
      return &Operation::template run<std::uint16_t>;
    case Type::u32:
      return &Operation::template run<u32>;
    case Type::u64:
      return &Operation::template run<u64>;
    default:
      return for_signed<Operation>(type);
  }
}

/// u16 u32 s16 s32: what has a product twice as wide.
template <class Operation>
ScalarFunction for_narrow(Type type) {
  return bits(type) == 64 ? nullptr : for_integer<Operation>(type);
}

template <class Operation>
ScalarFunction for_32_or_64(Type type) {
  return bits(type) == 16 ? nullptr : for_integer<Operation>(type);
}

template <class Operation>
ScalarFunction for_bits(Type type) {
  switch (type) {
    case Type::b32:
      return &Operation::template run<u32>;
    case Type::b64:
      return &Operation::template run<u64>;
    default:
      return nullptr;
  }
}

template <class Operation>
ScalarFunction for_halves(Type type) {
  switch (type) {
    case Type::u16x2:
      return &Halves<Operation>::template run<std::uint16_t>;
    case Type::s16x2:
      return &Halves<Operation>::template run<std::int16_t>;
    default:
      return nullptr;
  }
}

}  // namespace

// long because it has one case for each row
ScalarFunction integer_function(const ScalarOp& op) noexcept {
  switch (op.op) {
    case Op::add_sat:
      return &add_sat;
    case Op::add:
      return for_integer<Add>(op.type);
    case Op::add_x2:
      return for_halves<Add>(op.type);
    case Op::sub_sat:
      return &sub_sat;
    case Op::sub:
      return for_integer<Sub>(op.type);
    case Op::mul:
      return for_integer<Mul>(op.type);
    case Op::mul_wide:
      return for_narrow<Wide<false>>(op.type);
    case Op::mad:
      return for_integer<Mad>(op.type);
    case Op::mad_sat:
      return &mad_sat;
    case Op::mad_wide:
      return for_narrow<Wide<true>>(op.type);
    case Op::mul24:
      return for_32_or_64<Mul24<false>>(op.type);
    case Op::mad24:
      return for_32_or_64<Mul24<true>>(op.type);
    case Op::mad24_sat:
      return &mad24_sat;
    case Op::sad:
      return for_integer<Sad>(op.type);
    case Op::div:
      return for_integer<Div>(op.type);
    case Op::rem:
      return for_integer<Rem>(op.type);
    case Op::abs:
      return for_signed<Abs>(op.type);
    case Op::neg:
      return for_signed<Neg>(op.type);
    case Op::min:
    case Op::min_relu:
      return for_integer<Extreme<false>>(op.type);
    case Op::min_x2:
    case Op::min_relu_x2:
      return for_halves<Extreme<false>>(op.type);
    case Op::max:
    case Op::max_relu:
      return for_integer<Extreme<true>>(op.type);
    case Op::max_x2:
    case Op::max_relu_x2:
      return for_halves<Extreme<true>>(op.type);
    case Op::popc:
      return for_bits<Popc>(op.type);
    case Op::clz:
      return for_bits<Clz>(op.type);
    case Op::bfind:
      return for_32_or_64<Bfind>(op.type);
    case Op::fns:
      return &fns;
    case Op::brev:
      return for_bits<Brev>(op.type);
    case Op::bfe:
      return for_32_or_64<Bfe>(op.type);
    case Op::bfi:
      return for_bits<Bfi>(op.type);
    case Op::bmsk:
      return &bmsk;
    case Op::szext:
      return op.type == Type::s32 ? &szext<s32> : &szext<u32>;
    case Op::dp4a:
      return &dp4a;
    case Op::dp2a:
      return &dp2a;
    case Op::add_cc:
      return for_32_or_64<AddCarry<false>>(op.type);
    case Op::addc:
      return for_32_or_64<AddCarry<true>>(op.type);
    case Op::sub_cc:
      return for_32_or_64<SubCarry<false>>(op.type);
    case Op::subc:
      return for_32_or_64<SubCarry<true>>(op.type);
    case Op::mad_cc:
      return for_32_or_64<MadCarry<false>>(op.type);
    case Op::madc:
      return for_32_or_64<MadCarry<true>>(op.type);
    default:
      return nullptr;
  }
}

}  // namespace ptxgen::inline v0::ptx
