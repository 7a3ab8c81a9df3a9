// src/kernels/elementwise/elementwise.cpp - vadd, copy, fma_rpt
#include "ptxgen/kernels/elementwise/elementwise.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/parts/element.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

// Group v of an array, as elements E.
template <class E, class T>
Ptr<E> group(const Ptr<T>& array, const Value<u32>& v) {
  const Ptr<b128> moved = array.template cast<b128>() + v;
  return moved.template cast<E>();
}

// Contents of a 32-bit register: an f32, or two 16-bit floats.
template <class T>
struct PackedOf {
  using Type = T;
};
template <>
struct PackedOf<f16> {
  using Type = f16x2;
};
template <>
struct PackedOf<bf16> {
  using Type = bf16x2;
};
template <class T>
using PackedWord = typename PackedOf<T>::Type;

template <class W>
Value<W> add_word(KernelBuilder&, const ptx::Target&, const Value<W>& x, const Value<W>& y) {
  return x + y;
}

// A sum of two bf16 is rounded to f32 first, whose 24 bits are enough for the second rounding to
// give what one would have (Figueroa, When is double rounding innocuous?, 1995).
template <>
Value<bf16x2> add_word(KernelBuilder& k, const ptx::Target& target, const Value<bf16x2>& x,
                       const Value<bf16x2>& y) {
  if (target.sm >= 90) return x + y;
  const auto half = [&](const Value<bf16x2>& word, bool high) {
    const Value<u32> bits = k.bitcast<u32>(word);
    const Value<u32> moved = high ? bits & 0xffff0000u : bits << 16u;
    return k.bitcast<f32>(moved);
  };
  const Value<f32> low_x = half(x, false);
  const Value<f32> low_y = half(y, false);
  const Value<f32> low = low_x + low_y;
  const Value<f32> high_x = half(x, true);
  const Value<f32> high_y = half(y, true);
  const Value<f32> high = high_x + high_y;
  if (target.sm >= 80) return k.cvt2<bf16x2>(high, low);
  const Value<u32> upper = round_to_bf16(k, high);
  const Value<u32> lower = round_to_bf16(k, low) >> 16u;
  return k.bitcast<bf16x2>((upper & 0xffff0000u) | lower);
}

// One element; a 16-bit one in the lower half of a word.
template <class T>
Value<PackedWord<T>> load_one(KernelBuilder& k, const Ptr<T>& at) {
  if constexpr (T::kBytes == 4) {
    return k.ld_global(at);
  } else {
    const Value<u16> bits = k.ld_global(at.template cast<u16>());
    return k.bitcast<PackedWord<T>>(k.cvt<u32>(bits));
  }
}
template <class T>
void store_one(KernelBuilder& k, const Ptr<T>& at, const Value<PackedWord<T>>& word) {
  if constexpr (T::kBytes == 4) {
    k.st_global(at, word);
  } else {
    const Value<u32> bits = k.bitcast<u32>(word);
    k.st_global(at.template cast<u16>(), k.cvt<u16>(bits));
  }
}

template <class T>
void vadd(KernelBuilder& k, const ptx::Target& target, Ptr<T> a, Ptr<T> b, Ptr<T> c, Value<u32> n) {
  // One emitting call per statement: C++ does not specify the evaluation order of arguments.
  const Value<u64> address_a = k.address_of(a);
  const Value<u64> address_b = k.address_of(b);
  const Value<u64> address_c = k.address_of(c);
  const Value<u64> addresses = address_a | address_b | address_c;
  using W = PackedWord<T>;
  const auto wide = [&](Value<u32> v) {
    const auto x = k.ld<4>(group<W>(a, v));
    const auto y = k.ld<4>(group<W>(b, v));
    const Value<W> sum0 = add_word<W>(k, target, x[0], y[0]);
    const Value<W> sum1 = add_word<W>(k, target, x[1], y[1]);
    const Value<W> sum2 = add_word<W>(k, target, x[2], y[2]);
    const Value<W> sum3 = add_word<W>(k, target, x[3], y[3]);
    k.st(group<W>(c, v), std::array{sum0, sum1, sum2, sum3});
  };
  const auto single = [&](Value<u32> i) {
    const Value<W> x = load_one(k, a + i);
    const Value<W> y = load_one(k, b + i);
    const Value<W> sum = add_word<W>(k, target, x, y);
    store_one(k, c + i, sum);
  };
  k.max_threads(kMaxBlockThreads);
  for_each_group(k, n, addresses, T::kBytes == 4 ? 2 : 3, wide, single);
}

void copy(KernelBuilder& k, Ptr<b32> in, Ptr<b32> out, Value<u32> n) {
  const Value<u64> address_in = k.address_of(in);
  const Value<u64> address_out = k.address_of(out);
  const Value<u64> addresses = address_in | address_out;
  const auto wide = [&](Value<u32> v) {
    const auto words = k.ld<4>(group<b32>(in, v));
    k.st(group<b32>(out, v), words);
  };
  const auto single = [&](Value<u32> i) {
    const Value<b32> word = in[i];
    out[i] = word;
  };
  k.max_threads(kMaxBlockThreads);
  for_each_group(k, n, addresses, 2, wide, single);
}

// `repeats` steps of all chains, interleaved.
void run_chains(KernelBuilder& k, std::span<Var<f32>> chains, const Value<s32>& repeats,
                const Value<f32>& a, const Value<f32>& b) {
  const auto step = [&] {
    for (Var<f32>& chain : chains) {
      k.emit(ptx::Op::fma_f32, {ptx::Modifier::rn}, {chain, chain, a, b});
    }
  };
  k.for_(0, repeats, 1, step, Unroll{FmaRpt::kUnroll});
}

