// src/emulator/memory/barrier.hpp - the bits of an mbarrier object
#pragma once

#include <cstdint>

#include "emulator/machine/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// An mbarrier object is 64 bits that PTX leaves to the implementation. Ours, from the lowest bit:
/// 20 bits arrivals that the phase still waits for; 20 bits arrivals that each phase waits for;
/// 21 bits bytes that the phase still waits for, two's complement; 1 bit parity of the phase;
/// 1 bit always set, so that memory which is no such object is told apart; 1 bit clear.
/// The state that an arrival returns is the object as it was before.
struct MbarrierObject {
  std::uint32_t pending = 0;
  std::uint32_t expected = 0;
  std::int32_t bytes = 0;
  bool parity = false;
  bool valid = false;

  static constexpr std::uint64_t kCount = (1u << 20) - 1;
  static constexpr std::uint64_t kBytes = (1u << 21) - 1;

  [[nodiscard]] static MbarrierObject unpacked(std::uint64_t word) noexcept {
    MbarrierObject made;
    made.pending = static_cast<std::uint32_t>(word & kCount);
    made.expected = static_cast<std::uint32_t>(word >> 20 & kCount);
    const auto bytes = static_cast<std::int32_t>(word >> 40 & kBytes);
    made.bytes = bytes >= 1 << 20 ? bytes - (1 << 21) : bytes;
    made.parity = (word >> 61 & 1u) != 0;
    made.valid = (word >> 62) == 1;
    return made;
  }
  [[nodiscard]] std::uint64_t packed() const noexcept {
    return (pending & kCount) | (expected & kCount) << 20 |
           (static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes)) & kBytes) << 40 |
           std::uint64_t{parity} << 61 | std::uint64_t{1} << 62;
  }
  /// The phase ends when nothing is waited for any more.
  void settle() noexcept {
    if (pending != 0 || bytes != 0) return;
    parity = !parity;
    pending = expected;
  }
  void arrive(std::uint32_t count) noexcept {
    // More arrivals than the phase has room for are undefined; here the rest is lost.
    pending -= count < pending ? count : pending;
    settle();
  }
};

/// What the race checks are told: each phase is an object of its own, so that an early arrival for
/// the next one is not mistaken for one of the phase that was waited for.
[[nodiscard]] constexpr std::uint64_t phase_object(std::uint64_t offset, bool parity) noexcept {
  return 2 * offset + (parity ? 1 : 0);
}

/// A copy has brought `bytes`: the mbarrier at `offset` of the block's shared memory waits for so
/// many less. False, and nothing done, where there is no object.
bool complete_bytes(Cta& owner, std::uint64_t offset, std::uint32_t bytes);

}  // namespace ptxgen::inline v0::emulator
