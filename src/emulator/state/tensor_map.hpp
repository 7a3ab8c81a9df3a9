// src/emulator/state/tensor_map.hpp - tensor maps of the emulated driver
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::emulator {

inline constexpr std::size_t kTensorMapBytes = 128;
inline constexpr std::uint32_t kMaxTensorRank = 5;
inline constexpr std::uint64_t kTensorMapAlignment = 64;  ///< CUtensorMap of CUDA 12

/// What is wrong with a value or a map, the rule, and the remedy. Empty: nothing.
struct TensorMapFault {
  std::string message;
  std::string rule;
  std::string remedy;
  [[nodiscard]] bool found() const noexcept { return !message.empty(); }
};

/// A tensor in global memory and the box of it that a copy moves, in tiled mode without
/// interleave. Dimension 0 is contiguous. A map that `tensormap.replace` makes from zeros lacks
/// what no instruction has set: the type is none, the rank 0, the stride kNoStride, others 0.
struct TensorMap {
  static constexpr std::uint64_t kNoStride = ~std::uint64_t{0};

  ptx::Type type = ptx::Type::none;  ///< of an element
  bool flush = false;                ///< of f32 and tf32: subnormal values are loaded as zero
  bool fill_nan = false;             ///< elements out of bounds are NaN, else zero
  std::uint32_t rank = 1;
  std::uint32_t swizzle_bytes = 0;  ///< 0, 32, 64, 128
  std::uint64_t address = 0;
  std::array<std::uint64_t, kMaxTensorRank> dims{};  ///< elements
  /// Bytes; [0] is the element.
  std::array<std::uint64_t, kMaxTensorRank> strides{kNoStride, kNoStride, kNoStride, kNoStride,
                                                    kNoStride};
  std::array<std::uint32_t, kMaxTensorRank> box{};    ///< elements
  std::array<std::uint32_t, kMaxTensorRank> steps{};  ///< element strides

  [[nodiscard]] std::uint32_t element_bytes() const noexcept { return ptx::bytes(type); }
  /// Elements of the box along a dimension.
  [[nodiscard]] std::uint32_t count(std::uint32_t dimension) const noexcept {
    return (box[dimension] + steps[dimension] - 1) / steps[dimension];
  }
  /// Of the box in shared memory.
  [[nodiscard]] std::uint32_t box_bytes() const noexcept;
  /// Alignment of the box in shared memory: that of the repeating pattern of the swizzle, which
  /// the shared address gives, and 128 (PTX ISA, cp.async.bulk.tensor).
  [[nodiscard]] std::uint32_t alignment() const noexcept { return 128; }
  /// Where byte `offset` of the box is, `start` being its (aligned) shared offset.
  [[nodiscard]] std::uint32_t place(std::uint32_t start, std::uint32_t offset) const noexcept;

  void pack(std::span<std::byte, kTensorMapBytes> out) const noexcept;
  /// Nothing if the bytes are no tensor map that `pack` made.
  [[nodiscard]] static std::optional<TensorMap> unpacked(
      std::span<const std::byte, kTensorMapBytes> bytes) noexcept;
  /// What a map of zeros is, which `replace` may complete.
  [[nodiscard]] static TensorMap blank() noexcept;
  /// Changes a field as `tensormap.replace` does, `ordinal` as it counts (strides: from dimension 1
  /// on). A value that is never valid changes nothing; values that do not fit each other are found
  /// by `fault`, since a kernel changes one after the other.
  [[nodiscard]] TensorMapFault replace(ptx::Modifier field, std::uint32_t ordinal,
                                       std::uint64_t value);
  /// Why no copy can use the map: a field that was never set, or fields that do not fit.
  [[nodiscard]] TensorMapFault fault() const;
  /// "2D tensor of f16, 64 x 128, box 64 x 8": dimension 0 first.
  [[nodiscard]] std::string text() const;
};

}  // namespace ptxgen::inline v0::emulator
