// src/emulator/race/store_targets.hpp - predicts the memory that a kernel writes
#pragma once

#include <cstdint>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// The origins of the addresses of a kernel's writes to global memory: a prediction, from which the
/// race check chooses the memory to watch. Follows 64-bit values through registers, the stack,
/// shared memory and calls, in any order, but not through products and shifts (indices) or halves.
/// It may name too little or too much.
struct StoreTargets {
  /// Bits 0..58: by 8-byte words of the parameter block; 59: any later word; then:
  static constexpr std::uint64_t kLaterWords = std::uint64_t{1} << 59;
  static constexpr std::uint64_t kVariables = std::uint64_t{1} << 60;  ///< `.global` ones
  static constexpr std::uint64_t kLoaded = std::uint64_t{1} << 61;     ///< from global memory
  std::uint64_t origins = 0;
  bool heap = false;  ///< the kernel calls malloc or free
};

/// Results of launches of a kernel, for later ones.
struct RaceMemo {
  StoreTargets targets;
  bool unwatched = false;  ///< wrote memory that was not predicted
  bool raced = false;      ///< several workers found a race: a replay was necessary
};

[[nodiscard]] StoreTargets predict_stores(const Image& image, std::uint32_t kernel);

}  // namespace ptxgen::inline v0::emulator
