// src/kernels/normalization/softmax.cpp - exponentials of rows, divided by their sums
#include "ptxgen/kernels/normalization/softmax.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include "kernels/parts/element.hpp"
#include "kernels/parts/rows.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

void softmax_row(const RowBlock& b, const Softmax& spec,
                 const std::optional<Value<f32>>& inverse_temperature, const Value<u64>& row) {
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
  const auto power_of = [&](const Value<u32>& i) {
    const Value<f32> below = b.load(row, i) - shift;
    return exp(inverse_temperature ? below * *inverse_temperature : below, accuracy);
  };
  Var<f32> sum = k.var<f32>(0.0f);
  b.for_each([&](Value<u32> i) { sum += power_of(i); });
  Value<f32> total = k.block_reduce(sum, spec.threads());
  if (spec.masked_rows) total.rebind(k.selp(1.0f, total, total == 0.0f));
  b.for_each([&](Value<u32> i) {
    const Value<f32> power = power_of(i);
    b.store(row, i, k.div(power, total, {.approx = !spec.precise}));
  });
}

}  // namespace

BuiltKernel Softmax::build(const ptx::Target& target) const {
  with_float_type(kernel_name<Softmax>, type, [](auto) {});
  KernelBuilder k(kernel_name<Softmax>, target.name);
  const Ptr<b8> x = k.param<Ptr<b8>>("x");
  const Ptr<b8> y = k.param<Ptr<b8>>("y");
  const Value<u32> row_count = k.param<u32>("rows");
  const Value<u32> column_count = k.param<u32>("columns");
  k.declare_param<f32>("temperature");
  std::optional<Value<f32>> inverse_temperature;
  if (scaled) inverse_temperature.emplace(k.rcp(k.load_param<f32>("temperature")));
  k.required_threads(threads());
  const RowBlock block{k, type, threads(), x, y, k.tid_x(), column_count};
  for_each_row(block, row_count,
               [&](const Value<u64>& row) { softmax_row(block, *this, inverse_temperature, row); });
  return k.build();
}

LaunchGeometry Softmax::geometry() const {
  return row_geometry(kernel_name<Softmax>, rows, columns, threads());
}

KernelCost Softmax::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = elements * bytes(type),
          .bytes_written = elements * bytes(type),
          .flops = 5 * elements};
}

void Describe<Softmax>::check(const Softmax& spec, const O& operands) {
  const float t = operands.temperature;
  const bool good = spec.scaled ? t > 0 && std::isfinite(t) && std::isfinite(1 / t) : t == 1;
  if (good) return;
  Error error(Stage::Launch, "bad-parameter",
              spec.scaled ? format_text("temperature is {}, not a positive normal number; take the "
                                        "largest element with argmax instead of a temperature of 0",
                                        t)
                          : format_text("temperature is {}, but the kernel is not built for one; "
                                        "set `scaled`",
                                        t));
  error.kernel = kernel_name<Softmax>;
  throw error.refresh();
}

void Describe<Softmax>::reference(const Softmax& spec, HostOperands& host) {
  std::vector<double>& y = host["y"].values;
  const std::vector<double>& x = host.input("x");
  const double temperature = spec.scaled ? host.number("temperature") : 1;
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const std::size_t first = row * spec.columns;
    double largest = -INFINITY;
    for (std::size_t i = 0; i < spec.columns; ++i) largest = std::max(largest, x[first + i]);
    double sum = 0;
    const auto power = [&](std::size_t i) {
      return std::exp((x[first + i] - largest) / temperature);
    };
    for (std::size_t i = 0; i < spec.columns; ++i) sum += power(i);
    for (std::size_t i = 0; i < spec.columns; ++i) {
      const double share = power(i) / sum;
      y[first + i] = spec.masked_rows && largest == -INFINITY ? 0 : share;
    }
  }
}

// The subtraction is rounded at up to 40, which exp turns into a relative error, in each power and
// in their sum (all of one sign); exp itself, twice; the sum's longest path; the division. A
// temperature of at least 1/2 doubles the first and adds two roundings of up to 80.
ErrorBound Describe<Softmax>::bound(const Softmax& spec) {
  const MathBound& exp =
      math_bound("exp", spec.precise ? Accuracy::Precise : Accuracy::Approximate);
  const double chain = (spec.columns + spec.threads() - 1) / spec.threads() + 10;
  const double argument = spec.scaled ? 2 * 32 + 2 * 80 : 32;
  return {.relative = (2 * argument + 2 * 2 * exp.ulp + chain + 4) * 0x1p-24, .absolute = 1e-37};
}

}  // namespace ptxgen::inline v0
