// src/kernels/gemv/block_dot.cpp - products of blocks and integers, by a lane
#include "kernels/gemv/block_dot.hpp"

#include <algorithm>

namespace ptxgen::inline v0::gemv {

namespace {

constexpr std::uint32_t kLow = 0x0f0f0f0fu;
constexpr std::uint32_t kFifth = 0x10101010u;
constexpr std::uint32_t kHigh = 0x30303030u;
constexpr std::uint8_t kAndOr = 0xea;          // (a & b) | c
constexpr std::uint32_t kUpperLower = 0x5432;  // the upper half of a and the lower half of b

bool is_k(ElementType type) { return type == ElementType::q4_k || type == ElementType::q5_k; }

Value<f32> from_half(KernelBuilder& k, const Value<u16>& bits) {
  return k.cvt<f32>(k.bitcast<f16>(bits));
}

template <class F>
Piece16 each(const Piece16& words, const F& f) {
  const Value<u32> a = f(words[0]), b = f(words[1]), c = f(words[2]), d = f(words[3]);
  return {a, b, c, d};
}
template <class F>
Piece16 each(const Piece16& words, const Piece16& others, const F& f) {
  const Value<u32> a = f(words[0], others[0]), b = f(words[1], others[1]);
  const Value<u32> c = f(words[2], others[2]), d = f(words[3], others[3]);
  return {a, b, c, d};
}

// Bytes of a load from a unit. A row begins at a multiple of 16, units at multiples of their size.
std::uint32_t widest_of(ElementType type) {
  return is_k(type) ? 16 : type == ElementType::q5_1 ? 8 : 4;
}

Piece16 low_halves(const Piece16& bytes) {
  return each(bytes, [](const Value<u32>& w) { return w & kLow; });
}
Piece16 high_halves(const Piece16& bytes) {
  return each(bytes, [](const Value<u32>& w) { return (w >> 4u) & kLow; });
}

}  // namespace

XPart load_x_part(KernelBuilder& k, const StagedX& layout, const XPlace& at, std::uint32_t part) {
  const BlockFormat& format = layout.format;
  const std::uint32_t pieces = format.part_pieces();
  XPart x;
  for (std::uint32_t digit = 0; digit < layout.digits; ++digit) {
    std::vector<Piece16>& all = x.digits.emplace_back();
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const std::uint32_t piece = part * pieces + i;
      const std::uint32_t region = piece / layout.region_pieces();
      const std::uint32_t from = region * layout.region_bytes() + digit * layout.digit_bytes() +
                                 piece % layout.region_pieces() * layout.piece_bytes();
      all.push_back(k.ld<4>((at.integers + from).cast<u32>()));
    }
  }
  for (std::uint32_t group = 0; group < format.groups; ++group) {
    const std::uint32_t from = (part * format.groups + group) * layout.region_bytes();
    const std::uint32_t sums = layout.sums_at() - layout.scales_at();
    x.scales.push_back(k.ld((at.floats + from).cast<f32>()));
    x.sums.push_back(k.ld((at.floats + (sums + from)).cast<f32>()));
  }
  return x;
}

namespace {

template <class Words>
std::vector<Value<u32>> load_words_at(KernelBuilder& k, const Words& from, std::uint32_t count,
                                      const Load& how) {
  const auto all = [](const auto& loaded) {
    return std::vector<Value<u32>>(loaded.begin(), loaded.end());
  };
  if (count == 4) return all(k.ld<4>(from, how));
  if (count == 2) return all(k.ld<2>(from, how));
  return {k.ld(from, how)};
}

}  // namespace

BlockPlace BlockPlace::operator+(std::uint32_t bytes) const {
  if (const auto* shared = std::get_if<Ptr<b8, Shared>>(&at_)) return {*shared + bytes};
  return {std::get<Ptr<b8>>(at_) + bytes, how_};
}

std::vector<Value<u32>> BlockPlace::words(KernelBuilder& k, std::uint32_t count) const {
  if (const auto* shared = std::get_if<Ptr<b8, Shared>>(&at_)) {
    return load_words_at(k, shared->cast<u32>(), count, {});
  }
  return load_words_at(k, std::get<Ptr<b8>>(at_).cast<u32>(), count, how_);
}

