// src/support/numbers.hpp - numbers in text
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace ptxgen::inline v0 {

/// The number if the entire text is one that T can hold; nothing for "12x", "+12" or " 12".
template <class T>
[[nodiscard]] std::optional<T> parse_number(std::string_view text) noexcept {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace ptxgen::inline v0
