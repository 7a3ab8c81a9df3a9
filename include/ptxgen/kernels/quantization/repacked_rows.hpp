// ptxgen/kernels/quantization/repacked_rows.hpp - the layout of repacked rows of blocks
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// Of the arrays of a repacked row, bytes: a sector of DRAM.
inline constexpr std::uint32_t kRepackedAlignment = 32;

/// A field of a block: bytes `at` to `at + bytes - 1`. A power of two of at least 2 bytes.
struct BlockField {
  std::uint16_t at = 0;
  std::uint16_t bytes = 0;
};

/// The arrays of a repacked row, in the order of the row: array f has field f of every block, one
/// block after another, and starts at the next multiple of 32 bytes. Empty if the type has no
/// repacked form: blocks that are aligned to 16 bytes as stored do not need one.
///
///     q4_0   16 B of integers, d
///     q4_1   16 B of integers, d and m
///     q5_0   16 B of integers, 4 B of fifth bits, d
///     q5_1   16 B of integers, 4 B of fifth bits, d and m
///     q8_0   32 B of integers, d
///     q6_k   128 B of low bits, 64 B of high bits, 16 B of scales, d
[[nodiscard]] std::span<const BlockField> repacked_fields(ElementType type) noexcept;

/// Where array `field` of a repacked row of `values` values starts, in bytes: a multiple of 32. For
/// the number of fields: the size of the row.
[[nodiscard]] std::uint64_t repacked_offset(ElementType type, std::uint64_t values,
                                            std::size_t field) noexcept;
/// The bytes of a repacked row, a multiple of 32: as stored and at most 30 more for each array.
[[nodiscard]] std::uint64_t repacked_bytes(ElementType type, std::uint64_t values) noexcept;

/// Writes the blocks of one row of `values` values into arrays. The blocks are `bytes(type,
/// values)` long, the row `repacked_bytes(type, values)`; bytes between arrays become 0. Throws
/// `Error` (Stage::Build, "bad-parameter") if the type has no repacked form, "bad-size" if a size
/// does not fit.
void repack_row(ElementType type, std::uint64_t values, std::span<const std::byte> blocks,
                std::span<std::byte> row);
/// The reverse, which ignores the bytes between arrays. Throws as `repack_row`.
void unpack_row(ElementType type, std::uint64_t values, std::span<const std::byte> row,
                std::span<std::byte> blocks);
/// The blocks, as they were stored, of all of `rows`, whole rows of `values` values that follow one
/// another. Throws as `unpack_row`.
[[nodiscard]] std::vector<std::byte> unpack_rows(ElementType type, std::uint64_t values,
                                                 std::span<const std::byte> rows);

}  // namespace ptxgen::inline v0
