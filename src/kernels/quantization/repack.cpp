// src/kernels/quantization/repack.cpp - rows of blocks as arrays of their fields
#include "ptxgen/kernels/quantization/repack.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/parts/geometry.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kName = Describe<Repack>::text.name;
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kAlignment = 32;  // of arrays: a sector of DRAM
constexpr std::uint32_t kUnit = 2;        // bytes that a thread copies, the alignment of blocks

constexpr BlockField kQ40[] = {{2, 16}, {0, 2}};
constexpr BlockField kQ41[] = {{4, 16}, {0, 4}};
constexpr BlockField kQ50[] = {{6, 16}, {2, 4}, {0, 2}};
constexpr BlockField kQ51[] = {{8, 16}, {4, 4}, {0, 4}};
constexpr BlockField kQ80[] = {{2, 32}, {0, 2}};
constexpr BlockField kQ6K[] = {{0, 128}, {128, 64}, {192, 16}, {208, 2}};

std::uint64_t blocks_of(ElementType type, std::uint64_t values) {
  return bytes(type, values) / bytes(type);
}

void check(std::string_view call, ElementType type, std::uint64_t values, std::size_t block_bytes,
           std::size_t row_bytes) {
  if (repacked_fields(type).empty()) {
    throw Error(Stage::Build, "bad-parameter",
                format_text("{}: {} has no repacked form; q4_0, q4_1, q5_0, q5_1, q8_0 and q6_k do",
                            call, to_string(type)));
  }
  if (block_bytes == bytes(type, values) && row_bytes == repacked_bytes(type, values)) return;
  throw Error(
      Stage::Build, "bad-size",
      format_text("{}: a row of {} values of {} has {} B as stored and {} B repacked, not {} "
                  "B and {} B",
                  call, values, to_string(type), bytes(type, values), repacked_bytes(type, values),
                  block_bytes, row_bytes));
}

// Calls `copy(place in the blocks, place in the row, bytes)` for each field of each block.
template <class Copy>
void for_each_field(ElementType type, std::uint64_t values, const Copy& copy) {
  const std::span<const BlockField> fields = repacked_fields(type);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::uint64_t start = repacked_offset(type, values, f);
    for (std::uint64_t i = 0; i < blocks_of(type, values); ++i) {
      copy(i * bytes(type) + fields[f].at, start + i * fields[f].bytes, fields[f].bytes);
    }
  }
}

/// Rows in the kernel.
struct Rows {
  KernelBuilder& k;
  ElementType type;
  Value<u32> blocks;  ///< of a row

  // Of an array, with what follows it.
  [[nodiscard]] Value<u32> units(const BlockField& field) const {
    const Value<u32> size = k.mul_lo(blocks, std::uint32_t{field.bytes});
    return ((size + (kAlignment - 1)) & ~(kAlignment - 1)) >> 1u;
  }
};

// Copies a field of the blocks at `from` to the array of `count` units at `to`.
void copy_array(const Rows& rows, const BlockField& field, const Value<u32>& count,
                const Ptr<b8>& from, const Ptr<b8>& to) {
  KernelBuilder& k = rows.k;
  const std::uint32_t units = field.bytes / kUnit;  // of a block
  k.for_(k.tid_x(), count, kThreads, [&](Value<u32> unit) {
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
  k.for_(k.ctaid_x(), count, k.nctaid_x(), [&](Value<u32> row) {
    const Ptr<b8> from = w.offset_bytes(k.mul_wide(row, stored_bytes));
    Ptr<b8> to = y.offset_bytes(k.mul_wide(row, row_units) << 1u);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (f != 0) to.rebind(to.offset_bytes(k.mul_wide(units[f - 1], kUnit)));
      copy_array(rows, fields[f], units[f], from, to);
    }
  });
}

}  // namespace

std::span<const BlockField> repacked_fields(ElementType type) noexcept {
  switch (type) {
    case ElementType::q4_0:
      return kQ40;
    case ElementType::q4_1:
      return kQ41;
    case ElementType::q5_0:
      return kQ50;
    case ElementType::q5_1:
      return kQ51;
    case ElementType::q8_0:
      return kQ80;
    case ElementType::q6_k:
      return kQ6K;
    default:
      return {};
  }
}

std::uint64_t repacked_offset(ElementType type, std::uint64_t values, std::size_t field) noexcept {
  std::uint64_t offset = 0;
  for (const BlockField& before : repacked_fields(type).first(field)) {
    const std::uint64_t size = blocks_of(type, values) * before.bytes;
    offset += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  return offset;
}

std::uint64_t repacked_bytes(ElementType type, std::uint64_t values) noexcept {
  return repacked_offset(type, values, repacked_fields(type).size());
}

void repack_row(ElementType type, std::uint64_t values, std::span<const std::byte> blocks,
                std::span<std::byte> row) {
  check("repack_row", type, values, blocks.size(), row.size());
  std::fill(row.begin(), row.end(), std::byte{0});
  for_each_field(type, values, [&](std::uint64_t from, std::uint64_t to, std::size_t size) {
    std::copy_n(blocks.begin() + static_cast<std::ptrdiff_t>(from), size,
                row.begin() + static_cast<std::ptrdiff_t>(to));
  });
}

void unpack_row(ElementType type, std::uint64_t values, std::span<const std::byte> row,
                std::span<std::byte> blocks) {
  check("unpack_row", type, values, blocks.size(), row.size());
  for_each_field(type, values, [&](std::uint64_t to, std::uint64_t from, std::size_t size) {
    std::copy_n(row.begin() + static_cast<std::ptrdiff_t>(from), size,
                blocks.begin() + static_cast<std::ptrdiff_t>(to));
  });
}

std::vector<std::byte> unpack_rows(ElementType type, std::uint64_t values,
                                   std::span<const std::byte> rows) {
  const auto from = static_cast<std::size_t>(repacked_bytes(type, values));
  const auto to = static_cast<std::size_t>(bytes(type, values));
  const std::size_t number = rows.size() / from;
  std::vector<std::byte> blocks(number * to);
  for (std::size_t row = 0; row < number; ++row) {
    unpack_row(type, values, rows.subspan(row * from, from),
               std::span(blocks).subspan(row * to, to));
  }
  return blocks;
}

BuiltKernel Repack::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kName, target.name,
      params(param<Ptr<b8>>("w"), param<Ptr<b8>>("y"), param<u32>("rows"), param<u32>("columns")),
      [&](KernelBuilder& k, Ptr<b8> w, Ptr<b8> y, Value<u32> count, Value<u32> values) {
        k.required_threads(kThreads);
        const std::uint32_t block_values = info(type).block_values;
        const Value<u32> blocks =
            (values + (block_values - 1)) >> static_cast<unsigned>(std::countr_zero(block_values));
        repack_rows({k, type, blocks}, w, y, count);
      });
}

LaunchGeometry Repack::geometry() const {
  return one_dimensional(kName, columns == 0 ? 0 : rows, 1, kThreads);
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
