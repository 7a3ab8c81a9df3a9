// src/support/count.cpp - counts with their nouns: "1 byte", "2 entries"
#include "support/count.hpp"

namespace ptxgen::inline v0 {

std::string plural_of(std::string_view noun) {
  using namespace std::string_view_literals;
  const bool after_vowel =
      noun.size() > 1 && "aeiou"sv.find(noun[noun.size() - 2]) != std::string_view::npos;
  if (noun.ends_with('y') && !after_vowel) {
    return std::string(noun.substr(0, noun.size() - 1)) + "ies";
  }
  for (const std::string_view ending : {"s"sv, "x"sv, "ch"sv, "sh"sv}) {
    if (noun.ends_with(ending)) return std::string(noun) + "es";
  }
  return std::string(noun) + "s";
}

}  // namespace ptxgen::inline v0
