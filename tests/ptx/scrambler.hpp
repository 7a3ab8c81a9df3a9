// tests/ptx/scrambler.hpp - spells PTX text in another way
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxgen::test {

/// The same module written by another one: comments, white space and line ends anywhere between
/// words, several statements on a line, integers in other bases, several registers after one
/// `.reg`, hexadecimal floats in other cases. Knows PTX only as a sequence of words, so that it
/// shares no mistake with printer or parser. Takes what the printer prints.
[[nodiscard]] std::string scrambled(std::string_view text, std::uint64_t seed);

}  // namespace ptxgen::test
