// src/model/tokenizer/hash_index.hpp - list elements found by the hash of their key
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxgen::inline v0::model {

/// Numbers of the elements of a list, by key: 4 bytes for a slot, at most three quarters of which
/// are taken. The list keeps the keys; a vocabulary in a hash map of the standard library takes ten
/// times as much.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  HashIndex() = default;
  /// For up to `count` elements.
  explicit HashIndex(std::size_t count) : slots_(std::bit_ceil(count + count / 3 + 1), kNone) {}

  /// The element of that hash for which `is_it(number)` holds; `kNone` if there is none.
  template <class IsIt>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, const IsIt& is_it) const {
    return slots_.empty() ? kNone : slots_[slot(hash, is_it)];
  }
  /// Adds an element. If one is there for which `is_it(number)` holds, returns that instead.
  template <class IsIt>
  std::uint32_t add(std::uint64_t hash, std::uint32_t number, const IsIt& is_it) {
    std::uint32_t& found = slots_[slot(hash, is_it)];
    if (found == kNone) found = number;
    return found;
  }

 private:
  // Where the element is or would be. One slot at least is free.
  template <class IsIt>
  [[nodiscard]] std::size_t slot(std::uint64_t hash, const IsIt& is_it) const {
    const std::size_t mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(hash) & mask;
    while (slots_[at] != kNone && !is_it(slots_[at])) at = (at + 1) & mask;
    return at;
  }

  std::vector<std::uint32_t> slots_;
};

}  // namespace ptxgen::inline v0::model
