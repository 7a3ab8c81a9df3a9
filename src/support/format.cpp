// src/support/format.cpp - messages from patterns
#include "support/format.hpp"

#define FMT_HEADER_ONLY 1  // what others call of it is compiled here
#include <fmt/format.h>

namespace ptxgen::inline v0 {

std::string vformat_text(fmt::string_view pattern, fmt::format_args arguments) {
  return fmt::vformat(pattern, arguments);
}

}  // namespace ptxgen::inline v0
