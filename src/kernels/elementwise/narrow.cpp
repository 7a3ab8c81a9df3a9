// src/kernels/elementwise/narrow.cpp - f32 to 16-bit floats, with a flag for overflow
#include "ptxgen/kernels/elementwise/narrow.hpp"

#include <cmath>

#include "kernels/parts/element.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kNarrowThreads = 256;
constexpr std::uint32_t kNarrowGroup = 4;  // elements of a lane

// `count` elements from `first` on.
void narrow_elements(KernelBuilder& k, ElementType type, const Ptr<b8>& in, const Ptr<b8>& out,
                     const Ptr<b8>& overflow, const Value<u32>& first, std::uint32_t count) {
  const Ptr<b8> from = in.offset_bytes(k.mul_wide(first, 4 * count));
  const std::vector<Value<f32>> values =
      expand(k, load_floats(k, from, ElementType::f32, count), count);
  Pred finite = k.abs(values[0]) < narrow_limit(type);
  for (std::uint32_t i = 1; i < count; ++i) {
    const Pred next = k.abs(values[i]) < narrow_limit(type);
    finite.rebind(finite & next);
  }
  store_floats(k, out.offset_bytes(k.mul_wide(first, bytes(type) * count)), type, values);
  // Rare, so lanes may wait for each other.
  k.if_(!finite, [&] { k.red_or(overflow.cast<u32>(), 1u); });
}

}  // namespace

BuiltKernel Narrow::build(const ptx::Target& target) const {
  if (type != ElementType::f16 && type != ElementType::bf16) {
    refuse_type(kernel_name<Narrow>, type, "f16 or bf16");
  }
  return build_kernel(
      kernel_name<Narrow>, target.name,
      params(param<Ptr<b8>>("in"), param<Ptr<b8>>("out"), param<Ptr<b8>>("overflow"),
             param<u32>("n")),
      [&](KernelBuilder& k, Ptr<b8> in, Ptr<b8> out, Ptr<b8> overflow, Value<u32> count) {
        k.max_threads(kMaxBlockThreads);
        const Value<u64> out_address = k.address_of(out);
        const Value<u64> addresses = k.address_of(in) | out_address;
        const auto some = [&](const Value<u32>& index, std::uint32_t elements) {
          narrow_elements(k, type, in, out, overflow, index, elements);
        };
        for_each_group(
            k, count, addresses, 2, [&](Value<u32> v) { some(v, kNarrowGroup); },
            [&](Value<u32> i) { some(i, 1); });
      });
}

LaunchGeometry Narrow::geometry() const {
  return one_dimensional(kernel_name<Narrow>, n, kNarrowGroup * kNarrowThreads, kNarrowThreads);
}

KernelCost Narrow::cost() const noexcept {
  return {.bytes_read = 4 * std::uint64_t{n},
          .bytes_written = std::uint64_t{n} * bytes(type),
          .flops = 0};
}

void Describe<Narrow>::reference(const Narrow& spec, HostOperands& host) {
  const std::vector<double>& in = host.input("in");
  std::vector<double>& out = host["out"].values;
  double& overflow = host["overflow"].values[0];
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = in[i];
    if (!(std::abs(in[i]) < narrow_limit(spec.type))) overflow = 1;
  }
}

ErrorBound Describe<Narrow>::bound(const Narrow&) { return {.exact = true}; }

}  // namespace ptxgen::inline v0
