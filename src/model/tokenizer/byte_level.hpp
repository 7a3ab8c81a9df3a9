// src/model/tokenizer/byte_level.hpp - bytes as printable characters, and back
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxgen::inline v0::model {

/// The character, in UTF-8, that stands for a byte in byte-level BPE: itself where it is visible in
/// Latin-1, U+0100 and on for the others in order.
[[nodiscard]] std::string_view byte_character(std::uint8_t byte) noexcept;
/// Of each byte.
[[nodiscard]] std::string byte_characters(std::string_view bytes);
/// The bytes that characters stand for; what stands for none is taken as it is.
[[nodiscard]] std::string bytes_of_characters(std::string_view characters);

}  // namespace ptxgen::inline v0::model
