// src/emulator/memory/mbarrier.hpp - the bits of an mbarrier object
#pragma once

#include <cstdint>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// The 64 bits of an mbarrier object, whose layout PTX does not specify. From the lowest bit: 20
/// bits pending arrivals of the phase; 20 bits expected arrivals of each phase; 21 bits pending
/// bytes of the phase, two's complement; 1 bit parity of the phase; 1 bit always set, which other
/// memory rarely has; 1 bit clear. The state that an arrival returns is the object before the
/// arrival.
struct MbarrierObject {
  std::uint32_t pending = 0;
  std::uint32_t expected = 0;
  std::int32_t bytes = 0;
  bool parity = false;
  bool valid = false;

  static constexpr std::uint64_t kCount = (1u << 20) - 1;
  static constexpr std::uint64_t kBytes = (1u << 21) - 1;

  [[nodiscard]] static MbarrierObject unpacked(std::uint64_t word) noexcept {
    MbarrierObject object;
    object.pending = static_cast<std::uint32_t>(word & kCount);
    object.expected = static_cast<std::uint32_t>(word >> 20 & kCount);
    const auto bytes = static_cast<std::int32_t>(word >> 40 & kBytes);
    object.bytes = bytes >= 1 << 20 ? bytes - (1 << 21) : bytes;
    object.parity = (word >> 61 & 1u) != 0;
    object.valid = (word >> 62) == 1;
    return object;
  }
  [[nodiscard]] std::uint64_t packed() const noexcept {
    return (pending & kCount) | (expected & kCount) << 20 |
           (static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes)) & kBytes) << 40 |
           std::uint64_t{parity} << 61 | std::uint64_t{1} << 62;
  }
  /// Ends the phase if no arrivals and no bytes are pending.
  void settle() noexcept {
    if (pending != 0 || bytes != 0) return;
    parity = !parity;
    pending = expected;
  }
  void arrive(std::uint32_t count) noexcept {
    // More arrivals than pending are undefined; the emulator ignores the excess.
    pending -= count < pending ? count : pending;
    settle();
  }
};

/// The synchronisation object of a phase for the race checks. Each parity has its own: an early
/// arrival for the next phase must not count for the current one.
[[nodiscard]] constexpr std::uint64_t phase_object(std::uint64_t offset, bool parity) noexcept {
  return 2 * offset + (parity ? 1 : 0);
}

/// All bytes that the phase expects.
inline constexpr std::uint32_t kAllBytes = 0xffffffffu;
/// Completes `bytes` of a copy at the mbarrier at `offset` of the block's shared memory. False if
/// there is no valid object.
bool complete_bytes(Cta& owner, std::uint64_t offset, std::uint32_t bytes);

}  // namespace ptxgen::inline v0::emulator
