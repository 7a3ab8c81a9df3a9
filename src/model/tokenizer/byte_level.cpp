// src/model/tokenizer/byte_level.cpp - bytes as printable characters, and back
#include "model/tokenizer/byte_level.hpp"

#include <array>

namespace ptxgen::inline v0::model {

namespace {

constexpr bool is_visible(std::uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Tables {
  std::array<std::array<char, 2>, 256> characters{};
  std::array<std::uint8_t, 256> sizes{};
  // Of the characters below U+0144, by code; 256 where there is none.
  std::array<std::uint16_t, 0x144> bytes{};
};

constexpr Tables make_tables() {
  Tables tables;
  tables.bytes.fill(256);
  std::uint32_t others = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const std::uint32_t code = is_visible(byte) ? byte : others++;
    tables.bytes[code] = static_cast<std::uint16_t>(byte);
    tables.sizes[byte] = code < 0x80 ? 1 : 2;
    if (code < 0x80) {
      tables.characters[byte] = {static_cast<char>(code), '\0'};
    } else {
      tables.characters[byte] = {static_cast<char>(0xc0 | code >> 6),
                                 static_cast<char>(0x80 | (code & 0x3f))};
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::string_view byte_character(std::uint8_t byte) noexcept {
  return {kTables.characters[byte].data(), kTables.sizes[byte]};
}

std::string byte_characters(std::string_view bytes) {
  std::string result;
  result.reserve(2 * bytes.size());
  for (const char byte : bytes) result += byte_character(static_cast<std::uint8_t>(byte));
  return result;
}

std::string bytes_of_characters(std::string_view characters) {
  std::string result;
  result.reserve(characters.size());
  for (std::size_t at = 0; at < characters.size(); ++at) {
    const auto lead = static_cast<std::uint8_t>(characters[at]);
    std::uint32_t code = lead;
    std::size_t size = 1;
    if (lead >= 0xc2 && lead < 0xe0 && at + 1 < characters.size()) {
      const auto next = static_cast<std::uint8_t>(characters[at + 1]);
      if ((next & 0xc0) == 0x80) {
        code = (lead & 0x1fU) << 6 | (next & 0x3fU);
        size = 2;
      }
    }
    const bool known = (size == 2 || lead < 0x80) && code < kTables.bytes.size();
    if (known && kTables.bytes[code] < 256) {
      result += static_cast<char>(static_cast<std::uint8_t>(kTables.bytes[code]));
    } else {
      result += characters.substr(at, size);
    }
    at += size - 1;
  }
  return result;
}

}  // namespace ptxgen::inline v0::model
