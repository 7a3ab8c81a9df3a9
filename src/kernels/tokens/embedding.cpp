// src/kernels/tokens/embedding.cpp - rows of a table, picked by token ids
#include "ptxgen/kernels/tokens/embedding.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/parts/block_values.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/whole_blocks.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"

namespace ptxgen::inline v0 {

namespace {

// Elements that a lane copies at once.
std::uint32_t group_of(const Embedding& spec) {
  if (is_block_format(spec.table)) return kRunValues;
  return kVectorBytes / std::max(bytes(spec.table), bytes(spec.y));
}

/// One row: where it is in the table and in y, and its factor.
struct TableRow {
  KernelBuilder& k;
  Ptr<b8> from, to;
  Value<u32> columns;
  Value<f32> scale;

  [[nodiscard]] std::vector<Value<f32>> scaled(std::vector<Value<f32>> values) const {
    for (Value<f32>& value : values) value.rebind(value * scale);
    return values;
  }
};

void copy_floats(const TableRow& row, const Embedding& spec) {
  KernelBuilder& k = row.k;
  const std::uint32_t group = group_of(spec);
  const auto copy = [&](const Value<u32>& index, std::uint32_t count) {
    const Ptr<b8> from = row.from.offset_bytes(k.mul_wide(index, count * bytes(spec.table)));
    const Ptr<b8> to = row.to.offset_bytes(k.mul_wide(index, count * bytes(spec.y)));
    const Floats loaded = load_floats(k, from, spec.table, count);
    store_floats(k, to, spec.y, row.scaled(expand(k, loaded, count)));
  };
  const Value<u64> from_address = k.address_of(row.from);
  const Value<u64> addresses = from_address | k.address_of(row.to);
  for_each_group(
      k, row.columns, addresses, static_cast<unsigned>(std::countr_zero(group)),
      [&](Value<u32> v) { copy(v, group); }, [&](Value<u32> i) { copy(i, 1); });
}

void decode_blocks(const TableRow& row, const Embedding& spec) {
  KernelBuilder& k = row.k;
  const std::uint32_t runs_of_block = info(spec.table).block_values / kRunValues;
  const Value<u64> misaligned = k.address_of(row.to) & std::uint64_t{kVectorBytes - 1};
  const Pred aligned = misaligned == 0u;
  const Value<u32> threads = k.mul_lo(k.nctaid_x(), Embedding::kThreads);
  const Value<u32> runs = row.columns >> 3u;
  k.for_(k.global_thread_x(), runs, threads, [&](Value<u32> run) {
    const Value<u32> block = run >> static_cast<unsigned>(std::countr_zero(runs_of_block));
    const Ptr<b8> at = row.from.offset_bytes(k.mul_wide(block, bytes(spec.table)));
    const std::vector<Value<f32>> values =
        row.scaled(load_block_values(k, spec.table, at, run & (runs_of_block - 1)));
    const Ptr<b8> to = row.to.offset_bytes(k.mul_wide(run, kRunValues * bytes(spec.y)));
    k.if_(
        aligned, [&] { store_run(k, to, spec.y, values, kVectorBytes / bytes(spec.y)); },
        [&] { store_run(k, to, spec.y, values, 1); });
  });
}

}  // namespace

BuiltKernel Embedding::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<Embedding>, target.name,
      params(param<Ptr<u32>>("ids"), param<Ptr<b8>>("table"), param<Ptr<b8>>("y"),
             param<u32>("rows"), param<u32>("columns"), param<u32>("vocabulary"),
             param<f32>("scale")),
      [&](KernelBuilder& k, Ptr<u32> ids, Ptr<b8> from, Ptr<b8> to, Value<u32> row_count,
          Value<u32> width, Value<u32> token_count, Value<f32> scale) {
        k.contract(Contract::Forbid);
        k.required_threads(kThreads);
        const std::uint32_t unit = info(table).block_values;
        const Value<u32> units = width >> static_cast<unsigned>(std::countr_zero(unit));
        const Value<u64> from_row = k.mul_wide(units, bytes(table));
        const Value<u64> to_row = k.mul_wide(width, bytes(y));
        const Value<u32> first = k.ctaid_y();
        k.for_(first, row_count, k.nctaid_y(), [&](Value<u32> row) {
          const Value<u32> id = ids[row];
          const Pred known = id < token_count;
          // Row 0 times NaN for an id that the table does not have.
          const Value<u32> source = k.selp(id, 0u, known);
          const Value<f32> factor = k.selp(scale, std::numeric_limits<float>::quiet_NaN(), known);
          const Ptr<b8> from_at = from.offset_bytes(from_row * k.convert<u64>(source));
          const Ptr<b8> to_at = to.offset_bytes(to_row * k.convert<u64>(row));
          const TableRow at{k, from_at, to_at, width, factor};
          if (is_block_format(table)) {
            decode_blocks(at, *this);
          } else {
            copy_floats(at, *this);
          }
        });
      });
}

LaunchGeometry Embedding::geometry() const {
  check_whole_blocks(kernel_name<Embedding>, "columns", columns, table);
  LaunchGeometry geometry = one_dimensional(kernel_name<Embedding>, rows == 0 ? 0 : columns,
                                            group_of(*this) * kThreads, kThreads);
  geometry.grid.y = std::min(rows, 65535u);
  return geometry;
}

KernelCost Embedding::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = rows * (4 + bytes(table, columns)),
          .bytes_written = elements * bytes(y),
          .flops = elements};
}

void Describe<Embedding>::reference(const Embedding& spec, HostOperands& host) {
  std::vector<double>& y = host["y"].values;
  const std::vector<double>& table = host.input("table");
  const double scale = host.number("scale");
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const double id = host.input("ids")[row];
    const bool known = id < spec.vocabulary;
    const std::size_t first = known ? static_cast<std::size_t>(id) * spec.columns : 0;
    for (std::size_t i = 0; i < spec.columns; ++i) {
      y[row * spec.columns + i] =
          known ? table[first + i] * scale : std::numeric_limits<double>::quiet_NaN();
    }
  }
}

// One product in f32, which is the result if y is f32.
ErrorBound Describe<Embedding>::bound(const Embedding& spec) {
  if (spec.y == ElementType::f32) return {.exact = true};
  return {.relative = 0x1p-24, .absolute = 0x1p-149};
}

}  // namespace ptxgen::inline v0
