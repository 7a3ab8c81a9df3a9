// ptxgen/ptx/names.hpp - interned strings of a module
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0::ptx {

/// A string of a module's `Names`. Equal text has equal ids within one module.
struct NameId {
  std::uint32_t value = 0;
  friend constexpr bool operator==(NameId, NameId) = default;
};

/// The texts of one module, each stored once; `NameId{0}` is the empty text. Plain data: copying a
/// module copies its names. Not for concurrent writers.
class Names {
 public:
  Names();

  /// The id of `text`, which is added if it is new.
  NameId intern(std::string_view text);
  /// The text; valid until the next `intern`. An id of another module reads as empty.
  [[nodiscard]] std::string_view operator[](NameId id) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t hash = 0;
  };
  void rehash(std::size_t buckets);

  std::string text_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> buckets_;  // entry number + 1, 0 is free; a power of two of them
};

}  // namespace ptxgen::inline v0::ptx
