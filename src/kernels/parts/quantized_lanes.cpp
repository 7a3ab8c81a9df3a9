// src/kernels/parts/quantized_lanes.cpp - eight lanes quantise a block of 32 values
#include "kernels/parts/quantized_lanes.hpp"

#include <array>

namespace ptxgen::inline v0 {

namespace {

using Four = std::array<Value<u32>, kLaneValues>;

/// The lane's four values of a block.
struct Part {
  KernelBuilder& k;
  const std::vector<Value<f32>>& values;
  Value<u32> lane;  ///< of the eight
};

// The same of all eight lanes, in a tree.
template <class T, class Combine>
Value<T> of_lanes(KernelBuilder& k, Value<T> value, const Combine& combine) {
  for (unsigned distance = 1; distance < kBlockLanes; distance *= 2) {
    value.rebind(combine(value, k.shfl_bfly(value, distance)));
  }
  return value;
}

Value<f32> largest_magnitude(const Part& part) {
  KernelBuilder& k = part.k;
  Value<f32> largest = k.abs(part.values[0]);
  for (unsigned i = 1; i < kLaneValues; ++i) {
    largest.rebind(k.max(largest, k.abs(part.values[i])));
  }
  return of_lanes(k, largest,
                  [&](const Value<f32>& a, const Value<f32>& b) { return k.max(a, b); });
}

// The first value of largest magnitude, with its sign.
Value<f32> first_largest(const Part& part) {
  KernelBuilder& k = part.k;
  Value<f32> largest = part.values[0];
  for (unsigned i = 1; i < kLaneValues; ++i) {
    const Value<f32> magnitude = k.abs(part.values[i]);
    const Pred more = magnitude > k.abs(largest);
    largest.rebind(k.selp(part.values[i], largest, more));
  }
  for (unsigned distance = 1; distance < kBlockLanes; distance *= 2) {
    const Value<f32> other = k.shfl_bfly(largest, distance);
    const Value<f32> other_magnitude = k.abs(other);
    const Value<f32> magnitude = k.abs(largest);
    const Pred later = (part.lane & distance) != 0u;
    const Pred equal = other_magnitude == magnitude;
    const Pred first_of_equal = later & equal;
    const Pred takes = (other_magnitude > magnitude) | first_of_equal;
    largest.rebind(k.selp(other, largest, takes));
  }
  return largest;
}

// 1 / d, or 0 where that is infinite.
Value<f32> inverse_of(KernelBuilder& k, const Value<f32>& d) {
  const Value<f32> inverse = k.rcp(d);
  const Pred finite = k.abs(inverse) < __builtin_inff();
  return k.selp(inverse, 0.0f, finite);
}

// Halves away from zero: cvt rounds them to even.
Value<u32> rounded(KernelBuilder& k, const Value<f32>& x) {
  const Value<f32> towards_zero = k.cvt<f32>(x, Rounding::rzi);
  const Value<f32> rest = k.abs(x - towards_zero);
  const Value<f32> away = k.copysign(x, k.constant<f32>(1.0f));
  const Value<f32> next = towards_zero + away;
  const Value<f32> nearest = k.selp(next, towards_zero, rest >= 0.5f);
  return k.bitcast<u32>(k.cvt<s32>(nearest, Rounding::rzi));
}

// The low bytes of four words.
Value<u32> bytes_of(KernelBuilder& k, const Four& words) {
  const Value<u32> low = k.prmt(words[0], words[1], 0x0040u);
  const Value<u32> high = k.prmt(words[2], words[3], 0x0040u);
  return k.prmt(low, high, 0x5410u);
}

template <class Quant>
Four four(const Quant& quant) {
  const Value<u32> q0 = quant(0), q1 = quant(1), q2 = quant(2), q3 = quant(3);
  return {q0, q1, q2, q3};
}

QuantizedLanes q8(const Part& part, ElementType type) {
  KernelBuilder& k = part.k;
  const Value<f32> d = k.div(largest_magnitude(part), 127.0f);
  const Value<f32> inverse = inverse_of(k, d);
  const Four quants = four([&](unsigned i) { return rounded(k, part.values[i] * inverse); });
  QuantizedLanes lanes{type, d, bytes_of(k, quants), {}};
  if (type == ElementType::q8_0) return lanes;
  const Value<u32> own = quants[0] + quants[1] + quants[2] + quants[3];
  const Value<u32> sum =
      of_lanes(k, own, [](const Value<u32>& a, const Value<u32>& b) { return a + b; });
  lanes.sum.emplace(d * k.convert<f32>(k.bitcast<s32>(sum)));
  return lanes;
}

QuantizedLanes q4_0(const Part& part) {
  KernelBuilder& k = part.k;
  const Value<f32> d = k.div(first_largest(part), -8.0f);
  const Value<f32> inverse = inverse_of(k, d);
  const Four quants = four([&](unsigned i) {
    const Value<f32> shifted = k.fma(part.values[i], inverse, 8.5f);
    return k.min(k.cvt<u32>(shifted, Rounding::rzi), 15u);
  });
  const Value<u32> own = bytes_of(k, quants);
  // Lanes 4 to 7 have the upper halves of the bytes of lanes 0 to 3.
  const Value<u32> upper = k.shfl_bfly(own, kBlockLanes / 2);
  return {ElementType::q4_0, d, own | (upper << 4u), {}};
}

void store_half(KernelBuilder& k, const Ptr<b8>& at, const Value<f32>& value) {
  k.st(at.cast<f16>(), k.cvt<f16>(value, Rounding::rn));
}

// Blocks are aligned to 2 bytes only.
void store_word(KernelBuilder& k, const Ptr<b8>& at, const Value<u32>& word) {
  const auto halves = k.unpack<u16>(word);
  k.st(at.cast<u16>(), halves[0]);
  k.st((at + 2).cast<u16>(), halves[1]);
}

}  // namespace

QuantizedLanes quantize_lanes(KernelBuilder& k, ElementType type,
                              const std::vector<Value<f32>>& values, const Value<u32>& lane) {
  const Part part{k, values, lane};
  return type == ElementType::q4_0 ? q4_0(part) : q8(part, type);
}

void store_lanes(KernelBuilder& k, const QuantizedLanes& quants, const Value<u32>& lane,
                 const Ptr<b8>& block) {
  const Ptr<b8> place = block + (quants.sum ? 4 : 2) + (lane << 2u);
  if (quants.type == ElementType::q4_0) {
    k.if_(lane < kBlockLanes / 2, [&] { store_word(k, place, quants.word); });
  } else {
    store_word(k, place, quants.word);
  }
  k.if_(lane == 0u, [&] {
    store_half(k, block, quants.d);
    if (quants.sum) store_half(k, block + 2, *quants.sum);
  });
}

}  // namespace ptxgen::inline v0
