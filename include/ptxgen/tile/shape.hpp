// ptxgen/tile/shape.hpp - the shapes that tiles may have
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/types.hpp"
#include "ptxgen/tile/dynamic.hpp"

namespace ptxgen::inline v0::tile {

/// The threads that work on a tile together.
enum class TileLevel : std::uint8_t { Grid, Block, Warp };
[[nodiscard]] std::string_view to_string(TileLevel level) noexcept;

/// Where its elements are stored.
enum class TileStorage : std::uint8_t { Global, Shared, Registers };

/// A block of elements with a shape that is known when the kernel is built.
struct Tile {
  std::string_view name{};  ///< for messages: "x"
  TileLevel level = TileLevel::Block;
  ptx::Type element = ptx::Type::f32;
  /// Elements along each dim, the last one varies fastest; no dims for a scalar.
  std::vector<std::int64_t> shape{};
  /// Unused elements after each dim in memory (`[32][33]` is a shape of 32, 32 with a padding of
  /// 0, 1), or empty.
  std::vector<std::int64_t> padding{};
  TileStorage storage = TileStorage::Global;
};

/// Limits of tiles; the defaults are those of the specification.
struct TileCaps {
  std::uint64_t elements = std::uint64_t{1} << 24;   ///< of a tile
  std::array<std::uint64_t, 3> dim{16384, 256, 32};  ///< along one dim, by TileLevel
};

/// Elements of a tile without its padding; UINT64_MAX if the number exceeds 64 bits or a dim is
/// negative or dynamic.
[[nodiscard]] std::uint64_t elements(const Tile& tile) noexcept;
/// Bytes of a tile with its padding; UINT64_MAX likewise.
[[nodiscard]] std::uint64_t bytes(const Tile& tile) noexcept;

/// The rules of a shape: every dim is positive and a power of two, the number of elements is within
/// `caps`, elements of 4 bits fill whole bytes, every dim is within the cap of the level, paddings
/// are not negative. Only the first broken rule is reported, once for each dim that breaks it. Rule
/// `tile-limits`; each message names dim, value, limit, and the nearest legal choice.
[[nodiscard]] std::vector<Finding> validate(const Tile& tile, const TileCaps& caps = {});

/// Throws `Error` (Stage::Build, "tile-limits") with the first finding and all findings in its log.
void require_valid(const Tile& tile, const TileCaps& caps = {});

}  // namespace ptxgen::inline v0::tile