Value<u32> Unit::aligned_word(std::uint32_t index) {
  const auto found = words_.find(index);
  if (found != words_.end()) return found->second;
  const std::uint32_t together = widest_ / 4;
  const std::uint32_t first = index / together * together;
  const std::vector<Value<u32>> loaded = (at_ + 4 * first).words(k_, together);
  for (std::uint32_t i = 0; i < together; ++i) words_.emplace(first + i, loaded[i]);
  return words_.at(index);
}

Value<u32> Unit::word(std::uint32_t at) {
  const Value<u32> low = aligned_word(at / 4);
  if (at % 4 == 0) return low;
  const Value<u32> high = aligned_word(at / 4 + 1);
  return k_.prmt(low, high, kUpperLower);
}

Piece16 Unit::piece(std::uint32_t at) {
  const Value<u32> a = word(at), b = word(at + 4), c = word(at + 8), d = word(at + 12);
  return {a, b, c, d};
}

Value<f32> Unit::half(std::uint32_t at) {
  const std::uint32_t index = at / 4;
  const auto found = halves_.find(index);
  const auto halves = found != halves_.end() ? found->second : k_.unpack<u16>(aligned_word(index));
  halves_.emplace(index, halves);
  return from_half(k_, halves[at % 4 / 2]);
}

void Unit::load_by_halves(std::uint32_t at, std::uint32_t bytes, const Pred& lower) {
  const std::uint32_t end = (at + bytes + 3) / 4;
  const Pred upper = !lower;
  for (std::uint32_t index = at / 4; index < end; ++index) {
    const Value<u32> word = k_.undefined<u32>();
    for (const Pred& half : {lower, upper}) {
      k_.guarded(half, [&] {
        k_.emit(ptx::Op::ld, {ptx::Modifier::shared, ptx::Modifier::type_u32},
                {word, (at_.shared() + 4 * index).cast<u32>()});
      });
    }
    words_.emplace(index, word);
  }
}

BlockProducts::BlockProducts(KernelBuilder& k, const BlockFormat& format, const Value<u32>& lane)
    : k_(k),
      format_(format),
      lane_(format.lanes == 32 ? lane : lane & (format.lanes - 1)),
      zero_(k.constant<s32>(0)) {}

BlockDecoder::BlockDecoder(KernelBuilder& k, const BlockFormat& format, const Value<u32>& lane,
                           const Ptr<b8, Shared>& steps)
    : BlockProducts(k, format, lane), widest_(widest_of(format.type)) {
  const std::uint32_t block_bytes = bytes(format.type);
  if (format.type == ElementType::q6_k) lower_.emplace(lane < 16u);
  if (is_k(format.type)) {
    unit_.emplace(steps.offset_bytes(k.mul_lo(lane_ >> 2u, block_bytes)));
    place_quarter();
  } else if (format.type == ElementType::q6_k) {
    const Value<u32> pair = k.mul_lo(lane_ >> 2u, 2 * block_bytes);
    unit_.emplace(steps.offset_bytes(k.mad_lo(lane_ >> 4u, format.panel_gap, pair)));
    place_sixteenth();
  } else {
    unit_.emplace(steps.offset_bytes(k.mul_lo(lane_, format.parts * block_bytes)));
  }
}

BlockDecoder::BlockDecoder(KernelBuilder& k, const BlockFormat& format, std::uint32_t lane)
    : BlockProducts(k, format, k.constant<u32>(lane)),
      widest_(widest_of(format.type)),
      number_(lane) {
  if (is_k(format.type)) place_quarter();
  if (format.type == ElementType::q6_k) place_sixteenth();
}

void BlockDecoder::set_row(const BlockPlace& step) {
  unit_.emplace(step);
  if (is_k(format_.type)) low_.emplace(step + (*number_ << 5u));
  if (format_.type != ElementType::q6_k) return;
  const std::uint32_t half = *number_ >> 1u;
  low_.emplace(step + ((half << 6u) + ((*number_ & 1u) << 4u)));
  high_.emplace(step + (*number_ << 4u));
  scales_.emplace(step + (half << 3u));
}

