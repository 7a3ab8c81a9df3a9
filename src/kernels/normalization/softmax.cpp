// src/kernels/normalization/softmax.cpp - exponentials of rows, divided by their sums
#include "ptxgen/kernels/normalization/softmax.hpp"

#include <cmath>
#include <limits>

#include "kernels/parts/element.hpp"
#include "kernels/parts/rows.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<Softmax>::text.name;
constexpr float kInf = std::numeric_limits<float>::infinity();

void softmax_row(const RowBlock& b, const Softmax& spec, const Value<u64>& row) {
  KernelBuilder& k = b.k;
  const Accuracy accuracy = spec.precise ? Accuracy::Precise : Accuracy::Approximate;
  Var<f32> largest = k.var<f32>(-kInf);
  b.for_each([&](Value<u32> i) {
    const Value<f32> element = b.load(row, i);
    largest = k.max(largest, element);  // a NaN makes the sum one
  });
  Value<f32> shift = k.block_reduce(largest, spec.threads(), Reduce::Max);
  // exp(-inf - 0) is 0 in every column of a masked row.
  if (spec.masked_rows) shift.rebind(k.selp(0.0f, shift, shift == -kInf));
  Var<f32> sum = k.var<f32>(0.0f);
  b.for_each([&](Value<u32> i) { sum += exp(b.load(row, i) - shift, accuracy); });
  Value<f32> total = k.block_reduce(sum, spec.threads());
  if (spec.masked_rows) total.rebind(k.selp(1.0f, total, total == 0.0f));
  b.for_each([&](Value<u32> i) {
    const Value<f32> power = exp(b.load(row, i) - shift, accuracy);
    b.store(row, i, k.div(power, total, {.approx = !spec.precise}));
  });
}

}  // namespace

BuiltKernel Softmax::build(const ptx::Target& target) const {
  with_float_type(kName, type, [](auto) {});
  return build_kernel(
      kName, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<b8>>("y"), param<u32>("rows"), param<u32>("columns")),
      [&](KernelBuilder& k, Ptr<b8> x, Ptr<b8> y, Value<u32> row_count, Value<u32> column_count) {
        k.required_threads(threads());
        const RowBlock block{k, type, threads(), x, y, k.tid_x(), column_count};
        for_each_row(block, row_count,
                     [&](const Value<u64>& row) { softmax_row(block, *this, row); });
      });
}

LaunchGeometry Softmax::geometry() const { return row_geometry(kName, rows, columns, threads()); }

KernelCost Softmax::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = elements * bytes(type),
          .bytes_written = elements * bytes(type),
          .flops = 5 * elements};
}

void Describe<Softmax>::reference(const Softmax& spec, HostOperands& host) {
  std::vector<double>& y = host["y"].values;
  const std::vector<double>& x = host.input("x");
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const std::size_t first = row * spec.columns;
    double largest = -INFINITY;
    for (std::size_t i = 0; i < spec.columns; ++i) largest = std::max(largest, x[first + i]);
    double sum = 0;
    for (std::size_t i = 0; i < spec.columns; ++i) sum += std::exp(x[first + i] - largest);
    for (std::size_t i = 0; i < spec.columns; ++i) {
      const double share = std::exp(x[first + i] - largest) / sum;
      y[first + i] = spec.masked_rows && largest == -INFINITY ? 0 : share;
    }
  }
}

// The subtraction is rounded at up to 40, which exp turns into a relative error, in each power and
// in their sum (all of one sign); exp itself, twice; the sum's longest path; the division.
ErrorBound Describe<Softmax>::bound(const Softmax& spec) {
  const MathBound& exp =
      math_bound("exp", spec.precise ? Accuracy::Precise : Accuracy::Approximate);
  const double chain = (spec.columns + spec.threads() - 1) / spec.threads() + 10;
  return {.relative = (2 * 32 + 2 * 2 * exp.ulp + chain + 4) * 0x1p-24, .absolute = 1e-37};
}

}  // namespace ptxgen::inline v0
