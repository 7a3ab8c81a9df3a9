// src/analysis/lane_bits.hpp - bits in which the lanes of a warp differ
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "ptxgen/analysis/uniformity.hpp"

namespace ptxgen::inline v0::analysis {

/// Of an integer or predicate, as the lanes of a warp hold it when they are at the same place. With
/// it `%tid.x / 32` and `%tid.x < 64` are known to agree in a warp, though `%tid.x` does not.
struct LaneBits {
  static constexpr std::uint8_t kAll = 64;
  std::uint8_t differing = 0;  ///< lanes agree in all bits from this one on; 0: in the value
  std::uint8_t zeros = kAll;   ///< so many of the lowest bits are 0 in every lane, at least

  /// What both keep to.
  [[nodiscard]] constexpr LaneBits with(LaneBits other) const noexcept {
    return {std::max(differing, other.differing), std::min(zeros, other.zeros)};
  }
  friend bool operator==(const LaneBits&, const LaneBits&) = default;
};

/// Nothing known but how far it agrees.
[[nodiscard]] constexpr LaneBits lane_bits(Agreement agreement) noexcept {
  return {agreement >= Agreement::Warp ? std::uint8_t{0} : LaneBits::kAll, 0};
}
[[nodiscard]] LaneBits lane_bits(std::uint64_t constant) noexcept;
/// Of a special register in a block of that shape, zeros if it is not known.
[[nodiscard]] LaneBits lane_bits(ptx::SpecialRegister reg, unsigned component,
                                 const std::array<std::uint32_t, 3>& block) noexcept;

/// A source: what is known of its bits, and its value if it is a constant.
struct LaneSource {
  LaneBits bits;
  bool constant = false;
  std::uint64_t value = 0;
};
/// What an instruction that computes its result from its sources alone makes of them; of a
/// comparison its predicates.
[[nodiscard]] LaneBits lane_bits(const ptx::Instruction& instruction,
                                 std::span<const LaneSource> sources) noexcept;

}  // namespace ptxgen::inline v0::analysis
