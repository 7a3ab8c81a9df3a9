// src/support/text_buffer.cpp - number formatting for PTX text
#include "ptxgen/support/text_buffer.hpp"

#include <charconv>
#include <utility>

namespace ptxgen::inline v0 {

namespace {
// 20 digits hold any 64-bit value, one more holds the sign.
constexpr std::size_t kLongestNumber = 21;
}  // namespace

TextBuffer& TextBuffer::decimal(std::uint64_t value) {
  char* at = grow(kLongestNumber);
  size_ += static_cast<std::size_t>(std::to_chars(at, at + kLongestNumber, value).ptr - at);
  return *this;
}

TextBuffer& TextBuffer::decimal_signed(std::int64_t value) {
  char* at = grow(kLongestNumber);
  size_ += static_cast<std::size_t>(std::to_chars(at, at + kLongestNumber, value).ptr - at);
  return *this;
}

TextBuffer& TextBuffer::hex(std::uint64_t value, unsigned digits) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  char* at = grow(digits);
  for (unsigned i = digits; i-- > 0; value >>= 4) at[i] = kDigits[value & 15];
  size_ += digits;
  return *this;
}

std::string TextBuffer::take() {
  text_.resize(size_);
  size_ = 0;
  return std::exchange(text_, std::string{});
}

}  // namespace ptxgen::inline v0
