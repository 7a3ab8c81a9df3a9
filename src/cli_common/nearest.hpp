// src/cli_common/nearest.hpp - suggestions for misspelt names
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ptxgen::cli {

/// The edit distance: insertions, deletions, replacements and swaps of neighbours.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The one of `names` that is nearest to `text`, upper and lower case being equal: at most a third
/// of its letters differ, or one begins with the other. Empty if there is none.
[[nodiscard]] std::string nearest(std::string_view text, std::span<const std::string> names);

/// "; did you mean 'NAME'?", or empty.
[[nodiscard]] std::string did_you_mean(std::string_view text, std::span<const std::string> names);

}  // namespace ptxgen::cli
