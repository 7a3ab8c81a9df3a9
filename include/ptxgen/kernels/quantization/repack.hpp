// ptxgen/kernels/quantization/repack.hpp - rows of blocks as arrays of their fields
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

/// A field of a block: bytes `at` to `at + bytes - 1`. A power of two of at least 2 bytes.
struct BlockField {
  std::uint16_t at = 0;
  std::uint16_t bytes = 0;
};

/// The arrays of a repacked row, in the order of the row: array f has field f of every block, one
/// block after another, and starts at the next multiple of 32 bytes. Empty if the type has no
/// repacked form: blocks that are aligned to 16 bytes as stored do not need one.
///
///     q4_0   16 B of integers, d                q5_0   16 B of integers, 4 B of fifth bits, d
///     q4_1   16 B of integers, d and m          q5_1   16 B of integers, 4 B of fifth bits, d and
///     m q8_0   32 B of integers, d                q6_k   128 B of low bits, 64 B of high bits,
///                                                      16 B of scales, d
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

inline constexpr Word<ElementType> kRepackedTypes[] = {
    {"q4_0", ElementType::q4_0}, {"q4_1", ElementType::q4_1}, {"q5_0", ElementType::q5_0},
    {"q5_1", ElementType::q5_1}, {"q8_0", ElementType::q8_0}, {"q6_k", ElementType::q6_k}};

/// `repack_row` of each row, bit for bit. Entry `repack(w, y, rows, columns)`: w has the rows as
/// stored, one after another, aligned to 2 bytes; y the repacked rows, aligned to 16. A block for
/// each row; a thread writes 2 bytes at a time.
struct Repack {
  std::uint32_t rows = 1;
  std::uint32_t columns = 4096;  ///< of a row, a multiple of 32; the last block may have more
  ElementType type = ElementType::q6_k;  ///< q4_0, q4_1, q5_0, q5_1, q8_0 or q6_k

  struct Operands {
    DeviceRange y{}, w{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// rows = 0 or columns = 0 throws `Error` (Stage::Launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
};

template <>
struct Describe<Repack> {
  using K = Repack;
  using Row = ArgumentRow<K>;
  using O = K::Operands;
  static constexpr KernelDoc text{"repack", "y = rows of blocks of w as arrays of their fields",
                                  "coalesced: consecutive lanes on consecutive 2 bytes of y"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::rows>("rows", 1, 0x7fffffffu, "rows"),
      number<&K::columns>("columns", 32, 0x7fffffe0u, "values of a row").multiple_of(32),
      choice<&K::type, kRepackedTypes>("type", "of the blocks").specializes()};
  static constexpr auto kStored = [](const K& spec) {
    return spec.rows * bytes(spec.type, spec.columns);
  };
  static constexpr auto kRepacked = [](const K& spec) {
    return spec.rows * repacked_bytes(spec.type, spec.columns);
  };
  static constexpr Row arguments[] = {
      Row::input("w", &O::w, ElementType::b8, kStored, "rows of blocks, as stored")
          .aligned([](const K&) -> std::uint32_t { return 2; })
          .values(0, 255),
      Row::output("y", &O::y, ElementType::b8, kRepacked, "repacked rows")
          .aligned([](const K&) -> std::uint32_t { return 16; }),
      Row::shape<&K::rows>("rows"), Row::shape<&K::columns>("columns")};
  static void reference(const K& spec, HostOperands& host);
  static ErrorBound bound(const K& spec);
  static constexpr K cases[] = {{1, 32, ElementType::q4_0},    {3, 96, ElementType::q4_1},
                                {2, 4128, ElementType::q5_0},  {5, 320, ElementType::q5_1},
                                {2, 70016, ElementType::q8_0}, {3, 2304, ElementType::q6_k},
                                {2, 288, ElementType::q6_k}};
};

}  // namespace ptxgen::inline v0
