// src/runtime/cache/cache_entry.cpp - file format of the disk cache
#include "runtime/cache/cache_entry.hpp"

#include <algorithm>
#include <cstring>

#include "support/hash.hpp"

namespace ptxgen::inline v0 {

namespace {

// As in PNG: the first byte marks a binary file, the line ends detect newline conversion.
constexpr unsigned char kMagic[8] = {0x89, 'p', 't', 'x', 'g', '\r', '\n', 0x1a};
static_assert(kCacheHeadBytes == sizeof(kMagic) + 2 * 4 + 4 * 8 && kCacheHeadBytes % 16 == 0);

void put(std::byte*& at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) *at++ = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}

void put(std::byte*& at, std::span<const std::byte> bytes) {
  at = std::copy(bytes.begin(), bytes.end(), at);
}

std::uint64_t get(const std::byte* at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  }
  return value;
}

EntryContent bad(std::string_view why) {
  EntryContent content;
  content.why = why;
  return content;
}

}  // namespace

std::vector<std::byte> encode_entry(std::span<const std::byte> key,
                                    std::span<const std::byte> metadata,
                                    std::span<const std::byte> image) {
  std::vector<std::byte> file(kCacheHeadBytes + key.size() + metadata.size() + image.size() +
                              kCacheChecksumBytes);
  std::byte* at = file.data();
  put(at, std::as_bytes(std::span(kMagic)));
  put(at, kCacheFormat, 4);
  put(at, 0, 4);
  put(at, key.size(), 8);
  put(at, metadata.size(), 8);
  put(at, image.size(), 8);
  put(at, 0, 8);
  put(at, image);
  put(at, metadata);
  put(at, key);
  const Hash128 checksum =
      hash128(std::span<const std::byte>(file).first(file.size() - kCacheChecksumBytes));
  put(at, checksum.high, 8);
  put(at, checksum.low, 8);
  return file;
}

EntryContent decode_entry(std::span<const std::byte> file,
                          std::span<const std::byte> key) noexcept {
  if (file.size() < kCacheHeadBytes + kCacheChecksumBytes) return bad("it is too short");
  if (std::memcmp(file.data(), kMagic, sizeof(kMagic)) != 0) {
    return bad("it does not start as an entry");
  }
  if (get(file.data() + 8, 4) != kCacheFormat) return bad("its format version is not supported");
  const std::uint64_t key_bytes = get(file.data() + 16, 8);
  const std::uint64_t metadata_bytes = get(file.data() + 24, 8);
  const std::uint64_t image_bytes = get(file.data() + 32, 8);
  // Subtracting cannot overflow; adding could.
  std::uint64_t left = file.size() - kCacheHeadBytes - kCacheChecksumBytes;
  for (const std::uint64_t part : {key_bytes, metadata_bytes, image_bytes}) {
    if (part > left) return bad("its size differs from the one in its header");
    left -= part;
  }
  if (left != 0) return bad("its size differs from the one in its header");

  const std::span<const std::byte> hashed = file.first(file.size() - kCacheChecksumBytes);
  const Hash128 checksum = {get(hashed.data() + hashed.size(), 8),
                            get(hashed.data() + hashed.size() + 8, 8)};
  if (hash128(hashed) != checksum) return bad("its checksum does not match");

  EntryContent content;
  const std::span<const std::byte> stored_key = hashed.last(static_cast<std::size_t>(key_bytes));
  if (!std::equal(stored_key.begin(), stored_key.end(), key.begin(), key.end())) {
    content.state = EntryState::OtherKey;
    return content;
  }
  content.state = EntryState::Good;
  content.image = file.subspan(kCacheHeadBytes, static_cast<std::size_t>(image_bytes));
  content.metadata = file.subspan(kCacheHeadBytes + content.image.size(),
                                  static_cast<std::size_t>(metadata_bytes));
  return content;
}

}  // namespace ptxgen::inline v0
