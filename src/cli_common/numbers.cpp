// src/cli_common/numbers.cpp - numbers of options: one parser, range and message
#include "cli_common/numbers.hpp"

#include <cmath>

#include "cli_common/program.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::cli {

std::string with_value(std::string_view option, std::string_view text) {
  std::string words(option);
  if (!option.ends_with('=')) words += ' ';
  return words += text;
}

std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t min,
                                         std::uint64_t max) noexcept {
  const bool power = text.starts_with("2^");
  auto value = parse_number<std::uint64_t>(power ? text.substr(2) : text);
  if (power && value)
    value = *value < 64 ? std::optional(std::uint64_t{1} << *value) : std::nullopt;
  if (!value || *value < min || *value > max) return {};
  return value;
}

std::uint64_t whole_number(std::string_view option, std::string_view text, std::uint64_t min,
                           std::uint64_t max) {
  if (const auto value = parse_whole(text, min, max)) return *value;
  throw UsageError(format_text("{}: expects a whole number in {}..{}, or 2^E",
                               with_value(option, text), min, max));
}

float real_number(std::string_view option, std::string_view text) {
  const auto value = parse_number<float>(text);
  if (value && std::isfinite(*value)) return *value;
  throw UsageError(with_value(option, text) + ": expects a number, as 0.5 or 1e-3");
}

emulator::Dim3 dimensions(std::string_view option, std::string_view text) {
  emulator::Dim3 size;
  std::string_view rest = text;
  for (std::uint32_t* part : {&size.x, &size.y, &size.z}) {
    const std::size_t comma = rest.find(',');
    const auto value = parse_whole(rest.substr(0, comma), 1, 0xffffffff);
    if (!value) break;
    *part = static_cast<std::uint32_t>(*value);
    if (comma == std::string_view::npos) return size;
    rest.remove_prefix(comma + 1);
  }
  throw UsageError(with_value(option, text) +
                   ": expects X[,Y[,Z]], whole numbers in 1..4294967295, or 2^E");
}

}  // namespace ptxgen::cli
