// tests/model/tokenizer/tokenizer_refusal_test.cpp - every refusal of tokenizers, by its text
#include <catch2/catch.hpp>
#include <limits>

#include "model/tokenizer/vocabulary_writer.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

template <class Run>
std::string refusal_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.file == "model.gguf");
    return error.code + ": " + error.message;
  }
  return "no error";
}
std::string refusal(const VocabularyWriter& writer) {
  return refusal_of([&] { (void)writer.read(); });
}
std::string refusal(const GgufWriter& writer) {
  return refusal_of([&] {
    const std::string bytes = writer.bytes();
    (void)Tokenizer::read(gguf::File::view(as_bytes(bytes), "model.gguf"));
  });
}

bool has_icu() { return !Tokenizer::supported_pre_tokenizers().empty(); }

}  // namespace

TEST_CASE("files without a tokenizer, or with another one") {
  CHECK(
      refusal(GgufWriter()) ==
      "no-tokenizer: the file has no key 'tokenizer.ggml.model', so no tokenizer; give the ids of "
      "tokens (--tokens) instead of text");
  VocabularyWriter writer = sentence_pieces();
  writer.model = "t5";
  CHECK(refusal(writer) ==
        "unsupported-tokenizer: key 'tokenizer.ggml.model' is 't5'; supported are llama "
        "(SentencePiece) and gpt2 (byte-level BPE); give the ids of tokens (--tokens) instead of "
        "text");
}

TEST_CASE("pre-tokenizers that are not there") {
  const std::string cure = "give the ids of tokens (--tokens) instead of text";
  if (has_icu()) {
    CHECK(
        refusal(byte_pairs("tekken\n")) ==
        "unsupported-pre-tokenizer: key 'tokenizer.ggml.pre' is 'tekken\\n'; supported are gpt-2, "
        "llama-bpe, qwen2, smollm; " +
            cure);
  } else {
    CHECK(refusal(byte_pairs("smollm")) ==
          "unsupported-pre-tokenizer: key 'tokenizer.ggml.pre' is 'smollm': byte-level BPE needs "
          "ICU, which this build of ptxgen is without; build it with PTXGEN_ICU=ON, or " +
              cure);
  }
  CHECK(refusal(byte_pairs("")) == "not-found: the file has no key 'tokenizer.ggml.pre'");
}

TEST_CASE("vocabularies that do not fit") {
  VocabularyWriter writer = sentence_pieces();
  writer.tokens.clear();
  CHECK(refusal(writer) ==
        "bad-vocabulary: key 'tokenizer.ggml.tokens' has 0 tokens in 0 bytes; expects 1 or more in "
        "less than 4 GiB");
  writer = sentence_pieces();
  writer.add("a\n").add("b").add("a\n");
  CHECK(refusal(writer) ==
        "bad-vocabulary: key 'tokenizer.ggml.tokens': tokens 259 and 261 have one text, \"a\\n\"");
  for (const int type : {0, 7}) {
    writer = sentence_pieces();
    writer.add("a", 0, static_cast<TokenType>(type));
    CHECK(refusal(writer) ==
          "bad-vocabulary: key 'tokenizer.ggml.token_type': token 259 has the "
          "type " +
              std::to_string(type) + "; expects 1 to 6");
  }
  writer = sentence_pieces();
  writer.add("a", std::numeric_limits<float>::quiet_NaN());
  CHECK(refusal(writer) ==
        "bad-vocabulary: key 'tokenizer.ggml.scores': the score of token 259 is no number");
}

TEST_CASE("arrays of other lengths and types") {
  const auto token = written_array(ValueType::string, {written("a"), written("b")});
  const auto model = [&] {
    GgufWriter writer;
    writer.key("tokenizer.ggml.model", written("llama"));
    return writer;
  };
  CHECK(refusal(model()) == "not-found: the file has no key 'tokenizer.ggml.tokens'");
  CHECK(refusal(model()
                    .key("tokenizer.ggml.tokens", token)
                    .key("tokenizer.ggml.add_bos_token", written(ValueType::boolean, 0))) ==
        "not-found: the file has no key 'tokenizer.ggml.scores'");
  CHECK(refusal(model().key("tokenizer.ggml.tokens", written("a")))
            .starts_with("type-mismatch: key 'tokenizer.ggml.tokens' at byte "));
  CHECK(refusal(model()
                    .key("tokenizer.ggml.tokens", token)
                    .key("tokenizer.ggml.token_type",
                         written_array(ValueType::i32, {written(ValueType::i32, 1)}))) ==
        "bad-vocabulary: key 'tokenizer.ggml.token_type' has 1 elements; expects 2, one for each "
        "token");
  CHECK(
      refusal(model()
                  .key("tokenizer.ggml.tokens", token)
                  .key("tokenizer.ggml.scores", written_array(ValueType::f32, {written(1.0F)}))
                  .key("tokenizer.ggml.add_bos_token", written(ValueType::boolean, 0))) ==
      "bad-vocabulary: key 'tokenizer.ggml.scores' has 1 elements; expects 2, one for each token");
}

