// tests/support/text_buffer_test.cpp - the growing text and its numbers
#include <rapidcheck/catch.h>
#include <catch2/catch.hpp>

#include <ptxgen/support/text_buffer.hpp>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

using namespace ptxgen;

TEST_CASE("a text buffer grows from nothing") {
  TextBuffer text(0);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    text << "ld.global" << '.';
    text.decimal(static_cast<std::uint64_t>(i));
    expected += "ld.global." + std::to_string(i);
  }
  CHECK(text.view() == expected);
  CHECK(text.size() == expected.size());
  CHECK(text.take() == expected);
  CHECK(text.view().empty());
}

TEST_CASE("a text buffer prints numbers as the standard library does") {
  constexpr auto kHighest = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
  CHECK(TextBuffer(0).decimal(kHighest).view() == std::to_string(kHighest));
  CHECK(TextBuffer(0).decimal_signed(kLowest).view() == std::to_string(kLowest));
  CHECK(TextBuffer(0).hex(0xDEADBEEF, 8).view() == "DEADBEEF");
  CHECK(TextBuffer(0).hex(1, 16).view() == "0000000000000001");
  rc::prop("any number", [](std::uint64_t bits) {
    TextBuffer text(0);
    text.decimal(bits) << ' ';
    text.decimal_signed(static_cast<std::int64_t>(bits)) << ' ';
    text.hex(bits, 16);
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llX", static_cast<unsigned long long>(bits));
    RC_ASSERT(text.view() == std::to_string(bits) + " " +
                                 std::to_string(static_cast<std::int64_t>(bits)) + " " + hex);
  });
}
