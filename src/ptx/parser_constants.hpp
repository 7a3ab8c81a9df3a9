// src/ptx/parser_constants.hpp - literals and constant expressions
#pragma once

#include <cstdint>
#include <string_view>

#include "ptx/parser_cursor.hpp"

namespace ptxgen::inline v0::ptx::reading {

/// A number of the text. Integers are .s64 or .u64, other floats than `0f...` are .f64.
struct Constant {
  enum class Kind : std::uint8_t { Signed, Unsigned, Float32, Float64 };
  Kind kind = Kind::Signed;
  std::uint64_t bits = 0;

  [[nodiscard]] bool integer() const noexcept {
    return kind == Kind::Signed || kind == Kind::Unsigned;
  }
  /// An integer above the signed range.
  [[nodiscard]] bool above_signed() const noexcept {
    return kind == Kind::Unsigned && (bits >> 63) != 0;
  }
};

/// Whether an operand that begins with this character can be a constant.
[[nodiscard]] inline bool starts_constant(char c) noexcept {
  return is(c, kDigit) || c == '-' || c == '+' || c == '~' || c == '!' || c == '(' || c == '.';
}

/// Whether the predefined constant `WARP_SZ` is at `at`.
[[nodiscard]] inline bool starts_warp_size(const char* at) noexcept {
  return std::string_view(at, 7) == "WARP_SZ" && !is(at[7], kNamePart);
}

/// Reads a constant expression with all operators of PTX. `what` is what was expected if there is
/// none.
[[nodiscard]] Constant read_constant(Cursor& cursor, std::string_view what);

/// Reads one literal without sign or operators.
[[nodiscard]] Constant read_literal(Cursor& cursor, std::string_view what);

/// Reads an expression that is an integer from 0 to `most`.
[[nodiscard]] std::uint64_t read_number(Cursor& cursor, std::string_view what, std::uint64_t max);

}  // namespace ptxgen::inline v0::ptx::reading
