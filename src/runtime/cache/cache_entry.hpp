// src/runtime/cache/cache_entry.hpp - file format of the disk cache
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

/// Version of the file format. Part of every key, so versions can share a folder.
inline constexpr std::uint32_t kCacheFormat = 1;

/// Fixed part, numbers little-endian: magic (8 bytes), format (u32), 0 (u32), sizes of key,
/// metadata and image (3 x u64), 0 (u64); then image, metadata and key; then XXH3-128 of all before
/// (high u64, low u64). The image is 16-byte aligned for loaders of machine code.
inline constexpr std::size_t kCacheHeadBytes = 48;
inline constexpr std::size_t kCacheChecksumBytes = 16;

enum class EntryState : std::uint8_t {
  Good,
  OtherKey,  ///< valid, but for another key with the same hash
  Bad,
};

/// A decoded file. The spans point into the file's bytes and are empty unless `Good`.
struct EntryContent {
  EntryState state = EntryState::Bad;
  std::string_view why;  ///< the fault of a bad entry, a literal
  std::span<const std::byte> metadata;
  std::span<const std::byte> image;
};

/// The whole entry.
[[nodiscard]] std::vector<std::byte> encode_entry(std::span<const std::byte> key,
                                                  std::span<const std::byte> metadata,
                                                  std::span<const std::byte> image);

/// Decodes any bytes safely.
[[nodiscard]] EntryContent decode_entry(std::span<const std::byte> file,
                                        std::span<const std::byte> key) noexcept;

}  // namespace ptxgen::inline v0
