// src/ptx/names.cpp - interned strings of a module
#include "ptxgen/ptx/names.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

std::uint32_t hash_of(std::string_view text) noexcept {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash ^ (hash >> 15);
}

}  // namespace

Names::Names() {
  rehash(64);
  intern({});
}

NameId Names::intern(std::string_view text) {
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = buckets_.size() - 1;
  std::size_t at = hash & mask;
  for (; buckets_[at] != 0; at = (at + 1) & mask) {
    const Entry& entry = entries_[buckets_[at] - 1];
    if (entry.hash == hash && std::string_view(text_).substr(entry.offset, entry.length) == text) {
      return {buckets_[at] - 1};
    }
  }
  const auto id = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back(
      {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size()), hash});
  text_ += text;
  buckets_[at] = id + 1;
  if (entries_.size() * 2 > buckets_.size()) rehash(buckets_.size() * 2);
  return {id};
}

std::string_view Names::operator[](NameId id) const noexcept {
  if (id.value >= entries_.size()) return {};
  const Entry& entry = entries_[id.value];
  return std::string_view(text_).substr(entry.offset, entry.length);
}

void Names::rehash(std::size_t buckets) {
  buckets_.assign(buckets, 0);
  const std::size_t mask = buckets - 1;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = entries_[i].hash & mask;
    while (buckets_[at] != 0) at = (at + 1) & mask;
    buckets_[at] = i + 1;
  }
}

}  // namespace ptxgen::inline v0::ptx