TEST_CASE("ids beyond the vocabulary, and ids that are missing") {
  CHECK(
      refusal(sentence_pieces().id("bos", 259)) ==
      "bad-vocabulary: key 'tokenizer.ggml.bos_token_id' is token 259, and the vocabulary has 259 "
      "tokens");
  CHECK(refusal(sentence_pieces().id("eom", 1000))
            .starts_with("bad-vocabulary: key 'tokenizer.ggml.eom_token_id' is token 1000"));
  CHECK(refusal(sentence_pieces().flag("add_eos_token", true).id("eos", 0xffffffff)) ==
        "bad-vocabulary: key 'tokenizer.ggml.add_eos_token' asks for a token that key "
        "'tokenizer.ggml.eos_token_id' does not give");
  VocabularyWriter writer;
  writer.model = "llama";
  writer.add("a").flag("add_bos_token", false).id("unknown", 0xffffffff);
  CHECK(refusal(writer) ==
        "bad-vocabulary: no token for the byte <0x00>, and key 'tokenizer.ggml.unknown_token_id' "
        "gives none for text without tokens");
}

TEST_CASE("merges that do not fit") {
  if (!has_icu()) return skip("built without ICU (PTXGEN_ICU=OFF)");
  VocabularyWriter writer = byte_pairs("gpt-2");
  writer.merge("a", "b");
  writer.merges.emplace_back("ab c");
  CHECK(
      refusal(writer) ==
      "bad-vocabulary: key 'tokenizer.ggml.merges': merge 1, \"ab c\", names \"abc\", which is no "
      "token");
  writer.merges.back() = "xx c";
  CHECK(refusal(writer) ==
        "bad-vocabulary: key 'tokenizer.ggml.merges': merge 1, \"xx c\", names \"xx\", which is no "
        "token");
  for (const char* text : {"", " ", "ab", " ab"}) {
    writer.merges.back() = text;
    CHECK(refusal(writer) == "bad-vocabulary: key 'tokenizer.ggml.merges': merge 1, \"" +
                                 std::string(text) +
                                 "\", is no two tokens with a space between them");
  }
  for (const char* text : {"a ", "a b c"}) {
    writer.merges.back() = text;
    CHECK(refusal(writer).starts_with("bad-vocabulary: key 'tokenizer.ggml.merges': merge 1"));
  }
  writer = byte_pairs("gpt-2");
  writer.tokens.resize(0);
  writer.add("abc");
  CHECK(refusal(writer) ==
        "bad-vocabulary: key 'tokenizer.ggml.tokens' has no token of a single byte, which "
        "byte-level BPE begins with");
}

TEST_CASE("ids of tokens that do not exist") {
  const Tokenizer tokenizer = sentence_pieces().read();
  const std::string expected =
      "out-of-vocabulary: token 259 is beyond the vocabulary, which has 259 tokens";
  CHECK(refusal_of([&] { (void)tokenizer.decode(Ids{1, 259}); }) == expected);
  CHECK(refusal_of([&] { (void)tokenizer.piece(259); }) == expected);
  CHECK(refusal_of([&] { (void)tokenizer.text(259); }) == expected);
  CHECK(refusal_of([&] { (void)tokenizer.type(259); }) == expected);
  model::TextStream stream(tokenizer);
  CHECK(stream.push(3 + 0xc3) == "");
  CHECK(refusal_of([&] { (void)stream.push(259); }) == expected);
  CHECK(stream.push(3 + 0xa9) == "\xc3\xa9");  // as if it had not been there
}