void fma_rpt(KernelBuilder& k, Ptr<f32> in, Ptr<f32> out, Value<s32> n, Value<s32> repeats,
             Value<f32> a, Value<f32> b) {
  const Value<u64> address_in = k.address_of(in);
  const Value<u64> address_out = k.address_of(out);
  const Value<u64> addresses = address_in | address_out;
  const Value<s32> clamped = k.max(n, 0);
  const Value<u32> count = k.bitcast<u32>(clamped);
  const auto wide = [&](Value<u32> v) {
    const auto from = k.ld<FmaRpt::kChains>(group<f32>(in, v));
    std::vector<Var<f32>> chains;
    for (const Value<f32>& value : from) chains.push_back(k.var<f32>(value));
    run_chains(k, chains, repeats, a, b);
    const Value<f32> r0 = chains[0];
    const Value<f32> r1 = chains[1];
    const Value<f32> r2 = chains[2];
    const Value<f32> r3 = chains[3];
    k.st(group<f32>(out, v), std::array{r0, r1, r2, r3});
  };
  const auto single = [&](Value<u32> i) {
    std::vector<Var<f32>> chain;
    chain.push_back(k.var<f32>(in[i]));
    run_chains(k, chain, repeats, a, b);
    out[i] = chain[0];
  };
  k.max_threads(kMaxBlockThreads);
  for_each_group(k, count, addresses, 2, wide, single);
}

// One thread per 16 bytes, or one per element if there are at most 3.
template <class Spec>
LaunchGeometry geometry_of(const Spec& spec, std::uint32_t element_bytes) {
  constexpr std::string_view name = Spec::kName;
  if (spec.threads == 0 || spec.threads > kElementwiseMaxThreads) {
    Error error(Stage::Launch, "bad-block",
                format_text("a block of {}; the size must be 1 to {}",
                            count_text(spec.threads, "thread"), kElementwiseMaxThreads));
    error.kernel = name;
    throw error.refresh();
  }
  LaunchGeometry geometry =
      one_dimensional(name, spec.n, kVectorBytes / element_bytes * spec.threads, spec.threads);
  if (spec.blocks != 0) geometry.grid.x = spec.blocks;
  return geometry;
}

template <class T>
BuiltKernel vadd_kernel(const ptx::Target& target) {
  return build_kernel(
      Vadd::kName, target.name,
      params(param<Ptr<T>>("a"), param<Ptr<T>>("b"), param<Ptr<T>>("c"), param<u32>("n")),
      [&](KernelBuilder& k, Ptr<T> a, Ptr<T> b, Ptr<T> c, Value<u32> count) {
        vadd<T>(k, target, a, b, c, count);
      });
}

}  // namespace

BuiltKernel Vadd::build(const ptx::Target& target) const {
  return with_float_type(kName, type,
                         [&](auto element) { return vadd_kernel<decltype(element)>(target); });
}

LaunchGeometry Vadd::geometry() const { return geometry_of(*this, bytes(type)); }

KernelCost Vadd::cost() const noexcept {
  const std::uint64_t array = std::uint64_t{bytes(type)} * n;
  return {.bytes_read = 2 * array, .bytes_written = array, .flops = n};
}

// The sum of two 16-bit floats or of two f32 is rounded once from fp64 to what one rounding of the
// exact sum gives: 53 bits are more than twice the digits.
void Describe<Vadd>::reference(const Vadd&, HostOperands& host) {
  std::vector<double>& c = host["c"].values;
  const std::vector<double>& a = host.input("a");
  const std::vector<double>& b = host.input("b");
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
}

Copy::KernelType Copy::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<b32>>("in"), param<Ptr<b32>>("out"), param<u32>("n")), copy);
}

LaunchGeometry Copy::geometry() const { return geometry_of(*this, 4); }

KernelCost Copy::cost() const noexcept {
  return {.bytes_read = std::uint64_t{4} * n, .bytes_written = std::uint64_t{4} * n, .flops = 0};
}

void Describe<Copy>::reference(const Copy&, HostOperands& host) {
  host["out"].values = host.input("in");
}

FmaRpt::KernelType FmaRpt::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<f32>>("in"), param<Ptr<f32>>("out"), param<s32>("n"),
                             param<s32>("k"), param<f32>("a"), param<f32>("b")),
                      fma_rpt);
}

LaunchGeometry FmaRpt::geometry() const { return geometry_of(*this, 4); }

KernelCost FmaRpt::cost() const noexcept {
  return {.bytes_read = std::uint64_t{4} * n,
          .bytes_written = std::uint64_t{4} * n,
          .flops = std::uint64_t{2} * k * n};
}

// The same roundings as the kernel's: a chain in fp64 would drift from it.
void Describe<FmaRpt>::reference(const FmaRpt& spec, HostOperands& host) {
  std::vector<double>& out = host["out"].values;
  const std::vector<double>& in = host.input("in");
  const auto a = static_cast<float>(host.number("a"));
  const auto b = static_cast<float>(host.number("b"));
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto chain = static_cast<float>(in[i]);
    for (std::uint32_t t = 0; t < spec.k; ++t) chain = std::fmaf(chain, a, b);
    out[i] = chain;
  }
}

}  // namespace ptxgen::inline v0
