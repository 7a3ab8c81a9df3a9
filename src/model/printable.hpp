// src/model/printable.hpp - text of files for messages and terminals
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// The text with characters that could confuse a terminal or a reader as escapes: control
/// characters (`\n`, `\x1b`), invalid UTF-8 (`\xff`), marks of text direction and line separators
/// (`\u202e`), backslashes and double quotes. Cut after `max_bytes` of output, with "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes = 80);

}  // namespace ptxgen::inline v0
