// src/support/join.hpp - lists in messages: "a, b, c"
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// The elements, or what `projection` makes of each, with `separator` between them.
template <class Range, class Projection = std::identity>
[[nodiscard]] std::string join_text(const Range& range, std::string_view separator = ", ",
                                    const Projection& projection = {}) {
  std::string text;
  bool first = true;
  for (const auto& element : range) {
    if (!first) text += separator;
    first = false;
    text += std::invoke(projection, element);
  }
  return text;
}

}  // namespace ptxgen::inline v0
