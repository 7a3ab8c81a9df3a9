// src/kernels/normalization/fused_residual_rmsnorm.cpp - residual sum and its rmsnorm
#include "ptxgen/kernels/normalization/fused_residual_rmsnorm.hpp"

#include <optional>
#include <utility>

#include "kernels/parts/element.hpp"
#include "kernels/parts/root_mean_square.hpp"
#include "ptxgen/kernels/host_values.hpp"

namespace ptxgen::inline v0 {

namespace {

struct FusedRows {
  RowBlock x_to_y, residual;
  std::optional<RowBlock> sums;  // read and written, if they are kept

  using Pair = std::pair<Value<f32>, Value<f32>>;
  [[nodiscard]] Pair load(const Value<u64>& row, const Value<u32>& i) const {
    const Value<f32> a = x_to_y.load(row, i);
    const Value<f32> b = residual.load(row, i);
    return {a, b};
  }
  [[nodiscard]] Value<f32> added(const Pair& of) const {
    return rounded_to(x_to_y.k, x_to_y.type, of.first + of.second);
  }
};

void normalise_sum(const FusedRows& rows, bool precise, const Ptr<f32>& weight,
                   const Value<f32>& eps, const Value<u64>& row) {
  const Value<f32> scale = inverse_rms(
      rows.x_to_y, precise, eps, [&](const Value<u32>& i) { return rows.load(row, i); },
      [&](const Value<u32>& i, const FusedRows::Pair& loaded) {
        const Value<f32> sum = rows.added(loaded);
        if (rows.sums) rows.sums->store(row, i, sum);
        return sum;
      });
  // x and residual may have been overwritten by the sum.
  store_scaled(rows.x_to_y, weight, scale, row, [&](const Value<u32>& i) {
    return rows.sums ? rows.sums->load(row, i) : rows.added(rows.load(row, i));
  });
}

}  // namespace

BuiltKernel FusedResidualRmsNorm::build(const ptx::Target& target) const {
  with_float_type(kernel_name<FusedResidualRmsNorm>, type, [](auto) {});
  KernelBuilder k(kernel_name<FusedResidualRmsNorm>, target.name);
  const Ptr<b8> x = k.param<Ptr<b8>>("x");
  const Ptr<b8> residual = k.param<Ptr<b8>>("residual");
  const Ptr<f32> weight = k.param<Ptr<f32>>("weight");
  k.declare_param<Ptr<b8>>("sum");
  std::optional<Ptr<b8>> sum;
  if (write_sum) sum.emplace(k.load_param<Ptr<b8>>("sum"));
  const Ptr<b8> y = k.param<Ptr<b8>>("y");
  const Value<u32> row_count = k.param<u32>("rows");
  const Value<u32> column_count = k.param<u32>("columns");
  const Value<f32> eps = k.param<f32>("eps");
  k.required_threads(kThreads);
  if (precise) k.contract(Contract::Forbid);
  const Value<u32> thread = k.tid_x();
  const auto block = [&](const Ptr<b8>& from, const Ptr<b8>& to) {
    return RowBlock{k, type, kThreads, from, to, thread, column_count};
  };
  FusedRows rows_of{block(x, y), block(residual, residual), {}};
  if (sum) rows_of.sums.emplace(block(*sum, *sum));
  for_each_row(rows_of.x_to_y, row_count,
               [&](const Value<u64>& row) { normalise_sum(rows_of, precise, weight, eps, row); });
  return k.build();
}

LaunchGeometry FusedResidualRmsNorm::geometry() const {
  return row_geometry(kernel_name<FusedResidualRmsNorm>, rows, columns, kThreads);
}

KernelCost FusedResidualRmsNorm::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = 2 * elements * bytes(type) + std::uint64_t{4} * columns,
          .bytes_written = (write_sum ? 2 : 1) * elements * bytes(type),
          .flops = 5 * elements};
}

void Describe<FusedResidualRmsNorm>::reference(const FusedResidualRmsNorm& spec,
                                               HostOperands& host) {
  std::vector<double> sums = host.input("x");
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += host.input("residual")[i];
  sums = to_values(spec.type, to_elements(spec.type, sums));
  const std::span y(host["y"].values);
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const std::size_t first = row * spec.columns;
    rms_reference(std::span<const double>(sums).subspan(first, spec.columns), host.input("weight"),
                  host.number("eps"), y.subspan(first, spec.columns));
  }
  if (!spec.write_sum) return;
  HostOperands::Operand& sum = host["sum"];
  sum.magnitude.assign(sums.size(), 0);  // exact
  sum.values = std::move(sums);
}

ErrorBound Describe<FusedResidualRmsNorm>::bound(const FusedResidualRmsNorm& spec) {
  return {.relative = rms_error(spec.columns, FusedResidualRmsNorm::kThreads, spec.precise)};
}

}  // namespace ptxgen::inline v0
