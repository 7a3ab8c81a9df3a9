// src/model/tokenizer/sentence_piece.cpp - pairs merged by the score of what they become
#include "model/tokenizer/sentence_piece.hpp"

#include <algorithm>
#include <cmath>

#include "model/format.hpp"
#include "model/tokenizer/merge.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581

// Bytes of a character by the upper half of its first byte; bytes that are no UTF-8 are taken
// along.
std::size_t character_bytes(char lead) {
  constexpr std::array<std::uint8_t, 16> kBytes = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return kBytes[static_cast<std::uint8_t>(lead) >> 4];
}

std::string with_marked_spaces(std::string_view text, bool prefix) {
  std::string result;
  result.reserve(text.size() + text.size() / 2 + kSpace.size());
  if (prefix) result += kSpace;
  for (const char character : text) {
    if (character == ' ') {
      result += kSpace;
    } else {
      result += character;
    }
  }
  return result;
}

}  // namespace

SentencePiece::SentencePiece(const gguf::File& file, const Vocabulary& vocabulary)
    : vocabulary_(vocabulary) {
  const gguf::Value& scores = file.array(kScores, gguf::ValueType::f32);
  if (scores.size() != vocabulary.size()) {
    refuse(vocabulary.file, "bad-vocabulary",
           format_text("key '{}' has {} elements; expects {}, one for each token", kScores,
                       scores.size(), vocabulary.size()));
  }
  scores_.reserve(scores.size());
  for (const gguf::Value& score : scores) {
    const auto number = static_cast<float>(*score.number());
    if (std::isnan(number)) {
      refuse(vocabulary.file, "bad-vocabulary",
             format_text("key '{}': the score of token {} is no number", kScores, scores_.size()));
    }
    scores_.push_back(number);
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t id = vocabulary.find(format_text("<0x{:02X}>", byte));
    const char character = static_cast<char>(byte);
    if (id == kNoToken) id = vocabulary.find({&character, 1});
    if (id == kNoToken) id = vocabulary.unknown.value_or(kNoToken);
    byte_tokens_[byte] = id;
  }
  const auto missing = std::ranges::find(byte_tokens_, kNoToken);
  if (missing != byte_tokens_.end()) {
    refuse(vocabulary.file, "bad-vocabulary",
           format_text("no token for the byte <0x{:02X}>, and key "
                       "'tokenizer.ggml.unknown_token_id' gives none for text without tokens",
                       missing - byte_tokens_.begin()));
  }
}

void SentencePiece::encode(std::string_view raw, bool after_token,
                           std::vector<std::uint32_t>& ids) const {
  const std::string marked = with_marked_spaces(raw, after_token && vocabulary_.add_space_prefix);
  const std::string_view text = marked;
  SymbolList symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.size(), at + character_bytes(text[at]));
    symbols.add(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end),
                vocabulary_.find(text.substr(at, end - at)));
    at = end;
  }
  symbols.merge([&](const Symbol& left, const Symbol& right) -> std::optional<PairMerge> {
    const std::uint32_t token = vocabulary_.find(text.substr(left.begin, right.end - left.begin));
    if (token == kNoToken) return std::nullopt;
    return PairMerge{scores_[token], token};
  });
  symbols.each([&](const Symbol& symbol) {
    if (symbol.token != kNoToken) return ids.push_back(symbol.token);
    for (std::size_t at = symbol.begin; at < symbol.end; ++at) {
      ids.push_back(byte_tokens_[static_cast<std::uint8_t>(text[at])]);
    }
  });
}

std::string SentencePiece::bytes(std::uint32_t id) const {
  const std::string_view text = vocabulary_.text(id);
  if (vocabulary_.type(id) == TokenType::Byte) {
    const auto byte = std::ranges::find(byte_tokens_, id);
    if (byte != byte_tokens_.end()) {
      return {static_cast<char>(static_cast<std::uint8_t>(byte - byte_tokens_.begin()))};
    }
  }
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(kSpace, at), text.size());
    result += text.substr(at, space - at);
    if (space != text.size()) result += ' ';
    at = space + kSpace.size();
  }
  return result;
}

}  // namespace ptxgen::inline v0::model
