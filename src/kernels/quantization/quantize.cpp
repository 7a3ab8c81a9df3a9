// src/kernels/quantization/quantize.cpp - floats to block formats
#include "ptxgen/kernels/quantization/quantize.hpp"

#include <array>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<Quantize>::text.name;
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kLanes = 8;   // to a block
constexpr std::uint32_t kOfLane = 4;  // values

using Four = std::array<Value<u32>, kOfLane>;

/// The lane's four values of a block.
struct Part {
  KernelBuilder& k;
  std::vector<Value<f32>> values;
  Value<u32> lane;  ///< of the eight
  Pred inside;      ///< whether it has values: the others exchange zeros and store nothing
};

// The same of all eight lanes, in a tree.
template <class T, class Combine>
Value<T> of_lanes(KernelBuilder& k, Value<T> value, const Combine& combine) {
  for (unsigned distance = 1; distance < kLanes; distance *= 2) {
    value.rebind(combine(value, k.shfl_bfly(value, distance)));
  }
  return value;
}

Value<f32> largest_magnitude(const Part& part) {
  KernelBuilder& k = part.k;
  Value<f32> largest = k.abs(part.values[0]);
  for (unsigned i = 1; i < kOfLane; ++i) largest.rebind(k.max(largest, k.abs(part.values[i])));
  return of_lanes(k, largest,
                  [&](const Value<f32>& a, const Value<f32>& b) { return k.max(a, b); });
}

// The first value of largest magnitude, with its sign.
Value<f32> first_largest(const Part& part) {
  KernelBuilder& k = part.k;
  Value<f32> largest = part.values[0];
  for (unsigned i = 1; i < kOfLane; ++i) {
    const Pred more = k.abs(part.values[i]) > k.abs(largest);
    largest.rebind(k.selp(part.values[i], largest, more));
  }
  for (unsigned distance = 1; distance < kLanes; distance *= 2) {
    const Value<f32> other = k.shfl_bfly(largest, distance);
    const Value<f32> other_magnitude = k.abs(other);
    const Value<f32> magnitude = k.abs(largest);
    const Pred later = (part.lane & distance) != 0u;
    const Pred equal = other_magnitude == magnitude;
    const Pred takes = (other_magnitude > magnitude) | (later & equal);
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

void store_half(KernelBuilder& k, const Ptr<b8>& at, const Value<f32>& value) {
  k.st(at.cast<f16>(), k.cvt<f16>(value, Rounding::rn));
}

// Blocks are aligned to 2 bytes only.
void store_word(KernelBuilder& k, const Ptr<b8>& at, const Value<u32>& word) {
  const auto halves = k.unpack<u16>(word);
  k.st(at.cast<u16>(), halves[0]);
  k.st((at + 2).cast<u16>(), halves[1]);
}

void store_q8(const Part& part, ElementType type, const Ptr<b8>& block) {
  KernelBuilder& k = part.k;
  const Value<f32> d = k.div(largest_magnitude(part), 127.0f);
  const Value<f32> inverse = inverse_of(k, d);
  const auto quant = [&](unsigned i) { return rounded(k, part.values[i] * inverse); };
  const Value<u32> q0 = quant(0), q1 = quant(1), q2 = quant(2), q3 = quant(3);
  const bool has_sum = type == ElementType::q8_1;
  k.if_(part.inside, [&] {
    store_word(k, block + (has_sum ? 4 : 2) + (part.lane << 2u), bytes_of(k, {q0, q1, q2, q3}));
  });
  const Pred first = part.inside & (part.lane == 0u);
  k.if_(first, [&] { store_half(k, block, d); });
  if (!has_sum) return;
  const Value<u32> sum = of_lanes(k, q0 + q1 + q2 + q3,
                                  [](const Value<u32>& a, const Value<u32>& b) { return a + b; });
  const Value<f32> all = d * k.convert<f32>(k.bitcast<s32>(sum));
  k.if_(first, [&] { store_half(k, block + 2, all); });
}

void store_q4_0(const Part& part, const Ptr<b8>& block) {
  KernelBuilder& k = part.k;
  const Value<f32> d = k.div(first_largest(part), -8.0f);
  const Value<f32> inverse = inverse_of(k, d);
  const auto quant = [&](unsigned i) {
    const Value<f32> shifted = k.fma(part.values[i], inverse, 8.5f);
    return k.min(k.cvt<u32>(shifted, Rounding::rzi), 15u);
  };
  const Value<u32> q0 = quant(0), q1 = quant(1), q2 = quant(2), q3 = quant(3);
  const Value<u32> own = bytes_of(k, {q0, q1, q2, q3});
  // Lanes 4 to 7 have the upper halves of the bytes of lanes 0 to 3.
  const Value<u32> upper = k.shfl_bfly(own, kLanes / 2);
  k.if_(part.inside & (part.lane < kLanes / 2),
        [&] { store_word(k, block + 2 + (part.lane << 2u), own | (upper << 4u)); });
  k.if_(part.inside & (part.lane == 0u), [&] { store_half(k, block, d); });
}

}  // namespace

BuiltKernel Quantize::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kName, target.name, params(param<Ptr<b8>>("x"), param<Ptr<b8>>("w"), param<u32>("n")),
      [&](KernelBuilder& k, Ptr<b8> from, Ptr<b8> w, Value<u32> count) {
        k.contract(Contract::Forbid);
        k.required_threads(kThreads);
        // Whole warps go round: a lane beyond the end has zeros, and stores nothing.
        const Value<u32> groups = count >> 2u;
        const Value<u32> warps_end = (groups + 31u) & ~31u;
        const Value<u32> threads = k.mul_lo(k.nctaid_x(), kThreads);
        k.for_(k.global_thread_x(), warps_end, threads, [&](Value<u32> group) {
          const Pred inside = group < groups;
          const Ptr<b8> at = from.offset_bytes(k.mul_wide(group, kOfLane * bytes(x)));
          const Floats loaded = load_floats_if(k, at, x, kOfLane, inside);
          const Part part{k, expand(k, loaded, kOfLane), group & (kLanes - 1), inside};
          const Ptr<b8> block = w.offset_bytes(k.mul_wide(group >> 3u, bytes(type)));
          if (type == ElementType::q4_0) {
            store_q4_0(part, block);
          } else {
            store_q8(part, type, block);
          }
        });
      });
}

LaunchGeometry Quantize::geometry() const {
  return one_dimensional(kName, n / kOfLane, kThreads, kThreads);
}

KernelCost Quantize::cost() const noexcept {
  return {
      .bytes_read = bytes(x, n), .bytes_written = bytes(type, n), .flops = 3 * std::uint64_t{n}};
}

// Rounding to blocks is what the comparison does with a reference.
void Describe<Quantize>::reference(const Quantize&, HostOperands& host) {
  host["w"].values = host.input("x");
}

ErrorBound Describe<Quantize>::bound(const Quantize&) { return {.exact = true}; }

}  // namespace ptxgen::inline v0
