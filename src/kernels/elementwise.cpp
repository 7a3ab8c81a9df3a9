// src/kernels/elementwise.cpp - vadd, copy, fma_rpt
#include "ptxgen/kernels/elementwise.hpp"

#include <cmath>
#include <cstddef>

#include "kernels/geometry.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

Vadd::KernelType Vadd::build(const ptx::Target& target) const {
  return build_kernel(
      kName, target.name,
      params(param<Ptr<f32>>("a"), param<Ptr<f32>>("b"), param<Ptr<f32>>("c"), param<u32>("n")),
      [](KernelBuilder& k, Ptr<f32> a, Ptr<f32> b, Ptr<f32> c, Value<u32> count) {
        k.max_threads(kThreads);
        const Value<u32> i = k.global_thread_x();
        k.if_(i < count, [&] { c[i] = a[i] + b[i]; });
      });
}

LaunchGeometry Vadd::geometry() const { return one_dimensional(kName, n, kThreads, kThreads); }

KernelCost Vadd::cost() const noexcept {
  return {.bytes_read = std::uint64_t{8} * n, .bytes_written = std::uint64_t{4} * n, .flops = n};
}

void Vadd::reference(std::span<const float> a, std::span<const float> b, std::span<float> c) {
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
}

Copy::KernelType Copy::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<b32>>("in"), param<Ptr<b32>>("out"), param<u32>("n")),
                      [](KernelBuilder& k, Ptr<b32> in, Ptr<b32> out, Value<u32> count) {
                        k.max_threads(kThreads);
                        const Value<u32> i = k.global_thread_x();
                        k.if_(i < count, [&] { out[i] = in[i]; });
                      });
}

LaunchGeometry Copy::geometry() const { return one_dimensional(kName, n, kThreads, kThreads); }

KernelCost Copy::cost() const noexcept {
  return {.bytes_read = std::uint64_t{4} * n, .bytes_written = std::uint64_t{4} * n, .flops = 0};
}

void Copy::reference(std::span<const std::uint32_t> in, std::span<std::uint32_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i];
}

FmaRpt::KernelType FmaRpt::build(const ptx::Target& target) const {
  return build_kernel(kName, target.name,
                      params(param<Ptr<f32>>("in"), param<Ptr<f32>>("out"), param<s32>("n"),
                             param<s32>("k"), param<f32>("a"), param<f32>("b")),
                      [](KernelBuilder& k, Ptr<f32> in, Ptr<f32> out, Value<s32> count,
                         Value<s32> repeats, Value<f32> a, Value<f32> b) {
                        k.max_threads(kThreads);
                        // n is at most 2^31 - 1, so the last block's threads stay below 2^31 as
                        // well.
                        const Value<s32> i = k.bitcast<s32>(k.global_thread_x());
                        k.if_(i < count, [&] {
                          auto chain = k.var<f32>(in[i]);
                          k.for_(
                              0, repeats, 1, [&](Value<s32>) { k.fma_inplace(chain, a, b); },
                              Unroll{kUnroll});
                          out[i] = chain;
                        });
                      });
}

LaunchGeometry FmaRpt::geometry() const { return one_dimensional(kName, n, kThreads, kThreads); }

KernelCost FmaRpt::cost() const noexcept {
  return {.bytes_read = std::uint64_t{4} * n,
          .bytes_written = std::uint64_t{4} * n,
          .flops = std::uint64_t{2} * k * n};
}

void FmaRpt::reference(std::span<const float> in, std::span<float> out, std::int32_t k, float a,
                       float b) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    float chain = in[i];
    for (std::int32_t t = 0; t < k; ++t) chain = std::fmaf(chain, a, b);
    out[i] = chain;
  }
}

}  // namespace ptxgen::inline v0
