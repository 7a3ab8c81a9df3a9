// src/kernels/parts/block_values.cpp - values of block formats, decoded by a thread
#include "kernels/parts/block_values.hpp"

#include <array>

#include "kernels/parts/element.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kLowHalves = 0x0f0f0f0fu;

/// Eight integers, a byte each.
using Quants = std::array<Value<u32>, 2>;

/// The run of a block that a thread decodes.
struct Run {
  KernelBuilder& k;
  Ptr<b8> block;
  Value<u32> run;

  [[nodiscard]] Value<u32> half_word(const Ptr<b8>& at) const {
    return k.cvt<u32>(k.ld(at.cast<u16>()));
  }
  [[nodiscard]] Value<u32> word(const Ptr<b8>& at) const {
    const Value<u32> low = half_word(at);
    const Value<u32> high = half_word(at + 2);
    return low | (high << 16u);
  }
  [[nodiscard]] Quants eight(const Ptr<b8>& at) const {
    const Value<u32> first = word(at);
    const Value<u32> second = word(at + 4);
    return {first, second};
  }
  [[nodiscard]] Value<u32> byte(const Ptr<b8>& at) const { return k.cvt<u32>(k.ld(at.cast<u8>())); }
  [[nodiscard]] Value<f32> half_float(std::uint32_t offset) const {
    return k.cvt<f32>(k.bitcast<f16>(k.ld((block + offset).cast<u16>())));
  }

  // Halves of bytes: the upper ones if `high` is 1.
  [[nodiscard]] Quants halves(const Ptr<b8>& at, const Value<u32>& high) const {
    const Quants bytes = eight(at);
    const Value<u32> shift = high << 2u;
    const Value<u32> first = (bytes[0] >> shift) & kLowHalves;
    const Value<u32> second = (bytes[1] >> shift) & kLowHalves;
    return {first, second};
  }
  // Of a format with 32 values in 16 bytes.
  [[nodiscard]] Quants small_halves(std::uint32_t offset) const {
    const Value<u32> at = (run & 1u) << 3u;
    const Value<u32> high = run >> 1u;
    return halves(block + offset + at, high);
  }
  // Adds bits `mask` of each byte at `at`, from bit `shift` on, above four bits.
  [[nodiscard]] Quants with_high_bits(const Quants& low, const Ptr<b8>& at, const Value<u32>& shift,
                                      std::uint32_t mask) const {
    const Quants bytes = eight(at);
    const Value<u32> first = ((bytes[0] >> shift) & mask) << 4u;
    const Value<u32> second = ((bytes[1] >> shift) & mask) << 4u;
    return {low[0] | first, low[1] | second};
  }
  // Adds bit 8 * run + i of the word at `offset` as the fifth of value i.
  [[nodiscard]] Quants with_fifth_bits(const Quants& low, std::uint32_t offset) const {
    const Value<u32> bits = word(block + offset) >> (run << 3u);
    const auto spread = [&](const Value<u32>& quants, unsigned first) {
      Value<u32> all(quants);
      for (unsigned i = 0; i < 4; ++i) {
        const Value<u32> bit = k.bfe(bits, first + i, 1u);
        all.rebind(all | (bit << (8 * i + 4)));
      }
      return all;
    };
    const Value<u32> one = spread(low[0], 0);
    const Value<u32> two = spread(low[1], 4);
    return {one, two};
  }

  [[nodiscard]] std::vector<Value<f32>> as_floats(const Quants& quants, bool is_signed,
                                                  int offset) const {
    std::vector<Value<f32>> floats;
    for (unsigned i = 0; i < kRunValues; ++i) {
      const Value<u32>& word = quants[i / 4];
      Value<s32> q = is_signed ? k.bfe(k.bitcast<s32>(word), 8 * (i % 4), 8u)
                               : k.bitcast<s32>(k.bfe(word, 8 * (i % 4), 8u));
      if (offset != 0) q.rebind(q - offset);
      floats.push_back(k.convert<f32>(q));
    }
    return floats;
  }
};

// q * step, and then + offset.
std::vector<Value<f32>> scaled(const Value<f32>& step, std::vector<Value<f32>> quants,
                               const Value<f32>* offset = nullptr) {
  for (Value<f32>& q : quants) {
    q.rebind(step * q);
    if (offset != nullptr) q.rebind(q + *offset);
  }
  return quants;
}

