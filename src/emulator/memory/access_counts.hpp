// src/emulator/memory/access_counts.hpp - sectors and wavefronts of one warp-level access
#pragma once

#include <cstdint>
#include <span>

namespace ptxgen::inline v0::emulator {

/// 32-byte sectors of global or local memory.
struct SectorCount {
  unsigned sectors = 0;  ///< distinct accessed sectors
  unsigned ideal = 0;    ///< ceil(distinct bytes / 32)
  friend bool operator==(const SectorCount&, const SectorCount&) = default;
};

/// The lanes of `mask` each access `bytes` (1 to 32) bytes at `addresses[lane]`, aligned or not.
[[nodiscard]] SectorCount count_sectors(const std::uint64_t addresses[32], std::uint32_t mask,
                                        unsigned bytes) noexcept;

/// A range of bytes.
struct ByteSpan {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};
/// The same for any ranges; sorts `spans`.
[[nodiscard]] SectorCount count_sectors(std::span<ByteSpan> spans) noexcept;

/// Local memory is interleaved by 4 bytes: byte `o` of a lane is at o / 4 * 128 + lane * 4 + o % 4.
/// `offsets[lane]`: in the thread's local memory.
[[nodiscard]] SectorCount count_local_sectors(const std::uint64_t offsets[32], std::uint32_t mask,
                                              unsigned bytes) noexcept;

/// Wavefronts of shared memory, which has 32 banks of 4-byte words.
struct WavefrontCount {
  unsigned wavefronts = 0;
  unsigned ideal = 0;  ///< phases with an active lane
  friend bool operator==(const WavefrontCount&, const WavefrontCount&) = default;
};

/// Up to 4 bytes a lane: the maximum over banks of the distinct words in a bank. 8 bytes: the sum
/// for lanes 0-15 and 16-31. 16 bytes: the sum for groups of eight lanes. A misaligned access uses
/// every word of which it has a byte.
[[nodiscard]] WavefrontCount count_wavefronts(const std::uint64_t offsets[32], std::uint32_t mask,
                                              unsigned bytes) noexcept;

}  // namespace ptxgen::inline v0::emulator
