// src/emulator/matrix/warpgroup.cpp - matrices of wgmma in shared memory, and their product
#include "emulator/matrix/warpgroup.hpp"

#include <algorithm>
#include <limits>

#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Type;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kRowsOfCore = 8;
constexpr u32 kPatternRow = 128;  ///< bytes after which the xor of the swizzle changes
constexpr u64 kReserved =
    ~(u64{0x3fff} | u64{0x3fff} << 16 | u64{0x3fff} << 32 | u64{7} << 49 | u64{3} << 62);

u32 decoded(u64 bits, unsigned first) { return static_cast<u32>(bits >> first & 0x3fff) << 4; }

/// Bits 4 and up are changed by bits 7 and up, counted from the start of the pattern.
u32 swizzled(const MatrixDescriptor& at, u32 address) {
  if (at.swizzle_bytes == 0) return address;
  const u32 mask = at.swizzle_bytes / kPieceBytes - 1;
  const u32 phase = (address / kPatternRow - at.base_offset) & mask;
  return address ^ phase * kPieceBytes;
}

/// Elements along the contiguous direction of a piece.
unsigned per_piece(const MatrixView& view) { return kPieceBytes / view.element_bytes; }

std::string name_of(u32 swizzle_bytes) {
  return swizzle_bytes == 0 ? "no swizzle" : format_text("the {}-byte swizzle", swizzle_bytes);
}

/// The pattern of the swizzle repeats after so many bytes.
u32 pattern_bytes(u32 swizzle_bytes) { return swizzle_bytes * kRowsOfCore; }

DescriptorFault check_start(const MatrixDescriptor& at, const MatrixView& view) {
  if (at.swizzle_bytes == 0) {
    if (at.base_offset == 0) return {};
    return {format_text("the base offset is {}, but without swizzle there is no pattern that it "
                        "could shift",
                        at.base_offset),
            "leave bits 49 to 51 zero"};
  }
  const u32 pattern = pattern_bytes(at.swizzle_bytes);
  const u32 row = at.start % pattern / kPatternRow;
  if (row != at.base_offset) {
    return {format_text("the matrix starts at {}, which is row {} of the pattern of {} that "
                        "repeats every {} bytes, but the base offset is {}",
                        at.start, row, name_of(at.swizzle_bytes), pattern, at.base_offset),
            format_text("align the shared array to {} bytes (.align {}), or set the base offset "
                        "to the start address / 128 modulo 8",
                        pattern, pattern)};
  }
  const u32 along = at.start % at.swizzle_bytes;
  const u32 used = view.transposed ? std::min(view.rows * view.element_bytes, at.swizzle_bytes)
                                   : kWarpgroupDepthBytes;
  if (along + used <= at.swizzle_bytes) return {};
  return {format_text("the matrix starts {} bytes into a row of {} bytes of {}, so that its {} "
                      "bytes along {} are not in one row",
                      along, at.swizzle_bytes, name_of(at.swizzle_bytes), used,
                      view.transposed ? "m or n" : "k"),
          "advance the start address by 32 bytes (encoded 2) for each step of k within a row, and "
          "by whole patterns between rows"};
}

/// Two pieces that are the same memory. `first` and `second`: their numbers in `pieces`.
bool find_twice(const std::vector<u32>& pieces, std::size_t& first, std::size_t& second) {
  std::vector<std::pair<u32, std::size_t>> sorted;
  sorted.reserve(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) sorted.emplace_back(pieces[i], i);
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].first != sorted[i - 1].first) continue;
    first = sorted[i - 1].second;
    second = sorted[i].second;
    return true;
  }
  return false;
}

/// "element (8, 0)" of a piece.
std::string element_text(const MatrixView& view, std::size_t piece) {
  if (!view.transposed) {
    return format_text("row {}, k {}", piece / 2, piece % 2 * per_piece(view));
  }
  const std::size_t along = view.rows / per_piece(view);
  return format_text("row {}, k {}", piece % along * per_piece(view), piece / along);
}

/// The offsets that a packed matrix has.
std::string packed_text(const MatrixDescriptor& at, const MatrixView& view) {
  if (!view.transposed) {
    if (at.swizzle_bytes == 0) {
      return "without swizzle, packed core matrices have 128 bytes each: a leading offset of 128 "
             "and a stride offset of 256 (encoded 8 and 16)";
    }
    return format_text(
        "with {}, the stride offset of packed rows is 8 * {} = {} bytes (encoded {})",
        name_of(at.swizzle_bytes), at.swizzle_bytes, pattern_bytes(at.swizzle_bytes),
        pattern_bytes(at.swizzle_bytes) / 16);
  }
  if (at.swizzle_bytes == 0) {
    return "for a transposed matrix without swizzle, the stride offset leads to the next 8 "
           "elements "
           "along m or n and the leading offset to the next 8 rows of k";
  }
  return format_text(
      "for a transposed matrix with {}, the leading offset leads to the next {} "
      "elements along m or n and the stride offset to the next 8 rows of k "
      "(packed: {} bytes)",
      name_of(at.swizzle_bytes), at.swizzle_bytes / 2, pattern_bytes(at.swizzle_bytes));
}

bool is_integer(Type type) { return type == Type::u8 || type == Type::s8; }

std::int32_t integer(Type type, u32 bits) {
  return type == Type::s8 ? static_cast<std::int8_t>(bits) : static_cast<std::int32_t>(bits & 0xff);
}

