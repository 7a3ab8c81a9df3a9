// src/kernels/gemv/block_format.hpp - how the lanes of a warp share blocks
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <span>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0::gemv {

/// A step of a warp along a row: the blocks that its lanes decode together. All 32 lanes of a warp
/// have a row, or, where rows are short, 16 lanes one and 16 the next.
///
/// A lane has a *unit* of `unit` consecutive or nearly consecutive weights, in one or two *parts*,
/// each within one block:
///   q4_0, q5_0, q8_0   blocks 2 * lane and 2 * lane + 1
///   q4_1, q5_1         block lane
///   q4_k, q5_k         a quarter, lane % 4, of block lane / 4: 64 consecutive weights
///   q6_k               of blocks lane / 4 * 2 and the next: 16 of each 32 weights of a half
///
/// and where rows are repacked, so that lanes load consecutive 16 bytes of integers:
///   q4_0 to q5_1       block lane
///   q8_0               16 weights, lane % 2, of blocks lane / 2 and lanes / 2 + lane / 2
///   q6_k               of block lane / 4: 16 of each 32 weights of a half
///
/// Units are an odd number of words or of 16 bytes apart, so lanes read them from shared memory
/// without bank conflicts. For q6_k that needs a gap after 16 lanes, hence panels.
///
/// A part has `groups` of weights with one scale each. 16 weights, a *piece*, are multiplied with
/// 16 bytes of each digit of x, which are stored in the order that lanes read them: for each piece
/// of a unit, 16 bytes for every lane.
struct BlockFormat {
  ElementType type;
  std::uint32_t unit;       ///< weights of a lane in a step
  std::uint32_t parts;      ///< of a unit
  std::uint32_t groups;     ///< of a part, with one scale each
  std::uint32_t panels;     ///< of a step
  std::uint32_t panel_gap;  ///< bytes between panels in shared memory
  /// Instructions of a lane for each weight, counted by the emulator, besides those for each digit
  /// of x and copies: decoding, scales.
  double decode;
  std::uint32_t lanes = 32;  ///< of a row
  bool repacked = false;     ///< rows are arrays of the blocks' fields

  [[nodiscard]] constexpr std::uint32_t step_weights() const noexcept { return lanes * unit; }
  [[nodiscard]] constexpr std::uint32_t step_bytes() const noexcept {
    return static_cast<std::uint32_t>(bytes(type, step_weights()));
  }
  [[nodiscard]] constexpr std::uint32_t panel_bytes() const noexcept {
    return step_bytes() / panels;
  }
  /// Of a row's step in shared memory; a multiple of 16.
  [[nodiscard]] constexpr std::uint32_t slot_bytes() const noexcept {
    return panels * (panel_bytes() + panel_gap);
  }
  [[nodiscard]] constexpr std::uint32_t pieces() const noexcept { return unit / 16; }
  [[nodiscard]] constexpr std::uint32_t part_pieces() const noexcept { return pieces() / parts; }
  /// Blocks of a part of a step, whose lanes have consecutive ones: repacked q8_0 has two parts.
  [[nodiscard]] constexpr std::uint32_t part_blocks() const noexcept {
    return step_weights() / info(type).block_values / parts;
  }
  /// Registers for what a lane loads of a repacked unit.
  [[nodiscard]] constexpr std::uint32_t words() const noexcept {
    return type == ElementType::q6_k                                ? 15
           : type == ElementType::q8_0                              ? 10
           : type == ElementType::q5_0 || type == ElementType::q5_1 ? 6
                                                                    : 5;
  }
  [[nodiscard]] constexpr std::uint32_t scales() const noexcept { return parts * groups; }
  /// Elements of x that share a scale of a group.
  [[nodiscard]] constexpr std::uint32_t group_weights() const noexcept { return unit / scales(); }
};

inline constexpr BlockFormat kFormats[] = {
    {ElementType::q4_0, 64, 2, 1, 1, 0, 0.85}, {ElementType::q4_1, 32, 1, 1, 1, 0, 0.92},
    {ElementType::q5_0, 64, 2, 1, 1, 0, 1.65}, {ElementType::q5_1, 32, 1, 1, 1, 0, 1.59},
    {ElementType::q8_0, 64, 2, 1, 1, 0, 0.64}, {ElementType::q4_k, 64, 1, 2, 1, 0, 0.95},
    {ElementType::q5_k, 64, 1, 2, 1, 0, 1.61}, {ElementType::q6_k, 128, 2, 4, 2, 16, 1.78}};

/// Of repacked rows.
inline constexpr BlockFormat kRepackedFormats[] = {
    {ElementType::q4_0, 32, 1, 1, 1, 0, 0.45, 32, true},
    {ElementType::q4_1, 32, 1, 1, 1, 0, 0.45, 32, true},
    {ElementType::q5_0, 32, 1, 1, 1, 0, 1.24, 32, true},
    {ElementType::q5_1, 32, 1, 1, 1, 0, 1.24, 32, true},
    {ElementType::q8_0, 32, 2, 1, 1, 0, 0.40, 32, true},
    {ElementType::q6_k, 64, 1, 4, 1, 0, 1.32, 32, true}};

namespace detail {

template <std::size_t kCount>
constexpr std::array<BlockFormat, kCount> with_half_warps(
    const BlockFormat (&of)[kCount]) noexcept {
  std::array<BlockFormat, kCount> formats{};
  for (std::size_t i = 0; i < formats.size(); ++i) {
    formats[i] = of[i];
    formats[i].lanes = 16;
    formats[i].panels = 1;
  }
  return formats;
}
inline constexpr auto kHalfWarpFormats = with_half_warps(kFormats);
inline constexpr auto kRepackedHalfWarpFormats = with_half_warps(kRepackedFormats);

[[nodiscard]] constexpr const BlockFormat* better_format(std::span<const BlockFormat> warps,
                                                         std::span<const BlockFormat> half_warps,
                                                         ElementType type,
                                                         std::uint32_t k) noexcept {
  for (std::size_t i = 0; i < warps.size(); ++i) {
    if (warps[i].type != type) continue;
    const BlockFormat& half = half_warps[i];
    const auto steps = [&](const BlockFormat& format) {
      return (std::uint64_t{k} + format.step_weights() - 1) / format.step_weights();
    };
    // Of q6_k, scales of a half warp's step are a part of a sector, which each step would request.
    const bool parts_of_sectors = half.repacked && type == ElementType::q6_k && steps(half) > 1;
    return steps(half) < 2 * steps(warps[i]) && !parts_of_sectors ? &half : &warps[i];
  }
  return nullptr;
}

}  // namespace detail

/// For rows of `k` weights: with the lanes that leave fewer idle. Null if GEMV has no such weights.
[[nodiscard]] constexpr const BlockFormat* block_format(ElementType type, std::uint32_t k,
                                                        bool repacked = false) noexcept {
  return repacked
             ? detail::better_format(kRepackedFormats, detail::kRepackedHalfWarpFormats, type, k)
             : detail::better_format(kFormats, detail::kHalfWarpFormats, type, k);
}

/// x as integers. `digits` bytes for each element, the highest one signed: x = scale * integer.
/// One digit: as q8_1 has it. Three: scale is a power of two, so that the largest of 32 elements
/// has 22 binary digits.
///
/// In shared memory a step is divided into regions, one for each group of a unit: for each digit,
/// the 16 bytes of a piece for every lane, then those of the next piece; then the scales of the
/// lanes' groups, then the sums of x over them, f32. So a thread's place is linear in the numbers
/// of its region and lane, which the gate for races can follow.
struct StagedX {
  const BlockFormat& format;
  std::uint32_t digits;

  [[nodiscard]] constexpr std::uint32_t regions() const noexcept { return format.scales(); }
  [[nodiscard]] constexpr std::uint32_t region_pieces() const noexcept {
    return format.pieces() / format.scales();
  }
  /// Of all lanes.
  [[nodiscard]] constexpr std::uint32_t piece_bytes() const noexcept { return format.lanes * 16; }
  [[nodiscard]] constexpr std::uint32_t digit_bytes() const noexcept {
    return region_pieces() * piece_bytes();
  }
  [[nodiscard]] constexpr std::uint32_t scales_at() const noexcept {
    return digits * digit_bytes();
  }
  [[nodiscard]] constexpr std::uint32_t sums_at() const noexcept {
    return scales_at() + format.lanes * 4;
  }
  /// Scales of 16 lanes each, in two regions, are in different banks.
  [[nodiscard]] constexpr std::uint32_t region_bytes() const noexcept {
    return sums_at() + format.lanes * 4 + (format.lanes == 16 ? 64 : 0);
  }
  [[nodiscard]] constexpr std::uint32_t step_bytes() const noexcept {
    return regions() * region_bytes();
  }
};

[[nodiscard]] constexpr StagedX staged_x(const BlockFormat& format, ElementType x) noexcept {
  return {format, x == ElementType::q8_1 ? 1u : 3u};
}

}  // namespace ptxgen::inline v0::gemv
