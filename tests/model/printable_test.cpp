// tests/model/printable_test.cpp - escapes of text from files
#include "model/printable.hpp"

#include <catch2/catch.hpp>

using namespace ptxgen;

TEST_CASE("printable text has no characters that a terminal would act on") {
  CHECK(printable("llama.block_count") == "llama.block_count");
  CHECK(printable("\xe2\x96\x81the \xf0\x9f\x98\x80 \xc3\xa9") ==
        "\xe2\x96\x81the \xf0\x9f\x98\x80 \xc3\xa9");
  CHECK(printable("a\nb\tc\x1b[31m\x7f") == "a\\nb\\tc\\x1b[31m\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("say \"x\\y\", don't") == "say \\\"x\\\\y\\\", don't");
  CHECK(printable("\xc2\x9b") == "\\x9b");  // CSI in C1
  CHECK(printable("\xe2\x80\xae"
                  "abc") == "\\u202eabc");  // right to left from here
  CHECK(printable("\xe2\x80\xa8\xef\xbb\xbf") == "\\u2028\\ufeff");
}

TEST_CASE("bytes that are not UTF-8 are shown as numbers") {
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("\xe2\x96") == "\\xe2\\x96");                    // cut
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");                    // overlong
  CHECK(printable("\xe0\x80\x80") == "\\xe0\\x80\\x80");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // after the last code point
  CHECK(printable("\xc3(") == "\\xc3(");
}

TEST_CASE("long text is cut between characters") {
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdefg", 6) == "abcdef...");
  CHECK(printable("abc\xe2\x96\x81", 5) == "abc...");
  CHECK(printable("\x1b\x1b", 7) == "\\x1b...");
}
