// src/emulator/memory/request.hpp - a warp-level memory access
#pragma once

#include <bit>
#include <cstdint>

#include "emulator/race/race.hpp"

namespace ptxgen::inline v0::emulator {

/// Largest access of one lane, `.v8.b32` and `.v4.b64`.
inline constexpr unsigned kMaxLaneBytes = 32;

/// A warp-level memory access.
struct AccessRequest {
  ptx::Space space = ptx::Space::Generic;
  const std::uint64_t* addresses = nullptr;  ///< of 32 lanes, as the instruction computes them
  std::uint32_t mask = 0;
  unsigned bytes = 4;  ///< of each lane, 1 to kMaxLaneBytes
  unsigned alignment = 4;
  bool reads = false;
  bool writes = false;
  RaceAccess::Kind kind = RaceAccess::Kind::Read;
  const std::byte* values = nullptr;  ///< see RaceAccess
  std::uint32_t value_stride = 0;
  std::uint64_t ticket = 0;  ///< see RaceAccess
  bool count = true;         ///< count sectors and wavefronts
  bool mark = true;          ///< writes: mark the bytes as written (cp.async: later)
  bool check_written = true;
  /// Loads: the used bytes, a bit each (MemoryDetail::RequiredBytes); 0: all.
  std::uint32_t used = 0;
  /// Bytes up to the last used one.
  [[nodiscard]] unsigned needed() const noexcept {
    return used == 0 ? bytes : static_cast<unsigned>(std::bit_width(used));
  }
};

}  // namespace ptxgen::inline v0::emulator
