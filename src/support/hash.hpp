// src/support/hash.hpp - content hashes of bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// A hash wide enough to identify content. Not collision resistant against attacks: if equality
/// matters, compare the bytes as well.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// XXH3 with 128 bits. The same in every process, on every machine and in every version of the
/// library: it is part of the format of files.
[[nodiscard]] Hash128 hash128(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] Hash128 hash128(std::string_view text) noexcept;

/// XXH3 with 64 bits, for tables in memory: a few nanoseconds for up to 240 bytes.
[[nodiscard]] std::uint64_t hash64(const void* bytes, std::size_t size) noexcept;

/// 32 lower-case digits, the high half first.
[[nodiscard]] std::string to_hex(const Hash128& hash);

}  // namespace ptxgen::inline v0
