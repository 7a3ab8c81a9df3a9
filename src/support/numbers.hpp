// src/support/numbers.hpp - numbers and versions in text
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ptxgen::inline v0 {

/// The number that `text` begins with, which is removed from it; nothing, and `text` as it was, for
/// other text and for numbers out of range.
template <class Number>
requires std::integral<Number> || std::floating_point<Number>
[[nodiscard]] std::optional<Number> take_number(std::string_view& text, int base = 10) noexcept {
  Number value{};
  std::from_chars_result read{};
  if constexpr (std::integral<Number>)
    read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  else
    read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

/// The number that the whole text denotes; nothing for other text and for numbers out of range.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
  const std::optional<Number> value = take_number<Number>(text, base);
  return text.empty() ? value : std::nullopt;
}

/// "9.0" as 90; nothing for other text. The minor number has one digit.
[[nodiscard]] inline std::optional<int> parse_version(std::string_view text) noexcept {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = parse_number<int>(text.substr(0, dot));
  const auto minor = parse_number<int>(text.substr(dot + 1));
  if (!major || !minor || *major < 0 || *minor < 0 || *minor > 9) return std::nullopt;
  return *major * 10 + *minor;
}

/// 90 as "9.0".
[[nodiscard]] inline std::string dotted_version(int version) {
  return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

}  // namespace ptxgen::inline v0
