// src/runtime/cache/cache_key.cpp - key of a compiled kernel on disk
#include "runtime/cache/cache_key.hpp"

#include <span>

#include "runtime/cache/cache_entry.hpp"

namespace ptxgen::inline v0 {

namespace {

void append(std::vector<std::byte>& to, std::uint64_t number) {
  for (unsigned i = 0; i < 8; ++i) to.push_back(static_cast<std::byte>((number >> (8 * i)) & 0xff));
}

void append(std::vector<std::byte>& to, std::string_view text) {
  append(to, std::uint64_t{text.size()});
  const auto bytes = std::as_bytes(std::span(text));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::byte> key_bytes(const DiskKey& key) {
  std::vector<std::byte> bytes;
  bytes.reserve(key.ptx.size() + 512);
  append(bytes, std::uint64_t{kCacheFormat});
#define PTXGEN_DISK_KEY_APPEND(type, field, other, doc) \
  append(bytes, std::string_view(#field));              \
  append(bytes, key.field);
  PTXGEN_DISK_KEY_FIELDS(PTXGEN_DISK_KEY_APPEND)
#undef PTXGEN_DISK_KEY_APPEND
  if (!key.generator.empty() && key.generator_version.empty()) {
    append(bytes, std::string_view("version unknown"));
  }
  return bytes;
}

}  // namespace ptxgen::inline v0