std::vector<Value<f32>> small_block(const Run& r, ElementType type) {
  const Value<f32> d = r.half_float(0);
  switch (type) {
    case ElementType::q4_0:
      return scaled(d, r.as_floats(r.small_halves(2), false, 8));
    case ElementType::q5_0:
      return scaled(d, r.as_floats(r.with_fifth_bits(r.small_halves(6), 2), false, 16));
    case ElementType::q8_0:
      return scaled(d, r.as_floats(r.eight(r.block + 2 + (r.run << 3u)), true, 0));
    case ElementType::q8_1:
      return scaled(d, r.as_floats(r.eight(r.block + 4 + (r.run << 3u)), true, 0));
    default:
      break;
  }
  const Value<f32> m = r.half_float(2);
  const Quants quants =
      type == ElementType::q4_1 ? r.small_halves(4) : r.with_fifth_bits(r.small_halves(8), 4);
  return scaled(d, r.as_floats(quants, false, 0), &m);
}

// Scale and minimum of the run's 32 values, 6 bits each.
std::array<Value<f32>, 2> scale_and_min(const Run& r) {
  KernelBuilder& k = r.k;
  const Value<u32> part = r.run >> 2u;
  const Ptr<b8> at = r.block + 4 + (part & 3u);
  const Value<u32> a = r.byte(at);
  const Value<u32> b = r.byte(at + 4);
  const Value<u32> c = r.byte(at + 8);
  const Pred first = part < 4u;
  const Value<u32> scale_top = (a >> 6u) << 4u;
  const Value<u32> min_top = (b >> 6u) << 4u;
  const Value<u32> late_scale = (c & 15u) | scale_top;
  const Value<u32> late_min = (c >> 4u) | min_top;
  const Value<u32> scale = k.selp(a & 63u, late_scale, first);
  const Value<u32> min = k.selp(b & 63u, late_min, first);
  return {k.convert<f32>(scale), k.convert<f32>(min)};
}

std::vector<Value<f32>> k_block(const Run& r, ElementType type) {
  const auto [scale, min] = scale_and_min(r);
  const Value<f32> step = r.half_float(0) * scale;
  const Value<f32> offset = -(r.half_float(2) * min);
  const Value<u32> part = r.run >> 2u;
  const Value<u32> inside = (r.run & 3u) << 3u;  // of 32 bytes
  const Value<u32> at = ((r.run >> 3u) << 5u) + inside;
  const Value<u32> high = part & 1u;
  if (type == ElementType::q4_k) {
    return scaled(step, r.as_floats(r.halves(r.block + 16 + at, high), false, 0), &offset);
  }
  const Quants low = r.halves(r.block + 48 + at, high);
  const Quants quants = r.with_high_bits(low, r.block + 16 + inside, part, 0x01010101u);
  return scaled(step, r.as_floats(quants, false, 0), &offset);
}

std::vector<Value<f32>> q6_k_block(const Run& r) {
  KernelBuilder& k = r.k;
  const Value<u32> half = r.run >> 4u;
  const Value<u32> group = (r.run >> 2u) & 3u;
  const Value<u32> inside = (r.run & 3u) << 3u;
  const Value<u32> odd = (group & 1u) << 5u;
  const Value<u32> low_at = (half << 6u) + odd + inside;
  const Value<u32> high = group >> 1u;
  const Quants low = r.halves(r.block + low_at, high);
  const Value<u32> high_at = (half << 5u) + inside;
  const Value<u32> shift = group << 1u;
  const Quants quants = r.with_high_bits(low, r.block + 128 + high_at, shift, 0x03030303u);
  const Value<u32> sixteenth = inside >> 4u;
  const Value<u32> scale_at = (half << 3u) + shift + sixteenth;
  const Value<s32> scale = k.cvt<s32>(k.ld((r.block + 192 + scale_at).cast<s8>()));
  const Value<f32> d = r.half_float(208);
  const Value<f32> step = d * k.convert<f32>(scale);
  return scaled(step, r.as_floats(quants, false, 32));
}

}  // namespace

std::vector<Value<f32>> load_block_values(KernelBuilder& k, ElementType type, const Ptr<b8>& block,
                                          const Value<u32>& run) {
  const Run r{k, block, run};
  switch (type) {
    case ElementType::q4_k:
    case ElementType::q5_k:
      return k_block(r, type);
    case ElementType::q6_k:
      return q6_k_block(r);
    default:
      return small_block(r, type);
  }
}

}  // namespace ptxgen::inline v0
