// src/kernels/attention/decode_layout.hpp - how a block's lanes share positions and heads
#pragma once

#include "ptxgen/kernels/attention/decode.hpp"

namespace ptxgen::inline v0::attention {

inline constexpr std::uint32_t kWarps = AttentionDecode::kThreads / 32;

/// A warp is divided into teams of `lanes` lanes. In a step each team handles `positions` positions
/// at once; a lane has `units` units of `unit` values of their keys and values, the same ones
/// of the output.
struct DecodeLayout {
  std::uint32_t unit = 0;           ///< 4 or 8 values, loaded together
  std::uint32_t lanes = 0;          ///< of a team: a power of two
  std::uint32_t units = 0;          ///< of a lane; the last may be beyond the head
  std::uint32_t positions = 0;      ///< of a team in a step
  bool query_in_registers = false;  ///< otherwise in shared memory

  [[nodiscard]] constexpr std::uint32_t teams() const noexcept { return 32 / lanes; }
  /// Positions of a block in a step.
  [[nodiscard]] constexpr std::uint32_t tile() const noexcept {
    return kWarps * teams() * positions;
  }
  /// Values of a head that a lane has.
  [[nodiscard]] constexpr std::uint32_t values() const noexcept { return unit * units; }
  /// Groups of four values in a unit: each has its own plane of a head in shared memory, so that
  /// lanes with consecutive units access consecutive 16 bytes.
  [[nodiscard]] constexpr std::uint32_t planes() const noexcept { return unit / 4; }
  /// Floats from a plane to the next: 16 more than a multiple of 32, so that lanes on consecutive
  /// groups of two planes have banks of their own.
  [[nodiscard]] constexpr std::uint32_t plane_floats() const noexcept {
    const std::uint32_t floats = lanes * units * 4;
    return planes() == 1 ? floats : (floats + 31) / 32 * 32 + 16;
  }
  [[nodiscard]] constexpr std::uint32_t head_floats() const noexcept {
    return planes() * plane_floats();
  }
};

/// Whether there is a layout for the spec.
[[nodiscard]] constexpr bool fits(const AttentionDecode& spec) noexcept {
  return spec.block_heads() <= (spec.head_size <= 128 ? 8 : 6) &&
         (spec.cache != ElementType::q8_0 || spec.head_size % 32 == 0);
}
/// The layout with the fewest instructions per position whose registers fit.
[[nodiscard]] DecodeLayout decode_layout(const AttentionDecode& spec) noexcept;
/// Bytes of the tickets, one for each K/V head of a row, before the parts in the workspace.
[[nodiscard]] constexpr std::uint64_t ticket_bytes(std::uint64_t strips) noexcept {
  return (strips * 4 + 31) / 32 * 32;
}
/// Floats of a block's part: the unnormalised outputs, then the maximum and the sum of each head.
[[nodiscard]] constexpr std::uint32_t part_floats(const AttentionDecode& spec) noexcept {
  return (spec.block_heads() * (spec.head_size + 2) + 3) / 4 * 4;
}

}  // namespace ptxgen::inline v0::attention
