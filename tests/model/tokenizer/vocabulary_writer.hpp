// tests/model/tokenizer/vocabulary_writer.hpp - small vocabularies as GGUF files
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_writer.hpp"
#include "model/tokenizer/byte_level.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/model/tokenizer.hpp"

namespace ptxgen::test {

using model::Tokenizer;
using model::TokenType;
using Ids = std::vector<std::uint32_t>;

/// A vocabulary to be written. Tests put faults into the public fields.
class VocabularyWriter {
 public:
  struct Token {
    std::string text;
    TokenType type = TokenType::Normal;
    float score = 0;
  };
  std::string model;
  std::string pre;                  ///< empty: no key
  std::vector<Token> tokens;        ///< their place is their id
  std::vector<std::string> merges;  ///< byte-level BPE only
  GgufWriter more;                  ///< further keys

  VocabularyWriter& add(std::string text, float score = 0, TokenType type = TokenType::Normal) {
    tokens.push_back({std::move(text), type, score});
    return *this;
  }
  VocabularyWriter& merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return find(left + right) ? *this : add(left + right);
  }
  [[nodiscard]] bool find(std::string_view text) const {
    for (const Token& token : tokens) {
      if (token.text == text) return true;
    }
    return false;
  }
  VocabularyWriter& flag(std::string_view name, bool value) {
    more.key("tokenizer.ggml." + std::string(name), written(ValueType::boolean, value ? 1 : 0));
    return *this;
  }
  VocabularyWriter& id(std::string_view name, std::uint32_t value) {
    more.key("tokenizer.ggml." + std::string(name) + "_token_id", written(ValueType::u32, value));
    return *this;
  }
  VocabularyWriter& text(std::string_view key, const std::string& value) {
    more.key(key, written(value));
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    std::vector<WrittenValue> texts;
    std::vector<WrittenValue> types;
    std::vector<WrittenValue> scores;
    for (const Token& token : tokens) {
      texts.push_back(written(token.text));
      types.push_back(written(ValueType::i32, static_cast<std::uint64_t>(token.type)));
      scores.push_back(written(token.score));
    }
    GgufWriter writer = more;
    writer.key("tokenizer.ggml.model", written(model));
    if (!pre.empty()) writer.key("tokenizer.ggml.pre", written(pre));
    writer.key("tokenizer.ggml.tokens", written_array(ValueType::string, texts))
        .key("tokenizer.ggml.token_type", written_array(ValueType::i32, types));
    if (model == "llama") {
      writer.key("tokenizer.ggml.scores", written_array(ValueType::f32, scores));
    } else {
      std::vector<WrittenValue> pairs;
      for (const std::string& pair : merges) pairs.push_back(written(pair));
      writer.key("tokenizer.ggml.merges", written_array(ValueType::string, pairs));
    }
    return writer.bytes();
  }
  [[nodiscard]] Tokenizer read() const {
    const std::string file = bytes();
    return Tokenizer::read(gguf::File::view(as_bytes(file), "model.gguf"));
  }
};

/// "<unk>", "<s>", "</s>", and the bytes as tokens 3 to 258; no space before a text.
inline VocabularyWriter sentence_pieces() {
  VocabularyWriter writer;
  writer.model = "llama";
  writer.add("<unk>", 0, TokenType::Unknown);
  writer.add("<s>", 0, TokenType::Control).add("</s>", 0, TokenType::Control);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    writer.add({'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'}, 0, TokenType::Byte);
  }
  return writer.flag("add_space_prefix", false).flag("add_bos_token", false);
}

/// The bytes as tokens 0 to 255, "<|end|>" as 256.
inline VocabularyWriter byte_pairs(const std::string& pre) {
  VocabularyWriter writer;
  writer.model = "gpt2";
  writer.pre = pre;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    writer.add(std::string(model::byte_character(static_cast<std::uint8_t>(byte))));
  }
  return writer.add("<|end|>", 0, TokenType::Control).flag("add_bos_token", false);
}

/// The texts of tokens as stored, with "|" between them.
inline std::string texts_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::string result;
  for (const std::uint32_t id : ids) {
    if (!result.empty()) result += '|';
    result += tokenizer.text(id);
  }
  return result;
}
inline std::string split(const Tokenizer& tokenizer, std::string_view text,
                         model::EncodeOptions options = {}) {
  return texts_of(tokenizer, tokenizer.encode(text, options));
}

}  // namespace ptxgen::test
