// tests/model/tokenizer/byte_pairs_test.cpp - byte-level BPE: merges, pieces of pre-tokenizers
#include <catch2/catch.hpp>
#include <ctime>

#include "model/tokenizer/hash_index.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/vocabulary_writer.hpp"
#include "support/harness.hpp"
#include "support/hash.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using model::PreTokenizer;

namespace {

// Whether the case has to be left.
bool is_without_icu() {
  if (!Tokenizer::supported_pre_tokenizers().empty()) return false;
  skip("built without ICU (PTXGEN_ICU=OFF)");
  return true;
}

using Pieces = std::vector<std::string>;
Pieces pieces(std::string_view name, std::string_view text) {
  const PreTokenizer pre_tokenizer(name);
  const std::vector<std::string_view> found = pre_tokenizer.split(text);
  return {found.begin(), found.end()};
}

VocabularyWriter hello(const std::string& pre) {
  VocabularyWriter writer = byte_pairs(pre);
  writer.merge("l", "l").merge("h", "e").merge("he", "ll").merge("hell", "o");
  return writer;
}

}  // namespace

TEST_CASE("bytes as characters") {
  CHECK(model::byte_character('A') == "A");
  CHECK(model::byte_character(' ') == "\xc4\xa0");   // U+0120
  CHECK(model::byte_character('\n') == "\xc4\x8a");  // U+010A
  CHECK(model::byte_character(0) == "\xc4\x80");     // U+0100
  CHECK(model::byte_character(0xad) == "\xc5\x83");  // U+0143, the last
  CHECK(model::byte_character(0xff) == "\xc3\xbf");  // U+00FF
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(model::bytes_of_characters(model::byte_characters(all)) == all);
  // Not of the 256: as they are.
  CHECK(model::bytes_of_characters("\xe2\x96\x81|\xc5\x84 \xff") == "\xe2\x96\x81|\xc5\x84 \xff");
}

TEST_CASE("pairs are merged by rank") {
  if (is_without_icu()) return;
  CHECK(split(hello("gpt-2").read(), "hello") == "hello");
  CHECK(split(hello("gpt-2").read(), "hell") == "hell");
  CHECK(split(hello("gpt-2").read(), "ello") == "e|ll|o");
  CHECK(split(hello("gpt-2").read(), "helo") == "he|l|o");
  VocabularyWriter writer = byte_pairs("gpt-2");
  writer.merge("b", "c").merge("a", "b");
  CHECK(split(writer.read(), "abc") == "a|bc");
  writer = byte_pairs("gpt-2");
  writer.merge("a", "a");
  CHECK(split(writer.read(), "aaaaa") == "aa|aa|a");
  writer.merges.emplace_back("a a");  // the first one counts
  writer.merge("aa", "a");
  CHECK(split(writer.read(), "aaaaa") == "aa|aaa");
}

TEST_CASE("no pair of two pieces is merged") {
  if (is_without_icu()) return;
  VocabularyWriter writer = byte_pairs("gpt-2");
  writer.merge("a", "\xc4\xa0").merge("\xc4\xa0", "b").merge("1", "2");
  CHECK(split(writer.read(), "a b12") ==
        "a|\xc4\xa0"
        "b|12");
  writer.pre = "smollm";
  CHECK(split(writer.read(), "a b12") ==
        "a|\xc4\xa0"
        "b|1|2");
}

TEST_CASE("llama-bpe takes a piece that is a token, whatever the merges") {
  if (is_without_icu()) return;
  VocabularyWriter writer = byte_pairs("llama-bpe");
  writer.add("xyz").merge("x", "y");
  CHECK(split(writer.read(), "xyz xyz") == "xyz|\xc4\xa0|xy|z");
  writer.pre = "qwen2";
  CHECK(split(writer.read(), "xyz") == "xy|z");
}

TEST_CASE("llama-bpe begins texts where the file does not say otherwise") {
  if (is_without_icu()) return;
  VocabularyWriter writer = byte_pairs("llama-bpe");
  writer.more = {};
  writer.id("bos", 256);
  CHECK(split(writer.read(), "a") == "<|end|>|a");
  writer.pre = "qwen2";
  CHECK(split(writer.read(), "a") == "a");
}

TEST_CASE("a byte without a token is left out, and parts its neighbours") {
  if (is_without_icu()) return;
  VocabularyWriter writer = byte_pairs("gpt-2");
  writer.tokens['x'].text = "[no x]";
  writer.merge("a", "a");
  CHECK(split(writer.read(), "axa aa") == "a|a|\xc4\xa0|aa");
}

