// src/model/tokenizer/pre_tokenizer_icu.cpp - pre-tokenizers as regular expressions of ICU
#include <unicode/regex.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <array>
#include <memory>
#include <string>

#include "model/format.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

// ICU's manual leaves U+000B and U+0085 out of `\s`, its code does not: the property has them.
#define PTXGEN_SPACE "\\p{White_Space}"
#define PTXGEN_LAST_SPACE PTXGEN_SPACE "+(?!\\P{White_Space})"
#define PTXGEN_CONTRACTION "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"

constexpr const char* kGpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" PTXGEN_SPACE
                              "\\p{L}\\p{N}]+|" PTXGEN_LAST_SPACE "|" PTXGEN_SPACE "+";
constexpr const char* kDigit = "\\p{N}";

// Of Qwen 2 and Llama 3, which differ in the digits of a piece.
#define PTXGEN_CL100K(digits)                                                                \
  PTXGEN_CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" PTXGEN_SPACE           \
                     "\\p{L}\\p{N}]+[\\r\\n]*|" PTXGEN_SPACE "*[\\r\\n]+|" PTXGEN_LAST_SPACE \
                     "|" PTXGEN_SPACE "+"
constexpr const char* kQwen2 = PTXGEN_CL100K("\\p{N}");
constexpr const char* kLlama3 = PTXGEN_CL100K("\\p{N}{1,3}");
#undef PTXGEN_CL100K
#undef PTXGEN_CONTRACTION
#undef PTXGEN_LAST_SPACE
#undef PTXGEN_SPACE

// Each pattern cuts the pieces of the one before; what is between matches is a piece, too.
struct Row {
  std::string_view name;
  std::array<const char*, 2> patterns;  // null: no more
};
constexpr std::array<Row, 4> kRows = {{
    {"gpt-2", {kGpt2, nullptr}},
    {"llama-bpe", {kLlama3, nullptr}},
    {"qwen2", {kQwen2, nullptr}},
    {"smollm", {kDigit, kGpt2}},
}};

constexpr auto kNames = [] {
  std::array<std::string_view, kRows.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kRows[i].name;
  return names;
}();

[[noreturn]] void failed(std::string_view what, UErrorCode status) {
  throw Error(Stage::Io, "pre-tokenizer",
              format_text("ICU cannot {}: {}", what, u_errorName(status)));
}

// The code at a place, which moves on; U+FFFD for bytes that are no UTF-8.
UChar32 next_code(std::string_view text, std::int32_t& at) {
  const auto size = static_cast<std::int32_t>(text.size());
  UChar32 code = 0;
// The macro converts implicitly.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
  U8_NEXT_OR_FFFD(text.data(), at, size, code);
#pragma GCC diagnostic pop
  return code;
}

icu::UnicodeString utf16_of(std::string_view text) {
  const auto size = static_cast<std::int32_t>(text.size());
  icu::UnicodeString result(size, 0, 0);
  for (std::int32_t at = 0; at < size;) result.append(next_code(text, at));
  return result;
}

using Bounds = std::vector<std::int32_t>;  // of pieces, in units of UTF-16; the first is 0

Bounds cut(const icu::RegexPattern& pattern, const icu::UnicodeString& text, const Bounds& pieces) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::RegexMatcher> matcher(pattern.matcher(text, status));
  if (U_FAILURE(status)) failed("match", status);
  Bounds result = {0};
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    // The pattern sees the piece alone: bounds are opaque.
    matcher->region(pieces[i - 1], pieces[i], status);
    while (matcher->find(status)) {
      const std::int32_t begin = matcher->start(status);
      if (begin > result.back()) result.push_back(begin);
      result.push_back(matcher->end(status));
    }
    if (pieces[i] > result.back()) result.push_back(pieces[i]);
    if (U_FAILURE(status)) failed("match", status);
  }
  return result;
}

}  // namespace

struct PreTokenizer::Patterns {
  std::vector<std::unique_ptr<icu::RegexPattern>> list;
};

std::span<const std::string_view> PreTokenizer::names() noexcept { return kNames; }

PreTokenizer::PreTokenizer(std::string_view name) : patterns_(Hidden<Patterns>::make()) {
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    for (const char* pattern : row.patterns) {
      if (pattern == nullptr) break;
      UErrorCode status = U_ZERO_ERROR;
      patterns_->list.emplace_back(
          icu::RegexPattern::compile(icu::UnicodeString(pattern, -1, US_INV), 0, status));
      if (U_FAILURE(status)) failed("compile " + std::string(pattern), status);
    }
  }
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  const icu::UnicodeString utf16 = utf16_of(text);
  Bounds bounds = {0, utf16.length()};
  for (const auto& pattern : patterns_->list) bounds = cut(*pattern, utf16, bounds);
  std::vector<std::string_view> pieces;
  pieces.reserve(bounds.size());
  std::int32_t at = 0;
  std::int32_t unit = 0;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    const std::int32_t begin = at;
    while (unit < bounds[i]) unit += U16_LENGTH(next_code(text, at));
    pieces.push_back(
        text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(at - begin)));
  }
  return pieces;
}

}  // namespace ptxgen::inline v0::model
