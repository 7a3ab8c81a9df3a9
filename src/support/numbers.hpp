// src/support/numbers.hpp - numbers and versions in text
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ptxgen::inline v0 {

/// The number that the whole text denotes; nothing for other text and for numbers out of range.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value, base);
  if (code != std::errc{} || stop != end) return std::nullopt;
  return value;
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
