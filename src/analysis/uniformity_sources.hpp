// src/analysis/uniformity_sources.hpp - uniformity of special registers, loads and results
#pragma once

#include <algorithm>

#include "ptxgen/analysis/uniformity.hpp"

namespace ptxgen::inline v0::analysis {

[[nodiscard]] inline Agreement weaker(Agreement a, Agreement b) noexcept { return std::min(a, b); }

/// The shape of the block that options or `.reqntid` give; zeros if neither does, or if no GPU can
/// launch such a block (`tile-limits` reports it).
[[nodiscard]] std::array<std::uint32_t, 3> block_shape(const ptx::Function& function,
                                                       const UniformityOptions& options) noexcept;

/// Whether a block of any GPU can have that shape.
[[nodiscard]] bool possible_block(const std::array<std::uint32_t, 3>& shape) noexcept;
/// The largest block that is no larger in any direction and that a GPU can launch, x first.
[[nodiscard]] std::array<std::uint32_t, 3> largest_block(
    const std::array<std::uint32_t, 3>& bounds) noexcept;

/// A special register, component 0 for a scalar.
[[nodiscard]] Agreement of_special(ptx::SpecialRegister reg, unsigned component,
                                   const std::array<std::uint32_t, 3>& block) noexcept;

/// The address of a symbol.
[[nodiscard]] Agreement of_symbol(const ptx::Module& module, const ptx::Function& function,
                                  std::uint32_t symbol) noexcept;

/// What an instruction's results are, apart from what it reads.
enum class ResultKind : std::uint8_t {
  Computed,    ///< from its sources alone
  Immutable,   ///< loaded from memory that does not change: as the address
  Loaded,      ///< loaded from memory that may change, the same for equal addresses
  Collective,  ///< one result for the lanes of a warp, given an agreed mask
  BlockWide,   ///< one result for the threads of the block (bar.red)
  Capped,      ///< as Computed, Block at most
  Own,         ///< may differ between lanes
};
[[nodiscard]] ResultKind result_kind(const ptx::Module& module, const ptx::Function& function,
                                     const ptx::Instruction& instruction) noexcept;

[[nodiscard]] bool reads_carry(const ptx::Instruction& instruction) noexcept;
[[nodiscard]] bool writes_carry(const ptx::Instruction& instruction) noexcept;

}  // namespace ptxgen::inline v0::analysis
