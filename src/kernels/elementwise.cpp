// src/kernels/elementwise.cpp - vadd, copy, fma_rpt
#include "ptxgen/kernels/elementwise.hpp"

#include <cmath>
#include <cstddef>

#include "kernels/geometry.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

namespace {

void vadd(KernelBuilder& k, Ptr<f32> a, Ptr<f32> b, Ptr<f32> c, Value<u32> n) {
  k.max_threads(Vadd::kThreads);
  const Value<u32> i = k.global_thread_x();
  k.if_(i < n, [&] {
    // One emitting call per statement: C++ leaves the order of arguments to the compiler.
    const Value<f32> x = a[i];
    const Value<f32> y = b[i];
    const Value<f32> sum = x + y;
    c[i] = sum;
  });
}

void copy(KernelBuilder& k, Ptr<b32> in, Ptr<b32> out, Value<u32> n) {
  k.max_threads(Copy::kThreads);
  const Value<u32> i = k.global_thread_x();
  k.if_(i < n, [&] {
    const Value<b32> element = in[i];
    out[i] = element;
  });
}

void fma_rpt(KernelBuilder& k, Ptr<f32> in, Ptr<f32> out, Value<s32> n, Value<s32> repeats,
             Value<f32> a, Value<f32> b) {
  k.max_threads(FmaRpt::kThreads);
  // n is at most 2^31 - 1, so the last block's threads stay below 2^31 as well.
  const Value<s32> i = k.bitcast<s32>(k.global_thread_x());
  k.if_(i < n, [&] {
    auto chain = k.var<f32>(in[i]);
    const auto step = [&](Value<s32>) {
      k.emit(ptx::Op::fma_f32, {ptx::Modifier::rn}, {chain, chain, a, b});
    };
    k.for_(0, repeats, 1, step, Unroll{FmaRpt::kUnroll});
    out[i] = chain;
  });
}

}  // namespace

Vadd::KernelType Vadd::build(const ptx::Target& target) const {
  return build_kernel(
      kName, target.name,
      params(param<Ptr<f32>>("a"), param<Ptr<f32>>("b"), param<Ptr<f32>>("c"), param<u32>("n")),
      vadd);
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
                      params(param<Ptr<b32>>("in"), param<Ptr<b32>>("out"), param<u32>("n")), copy);
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
                      fma_rpt);
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