// Scales 0 to 3 and minima 0 to 3 have six bits of a byte each; of the others, four bits are in
// bytes 8 to 11, and two above those of the first ones.
void BlockDecoder::place_quarter() {
  const Value<u32> quarter = lane_ & 3u;
  if (!number_) low_.emplace(unit_->shared().offset_bytes(quarter << 5u));
  const Pred early = quarter < 2u;
  const Pred second = (quarter & 1u) != 0u;
  const auto either = [&](const Pred& p, std::uint32_t yes, std::uint32_t no) {
    return k_.selp(k_.constant<u32>(yes), no, p);
  };
  selector_.emplace(either(second, 0x7632u, 0x5410u));
  early_.emplace(either(early, 0x3f3f3f3fu, 0u));
  late_high_.emplace(either(early, 0u, kHigh));
  late_low_.emplace(either(early, 0u, kLow));
  if (format_.type == ElementType::q5_k) shift_.emplace(quarter << 1u);
}

// Lane % 4 is a half of the block, and the lower or upper 16 of each 32 weights.
void BlockDecoder::place_sixteenth() {
  const Value<u32> half = (lane_ >> 1u) & 1u;
  const Value<u32> upper = lane_ & 1u;
  if (!number_) {
    const Ptr<b8, Shared>& unit = unit_->shared();
    low_.emplace(unit.offset_bytes(k_.mad_lo(half, 64u, upper << 4u)));
    high_.emplace(unit.offset_bytes((lane_ & 3u) << 4u));
    scales_.emplace(unit.offset_bytes(half << 3u));
  }
  shift_.emplace(upper << 3u);
  next_shift_.emplace(*shift_ + 16u);
}

Value<u32> BlockProducts::block(std::uint32_t part) const {
  if (is_k(format_.type)) return lane_ >> 2u;
  if (format_.repacked) {
    if (format_.type == ElementType::q6_k) return lane_ >> 2u;
    return format_.parts == 1 ? lane_ : (lane_ >> 1u) + part * format_.part_blocks();
  }
  if (format_.type == ElementType::q6_k) return ((lane_ >> 2u) << 1u) + part;
  return format_.parts == 1 ? lane_ : (lane_ << 1u) + part;
}

Piece16 BlockProducts::with_fifth_bits(const Piece16& low, const Value<u32>& bits,
                                       unsigned first) const {
  // Bit i of four goes to bit 8 * i + 4: no two of the sixteen products meet.
  constexpr std::uint32_t kSpread = 0x02040810u;
  std::vector<Value<u32>> words;
  for (unsigned i = 0; i < 4; ++i) {
    const Value<u32> four = k_.bfe(bits, first + 4 * i, 4u);
    words.push_back(k_.lop3(k_.mul_lo(four, kSpread), kFifth, low[i], kAndOr));
  }
  return {words[0], words[1], words[2], words[3]};
}

BlockProducts::Quants BlockProducts::four_bits(const Piece16& both) const {
  return {low_halves(both), high_halves(both)};
}

BlockProducts::Quants BlockProducts::five_bits(const Piece16& both, const Value<u32>& bits) const {
  const Piece16 low = with_fifth_bits(low_halves(both), bits, 0);
  return {low, with_fifth_bits(high_halves(both), bits, 16)};
}

BlockDecoder::Quants BlockDecoder::small_quants(Unit& unit, std::uint32_t at) const {
  switch (format_.type) {
    case ElementType::q4_0:
    case ElementType::q4_1: {
      const Piece16 both = unit.piece(at + (format_.type == ElementType::q4_0 ? 2 : 4));
      return four_bits(both);
    }
    case ElementType::q5_0:
    case ElementType::q5_1: {
      const std::uint32_t bits_at = at + (format_.type == ElementType::q5_0 ? 2 : 4);
      const Value<u32> bits = unit.word(bits_at);
      const Piece16 both = unit.piece(bits_at + 4);
      return five_bits(both, bits);
    }
    default: {
      const Piece16 first = unit.piece(at + 2);
      return {first, unit.piece(at + 18)};
    }
  }
}

