// src/ptx/parser_cursor.hpp - position in PTX text, and errors at it
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ptxgen::inline v0::ptx::reading {

/// Deepest nesting of scopes, parentheses and initialiser braces that is read.
inline constexpr unsigned kDeepestNesting = 256;

inline constexpr std::uint8_t kNamePart = 1;   // letters, digits, _ and $
inline constexpr std::uint8_t kNameStart = 2;  // letters, _, $ and %
inline constexpr std::uint8_t kDigit = 4;
inline constexpr std::uint8_t kHexDigit = 8;
inline constexpr std::uint8_t kBlank = 16;  // white space but the newline, which is counted

inline constexpr auto kCharClass = [] {
  std::array<std::uint8_t, 256> table{};
  const auto add = [&table](std::string_view characters, unsigned what) {
    for (const char c : characters) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | what);
    }
  };
  add("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$", kNamePart | kNameStart);
  add("%", kNameStart);
  add("0123456789", kNamePart | kDigit | kHexDigit);
  add("abcdefABCDEF", kHexDigit);
  add(" \t\r\v\f", kBlank);
  return table;
}();

[[nodiscard]] inline bool is(char c, unsigned what) noexcept {
  return (kCharClass[static_cast<unsigned char>(c)] & what) != 0;
}

/// Reads a private copy of the text that ends in NUL bytes, so that no look ahead by a few bytes
/// needs a bound.
class Cursor {
 public:
  /// Bytes of NUL after the text.
  static constexpr std::size_t kPadding = 16;

  struct Mark {
    const char* at;
    std::uint32_t line;
  };

  Cursor(std::string_view text, std::string_view file);
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  const char* at = nullptr;
  std::uint32_t line = 1;

  [[nodiscard]] Mark mark() const noexcept { return {at, line}; }
  void rewind(Mark mark) noexcept {
    at = mark.at;
    line = mark.line;
  }
  [[nodiscard]] bool at_end() const noexcept { return at == end_; }
  [[nodiscard]] const char* begin() const noexcept { return text_.data(); }
  [[nodiscard]] const char* end() const noexcept { return end_; }

  /// Passes over white space and comments.
  void skip() {
    const char* p = at;
    for (;; ++p) {
      while (is(*p, kBlank)) ++p;
      if (*p == '\n') {
        ++line;
      } else if (*p == '/' || *p == '#') {
        at = p;
        if (!skip_comment()) return;
        p = at - 1;
      } else {
        break;
      }
    }
    at = p;
  }

  /// Passes over `c` if it comes next.
  bool accept(char c) {
    skip();
    if (*at != c) return false;
    ++at;
    return true;
  }
  /// `where` ends the sentence "expected 'c' ...".
  void expect(char c, std::string_view where) {
    if (!accept(c)) fail_expected("'" + std::string(1, c) + "' " + std::string(where));
  }

  /// The name that comes next, `what` if there is none.
  std::string_view name(std::string_view what);
  /// The word after a `.` that comes next (`global` of `.global`), not passed over; empty if none.
  [[nodiscard]] std::string_view peek_keyword();
  void take_keyword(std::string_view keyword) { at += keyword.size() + 1; }
  bool accept_keyword(std::string_view keyword);
  /// What is between quotes, escapes untouched.
  std::string_view string();

  /// The text from `from` to the next `;`, which is passed over: comments dropped, white space as
  /// one space. `what` is what the `;` ends.
  std::string raw_statement(Mark from, std::string_view what);

  /// Throws: expected `what`, found what is at `at`.
  [[noreturn]] void fail_expected(std::string_view what);
  [[noreturn]] void fail(const char* where, std::string message) const;
  /// What is at a place, for messages: `'add'`, `end of text`.
  [[nodiscard]] std::string describe(const char* where) const;

  /// For errors: the function being read.
  std::string kernel;

 private:
  bool skip_comment();
  [[nodiscard]] std::string excerpt(const char* where, std::uint32_t number) const;

  std::string text_;
  std::string file_;
  const char* end_ = nullptr;
};

}  // namespace ptxgen::inline v0::ptx::reading
