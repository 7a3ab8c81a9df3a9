// src/emulator/host/argument_text.hpp - parts of argument specs
#pragma once

#include <cstdint>
#include <string_view>

#include "ptxgen/emulator/host/arguments.hpp"

namespace ptxgen::inline v0::emulator {

/// Throws `Error` (Stage::Launch, "argument") that quotes the spec.
[[noreturn]] void refuse_argument(std::string_view spec, std::string_view why);

/// The bits of a VALUE, as `parse_argument` describes them.
[[nodiscard]] std::uint64_t value_bits(std::string_view spec, std::string_view value,
                                       ptx::Type type);
/// The type of a VALUE prefix ("f32"), or none.
[[nodiscard]] ptx::Type value_type(std::string_view prefix) noexcept;

/// Whether the prefix is that of a typed buffer: npy, random, iota, fill, print.
[[nodiscard]] bool is_typed_buffer(std::string_view prefix) noexcept;
/// Reads the text after `prefix:` of such a spec.
void parse_typed_buffer(ArgumentSpec& spec, std::string_view prefix, std::string_view rest);

}  // namespace ptxgen::inline v0::emulator
