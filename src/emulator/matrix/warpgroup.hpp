// src/emulator/matrix/warpgroup.hpp - matrices of wgmma in shared memory, and their product
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/matrix/tensor_product.hpp"
#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

inline constexpr unsigned kWarpgroupRows = 64;        ///< of a and d
inline constexpr unsigned kWarpgroupWarps = 4;        ///< each has 16 of the rows
inline constexpr unsigned kWarpgroupDepthBytes = 32;  ///< of a row of a: k elements
inline constexpr unsigned kPieceBytes = 16;  ///< of a row of a core matrix, which has 8 of them

/// The descriptor of a matrix in shared memory (PTX ISA, "Matrix Descriptor Format" of wgmma).
/// Offsets are in bytes; the field holds them without the 4 lowest of 18 bits.
struct MatrixDescriptor {
  std::uint32_t start = 0;          ///< bits 0-13
  std::uint32_t leading = 0;        ///< bits 16-29
  std::uint32_t stride = 0;         ///< bits 32-45
  std::uint32_t base_offset = 0;    ///< bits 49-51
  std::uint32_t swizzle_bytes = 0;  ///< bits 62-63: 0, or the bytes of a swizzled row: 128, 64, 32
  std::uint64_t reserved = 0;       ///< the other bits

  [[nodiscard]] static MatrixDescriptor unpacked(std::uint64_t bits) noexcept;
};

/// The rows (along m or n) of a matrix that has 32 bytes along k, or, transposed, k rows of them.
struct MatrixView {
  unsigned rows = 0;   ///< along m or n
  unsigned depth = 0;  ///< k
  unsigned element_bytes = 2;
  bool transposed = false;  ///< contiguous along m or n; elements of 2 bytes only
};

/// Offset in shared memory of the 16 bytes that hold an element, by the canonical layouts: without
/// `transposed`, core matrices are 8 rows of 16 bytes along k. Without swizzle they are 128 bytes
/// in one piece, `leading` apart along k and `stride` along m or n; with swizzle, rows are
/// `swizzle_bytes` apart, and groups of 8 rows `stride`. Transposed, core matrices are 8 rows of k
/// of 8 elements along m or n: without swizzle `stride` apart along m or n and `leading` along k;
/// with swizzle, `swizzle_bytes` of a row are together, `leading` is the distance to the next ones
/// along m or n, `stride` that of the next 8 rows of k.
[[nodiscard]] std::uint32_t piece_of(const MatrixDescriptor& descriptor, const MatrixView& view,
                                     unsigned row, unsigned depth) noexcept;

/// The offsets of all pieces of a matrix, in the order of rows and then of k (transposed: of k and
/// then of rows).
void pieces_of(const MatrixDescriptor& descriptor, const MatrixView& view,
               std::vector<std::uint32_t>& out);

/// What is wrong with a descriptor, and what was meant; empty if nothing is.
struct DescriptorFault {
  std::string message;
  std::string remedy;
  [[nodiscard]] bool present() const noexcept { return !message.empty(); }
};
[[nodiscard]] DescriptorFault check_descriptor(std::uint64_t bits, const MatrixView& view,
                                               std::uint32_t shared_bytes);

/// Elements of k along the depth, and bytes of an element.
[[nodiscard]] constexpr unsigned element_bytes(ptx::Type type) {
  return type == ptx::Type::tf32 ? 4 : type == ptx::Type::f16 || type == ptx::Type::bf16 ? 2 : 1;
}
[[nodiscard]] constexpr unsigned warpgroup_depth(ptx::Type type) {
  return kWarpgroupDepthBytes / element_bytes(type);
}

/// Rows of a and d that a warp has.
inline constexpr unsigned kWarpRows = kWarpgroupRows / kWarpgroupWarps;
static_assert(kWarpRows == kTensorRows);

/// The product of a wgmma, warp by warp. Rounds as `warpgroup_core`.
class WarpgroupProduct {
 public:
  /// b: bits of element (k, column) are [column * depth + k]. Keeps references to both.
  /// Elements that the instruction negates are negated in place, here and in `add`.
  WarpgroupProduct(const WarpgroupDetail& detail, std::span<std::uint32_t> b);
  /// a of a warp: element (row, k) is [k * kWarpRows + row]; d: element (row, column) is
  /// [column * kWarpRows + row], c before and d afterwards.
  void add(std::span<std::uint32_t> a, std::span<std::uint32_t> d);

 private:
  const WarpgroupDetail& detail_;
  TensorProduct product_;
  std::span<const std::uint32_t> b_;
  TensorOperand decoded_b_;
  std::vector<std::int32_t> storage_a_;
  std::vector<std::int32_t> storage_b_;
};

/// Row and column, in the 16 rows of a warp, of element `index` of a lane's d, as of mma.m16n8:
/// columns go on in blocks of 8.
[[nodiscard]] constexpr unsigned row_of_d(unsigned lane, unsigned index) {
  return lane / 4 + index / 2 % 2 * 8;
}
[[nodiscard]] constexpr unsigned column_of_d(unsigned lane, unsigned index) {
  return index / 4 * 8 + lane % 4 * 2 + index % 2;
}
/// The same of the first element of a lane's register `index` (0 to 3) of a; a register has
/// 4 / element_bytes of them.
[[nodiscard]] constexpr unsigned row_of_a(unsigned lane, unsigned index) {
  return lane / 4 + index % 2 * 8;
}
[[nodiscard]] constexpr unsigned column_of_a(unsigned lane, unsigned index, unsigned per_register) {
  return (lane % 4 + index / 2 * 4) * per_register;
}

}  // namespace ptxgen::inline v0::emulator
