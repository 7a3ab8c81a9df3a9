// tests/model/tokenizer/tokenizer_property_test.cpp - random texts and vocabularies
#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/vocabulary_writer.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr model::DecodeOptions kWithControl{.special = true, .continues = false};

constexpr std::string_view kSpace = "\xe2\x96\x81";

std::string with_spaces(std::string text) {
  for (std::size_t at = text.find(kSpace); at != text.npos; at = text.find(kSpace, at)) {
    text.replace(at, kSpace.size(), " ");
  }
  return text;
}

std::string utf8(std::uint32_t code) {
  const auto byte = [](std::uint32_t value) {
    return static_cast<char>(static_cast<std::uint8_t>(value));
  };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
  if (code < 0x10000) {
    return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
  }
  return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)),
          byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
}

std::uint32_t random_code() {
  const std::uint32_t last = *rc::gen::element(0x7fU, 0x7fU, 0x2ffU, 0xffffU, 0x10ffffU);
  const auto code = *rc::gen::inRange<std::uint32_t>(0, last);
  return code >= 0xd800 && code < 0xe000 ? '!' : code;
}
std::string random_utf8() {
  std::string text;
  for (int left = *rc::gen::inRange(0, 30); left > 0; --left) text += utf8(random_code());
  return text;
}
std::string random_bytes() {
  std::string text = random_utf8();
  for (int left = *rc::gen::inRange(0, 6); left > 0; --left) {
    const auto place = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    text.insert(place, 1, static_cast<char>(*rc::gen::inRange(0, 256)));
  }
  return text;
}
// With letters that the vocabularies below have tokens for.
std::string random_text() {
  std::string text;
  for (int left = *rc::gen::inRange(1, 5); left > 0; --left) {
    text += *rc::gen::element(0, 1) == 0 ? random_bytes() : "";
    text += *rc::gen::container<std::string>(rc::gen::element('a', 'a', 'b', 'c', ' ', '1', '\n'));
    text += *rc::gen::element(std::string(), std::string("<s>"), std::string("<|end|>"),
                              std::string("\xc3\xa9"));
  }
  return text;
}

// Merges of tokens that are there.
VocabularyWriter random_pairs(const std::string& pre) {
  VocabularyWriter writer = byte_pairs(pre);
  std::vector<std::string> parts = {"a",        "b",        "c",        "1",
                                    "\xc4\xa0", "\xc4\x8a", "\xc3\x83", "\xc2\xa9"};
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    const std::string first = *rc::gen::elementOf(parts);
    const std::string second = *rc::gen::elementOf(parts);
    if (first.size() + second.size() > 12) continue;
    writer.merge(first, second);
    parts.push_back(first + second);
  }
  return writer;
}

VocabularyWriter random_pieces() {
  VocabularyWriter writer = sentence_pieces();
  writer.add("\xe2\x96\x81", -9);
  for (int left = *rc::gen::inRange(0, 25); left > 0; --left) {
    const std::string text = *rc::gen::container<std::string>(*rc::gen::inRange<std::size_t>(1, 5),
                                                              rc::gen::element('a', 'b', 'c'));
    if (!writer.find(text)) writer.add(text, static_cast<float>(*rc::gen::inRange(-4, 0)));
  }
  if (*rc::gen::arbitrary<bool>()) {
    writer.more = {};
    writer.flag("add_bos_token", false);
  }
  return writer;
}

struct Scored {
  double score = 0;
  bool possible = false;
};

