// tests/model/tokenizer/sentence_piece_test.cpp - SentencePiece: merges, bytes, spaces, special
// tokens
#include <catch2/catch.hpp>
#include <ctime>

#include "model/tokenizer/vocabulary_writer.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

constexpr model::EncodeOptions kPlainText{.add_special = true, .parse_special = false};
constexpr model::DecodeOptions kWithControl{.special = true, .continues = false};
constexpr model::DecodeOptions kContinues{.special = false, .continues = true};

// "a" to "d" and these.
VocabularyWriter letters(std::initializer_list<std::pair<const char*, float>> pieces) {
  VocabularyWriter writer = sentence_pieces();
  for (const char* letter : {"a", "b", "c", "d"}) writer.add(letter, -100);
  for (const auto& [text, score] : pieces) writer.add(text, score);
  return writer;
}

}  // namespace

TEST_CASE("the pair with the highest score is merged first") {
  CHECK(split(letters({{"ab", -2}, {"bc", -1}}).read(), "abc") == "a|bc");
  CHECK(split(letters({{"ab", -1}, {"bc", -2}}).read(), "abc") == "ab|c");
  // Not the longest token: "abc" cannot come from "a" and "bc" once "ab" and "cd" are there.
  CHECK(split(letters({{"ab", -1}, {"cd", -2}, {"bcd", -1}, {"abc", -3}}).read(), "abcd") ==
        "ab|cd");
  CHECK(split(letters({{"ab", -1}, {"cd", -2}, {"abcd", -9}}).read(), "abcd") == "abcd");
}

TEST_CASE("of pairs with equal scores the leftmost is merged") {
  const Tokenizer tokenizer = letters({{"ab", -1}, {"bc", -1}, {"aa", -1}, {"aaa", -1}}).read();
  CHECK(split(tokenizer, "abc") == "ab|c");
  CHECK(split(tokenizer, "aaaa") == "aaa|a");
  CHECK(split(tokenizer, "aaaaa") == "aaa|aa");
  CHECK(split(letters({{"aa", -1}}).read(), "aaaaa") == "aa|aa|a");
}

TEST_CASE("scores that are infinite") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(split(letters({{"ab", -infinity}, {"bc", infinity}}).read(), "abc") == "a|bc");
}

TEST_CASE("a merge that a neighbour's merge has overtaken is not done") {
  // "bc" is worth more than "ab", and is gone once it is "bcd".
  CHECK(split(letters({{"ab", -3}, {"bc", -1}, {"bcd", -2}}).read(), "abcd") == "a|bcd");
}

TEST_CASE("text without tokens becomes bytes") {
  const Tokenizer tokenizer = letters({{"\xc3\xa9", -1}}).read();
  CHECK(split(tokenizer, "a\xc3\xa9") == "a|\xc3\xa9");
  CHECK(split(tokenizer, "x\xc3\xa8") == "<0x78>|<0xC3>|<0xA8>");
  CHECK(split(tokenizer, "\xf0\x9f\x99\x82") == "<0xF0>|<0x9F>|<0x99>|<0x82>");
  // No UTF-8: a lead byte takes what follows along, as far as there is something.
  CHECK(split(tokenizer, "\xff") == "<0xFF>");
  CHECK(split(tokenizer, "\xc3") == "<0xC3>");
  CHECK(split(tokenizer,
              "\xc3"
              "a") == "<0xC3>|<0x61>");
  CHECK(split(tokenizer, "\xa9\xa9") == "<0xA9>|<0xA9>");
  CHECK(split(tokenizer, std::string_view("\0", 1)) == "<0x00>");
}

TEST_CASE("a byte without a byte token is the token of its text, or the unknown one") {
  VocabularyWriter writer;
  writer.model = "llama";
  writer.add("<unk>", 0, TokenType::Unknown).add("x").add("ab", -1);
  writer.flag("add_bos_token", false).flag("add_space_prefix", false);
  CHECK(writer.read().encode("xy\xc3\xa9") == Ids{1, 0, 0, 0});
}

TEST_CASE("spaces are U+2581, and one is put before text after tokens that are taken whole") {
  VocabularyWriter writer = sentence_pieces();
  writer.add("\xe2\x96\x81", -1)
      .add("a", -2)
      .add(
          "\xe2\x96\x81"
          "a",
          -3);
  CHECK(split(writer.read(), "a a") ==
        "a|\xe2\x96\x81"
        "a");
  CHECK(split(writer.read(), " ") == "\xe2\x96\x81");
  CHECK(split(writer.read(), "") == "");
  GgufWriter keys;
  keys.key("tokenizer.ggml.add_bos_token", written(ValueType::boolean, 0));
  writer.more = keys;  // the prefix is usual
  CHECK(split(writer.read(), "a a") ==
        "\xe2\x96\x81"
        "a|\xe2\x96\x81"
        "a");
  CHECK(split(writer.read(), "a</s>a<s><s>a") ==
        "\xe2\x96\x81"
        "a|</s>|\xe2\x96\x81"
        "a|<s>|<s>|\xe2\x96\x81"
        "a");
  CHECK(split(writer.read(), "") == "");
}

