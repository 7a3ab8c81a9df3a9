// src/analysis/lane_bits.cpp - bits in which the lanes of a warp differ
#include "analysis/lane_bits.hpp"

#include <bit>

#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

constexpr std::uint8_t kAll = LaneBits::kAll;

std::uint8_t bits_of(unsigned count) {
  return static_cast<std::uint8_t>(std::min<unsigned>(count, kAll));
}

bool agrees(const LaneSource& source) { return source.bits.differing == 0; }
bool all_agree(std::span<const LaneSource> x) { return std::ranges::all_of(x, agrees); }

// Below a multiple of 2^n that all lanes share, lanes that differ in n bits only are all together.
bool is_edge(const LaneSource& edge, const LaneSource& of) {
  return agrees(edge) && edge.bits.zeros >= of.bits.differing;
}

LaneBits sum(LaneBits a, LaneBits b) {
  // One fills bits that are 0 in the other: nothing is carried.
  const bool fits =
      (b.differing == 0 && a.differing <= b.zeros) || (a.differing == 0 && b.differing <= a.zeros);
  return {fits ? std::max(a.differing, b.differing) : kAll, std::min(a.zeros, b.zeros)};
}
LaneBits product(LaneBits a, LaneBits b) {
  return {a.differing == 0 && b.differing == 0 ? std::uint8_t{0} : kAll,
          bits_of(unsigned{a.zeros} + b.zeros)};
}
LaneBits shifted_left(LaneBits a, unsigned by) {
  return {a.differing == 0 ? std::uint8_t{0} : bits_of(a.differing + by), bits_of(a.zeros + by)};
}
LaneBits shifted_right(LaneBits a, unsigned by) {
  const auto less = [&](std::uint8_t bits) {
    return bits == kAll ? kAll : static_cast<std::uint8_t>(bits - std::min<unsigned>(bits, by));
  };
  return {less(a.differing), less(a.zeros)};
}

// Whether lanes that differ in their low bits agree about a < b, or a > b, and the like.
bool comparison_agrees(const Instruction& s, std::span<const LaneSource> x) {
  const auto next = [](const LaneSource& source) {
    LaneSource result = source;
    // A constant at the end of its range compares alike for all.
    if (source.constant) result.bits = lane_bits(source.value + 1);
    return result;
  };
  switch (s.get(Field::Comparison)) {
    case Modifier::lt:
    case Modifier::lo:
    case Modifier::ge:
    case Modifier::hs:
      return is_edge(x[1], x[0]) || (x[0].constant && is_edge(next(x[0]), x[1]));
    case Modifier::gt:
    case Modifier::hi:
    case Modifier::le:
    case Modifier::ls:
      return is_edge(x[0], x[1]) || (x[1].constant && is_edge(next(x[1]), x[0]));
    default:
      return false;
  }
}

LaneBits compared(const Instruction& s, std::span<const LaneSource> x) {
  const bool integers = s.is(Op::setp_unsigned) || s.is(Op::setp_unsigned_bool) ||
                        s.is(Op::setp_signed) || s.is(Op::setp_signed_bool);
  const bool agreed = all_agree(x) || (integers && x.size() >= 2 && comparison_agrees(s, x) &&
                                       all_agree(x.subspan(2)));
  return {agreed ? std::uint8_t{0} : kAll, 0};
}

