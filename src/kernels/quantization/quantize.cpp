// src/kernels/quantization/quantize.cpp - floats to block formats
#include "ptxgen/kernels/quantization/quantize.hpp"

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/quantized_lanes.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kQuantizeThreads = 256;

}  // namespace

BuiltKernel Quantize::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<Quantize>, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<b8>>("w"), param<u32>("n")),
      [&](KernelBuilder& k, Ptr<b8> from, Ptr<b8> w, Value<u32> count) {
        k.contract(Contract::Forbid);
        k.required_threads(kQuantizeThreads);
        // Whole warps go round: a lane beyond the end has zeros, and stores nothing.
        const Value<u32> groups = count >> 2u;
        const Value<u32> warps_end = (groups + 31u) & ~31u;
        const Value<u32> threads = k.mul_lo(k.nctaid_x(), kQuantizeThreads);
        k.for_(k.global_thread_x(), warps_end, threads, [&](Value<u32> group) {
          const Pred inside = group < groups;
          const Ptr<b8> at = from.offset_bytes(k.mul_wide(group, kLaneValues * bytes(x)));
          const Floats loaded = load_floats_if(k, at, x, kLaneValues, inside);
          const Value<u32> lane = group & (kBlockLanes - 1);
          const QuantizedLanes quants =
              quantize_lanes(k, type, expand(k, loaded, kLaneValues), lane);
          const Ptr<b8> block = w.offset_bytes(k.mul_wide(group >> 3u, bytes(type)));
          k.if_(inside, [&] { store_lanes(k, quants, lane, block); });
        });
      });
}

LaunchGeometry Quantize::geometry() const {
  return one_dimensional(kernel_name<Quantize>, n / kLaneValues, kQuantizeThreads,
                         kQuantizeThreads);
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
