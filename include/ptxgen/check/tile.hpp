// ptxgen/check/tile.hpp - limits of the tiles of a kernel
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/tile/shape.hpp"

namespace ptxgen::inline v0::gates {

using tile::bytes;
using tile::elements;
using tile::kDynamicDim;
using tile::Tile;
using tile::TileCaps;
using tile::TileLevel;
using tile::TileStorage;
using tile::to_string;
using tile::validate;

/// Resources of a kernel's tiles and block. Zero means unknown; it is not checked.
struct KernelTiles {
  std::string_view kernel{};
  std::vector<Tile> tiles{};
  std::array<std::uint64_t, 3> block{0, 0, 0};  ///< threads in x, y, z
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint64_t registers_per_thread = 0;  ///< 32-bit
};

/// Checks the tiles' shapes, and the kernel's resources against the target's limits: threads of a
/// block, registers, static and total shared bytes, shared tiles within the shared bytes.
[[nodiscard]] std::vector<Finding> validate(const KernelTiles& kernel, const ptx::Target& target,
                                            const TileCaps& caps = {});

/// Throws `Error` (Stage::Build, "tile-limits") with the first finding and all findings in its log.
void require_valid(const KernelTiles& kernel, const ptx::Target& target, const TileCaps& caps = {});

}  // namespace ptxgen::inline v0::gates
