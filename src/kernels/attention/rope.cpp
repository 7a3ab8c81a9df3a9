// src/kernels/attention/rope.cpp - rotary position embedding, interleaved and NeoX
#include "ptxgen/kernels/attention/rope.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <span>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

// Precise angles, in f64: at position 131071 an angle's relative error of 2^-24 is 0.01 radians.

Value<f64> polynomial(KernelBuilder& k, const Value<f64>& x, std::span<const double> coefficients) {
  Value<f64> sum = k.constant<f64>(coefficients[0]);
  for (const double next : coefficients.subspan(1)) sum.rebind(k.fma(sum, x, next));
  return sum;
}

// log2 of a positive normal number: 2^n * m with m in [2/3, 4/3), and ln(m) = 2 artanh(s) with
// s = (m - 1) / (m + 1), |s| <= 1/5; the series' next term is below 2^-50.
Value<f64> log2_of(KernelBuilder& k, const Value<f32>& x) {
  const Value<s32> bits = k.bitcast<s32>(x);
  const Value<s32> exponent_bits = (bits - 0x3f2aaaab) & -0x800000;
  const Value<f64> m = k.convert<f64>(k.bitcast<f32>(bits - exponent_bits));
  const Value<f64> numerator = m - 1.0;
  const Value<f64> s = numerator / (m + 1.0);
  constexpr std::array kSeries = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                  1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  const Value<f64> half = s * polynomial(k, s * s, kSeries);
  constexpr double kTwoLog2E = 2 * 1.44269504088896340736;
  return k.fma(half, kTwoLog2E, k.convert<f64>(exponent_bits >> 23u));
}

// 2^x for |x| < 1000: the Taylor polynomial of degree 12 for the fraction.
Value<f64> exp2_of(KernelBuilder& k, const Value<f64>& x) {
  const Value<f64> integer = k.cvt<f64>(x, Rounding::rni);
  const Value<f64> fraction = x - integer;
  std::array<double, 13> taylor{};
  double coefficient = 1;
  for (std::size_t i = 0; i < taylor.size(); ++i) {
    taylor[taylor.size() - 1 - i] = coefficient;
    coefficient *= 0.693147180559945309417 / static_cast<double>(i + 1);
  }
  const Value<f64> mantissa = polynomial(k, fraction, taylor);
  const Value<s64> biased = k.cvt<s64>(integer, Rounding::rni) + 1023;
  return mantissa * k.bitcast<f64>(biased << 52u);
}

Value<f64> exact_frequency(KernelBuilder& k, const Value<u32>& pair, const Value<f32>& theta,
                           std::uint32_t head_size) {
  const Value<f64> power = k.convert<f64>(pair) * (-2.0 / head_size);
  return exp2_of(k, power * log2_of(k, theta));
}

Value<f32> approximate_frequency(KernelBuilder& k, const Value<u32>& pair, const Value<f32>& theta,
                                 std::uint32_t head_size) {
  const Value<f32> power = k.convert<f32>(pair) * (-2.0f / static_cast<float>(head_size));
  return exp2(power * log2(theta, Accuracy::Approximate), Accuracy::Approximate);
}

// The angle less its full periods, 2 pi in two parts.
Value<f32> reduced_angle(KernelBuilder& k, const Value<f64>& angle) {
  const Value<f64> periods = k.cvt<f64>(angle * 0.15915494309189533577, Rounding::rni);
  const Value<f64> near = k.fma(periods, -0x1.921fb54442d18p+2, angle);
  return k.convert<f32>(k.fma(periods, -0x1.1a62633145c07p-52, near));
}

/// Sine and cosine of this thread's pair at a position; the frequency is computed before.
using Rotation = std::function<SinCos(const Value<u32>& position)>;

Rotation rotation_of(KernelBuilder& k, bool precise, const Value<u32>& pair,
                     const Value<f32>& theta, std::uint32_t head_size,
                     const std::optional<Value<f32>>& factor) {
  if (precise) {
    Value<f64> frequency = exact_frequency(k, pair, theta, head_size);
    if (factor) frequency.rebind(frequency / k.convert<f64>(*factor));
    return [&k, frequency](const Value<u32>& position) {
      const Value<f64> angle = k.convert<f64>(position) * frequency;
      return sincos(reduced_angle(k, angle), Accuracy::Precise);
    };
  }
  Value<f32> frequency = approximate_frequency(k, pair, theta, head_size);
  if (factor) frequency.rebind(frequency / *factor);
  return [&k, frequency](const Value<u32>& position) {
    return sincos(k.convert<f32>(position) * frequency, Accuracy::Approximate);
  };
}

struct Buffers {
  ElementType type;
  Ptr<b8> x, y;
};

// The pair at `element` and `distance` elements further; one access for both if they are aligned.
void rotate(KernelBuilder& k, const Buffers& buffers, const Value<u64>& element,
            std::uint32_t distance, bool aligned, const SinCos& by) {
  const Value<u64> offset = element * std::uint64_t{bytes(buffers.type)};
  const std::uint32_t step = distance * bytes(buffers.type);
  const auto load = [&](const Ptr<b8>& at, std::uint32_t count) {
    return expand(k, load_floats(k, at, buffers.type, count), count);
  };
  const Ptr<b8> from = buffers.x + offset;
  std::vector<Value<f32>> x = load(from, aligned ? 2 : 1);
  if (!aligned) x.push_back(load(from + step, 1)[0]);
  const Value<f32> product0 = x[1] * by.sin;
  const Value<f32> product1 = x[1] * by.cos;
  const Value<f32> y0 = k.fma(x[0], by.cos, -product0);
  const Value<f32> y1 = k.fma(x[0], by.sin, product1);
  const Ptr<b8> to = buffers.y + offset;
  if (aligned) {
    store_floats(k, to, buffers.type, {y0, y1});
  } else {
    store_floats(k, to, buffers.type, {y0});
    store_floats(k, to + step, buffers.type, {y1});
  }
}

}  // namespace