TEST_CASE("begin and end of text where the file asks for them") {
  VocabularyWriter writer = letters({});
  writer.more = {};
  CHECK(split(writer.flag("add_space_prefix", false).read(), "a") == "<s>|a");  // usual
  CHECK(split(writer.read(), "") == "<s>");
  writer.flag("add_eos_token", true);
  CHECK(split(writer.read(), "a") == "<s>|a|</s>");
  CHECK(split(writer.read(), "a", {.add_special = false, .parse_special = true}) == "a");
}

TEST_CASE("control tokens in a text are tokens, or text") {
  const Tokenizer tokenizer = letters({{"<", -1}, {"s", -1}, {">", -1}, {"<s", -1}}).read();
  CHECK(tokenizer.encode("a<s>b") == Ids{259, 1, 260});
  CHECK(split(tokenizer, "a<s>b<unk>") == "a|<s>|b|<unk>");
  CHECK(split(tokenizer, "<s") == "<s");
  // Merges may still lead to it, as in llama.cpp, where the vocabulary has the way.
  CHECK(tokenizer.encode("a<s>b", kPlainText) == Ids{259, 1, 260});
  CHECK(split(letters({{"<", -1}, {"s", -1}, {">", -1}}).read(), "<s>", kPlainText) == "<|s|>");
}

TEST_CASE("user-defined tokens are taken before merges, in any text") {
  VocabularyWriter writer = letters({{"==", -1}, {"=", -1}});
  writer.add("===", 0, TokenType::UserDefined).add("=a", 0, TokenType::UserDefined);
  CHECK(split(writer.read(), "=====", kPlainText) == "===|==");
  CHECK(split(writer.read(), "=a=") == "=a|=");
}

TEST_CASE(
    "the longest of the tokens that overlap is taken, then the lowest id, then the leftmost") {
  VocabularyWriter writer = letters({});
  const auto user = TokenType::UserDefined;
  writer.add("ab", 0, user).add("bcd", 0, user).add("dd", 0, user).add("da", 0, user);
  const Tokenizer tokenizer = writer.read();
  CHECK(split(tokenizer, "abcd") == "a|bcd");
  CHECK(split(tokenizer, "abab") == "ab|ab");
  CHECK(split(tokenizer, "dda") == "dd|a");  // "dd" has the lower id
  CHECK(split(tokenizer, "ddd") == "dd|d");
  CHECK(split(tokenizer, "bcdab") == "bcd|ab");
  // A longer one that is overlapped leaves its place to a shorter one.
  writer.add("dab", 0, user).add("bcdd", 0, user);
  CHECK(split(writer.read(), "bcddab") == "bcdd|ab");
  writer.add("dabc", 0, user).add("cdabcd", 0, user);
  CHECK(split(writer.read(), "bcdabcdab") == "b|cdabcd|ab");
}

TEST_CASE("where a longer token does not fit, a shorter one with the same beginning may") {
  VocabularyWriter writer = letters({});
  const auto user = TokenType::UserDefined;
  // No merges lead to these.
  writer.add("xyz", 0, user).add("xyza", 0, user).add("aaxyza", 0, user).add("abbbb", 0, user);
  CHECK(split(writer.read(), "xyzabbbb") == "xyz|abbbb");
  CHECK(split(writer.read(), "aaxyzabbbb") == "aaxyza|b|b|b|b");
  CHECK(split(writer.read(), "xyzaxyz") == "xyza|xyz");
}

TEST_CASE("user-defined tokens of spaces and line ends") {
  VocabularyWriter writer = letters({{"\n", -1}});
  const auto user = TokenType::UserDefined;
  writer.add("\n\n", 0, user).add("\n\n\n", 0, user).add("\n\n\n\n", 0, user);
  CHECK(writer.read().encode("a\n\n\n\n\n\nb") == Ids{259, 266, 264, 260});
}

