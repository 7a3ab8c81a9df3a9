// src/kernels/quantization/repack.cpp - a kernel that repacks rows of blocks
#include "ptxgen/kernels/quantization/repack.hpp"

#include <bit>
#include <vector>

#include "kernels/parts/geometry.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kRepackThreads = 256;
constexpr std::uint32_t kUnit = 2;  // bytes that a thread copies, the alignment of blocks

/// Rows in the kernel.
struct Rows {
  KernelBuilder& k;
  ElementType type;
  Value<u32> blocks;  ///< of a row

  // Of an array, with what follows it.
  [[nodiscard]] Value<u32> units(const BlockField& field) const {
    const Value<u32> size = k.mul_lo(blocks, std::uint32_t{field.bytes});
    return ((size + (kRepackedAlignment - 1)) & ~(kRepackedAlignment - 1)) >> 1u;
  }
};

// Copies a field of the blocks at `from` to the array of `count` units at `to`.
void copy_array(const Rows& rows, const BlockField& field, const Value<u32>& count,
                const Ptr<b8>& from, const Ptr<b8>& to) {
  KernelBuilder& k = rows.k;
  const std::uint32_t units = field.bytes / kUnit;  // of a block
  k.for_(k.tid_x(), count, kRepackThreads, [&](Value<u32> unit) {
    const Value<u32> block = unit >> static_cast<unsigned>(std::countr_zero(units));
    const Value<u32> inside = (unit & (units - 1)) << 1u;
    const Ptr<u16> place = to.offset_bytes(k.mul_wide(unit, kUnit)).cast<u16>();
    k.if_(
        block < rows.blocks,
        [&] {
          const Ptr<b8> at = from.offset_bytes(k.mul_wide(block, bytes(rows.type)));
          k.st(place, k.ld((at + inside + field.at).cast<u16>()));
        },
        [&] { k.st(place, k.constant<u16>(0)); });
  });
}

void repack_rows(const Rows& rows, const Ptr<b8>& w, const Ptr<b8>& y, const Value<u32>& count) {
  KernelBuilder& k = rows.k;
  const std::span<const BlockField> fields = repacked_fields(rows.type);
  std::vector<Value<u32>> units{rows.units(fields[0])};
  Value<u32> row_units(units[0]);
  for (const BlockField& field : fields.subspan(1)) {
    units.push_back(rows.units(field));
    row_units.rebind(row_units + units.back());
  }
  const Value<u32> stored_bytes = k.mul_lo(rows.blocks, bytes(rows.type));
  const Value<u32> blocks = k.nctaid_x();
  k.for_(k.ctaid_x(), count, blocks, [&](Value<u32> row) {
    const Ptr<b8> from = w.offset_bytes(k.mul_wide(row, stored_bytes));
    Ptr<b8> to = y.offset_bytes(k.mul_wide(row, row_units) << 1u);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (f != 0) to.rebind(to.offset_bytes(k.mul_wide(units[f - 1], kUnit)));
      copy_array(rows, fields[f], units[f], from, to);
    }
  });
}

}  // namespace

BuiltKernel Repack::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<Repack>, target.name,
      params(param<Ptr<b8>>("w"), param<Ptr<b8>>("y"), param<u32>("rows"), param<u32>("columns")),
      [&](KernelBuilder& k, Ptr<b8> w, Ptr<b8> y, Value<u32> count, Value<u32> values) {
        k.required_threads(kRepackThreads);
        const std::uint32_t block_values = info(type).block_values;
        const Value<u32> blocks =
            (values + (block_values - 1)) >> static_cast<unsigned>(std::countr_zero(block_values));
        repack_rows({k, type, blocks}, w, y, count);
      });
}

LaunchGeometry Repack::geometry() const {
  return one_dimensional(kernel_name<Repack>, columns == 0 ? 0 : rows, 1, kRepackThreads);
}

KernelCost Repack::cost() const noexcept {
  return {.bytes_read = rows * bytes(type, columns),
          .bytes_written = rows * repacked_bytes(type, columns)};
}

void Describe<Repack>::reference(const Repack& spec, HostOperands& host) {
  const std::vector<double>& w = host.input("w");
  std::vector<double>& y = host["y"].values;
  std::vector<std::byte> blocks(bytes(spec.type, spec.columns));
  std::vector<std::byte> row(repacked_bytes(spec.type, spec.columns));
  for (std::size_t r = 0; r < spec.rows; ++r) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = static_cast<std::byte>(w[r * blocks.size() + i]);
    }
    repack_row(spec.type, spec.columns, blocks, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      y[r * row.size() + i] = std::to_integer<int>(row[i]);
    }
  }
}

ErrorBound Describe<Repack>::bound(const Repack&) { return {.exact = true}; }

}  // namespace ptxgen::inline v0
