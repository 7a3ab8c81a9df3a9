// src/support/markup.hpp - text in HTML and SVG
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// With `&amp;`, `&lt;`, `&gt;` and `&quot;`: for content and for attributes.
[[nodiscard]] std::string escaped_markup(std::string_view text);

}  // namespace ptxgen::inline v0
