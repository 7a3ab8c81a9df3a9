// src/kernels/normalization/layernorm.cpp - rows with their mean taken away, scaled to variance 1
#include "ptxgen/kernels/normalization/layernorm.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/parts/element.hpp"
#include "kernels/parts/rows.hpp"

namespace ptxgen::inline v0 {

namespace {

struct Affine {
  Ptr<f32> weight, bias;
};

struct Moments {
  Value<f32> mean, variance;
};

Moments moments(const RowBlock& b, bool precise, const Value<u64>& row) {
  KernelBuilder& k = b.k;
  Var<f32> count = k.var<f32>(0.0f);
  Var<f32> mean = k.var<f32>(0.0f);
  Var<f32> deviations = k.var<f32>(0.0f);
  b.for_each([&](Value<u32> i) {
    const Value<f32> element = b.load(row, i);
    count += 1.0f;
    const Value<f32> before = element - mean;
    mean += k.div(before, count, {.approx = !precise});
    const Value<f32> after = element - mean;
    deviations = k.fma(before, after, deviations);
  });
  const Value<f32> columns = k.convert<f32>(b.columns);
  const Value<f32> sum = k.block_reduce(count * mean, LayerNorm::kThreads);
  const Value<f32> joint_mean = k.div(sum, columns);
  const Value<f32> distance = mean - joint_mean;
  const Value<f32> weighted = count * distance;
  const Value<f32> joint = k.fma(weighted, distance, deviations);
  return {joint_mean, k.div(k.block_reduce(joint, LayerNorm::kThreads), columns)};
}

void normalise_row(const RowBlock& b, bool precise, const std::optional<Affine>& affine,
                   const Value<f32>& eps, const Value<u64>& row) {
  KernelBuilder& k = b.k;
  const Moments row_moments = moments(b, precise, row);
  const Value<f32> variance = row_moments.variance + eps;
  const Value<f32> scale = precise ? k.rcp(k.sqrt(variance)) : k.rsqrt(variance);
  b.for_each([&](Value<u32> i) {
    const Value<f32> centred = b.load(row, i) - row_moments.mean;
    Value<f32> result = centred * scale;
    if (affine) {
      const Value<f32> factor = affine->weight[i];
      const Value<f32> summand = affine->bias[i];
      result.rebind(k.fma(result, factor, summand));
    }
    b.store(row, i, result);
  });
}

}  // namespace

BuiltKernel LayerNorm::build(const ptx::Target& target) const {
  with_float_type(kernel_name<LayerNorm>, type, [](auto) {});
  KernelBuilder k(kernel_name<LayerNorm>, target.name);
  const Ptr<b8> x = k.param<Ptr<b8>>("x");
  k.declare_param<Ptr<f32>>("weight");
  k.declare_param<Ptr<f32>>("bias");
  std::optional<Affine> columns_of;
  if (affine) {
    columns_of.emplace(Affine{k.load_param<Ptr<f32>>("weight"), k.load_param<Ptr<f32>>("bias")});
  }
  const Ptr<b8> y = k.param<Ptr<b8>>("y");
  const Value<u32> row_count = k.param<u32>("rows");
  const Value<u32> column_count = k.param<u32>("columns");
  const Value<f32> eps = k.param<f32>("eps");
  k.required_threads(kThreads);
  const RowBlock block{k, type, kThreads, x, y, k.tid_x(), column_count};
  for_each_row(block, row_count,
               [&](const Value<u64>& row) { normalise_row(block, precise, columns_of, eps, row); });
  return k.build();
}

LaunchGeometry LayerNorm::geometry() const {
  return row_geometry(kernel_name<LayerNorm>, rows, columns, kThreads);
}

KernelCost LayerNorm::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = elements * bytes(type) + (affine ? std::uint64_t{8} * columns : 0),
          .bytes_written = elements * bytes(type),
          .flops = 8 * elements};
}

void Describe<LayerNorm>::reference(const LayerNorm& spec, HostOperands& host) {
  HostOperands::Operand& y = host["y"];
  const std::vector<double>& x = host.input("x");
  const double eps = host.number("eps");
  y.magnitude.resize(y.values.size());
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * spec.columns);
    double mean = 0;
    double largest = 0;
    for (std::size_t i = 0; i < spec.columns; ++i) {
      mean += first[static_cast<std::ptrdiff_t>(i)] / spec.columns;
      largest = std::max(largest, std::abs(first[static_cast<std::ptrdiff_t>(i)]));
    }
    double variance = 0;
    for (std::size_t i = 0; i < spec.columns; ++i) {
      const double centred = first[static_cast<std::ptrdiff_t>(i)] - mean;
      variance += centred * centred / spec.columns;
    }
    const double scale = 1 / std::sqrt(variance + eps);
    for (std::size_t i = 0; i < spec.columns; ++i) {
      const std::size_t at = row * spec.columns + i;
      const double weight = spec.affine ? host.input("weight")[i] : 1;
      const double bias = spec.affine ? host.input("bias")[i] : 0;
      const double normalised = (x[at] - mean) * scale;
      y.values[at] = normalised * weight + bias;
      y.magnitude[at] =
          std::abs(weight) * (1 + std::abs(normalised)) * (1 + largest * scale) + std::abs(bias);
    }
  }
}

// Relative to the row's largest element in units of its deviation: an update of the mean has three
// roundings, of which later updates keep a part, ten additions and a division join the means; the
// same error enters each deviation, and so the variance; root, two products and a sum.
ErrorBound Describe<LayerNorm>::bound(const LayerNorm& spec) {
  const double chain = (spec.columns + 255) / 256;
  const double approximate = spec.precise ? 0 : 3;  // div.approx and rsqrt.approx: 2 ulp
  return {.relative = (2 * chain + 10 + 8 + approximate) * 0x1p-24};
}

}  // namespace ptxgen::inline v0
