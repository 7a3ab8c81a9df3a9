// src/model/format.cpp - messages from patterns
#include "model/format.hpp"

#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

namespace ptxgen::inline v0::gguf {

std::string vformat_text(fmt::string_view pattern, fmt::format_args arguments) {
  return fmt::vformat(pattern, arguments);
}

}  // namespace ptxgen::inline v0::gguf
