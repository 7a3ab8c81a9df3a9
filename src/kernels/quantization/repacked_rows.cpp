// src/kernels/quantization/repacked_rows.cpp - the layout of repacked rows of blocks
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

#include <algorithm>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

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
    offset += (size + kRepackedAlignment - 1) / kRepackedAlignment * kRepackedAlignment;
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

}  // namespace ptxgen::inline v0