TEST_CASE("control tokens of byte-level BPE") {
  if (is_without_icu()) return;
  VocabularyWriter writer = hello("smollm");
  writer.add("\xc4\xa0(", 0, TokenType::UserDefined);
  const Tokenizer tokenizer = writer.read();
  CHECK(tokenizer.encode("hello<|end|> hello").size() == 4);
  CHECK(split(tokenizer, "hello<|end|>") == "hello|<|end|>");
  CHECK(split(tokenizer, "<|end|>", {.add_special = true, .parse_special = false}) ==
        "<|||e|n|d|||>");
  CHECK(tokenizer.eot() == 256U);
  CHECK(tokenizer.kind() == model::TokenizerKind::ByteLevelBpe);
  CHECK(tokenizer.decode(tokenizer.encode("hello<|end|> \xc3\xa9")) == "hello \xc3\xa9");
  // The text of a user-defined token is no bytes in disguise.
  CHECK(tokenizer.piece(static_cast<std::uint32_t>(tokenizer.size() - 1)) == "\xc4\xa0(");
}

TEST_CASE("pieces of gpt-2") {
  if (is_without_icu()) return;
  const auto gpt2 = [](std::string_view text) { return pieces("gpt-2", text); };
  CHECK(gpt2("").empty());
  CHECK(gpt2("Hello world") == Pieces{"Hello", " world"});
  CHECK(gpt2("I'm DON'T they'll") == Pieces{"I", "'m", " DON", "'", "T", " they", "'ll"});
  CHECK(gpt2("abc123 456!?") == Pieces{"abc", "123", " 456", "!?"});
  // The last space goes with the word, the ones before it stay together.
  CHECK(gpt2("a   b") == Pieces{"a", "  ", " b"});
  CHECK(gpt2("a  ") == Pieces{"a", "  "});
  CHECK(gpt2("a\tb") == Pieces{"a", "\t", "b"});
  CHECK(gpt2("a\n\nb") == Pieces{"a", "\n", "\n", "b"});
  CHECK(gpt2("\xc2\xa0\xe3\x80\x80x") == Pieces{"\xc2\xa0", "\xe3\x80\x80", "x"});
  // U+000B and U+0085 are white space, too.
  CHECK(gpt2("!\v\xc2\x85!") == Pieces{"!", "\v", "\xc2\x85", "!"});
  // Letters with a combining mark that is none; digits of other scripts; an emoji.
  CHECK(gpt2("e\xcc\x81") == Pieces{"e", "\xcc\x81"});
  CHECK(gpt2("\xd9\xa1\xc2\xbd\xe2\x85\xa3z") == Pieces{"\xd9\xa1\xc2\xbd\xe2\x85\xa3", "z"});
  CHECK(gpt2("ok \xf0\x9f\x99\x82x") == Pieces{"ok", " \xf0\x9f\x99\x82", "x"});
  // Bytes that are no UTF-8 are symbols.
  CHECK(gpt2("a\xff\xfe!b \xc3 c") == Pieces{"a", "\xff\xfe!", "b", " \xc3", " c"});
  CHECK(gpt2("\xf0\x9f") == Pieces{"\xf0\x9f"});
}

TEST_CASE("pieces of smollm") {
  if (is_without_icu()) return;
  const auto smollm = [](std::string_view text) { return pieces("smollm", text); };
  CHECK(smollm("abc123 456") == Pieces{"abc", "1", "2", "3", " ", "4", "5", "6"});
  CHECK(smollm("I've 2 cats") == Pieces{"I", "'ve", " ", "2", " cats"});
  CHECK(smollm("\xd9\xa1\xd9\xa2") == Pieces{"\xd9\xa1", "\xd9\xa2"});
  // White space before a digit ends there: none of it goes with the digit.
  CHECK(smollm("a   1") == Pieces{"a", "   ", "1"});
  CHECK(smollm("a   b") == Pieces{"a", "  ", " b"});
}