// As WarpgroupProduct::add.
void integer_product(const WarpgroupDetail& detail, std::span<const u32> a, std::span<const u32> b,
                     std::span<u32> d) {
  constexpr unsigned kDepth = kWarpgroupDepthBytes;
  for (std::size_t column = 0; column < detail.columns; ++column) {
    for (std::size_t row = 0; row < kWarpRows; ++row) {
      u32& out = d[column * kWarpRows + row];
      std::int64_t sum = static_cast<std::int32_t>(out);
      for (std::size_t i = 0; i < kDepth; ++i) {
        sum += integer(detail.a_type, a[i * kWarpRows + row]) *
               integer(detail.b_type, b[column * kDepth + i]);
      }
      if (detail.saturate) {
        sum = std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max());
      }
      out = static_cast<u32>(sum);
    }
  }
}

void negate(Type type, std::span<u32> elements) {
  const u32 sign = u32{1} << (element_bytes(type) * 8 - 1);
  for (u32& bits : elements) bits ^= sign;
}

}  // namespace

MatrixDescriptor MatrixDescriptor::unpacked(u64 bits) noexcept {
  constexpr u32 kSwizzles[] = {0, 128, 64, 32};
  MatrixDescriptor result;
  result.start = decoded(bits, 0);
  result.leading = decoded(bits, 16);
  result.stride = decoded(bits, 32);
  result.base_offset = static_cast<u32>(bits >> 49 & 7);
  result.swizzle_bytes = kSwizzles[bits >> 62];
  result.reserved = bits & kReserved;
  return result;
}

u32 piece_of(const MatrixDescriptor& at, const MatrixView& view, unsigned row,
             unsigned depth) noexcept {
  const u32 width = at.swizzle_bytes;
  if (!view.transposed) {
    const u32 piece = depth / per_piece(view);
    if (width == 0) {
      return at.start + row % kRowsOfCore * kPieceBytes + row / kRowsOfCore * at.stride +
             piece * at.leading;
    }
    return swizzled(at, at.start + row % kRowsOfCore * width + row / kRowsOfCore * at.stride +
                            piece * kPieceBytes);
  }
  const u32 piece = row / per_piece(view);
  if (width == 0) {
    return at.start + depth % kRowsOfCore * kPieceBytes + depth / kRowsOfCore * at.leading +
           piece * at.stride;
  }
  const u32 pieces = width / kPieceBytes;
  return swizzled(at, at.start + piece % pieces * kPieceBytes + piece / pieces * at.leading +
                          depth % kRowsOfCore * width + depth / kRowsOfCore * at.stride);
}

void pieces_of(const MatrixDescriptor& at, const MatrixView& view, std::vector<u32>& out) {
  const unsigned step = per_piece(view);
  if (!view.transposed) {
    for (unsigned row = 0; row < view.rows; ++row) {
      for (unsigned depth = 0; depth < view.depth; depth += step) {
        out.push_back(piece_of(at, view, row, depth));
      }
    }
    return;
  }
  for (unsigned depth = 0; depth < view.depth; ++depth) {
    for (unsigned row = 0; row < view.rows; row += step) {
      out.push_back(piece_of(at, view, row, depth));
    }
  }
}

DescriptorFault check_descriptor(u64 bits, const MatrixView& view, u32 shared_bytes) {
  const MatrixDescriptor at = MatrixDescriptor::unpacked(bits);
  if (at.reserved != 0) {
    return {format_text("bits {:#x} are set, which belong to no field", at.reserved),
            "each of start address, leading and stride byte offset is (bytes & 0x3ffff) >> 4, at "
            "bits 0, 16 and 32"};
  }
  if (DescriptorFault fault = check_start(at, view); fault.present()) return fault;
  std::vector<u32> pieces;
  pieces_of(at, view, pieces);
  const auto last = std::ranges::max_element(pieces);
  if (*last + kPieceBytes > shared_bytes) {
    const auto piece = static_cast<std::size_t>(last - pieces.begin());
    const bool unshifted = (bits & 0x3fff) < shared_bytes && at.start >= shared_bytes;
    return {format_text("{} of the matrix is at offset {:#x}, but the block has {} bytes of shared "
                        "memory (start {:#x}, leading offset {}, stride offset {}, {})",
                        element_text(view, piece), *last, shared_bytes, at.start, at.leading,
                        at.stride, name_of(at.swizzle_bytes)),
            unshifted ? "the start address looks like bytes: encode it as (bytes & 0x3ffff) >> 4"
                      : packed_text(at, view)};
  }
  std::size_t first = 0;
  std::size_t second = 0;
  if (!find_twice(pieces, first, second)) return {};
  return {format_text("{} and {} of the matrix are the same memory (offset {:#x}; leading offset "
                      "{}, stride offset {}, {})",
                      element_text(view, first), element_text(view, second), pieces[first],
                      at.leading, at.stride, name_of(at.swizzle_bytes)),
          packed_text(at, view)};
}

WarpgroupProduct::WarpgroupProduct(const WarpgroupDetail& detail, std::span<u32> b)
    : detail_(detail), b_(b) {
  if (is_integer(detail.a_type)) return;
  product_.core = warpgroup_core();
  product_.a = detail.a_type;
  product_.b = detail.b_type;
  product_.d = detail.d_type;
  product_.depth = warpgroup_depth(detail.a_type);
  if (detail.negate_b) negate(detail.b_type, b);
  storage_a_.resize(2 * std::size_t{product_.depth} * kWarpRows);
  storage_b_.resize(2 * b.size());
  decoded_b_ = decode_b(product_, b, storage_b_);
}

void WarpgroupProduct::add(std::span<u32> a, std::span<u32> d) {
  if (is_integer(detail_.a_type)) return integer_product(detail_, a, b_, d);
  if (detail_.negate_a) negate(detail_.a_type, a);
  multiply_add(product_, decode_a(product_, a, storage_a_), decoded_b_, d);
}

}  // namespace ptxgen::inline v0::emulator
