// src/cli_common/numbers.hpp - numbers of options: one parser, range and message
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::cli {

/// An integer in min..max, in decimal or as 2^E with E below 64; nothing for any other text.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t min,
                                                       std::uint64_t max) noexcept;
/// The same. Throws `UsageError` that names the option and the range; an `option` that ends in `=`
/// is printed without a space before the text.
[[nodiscard]] std::uint64_t whole_number(std::string_view option, std::string_view text,
                                         std::uint64_t min, std::uint64_t max);
/// A finite number. Throws `UsageError` that names the option.
[[nodiscard]] float real_number(std::string_view option, std::string_view text);

/// `X[,Y[,Z]]`, omitted parts are 1. Throws `UsageError` that names the option.
[[nodiscard]] emulator::Dim3 dimensions(std::string_view option, std::string_view text);

/// An option and its value in messages: "--n 0", "-p k=0".
[[nodiscard]] std::string with_value(std::string_view option, std::string_view text);

}  // namespace ptxgen::cli