TEST_CASE("pieces of qwen2") {
  if (is_without_icu()) return;
  const auto qwen2 = [](std::string_view text) { return pieces("qwen2", text); };
  CHECK(qwen2("Hello world") == Pieces{"Hello", " world"});
  CHECK(qwen2("DON'T we'Ll") == Pieces{"DON", "'T", " we", "'Ll"});
  CHECK(qwen2("abc1234") == Pieces{"abc", "1", "2", "3", "4"});
  // One symbol or space that is no line end goes with the word.
  CHECK(qwen2("(a\tb\nc") == Pieces{"(a", "\tb", "\n", "c"});
  CHECK(qwen2("f(x);\n\n  }") == Pieces{"f", "(x", ");\n\n", " ", " }"});
  CHECK(qwen2("a \n \nb") == Pieces{"a", " \n \n", "b"});
  CHECK(qwen2("a   b") == Pieces{"a", "  ", " b"});
  CHECK(qwen2("a 1") == Pieces{"a", " ", "1"});
  CHECK(qwen2("a\r\n") == Pieces{"a", "\r\n"});
  // U+017F is no s.
  CHECK(qwen2("a'\xc5\xbf") == Pieces{"a", "'\xc5\xbf"});
}

TEST_CASE("pieces of llama-bpe") {
  if (is_without_icu()) return;
  const auto llama = [](std::string_view text) { return pieces("llama-bpe", text); };
  CHECK(llama("abc1234567 89") == Pieces{"abc", "123", "456", "7", " ", "89"});
  CHECK(llama("it'S (ok)") == Pieces{"it", "'S", " (", "ok", ")"});
  CHECK(llama("x = 10;\n\ty") == Pieces{"x", " =", " ", "10", ";\n", "\ty"});
}

TEST_CASE("pre-tokenizers that are there") {
  if (is_without_icu()) return;
  const auto names = Tokenizer::supported_pre_tokenizers();
  CHECK(Pieces(names.begin(), names.end()) == Pieces{"gpt-2", "llama-bpe", "qwen2", "smollm"});
}

// Also where the patterns have to go back: spaces without an end of line, one piece for all.
TEST_CASE("byte-level BPE in time in proportion to the text") {
  if (is_without_icu()) return;
  for (const std::string_view name : Tokenizer::supported_pre_tokenizers()) {
    CAPTURE(name);
    VocabularyWriter writer = byte_pairs(std::string(name));
    std::string text = "a";
    for (int i = 1; i < 8; ++i) {
      writer.merge(text, text);
      text += text;
    }
    const Tokenizer tokenizer = writer.read();
    const std::size_t size = std::size_t{1} << 18;
    const std::clock_t start = std::clock();
    CHECK(tokenizer.encode(std::string(size, 'a')).size() == size / 128);
    CHECK(tokenizer.encode(std::string(size, ' ')).size() == size);
    CHECK(tokenizer.encode(std::string(size, ' ') + "b").size() == size + 1);
    CHECK(tokenizer.encode(std::string(size, '1')).size() == size);
    CHECK(tokenizer.encode(std::string(size, '\n')).size() == size);
    CHECK(tokenizer.encode(std::string(size, '\xff')).size() == size);
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 20);
  }
}

TEST_CASE("an index finds the elements of a list by the hash of their key") {
  // One hash for all, two for all, and one for each: colliding keys are told apart.
  for (const std::uint64_t hashes : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32}) {
    INFO(hashes << " hashes");
    std::vector<std::string> keys;
    constexpr std::uint32_t kKeys = 200;
    model::HashIndex index(kKeys);
    const auto hash_of = [&](std::string_view key) {
      return hash64(key.data(), key.size()) % hashes;
    };
    const auto find = [&](std::string_view key) {
      return index.find(hash_of(key), [&](std::uint32_t number) { return keys[number] == key; });
    };
    for (std::uint32_t i = 0; i < kKeys; ++i) {
      const std::string key = std::to_string(i);
      CHECK(find(key) == model::HashIndex::kNone);
      keys.push_back(key);
      const auto is_it = [&](std::uint32_t number) { return keys[number] == key; };
      CHECK(index.add(hash_of(key), i, is_it) == i);
      CHECK(index.add(hash_of(key), 1000, is_it) == i);
    }
    for (std::uint32_t i = 0; i < kKeys; ++i) CHECK(find(keys[i]) == i);
    CHECK(find("200") == model::HashIndex::kNone);
  }
  const auto any = [](std::uint32_t) { return true; };
  CHECK(model::HashIndex().find(7, any) == model::HashIndex::kNone);
  CHECK(model::HashIndex(0).find(7, any) == model::HashIndex::kNone);
}
