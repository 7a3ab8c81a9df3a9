// src/model/printable.cpp - text of files for messages and terminals
#include "model/printable.hpp"

#include <cstdint>

#include "model/format.hpp"

namespace ptxgen::inline v0 {

namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: invalid
};

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// The first character of a text that is not empty, as in table 3-7 of the Unicode Standard.
Character first_character(std::string_view text) {
  const std::uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead < 0xc2   ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte_at(text, i) & 0x3f);
  }
  const std::uint32_t smallest = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (code < smallest || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

// Marks and overrides of direction, and separators that break lines.
bool is_invisible(std::uint32_t code) {
  return (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0x61c || code == 0xfeff;
}

std::string shown(Character character, std::string_view text) {
  if (character.bytes == 0) return gguf::format_text("\\x{:02x}", byte_at(text, 0));
  const std::uint32_t code = character.code;
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return gguf::format_text("\\x{:02x}", code);
  if (code == '\\' || code == '"') return {'\\', text[0]};
  if (is_invisible(code)) return gguf::format_text("\\u{:04x}", code);
  return std::string(text.substr(0, character.bytes));
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string piece = shown(character, text);
    if (result.size() + piece.size() > max_bytes) return result + "...";
    result += piece;
    text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
  }
  return result;
}

}  // namespace ptxgen::inline v0
