// src/model/tokenizer/vocabulary.cpp - the tokens of a model file
#include "model/tokenizer/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>

#include "model/format.hpp"
#include "model/printable.hpp"
#include "ptxgen/support/error.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

// Texts that end a message, in the models that have them.
constexpr std::array<std::string_view, 4> kMessageEnds = {"<|eot_id|>", "<|im_end|>", "<|end|>",
                                                          "<end_of_turn>"};
// Texts that end generation, too.
constexpr std::array<std::string_view, 3> kTextEnds = {"<|endoftext|>", "<|end_of_text|>",
                                                       "<|eom_id|>"};

static_assert(HashIndex::kNone == kNoToken);

std::uint64_t hash_of_text(std::string_view text) { return hash64(text.data(), text.size()); }

}  // namespace

void refuse(const std::string& file, std::string_view code, std::string message) {
  Error error(Stage::Io, std::string(code), std::move(message));
  error.file = file;
  throw error.refresh();
}

Vocabulary::Vocabulary(const gguf::File& gguf, TokenizerKind kind) : file(gguf.name()) {
  read_texts(gguf);
  read_types(gguf);
  read_special(gguf, kind);
  find_ends(gguf);
}

void Vocabulary::read_texts(const gguf::File& gguf) {
  const gguf::Value& tokens = gguf.array(kTokens, gguf::ValueType::string);
  if (tokens.size() == 0 || tokens.size() > std::numeric_limits<std::int32_t>::max() ||
      tokens.bytes().size() > std::numeric_limits<std::uint32_t>::max()) {
    refuse(file, "bad-vocabulary",
           format_text("key '{}' has {} tokens in {} bytes; expects 1 or more in less than 4 GiB",
                       kTokens, tokens.size(), tokens.bytes().size()));
  }
  ends_.reserve(tokens.size());
  texts_.reserve(tokens.bytes().size());
  for (const gguf::Value& token : tokens) {
    const std::string_view text = *token.string();
    texts_ += text;
    ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
    longest_ = std::max(longest_, text.size());
  }
  // The lengths of the texts were counted, too.
  texts_.shrink_to_fit();
  ids_ = HashIndex(ends_.size());
  for (std::uint32_t id = 0; id < size(); ++id) {
    if (text(id).empty()) continue;
    const std::uint32_t other = ids_.add(hash_of_text(text(id)), id,
                                         [&](std::uint32_t one) { return text(one) == text(id); });
    if (other != id) {
      refuse(file, "bad-vocabulary",
             format_text("key '{}': tokens {} and {} have one text, \"{}\"", kTokens, other, id,
                         printable(text(id))));
    }
  }
}

void Vocabulary::read_types(const gguf::File& gguf) {
  types_.assign(size(), TokenType::Normal);
  if (gguf.find(kTypes) == nullptr) return;
  const gguf::Value& types = gguf.array(kTypes, gguf::ValueType::i32);
  if (types.size() != size()) {
    refuse(file, "bad-vocabulary",
           format_text("key '{}' has {} elements; expects {}, one for each token", kTypes,
                       types.size(), size()));
  }
  std::uint32_t id = 0;
  for (const gguf::Value& type : types) {
    const std::int64_t number = *type.integer();
    if (number < 1 || number > 6) {
      refuse(file, "bad-vocabulary",
             format_text("key '{}': token {} has the type {}; expects 1 to 6", kTypes, id, number));
    }
    types_[id++] = static_cast<TokenType>(number);
  }
}

std::uint32_t Vocabulary::find(std::string_view text) const noexcept {
  if (text.size() > longest_) return kNoToken;
  return ids_.find(hash_of_text(text), [&](std::uint32_t id) { return this->text(id) == text; });
}

// A token's id; -1, of any type of integer, is none.
std::optional<std::uint32_t> Vocabulary::id_of(const gguf::File& gguf, std::string_view key,
                                               std::optional<std::uint32_t> otherwise) const {
  const gguf::Value* value = gguf.find(key);
  if (value == nullptr) return otherwise < size() ? otherwise : std::nullopt;
  if (value->integer() == -1) return std::nullopt;
  const std::uint32_t id = gguf.u32(key);
  if (id == kNoToken) return std::nullopt;
  if (id >= size()) {
    refuse(file, "bad-vocabulary",
           format_text("key '{}' is token {}, and the vocabulary has {} tokens", key, id, size()));
  }
  return id;
}

void Vocabulary::read_special(const gguf::File& gguf, TokenizerKind kind) {
  // SentencePiece numbers these so where it is not told otherwise.
  const bool pieces = kind == TokenizerKind::SentencePiece;
  const auto usual = [&](std::uint32_t id) {
    return pieces ? std::optional<std::uint32_t>(id) : std::nullopt;
  };
  bos = id_of(gguf, "tokenizer.ggml.bos_token_id", usual(1));
  eos = id_of(gguf, "tokenizer.ggml.eos_token_id", usual(2));
  unknown = id_of(gguf, "tokenizer.ggml.unknown_token_id", usual(0));
  eot = id_of(gguf, "tokenizer.ggml.eot_token_id", std::nullopt);
  const bool llama_bpe = gguf.string("tokenizer.ggml.pre", "") == "llama-bpe";
  add_bos = gguf.boolean("tokenizer.ggml.add_bos_token", pieces || llama_bpe);
  add_eos = gguf.boolean("tokenizer.ggml.add_eos_token", false);
  add_space_prefix = pieces && gguf.boolean("tokenizer.ggml.add_space_prefix", true);
  const auto require = [&](bool wanted, bool is_there, std::string_view key) {
    if (!wanted || is_there) return;
    refuse(file, "bad-vocabulary",
           format_text("key 'tokenizer.ggml.add_{0}_token' asks for a token that key "
                       "'tokenizer.ggml.{0}_token_id' does not give",
                       key));
  };
  require(add_bos, bos.has_value(), "bos");
  require(add_eos, eos.has_value(), "eos");
}

void Vocabulary::find_ends(const gguf::File& gguf) {
  for (const std::string_view text : kMessageEnds) {
    if (!eot && find(text) != kNoToken) eot = find(text);
  }
  const auto eom = id_of(gguf, "tokenizer.ggml.eom_token_id", std::nullopt);
  for (const auto& id : {eos, eot, eom}) {
    if (id) text_ends.push_back(*id);
  }
  for (const std::string_view text : kMessageEnds) {
    if (find(text) != kNoToken) text_ends.push_back(find(text));
  }
  for (const std::string_view text : kTextEnds) {
    if (find(text) != kNoToken) text_ends.push_back(find(text));
  }
  std::ranges::sort(text_ends);
  text_ends.erase(std::unique(text_ends.begin(), text_ends.end()), text_ends.end());
}

}  // namespace ptxgen::inline v0::model
