// src/support/count.hpp - counts with their nouns: "1 byte", "2 entries"
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// The plural of a regular noun: "entries", "branches", "bytes". Of a phrase, that of its last
/// word: "shared accesses".
[[nodiscard]] std::string plural_of(std::string_view noun);

/// "1 byte", "0 bytes", "2 entries". Counts are not negative.
template <std::integral Count>
[[nodiscard]] std::string count_text(Count count, std::string_view noun) {
  return std::to_string(count) + " " + (count == 1 ? std::string(noun) : plural_of(noun));
}

/// The form of a word that goes with the count: `count_verb(n, "is", "are")`.
[[nodiscard]] constexpr std::string_view count_verb(std::uint64_t count, std::string_view one,
                                                    std::string_view many) noexcept {
  return count == 1 ? one : many;
}

}  // namespace ptxgen::inline v0
