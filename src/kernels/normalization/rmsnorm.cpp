// src/kernels/normalization/rmsnorm.cpp - rows divided by their root mean square
#include "ptxgen/kernels/normalization/rmsnorm.hpp"

#include <cmath>

#include "kernels/parts/element.hpp"
#include "kernels/parts/rows.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<RmsNorm>::text.name;

// The sum of squares of the thread's elements.
Value<f32> sum_of_squares(const RowBlock& b, const RmsNorm& spec, const Value<u64>& row) {
  KernelBuilder& k = b.k;
  Var<f32> sum = k.var<f32>(0.0f);
  Var<f32> lost = k.var<f32>(0.0f);
  b.for_each([&](Value<u32> i) {
    const Value<f32> element = b.load(row, i);
    if (!spec.precise) {
      sum = k.fma(element, element, sum);
      return;
    }
    // Kahan: what the addition lost is taken from the next summand.
    const Value<f32> term = k.fma(element, element, k.neg(lost));
    const Value<f32> next = sum + term;
    const Value<f32> added = next - sum;
    lost = added - term;
    sum = next;
  });
  return sum;
}

void normalise_row(const RowBlock& b, const RmsNorm& spec, const Ptr<f32>& weight,
                   const Value<f32>& eps, const Value<u64>& row) {
  KernelBuilder& k = b.k;
  const Value<f32> squares = k.block_reduce(sum_of_squares(b, spec, row), RmsNorm::kThreads);
  const Value<f32> mean = k.div(squares, k.convert<f32>(b.columns)) + eps;
  const Value<f32> scale = spec.precise ? k.rcp(k.sqrt(mean)) : k.rsqrt(mean);
  b.for_each([&](Value<u32> i) {
    const Value<f32> scaled = b.load(row, i) * scale;
    const Value<f32> factor = weight[i];
    b.store(row, i, scaled * factor);
  });
}

}  // namespace

BuiltKernel RmsNorm::build(const ptx::Target& target) const {
  with_float_type(kName, type, [](auto) {});
  return build_kernel(kName, target.name,
                      params(param<Ptr<b8>>("x"), param<Ptr<f32>>("weight"), param<Ptr<b8>>("y"),
                             param<u32>("rows"), param<u32>("columns"), param<f32>("eps")),
                      [&](KernelBuilder& k, Ptr<b8> x, Ptr<f32> weight, Ptr<b8> y,
                          Value<u32> row_count, Value<u32> column_count, Value<f32> eps) {
                        k.required_threads(kThreads);
                        if (precise) k.contract(Contract::Forbid);
                        const RowBlock block{k, type, kThreads, x, y, k.tid_x(), column_count};
                        for_each_row(block, row_count, [&](const Value<u64>& row) {
                          normalise_row(block, *this, weight, eps, row);
                        });
                      });
}

LaunchGeometry RmsNorm::geometry() const { return row_geometry(kName, rows, columns, kThreads); }

KernelCost RmsNorm::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = elements * bytes(type) + std::uint64_t{4} * columns,
          .bytes_written = elements * bytes(type),
          .flops = 4 * elements};
}

void Describe<RmsNorm>::reference(const RmsNorm& spec, HostOperands& host) {
  std::vector<double>& y = host["y"].values;
  const std::vector<double>& x = host.input("x");
  const std::vector<double>& weight = host.input("weight");
  const double eps = host.number("eps");
  for (std::size_t row = 0; row < spec.rows; ++row) {
    double squares = 0;
    const std::size_t first = row * spec.columns;
    for (std::size_t i = 0; i < spec.columns; ++i) squares += x[first + i] * x[first + i];
    const double scale = 1 / std::sqrt(squares / spec.columns + eps);
    for (std::size_t i = 0; i < spec.columns; ++i) {
      y[first + i] = x[first + i] * scale * weight[i];
    }
  }
}

// All summands have one sign, so the sum's relative error is gamma of its longest path: the
// thread's chain (two roundings in all if it is compensated), ten steps of the butterflies. Halved
// by the root; then mean, eps, root and division, and two products.
ErrorBound Describe<RmsNorm>::bound(const RmsNorm& spec) {
  const double chain = spec.precise ? 2 : (spec.columns + 255) / 256;
  const double root = spec.precise ? 2 : 3;  // rsqrt.approx: 2^-22.9 in the PTX ISA
  return {.relative = ((chain + 10 + 2) / 2 + root + 2) * 0x1p-24 * 1.01};
}

}  // namespace ptxgen::inline v0