// long because it is one switch over the operations
LaneBits integer(const Instruction& s, std::span<const LaneSource> x) {
  const LaneBits unknown{all_agree(x) ? std::uint8_t{0} : kAll, 0};
  const bool sign = kind(s.type()) == TypeKind::Signed;
  const LaneBits a = x[0].bits;
  if (s.is(Op::mov)) return a;
  if (s.is(Op::not_)) return {a.differing, 0};
  if (s.is(Op::cvt_int)) {
    // Above the source its sign is repeated, which is uniform unless it is among the low bits.
    return a.differing < bits(s.type(1)) ? a : LaneBits{kAll, a.zeros};
  }
  if (x.size() < 2) return unknown;
  const LaneBits b = x[1].bits;
  const LaneBits c = x.size() > 2 ? x[2].bits : LaneBits{};
  const bool low = s.get(Field::MulPart) != Modifier::hi;
  const auto shift = [](const LaneSource& by) {
    return static_cast<unsigned>(std::min<std::uint64_t>(by.value & 0xffffffff, kAll));
  };
  const auto divisor = [&] { return !sign && x[1].constant && x[1].value != 0; };
  switch (s.op) {
    case Op::add:
      return sum(a, b);
    case Op::sub:
      // What differs must not borrow.
      return {b.differing == 0 ? sum(a, b).differing : kAll, std::min(a.zeros, b.zeros)};
    case Op::mul:
      return low ? product(a, b) : unknown;
    case Op::mul_wide:
      return product(a, b);
    case Op::mad:
      return low ? sum(product(a, b), c) : unknown;
    case Op::mad_wide:
      return sum(product(a, b), c);
    case Op::shl:
      return x[1].constant ? shifted_left(a, shift(x[1])) : unknown;
    case Op::shr:
      return x[1].constant ? shifted_right(a, shift(x[1])) : unknown;
    case Op::bfe:
      return x[1].constant && !sign && c.differing == 0
                 ? LaneBits{shifted_right(a, shift(x[1])).differing, 0}
                 : unknown;
    case Op::div:
      // As a shift by the trailing zeros of the divisor; the odd factor keeps lanes equal.
      return divisor() ? LaneBits{shifted_right(a, b.zeros).differing, 0} : unknown;
    case Op::rem:
      return divisor() && is_edge(x[1], x[0]) ? LaneBits{a.differing, std::min(a.zeros, b.zeros)}
                                              : unknown;
    case Op::and_: {
      const bool masked = is_edge(x[1], x[0]) || is_edge(x[0], x[1]);
      return {masked ? std::uint8_t{0} : std::max(a.differing, b.differing),
              std::max(a.zeros, b.zeros)};
    }
    case Op::or_:
    case Op::xor_:
      return a.with(b);
    case Op::min:
    case Op::max:
      return is_edge(x[0], x[1]) || is_edge(x[1], x[0]) ? a.with(b) : unknown;
    case Op::selp:
      return c.differing == 0 ? a.with(b) : unknown;
    default:
      return unknown;
  }
}

}  // namespace

LaneBits lane_bits(std::uint64_t constant) noexcept {
  return {0, static_cast<std::uint8_t>(std::countr_zero(constant))};
}

LaneBits lane_bits(SpecialRegister reg, unsigned component,
                   const std::array<std::uint32_t, 3>& block) noexcept {
  const LaneBits otherwise = lane_bits(of_special(reg, component, block));
  constexpr std::uint8_t kWarp = 5;  // 2^5 lanes
  if (reg == SpecialRegister::laneid) return {kWarp, 0};
  if (block[0] == 0 || component > 3) return otherwise;
  const unsigned axis = component == 0 ? 0 : component - 1;
  if (reg == SpecialRegister::ntid) return lane_bits(std::uint64_t{block[axis]});
  if (reg != SpecialRegister::tid || otherwise.differing == 0) return otherwise;
  const bool one_row = block[1] == 1 && block[2] == 1;
  // Lanes have consecutive numbers, x first, and those of a warp begin at a multiple of 32.
  if (axis == 0) {
    if (one_row || block[0] % 32 == 0) return {kWarp, 0};
    return std::has_single_bit(block[0]) ? LaneBits{bits_of(std::bit_width(block[0]) - 1), 0}
                                         : otherwise;
  }
  const bool full_warps = block[2] == 1 || std::uint64_t{block[0]} * block[1] % 32 == 0;
  if (axis == 1 && full_warps && block[0] < 32 && std::has_single_bit(block[0]))
    return {bits_of(std::bit_width(32 / block[0]) - 1), 0};
  return otherwise;
}

LaneBits lane_bits(const Instruction& s, std::span<const LaneSource> x) noexcept {
  const LaneBits unknown{all_agree(x) ? std::uint8_t{0} : kAll, 0};
  if (x.empty()) return unknown;
  if (s.has(Field::Comparison)) return compared(s, x);
  const TypeKind k = kind(s.type());
  if (k != TypeKind::Unsigned && k != TypeKind::Signed && k != TypeKind::Bits &&
      k != TypeKind::Predicate)
    return unknown;
  const LaneBits result = integer(s, x);
  // In the highest bit, which a right shift repeats, no lane may differ alone.
  return result.differing < bits(s.type()) || result.differing == 0 ? result
                                                                    : LaneBits{kAll, result.zeros};
}

}  // namespace ptxgen::inline v0::analysis