template <RopePairs kPairs>
BuiltKernel Rope<kPairs>::build(const ptx::Target& target) const {
  constexpr std::string_view kName = Describe<Rope>::text.name;
  constexpr bool kInterleaved = kPairs == RopePairs::Interleaved;
  check_parameters(*this);
  KernelBuilder k(kName, target.name);
  const Ptr<b8> x = k.param<Ptr<b8>>("x");
  k.declare_param<Ptr<u32>>("positions");
  std::optional<Ptr<u32>> positions;
  if (indirect) positions.emplace(k.load_param<Ptr<u32>>("positions"));
  const Ptr<b8> y = k.param<Ptr<b8>>("y");
  const Value<u32> row_count = k.param<u32>("rows");
  const Value<u32> head_count = k.param<u32>("heads");
  const Value<u32> first_position = k.param<u32>("position");
  const Value<f32> theta = k.param<f32>("theta");
  k.declare_param<Ptr<f32>>("factors");
  k.required_threads(head_size / 2);
  const Value<u32> pair = k.tid_x();
  std::optional<Value<f32>> factor;
  if (factors) {
    const Ptr<f32> of_pairs = k.load_param<Ptr<f32>>("factors");
    factor.emplace(k.ld(of_pairs + pair));
  }
  const Value<u32> first = kInterleaved ? pair * 2 : pair;
  const Rotation rotation = rotation_of(k, precise, pair, theta, head_size, factor);
  const Value<u32> first_row = k.ctaid_y();
  k.for_(first_row, row_count, k.nctaid_y(), [&](Value<u32> row) {
    SinCos by = rotation(positions ? Value<u32>((*positions)[row]) : first_position + row);
    if (inverse) by.sin.rebind(-by.sin);
    const Value<u64> head = k.mad_wide(row, head_count, k.convert<u64>(k.ctaid_x()));
    const Value<u64> head_start = head * std::uint64_t{head_size};
    const Value<u64> element = head_start + k.convert<u64>(first);
    rotate(k, {type, x, y}, element, kInterleaved ? 1 : head_size / 2, kInterleaved, by);
  });
  return k.build();
}

template <RopePairs kPairs>
LaunchGeometry Rope<kPairs>::geometry() const {
  constexpr std::string_view kName = Describe<Rope>::text.name;
  check_parameters(*this);
  LaunchGeometry geometry = one_dimensional(kName, rows == 0 ? 0 : heads, 1, head_size / 2);
  geometry.grid.y = std::min(rows, 65535u);
  return geometry;
}

template <RopePairs kPairs>
KernelCost Rope<kPairs>::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * heads * head_size;
  const std::uint64_t positions = indirect ? std::uint64_t{4} * rows : 0;
  const std::uint64_t factor_bytes = factors ? std::uint64_t{2} * head_size : 0;
  return {.bytes_read = elements * bytes(type) + positions + factor_bytes,
          .bytes_written = elements * bytes(type),
          .flops = 3 * elements};
}

template <RopePairs kPairs>
void Describe<Rope<kPairs>>::reference(const K& spec, HostOperands& host) {
  HostOperands::Operand& y = host["y"];
  const std::vector<double>& x = host.input("x");
  const double theta = host.number("theta");
  const std::size_t half = spec.head_size / 2;
  const std::size_t distance = kInterleaved ? 1 : half;
  y.magnitude.resize(y.values.size());
  for (std::size_t head = 0; head < std::size_t{spec.rows} * spec.heads; ++head) {
    const std::size_t row = head / spec.heads;
    const double position = spec.indirect ? host.input("positions")[row]
                                          : host.number("position") + static_cast<double>(row);
    for (std::size_t i = 0; i < half; ++i) {
      const double power = -2.0 * static_cast<double>(i) / spec.head_size;
      const double factor = spec.factors ? host.input("factors")[i] : 1;
      const double angle = position * std::pow(theta, power) / factor;
      const double sine = (spec.inverse ? -1 : 1) * std::sin(angle);
      const std::size_t at = head * spec.head_size + (kInterleaved ? 2 * i : i);
      y.values[at] = x[at] * std::cos(angle) - x[at + distance] * sine;
      y.values[at + distance] = x[at] * sine + x[at + distance] * std::cos(angle);
      const double magnitude = std::abs(x[at]) + std::abs(x[at + distance]);
      y.magnitude[at] = magnitude * (spec.precise ? 1 : 1 + angle);
      y.magnitude[at + distance] = y.magnitude[at];
    }
  }
}

// Precise: the angle within a period is rounded once to f32, at up to pi; sine and cosine have 3
// units in the last place, product and sum one each. Approximate: the exponent of the frequency is
// up to 20, log2 has 2^-22 of it, which exp2 turns into a relative error of the angle; sin.approx
// and cos.approx are within 2^-20. A factor adds the rounding of its division.
template <RopePairs kPairs>
ErrorBound Describe<Rope<kPairs>>::bound(const K& spec) {
  return {.relative = (spec.precise ? 10 : spec.factors ? 129 : 128) * 0x1p-24};
}

template struct Rope<RopePairs::Interleaved>;
template struct Rope<RopePairs::Halves>;
template struct Describe<RopeInterleaved>;
template struct Describe<RopeNeox>;

}  // namespace ptxgen::inline v0
