// src/cli/numbers.hpp - whole numbers of options
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "cli/commands.hpp"

namespace ptxgen::cli {

/// A whole number in least..most, also as 2^E. Throws `UsageError` that names the option.
[[nodiscard]] inline std::uint64_t whole_number(const std::string& option, const std::string& text,
                                                std::uint64_t least, std::uint64_t most) {
  const bool power = text.starts_with("2^");
  const char* const begin = text.data() + (power ? 2 : 0);
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [stop, code] = std::from_chars(begin, end, value);
  bool read = code == std::errc{} && stop == end;
  if (power && read) {
    read = value < 64;
    value = read ? std::uint64_t{1} << value : 0;
  }
  if (!read || value < least || value > most) {
    throw UsageError(option + " " + text + ": wants a whole number in " + std::to_string(least) +
                     ".." + std::to_string(most) + ", or 2^E");
  }
  return value;
}

}  // namespace ptxgen::cli
