// src/ptx/parser_cursor.cpp - position in PTX text, and errors at it
#include "ptx/parser_cursor.hpp"

#include <algorithm>
#include <cstring>

#include "ptxgen/support/error.hpp"
#include "ptxgen/support/text_buffer.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

// Names and operands are numbered with 32 bits, and there are fewer of them than bytes.
constexpr std::size_t kLargestText = std::size_t{1} << 31;

// Quoted lines are cut to this many characters around the place.
constexpr std::ptrdiff_t kBefore = 80;
constexpr std::ptrdiff_t kAfter = 40;

bool printable(char c) { return c >= ' ' && c <= '~'; }

std::string readable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '\t') c = ' ';
    if (!printable(c)) c = '?';
  }
  return out;
}

}  // namespace

Cursor::Cursor(std::string_view text, std::string_view file) : file_(file) {
  if (text.size() > kLargestText) {
    Error error(Stage::Verify, "syntax", "the text is larger than 2 GiB");
    error.file = file_;
    throw error.refresh();
  }
  // C strings are often handed over with the NUL at their end.
  while (text.ends_with('\0')) text.remove_suffix(1);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text_.reserve(text.size() + kPadding);
  text_.assign(text);
  text_.append(kPadding, '\0');
  at = text_.data();
  end_ = at + text.size();
}

bool Cursor::skip_comment() {
  if (*at == '#') {
    // A line marker of a preprocessor, which assemblers pass over.
    const char* before = at;
    while (before != begin() && is(before[-1], kBlank)) --before;
    if (before != begin() && before[-1] != '\n') return false;
  } else if (at[1] == '*') {
    const std::string_view rest(at + 2, static_cast<std::size_t>(end_ - at - 2));
    const std::size_t close = rest.find("*/");
    if (close == std::string_view::npos)
      fail(at, "expected '*/' at the end of the comment, found end of text");
    line += static_cast<std::uint32_t>(
        std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(close), '\n'));
    at += close + 4;
    return true;
  } else if (at[1] != '/') {
    return false;
  }
  const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end_ - at));
  at = newline == nullptr ? end_ : static_cast<const char*>(newline);
  return true;
}

std::string_view Cursor::name(std::string_view what) {
  skip();
  const char* start = at;
  if (!is(*start, kNameStart)) fail_expected(what);
  const char* p = start + 1;
  while (is(*p, kNamePart)) ++p;
  if (*start == '%' && p == start + 1) fail_expected(what);
  at = p;
  return {start, static_cast<std::size_t>(p - start)};
}

std::string_view Cursor::peek_keyword() {
  skip();
  if (*at != '.' || !is(at[1], kNamePart)) return {};
  const char* p = at + 1;
  while (is(*p, kNamePart) || (*p == ':' && p[1] == ':' && is(p[2], kNamePart)))
    p += *p == ':' ? 2 : 1;
  return {at + 1, static_cast<std::size_t>(p - at - 1)};
}

bool Cursor::accept_keyword(std::string_view keyword) {
  if (peek_keyword() != keyword) return false;
  take_keyword(keyword);
  return true;
}

std::string_view Cursor::string() {
  skip();
  if (*at != '"') fail_expected("a string in quotes");
  const char* start = at + 1;
  const char* p = start;
  while (*p != '"') {
    if (*p == '\n' || p == end_)
      fail(at, "expected '\"' at the end of the string, found end of " +
                   std::string(p == end_ ? "text" : "line"));
    if (*p == '\\' && p + 1 != end_ && p[1] != '\n') ++p;
    ++p;
  }
  at = p + 1;
  return {start, static_cast<std::size_t>(p - start)};
}

std::string Cursor::raw_statement(Mark from, std::string_view what) {
  rewind(from);
  std::string out;
  std::size_t depth = 0;
  for (;;) {
    const char* before = at;
    skip();
    if (at != before && !out.empty()) out += ' ';
    if (*at == ';') break;
    if (at_end() || (*at == '}' && depth == 0))
      fail_expected("';' after '" + std::string(what) + "'");
    if (*at == '{') ++depth;
    if (*at == '}') --depth;
    if (*at == '"') {
      const std::string_view inside = string();
      out.append(inside.data() - 1, inside.size() + 2);
      continue;
    }
    if (!printable(*at)) fail_expected("';' after '" + std::string(what) + "'");
    out += *at++;
  }
  ++at;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string Cursor::describe(const char* where) const {
  if (where >= end_) return "end of text";
  const char* p = where;
  const bool word = *p == '.' || is(*p, kNameStart | kDigit);
  if (word) {
    ++p;
    while (is(*p, kNamePart)) ++p;
  } else if (*p == '"') {
    return "a string";
  } else if (!printable(*p)) {
    TextBuffer text(16);
    text << "byte 0x";
    text.hex(static_cast<unsigned char>(*p), 2);
    return text.take();
  } else {
    ++p;
  }
  constexpr std::size_t kLongest = 60;
  const std::string_view token(where, static_cast<std::size_t>(p - where));
  std::string text = "'" + std::string(token.substr(0, kLongest));
  text += token.size() > kLongest ? "...'" : "'";
  // A word that the end cuts off is seldom the mistake.
  if (word && p == end_) text += " at the end of the text";
  return text;
}

void Cursor::fail_expected(std::string_view what) {
  skip();
  fail(at, "expected " + std::string(what) + ", found " + describe(at));
}

void Cursor::fail(const char* where, std::string message) const {
  Error error(Stage::Verify, "syntax", std::move(message));
  const char* line_start = where;
  while (line_start != begin() && line_start[-1] != '\n') --line_start;
  error.file = file_;
  error.line = 1 + static_cast<std::uint32_t>(std::count(begin(), line_start, '\n'));
  error.column = 1 + static_cast<std::uint32_t>(where - line_start);
  error.kernel = kernel;
  error.excerpt = excerpt(where, error.line);
  throw error.refresh();
}

// The line, the line before if the place is where a line begins, and a caret under the place.
std::string Cursor::excerpt(const char* where, std::uint32_t number) const {
  const char* first = where;
  while (first != begin() && first[-1] != '\n') --first;
  const char* last = where;
  while (last != end_ && *last != '\n') ++last;
  if (last != first && last[-1] == '\r' && last - 1 >= where) --last;
  std::string out;
  const std::string label = std::to_string(number);
  const auto row = [&](std::string_view head, std::string_view text) {
    if (!out.empty()) out += '\n';
    out.append(label.size() - head.size(), ' ').append(head).append(" | ").append(text);
  };
  const bool begins_line = std::all_of(first, where, [](char c) { return is(c, kBlank); });
  if (begins_line && number > 1) {
    const char* before_last = first - 1;
    const char* before = before_last;
    while (before != begin() && before[-1] != '\n' && before_last - before < kBefore) --before;
    if (before != before_last && before_last[-1] == '\r') --before_last;
    row(std::to_string(number - 1),
        readable({before, static_cast<std::size_t>(before_last - before)}));
  }
  const bool cut = where - first > kBefore;
  const char* from = cut ? where - kBefore : first;
  const char* to = last - where > kAfter ? where + kAfter : last;
  row(label, (cut ? "..." : "") + readable({from, static_cast<std::size_t>(to - from)}) +
                 (to != last ? "..." : ""));
  row("", std::string(static_cast<std::size_t>(where - from) + (cut ? 3 : 0), ' ') + "^");
  return out;
}

}  // namespace ptxgen::inline v0::ptx::reading
