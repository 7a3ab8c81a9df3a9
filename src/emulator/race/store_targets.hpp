// src/emulator/race/store_targets.hpp - what memory a kernel's text shows it to write
#pragma once

#include <cstdint>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

/// Where the addresses of a kernel's writes to global memory come from. A prediction, for the race
/// check's choice of what to watch: 64-bit values are followed through registers, the stack, shared
/// memory and calls regardless of order, but not through products and shifts (indices) nor in
/// halves, so that it may be too little as well as too much.
struct StoreTargets {
  /// Bits 0..58: by 8-byte words of the parameter block; 59: any later word; then:
  static constexpr std::uint64_t kLaterWords = std::uint64_t{1} << 59;
  static constexpr std::uint64_t kVariables = std::uint64_t{1} << 60;  ///< `.global` ones
  static constexpr std::uint64_t kLoaded = std::uint64_t{1} << 61;     ///< from global memory
  std::uint64_t origins = 0;
  bool heap = false;  ///< the kernel calls malloc or free
};

/// What launches of a kernel leave for later ones.
struct RaceMemo {
  StoreTargets targets;
  bool unwatched = false;  ///< it has written memory that was not predicted
  bool raced = false;      ///< several workers have met a race, and had to begin anew
};

[[nodiscard]] StoreTargets predict_stores(const Image& image, std::uint32_t kernel);

}  // namespace ptxgen::inline v0::emulator
