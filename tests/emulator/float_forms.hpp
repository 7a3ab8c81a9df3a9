// tests/emulator/float_forms.hpp - trying one floating-point form on many operands
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "float_reference.hpp"

namespace ptxgen::test {

/// What an element of the result must be, from the same elements of the sources.
using Element = std::function<std::uint64_t(std::uint64_t a, std::uint64_t b, std::uint64_t c)>;

/// `opcode` with a register of `width` bits for the destination and for each of `operands` sources.
[[nodiscard]] std::string form_text(std::string_view opcode, int width, int operands);

/// Runs the form (its types named in `opcode`) on corner values and random ones, `elements` to a
/// register, and compares each element of the result.
void check_form(std::string_view opcode, const FloatFormat& format, int elements, int operands,
                const Element& expected);

// What modifiers do to bits, told through values.
[[nodiscard]] std::uint64_t flush(const FloatFormat& format, std::uint64_t bits, bool ftz = true);
[[nodiscard]] std::uint64_t saturate(const FloatFormat& format, std::uint64_t bits, bool sat);
[[nodiscard]] std::uint64_t rectify(const FloatFormat& format, std::uint64_t bits, bool relu);

/// 1 and 2 elements: f32 and f32x2. The type's name with `x2` for two.
[[nodiscard]] std::string type_name(const FloatFormat& format, int elements);

}  // namespace ptxgen::test