// By the definition: the best pair of all, the leftmost of equal ones, until there is none.
template <class ScoreOf>
std::vector<std::string> merged_slowly(std::vector<std::string> parts, const ScoreOf& score_of) {
  while (true) {
    std::size_t best = 0;
    Scored highest;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const Scored next = score_of(parts[i], parts[i + 1]);
      if (next.possible && (!highest.possible || next.score > highest.score)) {
        highest = next;
        best = i;
      }
    }
    if (!highest.possible) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// What encodes as it is read.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto lead = static_cast<std::uint8_t>(text[0]);
    const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (bytes > text.size()) return false;
    std::uint32_t code = bytes == 1 ? lead : lead & (0xffU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
      code = code << 6 | (static_cast<std::uint8_t>(text[i]) & 0x3fU);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    if (utf8(code) != text.substr(0, bytes)) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool has_icu() {
  if (!Tokenizer::supported_pre_tokenizers().empty()) return true;
  skip("built without ICU (PTXGEN_ICU=OFF)");
  return false;
}

}  // namespace

TEST_CASE("byte-level BPE gives every text back") {
  if (!has_icu()) return;
  rc::prop("decode is the reverse of encode", [] {
    const std::string pre(
        *rc::gen::elementOf(std::vector<std::string>{"gpt-2", "smollm", "qwen2", "llama-bpe"}));
    const Tokenizer tokenizer = random_pairs(pre).read();
    const std::string text = random_text();
    const Ids ids = tokenizer.encode(text);
    RC_ASSERT(tokenizer.decode(ids, kWithControl) == text);
    RC_ASSERT(std::ranges::all_of(ids, [&](std::uint32_t id) { return id < tokenizer.size(); }));
  });
}

TEST_CASE("SentencePiece gives every text back") {
  rc::prop("decode is the reverse of encode, but for U+2581", [] {
    const Tokenizer tokenizer = random_pieces().read();
    const std::string text = random_text();
    RC_PRE(text.find(kSpace) == text.npos);
    const std::string back = tokenizer.decode(tokenizer.encode(text), kWithControl);
    // A lead byte that is no UTF-8 may part the three bytes that stand for a space after it.
    RC_ASSERT((is_utf8(text) ? back : with_spaces(back)) == text);
  });
}

TEST_CASE("pieces of pre-tokenizers are the text") {
  if (!has_icu()) return;
  rc::prop("none is empty, and they join", [] {
    const std::string text = random_bytes();
    for (const std::string_view name : Tokenizer::supported_pre_tokenizers()) {
      std::string joined;
      for (const std::string_view piece : model::PreTokenizer(name).split(text)) {
        RC_ASSERT(!piece.empty());
        joined += piece;
      }
      RC_ASSERT(joined == text);
    }
  });
}

TEST_CASE("streaming gives the whole text in whole characters") {
  rc::prop("joined pieces are decode's text; each is UTF-8 if the text is", [] {
    VocabularyWriter writer = random_pieces();
    const Tokenizer tokenizer = writer.read();
    const bool is_valid = *rc::gen::arbitrary<bool>();
    const std::string text = is_valid ? random_utf8() : random_text();
    RC_PRE(text.find(kSpace) == text.npos);
    const Ids ids = tokenizer.encode(text);
    model::TextStream stream(tokenizer);
    std::string joined;
    for (const std::uint32_t id : ids) {
      const std::string piece = stream.push(id);
      if (is_valid) RC_ASSERT(is_utf8(piece));
      joined += piece;
    }
    const std::string rest = stream.finish();
    if (is_valid) RC_ASSERT(rest.empty());
    RC_ASSERT(rest.size() <= 3U);
    RC_ASSERT(joined + rest == tokenizer.decode(ids));
  });
}

TEST_CASE("merges by score are those of the definition") {
  rc::prop("the same tokens", [] {
    VocabularyWriter writer = random_pieces();
    const Tokenizer tokenizer = writer.read();
    const std::string text =
        *rc::gen::container<std::string>(rc::gen::element('a', 'a', 'b', 'c', 'd'));
    std::vector<std::string> parts;
    for (const char letter : text) parts.emplace_back(1, letter);
    const auto score_of = [&](const std::string& left, const std::string& right) {
      const auto id = tokenizer.find(left + right);
      return id ? Scored{writer.tokens[*id].score, true} : Scored{};
    };
    Ids expected;
    if (writer.more.bytes() != sentence_pieces().more.bytes()) {
      parts.insert(parts.begin(), "\xe2\x96\x81");
      RC_PRE(!text.empty());
    }
    for (const std::string& part : merged_slowly(parts, score_of)) {
      const auto id = tokenizer.find(part);
      if (id) {
        expected.push_back(*id);
      } else {
        for (const char byte : part) expected.push_back(3U + static_cast<std::uint8_t>(byte));
      }
    }
    RC_ASSERT(tokenizer.encode(text) == expected);
  });
}

TEST_CASE("merges by rank are those of the definition") {
  if (!has_icu()) return;
  rc::prop("the same tokens", [] {
    VocabularyWriter writer = random_pairs("qwen2");
    const Tokenizer tokenizer = writer.read();
    const std::string text = *rc::gen::container<std::string>(rc::gen::element('a', 'a', 'b', 'c'));
    std::vector<std::string> parts;
    for (const char letter : text) parts.emplace_back(1, letter);
    const auto score_of = [&](const std::string& left, const std::string& right) {
      const auto found = std::ranges::find(writer.merges, left + " " + right);
      return found == writer.merges.end()
                 ? Scored{}
                 : Scored{-static_cast<double>(found - writer.merges.begin()), true};
    };
    Ids expected;
    for (const std::string& part : merged_slowly(parts, score_of)) {
      expected.push_back(*tokenizer.find(part));
    }
    RC_ASSERT(tokenizer.encode(text) == expected);
  });
}

TEST_CASE("a stream keeps the bytes of a character until it is complete") {
  const Tokenizer tokenizer = sentence_pieces().read();
  const auto byte = [](int value) { return 3U + static_cast<std::uint32_t>(value); };
  model::TextStream stream(tokenizer);
  CHECK(stream.push(byte(0xf0)) == "");
  CHECK(stream.push(byte(0x9f)) == "");
  CHECK(stream.push(byte(0x99)) == "");
  CHECK(stream.push(byte(0x82)) == "\xf0\x9f\x99\x82");
  CHECK(stream.push(byte('a')) == "a");
  CHECK(stream.push(1) == "");
  // What cannot become a character is not kept.
  CHECK(stream.push(byte(0xff)) == "\xff");
  CHECK(stream.push(byte(0xc0)) == "\xc0");
  CHECK(stream.push(byte(0x80)) == "\x80");
  CHECK(stream.push(byte(0xe0)) == "");
  CHECK(stream.push(byte(0x80)) == "\xe0\x80");
  CHECK(stream.push(byte(0xed)) == "");
  CHECK(stream.push(byte(0xa0)) == "\xed\xa0");
  CHECK(stream.push(byte(0xf4)) == "");
  CHECK(stream.push(byte(0x90)) == "\xf4\x90");
  CHECK(stream.push(byte(0xc3)) == "");
  CHECK(stream.push(byte('b')) ==
        "\xc3"
        "b");
  CHECK(stream.push(byte(0xe2)) == "");
  CHECK(stream.push(byte(0x96)) == "");
  CHECK(stream.finish() == "\xe2\x96");
  CHECK(stream.finish() == "");
}
