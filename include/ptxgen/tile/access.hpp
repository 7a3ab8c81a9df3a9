// ptxgen/tile/access.hpp - vector widths and bank conflicts of tiles
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace ptxgen::inline v0::tile {

/// What is known of the addresses of a tile's rows.
struct RowFacts {
  std::uint32_t element_bytes = 4;
  std::uint64_t base_alignment = 1;  ///< of the view's first element, bytes
  bool dense = false;              ///< neighbours in the fastest tile dim are neighbours in memory
  std::uint64_t tile = 1;          ///< elements of the tile along that dim
  std::uint64_t size_divisor = 1;  ///< divides the tensor's size along that dim
  std::uint64_t stride_divisor = 0;  ///< divides all other strides, elements; 0: there are none
};

/// The most elements that one access may move: a power of two, 16 bytes at most. Every vector is
/// aligned, and is inside the tensor or outside of it.
[[nodiscard]] std::uint32_t vector_elements(const RowFacts& row) noexcept;

/// Where the elements of a tile [rows x columns] are in shared memory: rows of `pitch` elements, or
/// in each row groups of `group` elements exchanged by `xor` with the row number.
struct Placement {
  std::uint32_t columns = 1;
  std::uint32_t pitch = 1;
  std::uint32_t group = 1;
  std::uint32_t mask = 0;  ///< 0: not exchanged; else a power of two minus 1

  [[nodiscard]] constexpr std::uint32_t position(std::uint32_t row,
                                                 std::uint32_t column) const noexcept {
    return row * pitch + ((column / group) ^ (row & mask)) * group + column % group;
  }
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// One access of a warp to the tile: the first element of each lane, and how many it moves.
struct WarpAccess {
  struct Element {
    std::uint32_t row = 0, column = 0;
  };
  std::array<Element, 32> lanes{};
  std::uint32_t elements = 1;
  std::uint64_t times = 1;  ///< how often the access is executed, as a weight
};

/// Wavefronts of the access as hardware and the emulator count them: of up to 4 bytes a lane the
/// distinct words in the fullest of 32 banks, of 8 bytes the sum over half warps, of 16 bytes over
/// quarter warps.
[[nodiscard]] std::uint64_t wavefronts(const Placement& placement, const WarpAccess& access,
                                       std::uint32_t element_bytes);

/// A placement with the reason for it.
struct PlacementChoice {
  Placement placement;
  std::uint64_t bytes = 0;
  std::uint64_t wavefronts = 0;        ///< of all accesses
  std::uint64_t plain_wavefronts = 0;  ///< in rows without gaps
  /// "tile [32 x 32] of 4-byte elements: rows of 33, 4224 bytes, 64 wavefronts (plain rows: 1056)"
  std::string text;
};

/// The placement with the fewest wavefronts within `max_bytes`; among equals longer rows, whose
/// addresses need no `xor`, then the one with the fewest bytes. Every vector of the accesses stays
/// in one piece and aligned.
[[nodiscard]] PlacementChoice choose_placement(std::uint32_t rows, std::uint32_t columns,
                                               std::uint32_t element_bytes,
                                               std::span<const WarpAccess> accesses,
                                               std::uint64_t max_bytes = UINT64_MAX);

}  // namespace ptxgen::inline v0::tile