BlockDecoder::Quants BlockDecoder::k_quants(Unit& unit, std::uint32_t at) const {
  // The quarter's own 32 bytes; the fifth bits are two of each of 32 bytes for all.
  Unit own = unit_at(*low_, at);
  const bool five = format_.type == ElementType::q5_k;
  const auto insert = [&](unsigned shift) {
    return [this, shift](const Value<u32>& bit, const Value<u32>& four) {
      return k_.lop3(bit << shift, kFifth, four, kAndOr);
    };
  };
  Quants quants, high;
  for (std::uint32_t i = 0; i < 32; i += 16) {
    const Piece16 both = own.piece((five ? 48 : 16) + i);
    const Piece16 low_part = low_halves(both);
    const Piece16 high_part = high_halves(both);
    if (!five) {
      quants.push_back(low_part);
      high.push_back(high_part);
      continue;
    }
    const Piece16 bits =
        each(unit.piece(16 + i), [&](const Value<u32>& w) { return w >> *shift_; });
    quants.push_back(each(bits, low_part, insert(4)));
    high.push_back(each(bits, high_part, insert(3)));
  }
  for (const Piece16& piece : high) quants.push_back(piece);
  return quants;
}

BlockDecoder::Quants BlockDecoder::q6_k_quants(std::uint32_t at) const {
  // Blocks are 210 bytes: a word may be in two words of shared memory.
  const std::uint32_t begin = at / 4 * 4, shift = at % 4;
  Unit low_bits = unit_at(*low_, begin);
  Unit high_bits = unit_at(*high_, begin);
  const Piece16 first = low_bits.piece(shift);
  const Piece16 second = low_bits.piece(shift + 32);
  if (lower_) high_bits.load_by_halves(shift + 128, 16, *lower_);
  return six_bits(first, second, high_bits.piece(shift + 128));
}

BlockProducts::Quants BlockProducts::six_bits(const Piece16& first, const Piece16& second,
                                              const Piece16& bits) const {
  const auto insert = [&](const Piece16& low, int left) {
    return each(bits, low, [&](const Value<u32>& two, const Value<u32>& four) {
      const Value<u32> moved = left > 0   ? two << static_cast<unsigned>(left)
                               : left < 0 ? two >> static_cast<unsigned>(-left)
                                          : two;
      return k_.lop3(moved, kHigh, four, kAndOr);
    });
  };
  const Piece16 a = insert(low_halves(first), 4);
  const Piece16 b = insert(low_halves(second), 2);
  const Piece16 c = insert(high_halves(first), 0);
  const Piece16 d = insert(high_halves(second), -2);
  return {a, b, c, d};
}

// The sum over a group of integers times x.
Value<f32> BlockProducts::dot(const Quants& quants, const XPart& x, std::uint32_t group) const {
  const bool is_signed = format_.type == ElementType::q8_0;
  const std::uint32_t pieces = format_.part_pieces() / format_.groups;
  const auto multiply = [&](std::size_t digit) {
    const bool top = digit + 1 == x.digits.size();
    Value<s32> sum = zero_;
    for (std::uint32_t i = group * pieces; i < (group + 1) * pieces; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        const Value<u32>& q = quants[i][j];
        const Value<u32>& d = x.digits[digit][i][j];
        if (is_signed && top) {
          sum.rebind(k_.dp4a(k_.bitcast<s32>(q), k_.bitcast<s32>(d), sum));
        } else if (is_signed) {
          sum.rebind(k_.dp4a(k_.bitcast<s32>(q), d, sum));
        } else if (top) {
          sum.rebind(k_.dp4a(q, k_.bitcast<s32>(d), sum));
        } else {
          sum.rebind(k_.dp4a(q, d, sum));
        }
      }
    }
    return sum;
  };
  if (x.digits.size() == 1) return k_.convert<f32>(multiply(0)) * x.scales[group];
  const Value<s32> low = multiply(0);
  const Value<s32> middle = multiply(1);
  const Value<s32> high = multiply(2);
  const Value<f32> upper = k_.convert<f32>(k_.mad_lo(high, 256, middle));
  return k_.fma(upper, 256.0f, k_.convert<f32>(low)) * x.scales[group];
}