TEST_CASE("text of SentencePiece tokens") {
  VocabularyWriter writer = letters({{"\xe2\x96\x81", -1}});
  writer.add(
      "\xe2\x96\x81\xe2\x96\x81"
      "a",
      -1);
  writer.add("[x]", 0, TokenType::UserDefined).add("<unused>", 0, TokenType::Unused);
  const Tokenizer tokenizer = writer.read();
  CHECK(tokenizer.decode(Ids{1, 264, 3 + 0xc3, 3 + 0xa9, 265, 266, 2}) == "  a\xc3\xa9[x]");
  CHECK(tokenizer.decode(Ids{1, 264, 265, 266, 0, 2}, kWithControl) ==
        "<s>  a[x]<unused><unk></s>");
  CHECK(tokenizer.piece(264) == "  a");
  CHECK(tokenizer.piece(1) == "");
  CHECK(tokenizer.piece(1, kWithControl) == "<s>");
  CHECK(tokenizer.piece(3 + 0xff) == "\xff");
  CHECK(tokenizer.text(264) ==
        "\xe2\x96\x81\xe2\x96\x81"
        "a");
}

TEST_CASE("the space before a text is not part of it") {
  VocabularyWriter writer = letters({{"\xe2\x96\x81", -1}});
  writer.more = {};
  const Tokenizer tokenizer = writer.flag("add_bos_token", false).read();
  for (const char* text : {"a", " a", "a b", "", " ", "a</s>b", "a</s> b", "</s>", "</s></s> a "}) {
    CAPTURE(text);
    CHECK(tokenizer.decode(tokenizer.encode(text), kWithControl) == text);
  }
  const Ids word = tokenizer.encode("a");
  CHECK(tokenizer.decode(word) == "a");
  CHECK(tokenizer.decode(word, kContinues) == " a");
}

TEST_CASE("ids with a meaning") {
  VocabularyWriter writer = letters({});
  CHECK(writer.read().bos() == 1U);
  CHECK(writer.read().eos() == 2U);
  CHECK_FALSE(writer.read().eot());
  writer.add("<end_of_turn>", 0, TokenType::Control).add("<|endoftext|>");
  const Tokenizer tokenizer = writer.read();
  CHECK(tokenizer.eot() == 263U);
  CHECK(Ids(tokenizer.ends().begin(), tokenizer.ends().end()) == Ids{2, 263, 264});
  CHECK(tokenizer.is_end(263));
  CHECK_FALSE(tokenizer.is_end(1));
  writer.id("eos", 262).id("bos", 0xffffffff).id("eot", 261).id("eom", 260);
  CHECK_FALSE(writer.read().bos());
  CHECK(writer.read().eot() == 261U);
  const Tokenizer other = writer.read();
  CHECK(Ids(other.ends().begin(), other.ends().end()) == Ids{260, 261, 262, 263, 264});
  CHECK(tokenizer.find("<end_of_turn>") == 263U);
  CHECK_FALSE(tokenizer.find("none"));
  CHECK_FALSE(tokenizer.find(""));
  CHECK(tokenizer.size() == 265);
  CHECK(tokenizer.kind() == model::TokenizerKind::SentencePiece);
  CHECK(tokenizer.type(263) == TokenType::Control);
}

TEST_CASE("empty tokens never come from a text") {
  VocabularyWriter writer = letters({{"", 5}, {"", 5}});
  writer.add("", 0, TokenType::Control).add("", 0, TokenType::UserDefined);
  CHECK(writer.read().encode("ab") == Ids{259, 260});
  CHECK(writer.read().decode(Ids{259, 263, 265, 266, 260}) == "ab");
}

TEST_CASE("a tokenizer does not need its file") {
  auto file = std::make_unique<std::string>(letters({{"ab", -1}}).bytes());
  const Tokenizer read = Tokenizer::read(gguf::File::view(as_bytes(*file), "model.gguf"));
  std::fill(file->begin(), file->end(), '\xee');
  file.reset();
  CHECK(split(read, "ab<s>") == "ab|<s>");
}

// A quadratic way would take minutes.
TEST_CASE("time in proportion to the text") {
  VocabularyWriter writer = letters({{"\xe2\x96\x81", -1}});
  std::string text = "a";
  for (int i = 1; i < 8; ++i) {
    text += text;
    writer.add(text, static_cast<float>(-i))
        .add(std::string(text.size(), '<'), 0, TokenType::UserDefined);
  }
  const Tokenizer tokenizer = writer.read();
  const std::size_t size = std::size_t{1} << 18;
  const std::clock_t start = std::clock();
  CHECK(tokenizer.encode(std::string(size, 'a')).size() == size / 128);
  CHECK(tokenizer.encode(std::string(size, '<')).size() == size / 128);
  CHECK(tokenizer.encode(std::string(size, ' ')).size() == size);
  CHECK(tokenizer.encode(std::string(size, '\xf0')).size() == size);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 20);
}
