// src/support/hash.cpp - content hashes of bytes
#include "support/hash.hpp"

// Header-only, so that neither programs nor the installed package need libxxhash.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ptxgen::inline v0 {

Hash128 hash128(std::span<const std::byte> bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Hash128 hash128(std::string_view text) noexcept { return hash128(std::as_bytes(std::span(text))); }

std::uint64_t hash64(const void* bytes, std::size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}

std::string to_hex(const Hash128& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (unsigned i = 0; i < 16; ++i) {
    text[i] = kDigits[(hash.high >> (60 - 4 * i)) & 15];
    text[16 + i] = kDigits[(hash.low >> (60 - 4 * i)) & 15];
  }
  return text;
}

}  // namespace ptxgen::inline v0
