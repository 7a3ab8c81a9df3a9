// src/kernels/quantization/dequantize.cpp - block formats to floats
#include "ptxgen/kernels/quantization/dequantize.hpp"

#include <algorithm>
#include <bit>

#include "kernels/parts/block_values.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kDequantizeThreads = 256;

}  // namespace

BuiltKernel Dequantize::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<Dequantize>, target.name,
      params(param<Ptr<b8>>("w"), param<Ptr<b8>>("y"), param<u32>("n")),
      [&](KernelBuilder& k, Ptr<b8> w, Ptr<b8> to, Value<u32> count) {
        k.contract(Contract::Forbid);
        const std::uint32_t runs_of_block = info(type).block_values / kRunValues;
        const Value<u64> misaligned = k.address_of(to) & std::uint64_t{15};
        const Pred aligned = misaligned == 0u;
        const Value<u32> first = k.global_thread_x();
        const Value<u32> block_threads = k.ntid_x();
        const Value<u32> threads = k.mul_lo(block_threads, k.nctaid_x());
        const Value<u32> runs = count >> 3u;
        k.for_(first, runs, threads, [&](Value<u32> run) {
          const Value<u32> block = run >> static_cast<unsigned>(std::countr_zero(runs_of_block));
          const Ptr<b8> at = w.offset_bytes(k.mul_wide(block, bytes(type)));
          const std::vector<Value<f32>> values =
              load_block_values(k, type, at, run & (runs_of_block - 1));
          const Ptr<b8> place = to.offset_bytes(k.mul_wide(run, kRunValues * bytes(y)));
          k.if_(
              aligned, [&] { store_run(k, place, y, values, 16 / bytes(y)); },
              [&] { store_run(k, place, y, values, 1); });
        });
      });
}

LaunchGeometry Dequantize::geometry() const {
  return one_dimensional(kernel_name<Dequantize>, n / kRunValues, kDequantizeThreads,
                         kDequantizeThreads);
}

KernelCost Dequantize::cost() const noexcept {
  return {
      .bytes_read = bytes(type, n), .bytes_written = bytes(y, n), .flops = 2 * std::uint64_t{n}};
}

void Describe<Dequantize>::reference(const Dequantize&, HostOperands& host) {
  std::vector<double>& y = host["y"].values;
  std::copy_n(host.input("w").begin(), y.size(), y.begin());
}

ErrorBound Describe<Dequantize>::bound(const Dequantize&) { return {.exact = true}; }

}  // namespace ptxgen::inline v0
