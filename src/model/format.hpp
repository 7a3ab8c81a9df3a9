// src/model/format.hpp - messages from patterns
#pragma once

#include <fmt/core.h>

#include <string>

namespace ptxgen::inline v0::gguf {

/// `pattern` with its arguments. Throws fmt::format_error if they do not fit.
[[nodiscard]] std::string vformat_text(fmt::string_view pattern, fmt::format_args arguments);

/// fmt::format, compiled once for all callers.
template <class... Args>
[[nodiscard]] std::string format_text(fmt::format_string<Args...> pattern, Args&&... args) {
  return vformat_text(pattern, fmt::make_format_args(args...));
}

}  // namespace ptxgen::inline v0::gguf

namespace ptxgen::inline v0::model {

using gguf::format_text;

}  // namespace ptxgen::inline v0::model
