// src/support/excerpt.cpp - a few lines of a text around one
#include "support/excerpt.hpp"

#include <algorithm>

namespace ptxgen::inline v0 {

namespace {
constexpr std::size_t kLongestLine = 160;
constexpr std::uint32_t kLinesAround = 2;
}  // namespace

std::string excerpt_around(std::string_view text, std::uint32_t line) {
  if (line == 0) return {};
  const std::string widest = std::to_string(std::uint64_t{line} + kLinesAround);
  std::string excerpt;
  bool found = false;
  std::uint64_t number = 1;
  for (std::size_t begin = 0; begin < text.size() && number <= std::uint64_t{line} + kLinesAround;
       ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (number + kLinesAround >= line) {
      std::string digits = std::to_string(number);
      digits.insert(0, widest.size() - digits.size(), ' ');
      std::string_view body = text.substr(begin, end - begin);
      if (!excerpt.empty()) excerpt += '\n';
      excerpt += (number == line ? "> " : "  ") + digits + " | ";
      excerpt += body.substr(0, kLongestLine);
      if (body.size() > kLongestLine) excerpt += "...";
      found = found || number == line;
    }
    begin = end + 1;
  }
  return found ? excerpt : std::string{};
}

}  // namespace ptxgen::inline v0