DecodedPart BlockDecoder::decode_small(std::uint32_t at) const {
  Unit unit = unit_at(*unit_, at / 4 * 4);
  const std::uint32_t begin = at % 4;
  const bool has_min = format_.type == ElementType::q4_1 || format_.type == ElementType::q5_1;
  DecodedPart part{{}, unit.half(begin), {}, {}, {}};
  if (has_min) part.min.emplace(unit.half(begin + 2));
  for (const Piece16& piece : small_quants(unit, begin)) part.quants.push_back(piece);
  return part;
}

// Two scales, then their minima.
std::array<Value<f32>, 4> BlockDecoder::scales_and_mins(Unit& header) const {
  const Value<u32> first = header.word(4), second = header.word(8), third = header.word(12);
  const Value<u32> six = k_.prmt(first, second, *selector_);
  const Value<u32> four = k_.prmt(third, third >> 4u, *selector_);
  const Value<u32> early = six & *early_;
  const Value<u32> with_high = k_.lop3(six >> 2u, *late_high_, early, kAndOr);
  const Value<u32> all = k_.lop3(four, *late_low_, with_high, kAndOr);
  const auto number = [&](unsigned i) { return k_.convert<f32>(k_.bfe(all, 8 * i, 8u)); };
  const Value<f32> a = number(0), b = number(1), c = number(2), d = number(3);
  return {a, b, c, d};
}

DecodedPart BlockDecoder::decode_k(std::uint32_t at) const {
  Unit header = unit_at(*unit_, at);
  DecodedPart part{{}, header.half(0), -header.half(2), {}, {}};
  const std::array<Value<f32>, 4> numbers = scales_and_mins(header);
  for (std::size_t group = 0; group < 2; ++group) {
    part.scales.push_back(numbers[group]);
    part.mins.push_back(numbers[group + 2]);
  }
  for (const Piece16& piece : k_quants(header, at)) part.quants.push_back(piece);
  return part;
}

DecodedPart BlockDecoder::decode_q6_k(std::uint32_t at) const {
  const std::uint32_t begin = at / 4 * 4, shift = at % 4;
  Unit block = unit_at(*unit_, begin);
  DecodedPart part{q6_k_quants(at), block.half(shift + 208), {}, {}, {}};
  Unit scales = unit_at(*scales_, begin);
  for (std::uint32_t group = 0; group < 4; ++group) {
    const Value<s32> four = k_.bitcast<s32>(scales.word(shift + 192 + group / 2 * 4));
    const Value<u32>& bit = group % 2 == 0 ? *shift_ : *next_shift_;
    part.scales.push_back(k_.convert<f32>(k_.bfe(four, bit, 8u)));
  }
  return part;
}

DecodedPart BlockDecoder::decode(std::uint32_t at, std::uint32_t part) const {
  const std::uint32_t begin = at + part * bytes(format_.type);
  if (is_k(format_.type)) return decode_k(at);
  return format_.type == ElementType::q6_k ? decode_q6_k(begin) : decode_small(begin);
}

// Integers with an offset: the offset times the sum of x is added.
void BlockProducts::add(const DecodedPart& part, const XPart& x, Var<f32>& sum) const {
  const float offset = format_.type == ElementType::q4_0   ? -8.0f
                       : format_.type == ElementType::q5_0 ? -16.0f
                       : format_.type == ElementType::q6_k ? -32.0f
                                                           : 0.0f;
  std::optional<Value<f32>> products, offsets;
  for (std::uint32_t group = 0; group < format_.groups; ++group) {
    Value<f32> product = dot(part.quants, x, group);
    if (offset != 0) product.rebind(k_.fma(x.sums[group], offset, product));
    if (part.scales.empty()) {
      products.emplace(product);
    } else {
      const Value<f32>& scale = part.scales[group];
      products.emplace(group == 0 ? product * scale : k_.fma(product, scale, *products));
    }
    if (part.mins.empty()) continue;
    const Value<f32>& min = part.mins[group];
    offsets.emplace(group == 0 ? x.sums[group] * min : k_.fma(x.sums[group], min, *offsets));
  }
  k_.fma_inplace(sum, part.d, *products);
  if (part.min) k_.fma_inplace(sum, *part.min, offsets ? *offsets : x.sums[0]);
}

}  // namespace ptxgen::inline v0::gemv
