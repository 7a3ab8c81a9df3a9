// src/support/excerpt.hpp - a few lines of a text around one
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// Line `line` (1-based) of `text` with at most two lines before and after, each as
/// `  NNN | text`, the line itself marked with `>`; no newline at the end. Empty when there is no
/// such line. Lines over 160 characters are cut with "...".
[[nodiscard]] std::string excerpt_around(std::string_view text, std::uint32_t line);

}  // namespace ptxgen::inline v0
