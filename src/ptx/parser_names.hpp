// src/ptx/parser_names.hpp - symbol table of the parser
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx::reading {

/// Hash of `length` bytes; up to 8 bytes after them are read (and ignored).
[[nodiscard]] inline std::uint32_t hash_of(const char* text, std::size_t length) noexcept {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = length;
  std::uint64_t word;
  for (; length > 8; length -= 8, text += 8) {
    std::memcpy(&word, text, 8);
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  }
  std::memcpy(&word, text, 8);
  if (length < 8) word &= (std::uint64_t{1} << (8 * length)) - 1;
  hash = (hash ^ word) * kFactor;
  hash ^= hash >> 32;
  hash *= kFactor;
  return static_cast<std::uint32_t>(hash >> 32);
}

/// A name of the text and what it is bound to at the place being read.
struct Name {
  const char* text = nullptr;
  std::uint32_t length = 0;
  std::uint32_t hash = 0;
  NameId id;                              ///< empty until the module needs it
  std::uint32_t exact = kNone;            ///< register declared with this whole name
  std::uint32_t prefix = kNone;           ///< registers declared as `name<count>`
  std::uint32_t local = kNone;            ///< symbol of a variable or parameter of the function
  std::uint32_t global = kNone;           ///< symbol at module level, perhaps unresolved
  std::uint32_t label = kNone;            ///< latest label of the function with this name
  std::uint32_t undefined_label = kNone;  ///< label of the function that is named but nowhere
  std::uint32_t ranged = kNone;           ///< variables declared as `name<range>`
  std::uint32_t last_use = 0;           ///< number of the latest statement that used it as operand
  std::uint32_t last_prefix_use = 0;    ///< the same, of the name as prefix of a number
  std::uint32_t lowest_number = kNone;  ///< lowest number used after it without such a declaration

  [[nodiscard]] std::string_view view() const noexcept { return {text, length}; }
};

/// Names by text, numbered in order of appearance. Texts are not copied, and must have 8 readable
/// bytes after them.
class NameTable {
 public:
  NameTable() : buckets_(256) {}

  [[nodiscard]] Name& operator[](std::uint32_t number) noexcept { return names_[number]; }

  /// The number of a name, kNone if it is not there.
  [[nodiscard]] std::uint32_t find(const char* text, std::size_t length) const noexcept {
    const std::uint32_t hash = hash_of(text, length);
    const std::size_t mask = buckets_.size() - 1;
    for (std::size_t i = hash & mask; buckets_[i] != 0; i = (i + 1) & mask) {
      const Name& name = names_[buckets_[i] - 1];
      if (name.hash == hash && name.length == length && std::memcmp(name.text, text, length) == 0) {
        return buckets_[i] - 1;
      }
    }
    return kNone;
  }

  std::uint32_t find_or_add(std::string_view text) {
    const std::uint32_t found = find(text.data(), text.size());
    return found != kNone ? found : add(text);
  }

 private:
  std::uint32_t add(std::string_view text) {
    Name name;
    name.text = text.data();
    name.length = static_cast<std::uint32_t>(text.size());
    name.hash = hash_of(text.data(), text.size());
    names_.push_back(name);
    if (names_.size() * 2 > buckets_.size()) {
      buckets_.assign(buckets_.size() * 2, 0);
      for (std::uint32_t i = 0; i < names_.size(); ++i) place(i);
    } else {
      place(static_cast<std::uint32_t>(names_.size() - 1));
    }
    return static_cast<std::uint32_t>(names_.size() - 1);
  }

  void place(std::uint32_t number) noexcept {
    const std::size_t mask = buckets_.size() - 1;
    std::size_t i = names_[number].hash & mask;
    while (buckets_[i] != 0) i = (i + 1) & mask;
    buckets_[i] = number + 1;
  }

  std::vector<Name> names_;
  std::vector<std::uint32_t> buckets_;  // number + 1, 0 is free; a power of two of them
};

}  // namespace ptxgen::inline v0::ptx::reading
