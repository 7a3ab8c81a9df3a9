// src/model/tokenizer/tokenizer.cpp - text to token ids and back, by a GGUF file
#include "ptxgen/model/tokenizer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "model/format.hpp"
#include "model/printable.hpp"
#include "model/tokenizer/byte_pairs.hpp"
#include "model/tokenizer/chat_template.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/sentence_piece.hpp"
#include "model/tokenizer/special_tokens.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
// Bytes of a text: positions are of 32 bits, also where a mark of three bytes stands for a space.
constexpr std::size_t kMaxText = std::size_t{1} << 30;

TokenizerKind kind_of(const gguf::File& file) {
  if (file.find(kModel) == nullptr) {
    refuse(
        file.name(), "no-tokenizer",
        format_text("the file has no key '{}', so no tokenizer; give the ids of tokens (--tokens) "
                    "instead of text",
                    kModel));
  }
  const std::string_view model = file.string(kModel);
  if (model == "llama") return TokenizerKind::SentencePiece;
  if (model == "gpt2") return TokenizerKind::ByteLevelBpe;
  refuse(file.name(), "unsupported-tokenizer",
         format_text("key '{}' is '{}'; supported are llama (SentencePiece) and gpt2 (byte-level "
                     "BPE); give the ids of tokens (--tokens) instead of text",
                     kModel, printable(model)));
}

std::unique_ptr<TextCoder> make_coder(const gguf::File& file, TokenizerKind kind,
                                      const Vocabulary& vocabulary) {
  if (kind == TokenizerKind::SentencePiece) {
    return std::make_unique<SentencePiece>(file, vocabulary);
  }
  return std::make_unique<BytePairs>(file, vocabulary);
}

}  // namespace

struct Tokenizer::State {
  explicit State(const gguf::File& file)
      : kind(kind_of(file)),
        vocabulary(file, kind),
        special(vocabulary),
        coder(make_coder(file, kind, vocabulary)),
        chat_template(file.string("tokenizer.chat_template", "")) {}

  // Throws "out-of-vocabulary".
  void check(std::uint32_t id) const {
    if (id < vocabulary.size()) return;
    refuse(vocabulary.file, "out-of-vocabulary",
           format_text("token {} is beyond the vocabulary, which has {} tokens", id,
                       vocabulary.size()));
  }
  [[nodiscard]] bool is_whole(std::uint32_t id) const noexcept {
    return vocabulary.type(id) != TokenType::Normal && vocabulary.type(id) != TokenType::Byte;
  }
  [[nodiscard]] std::string bytes(std::uint32_t id, const DecodeOptions& options) const {
    if (!is_whole(id)) return coder->bytes(id);
    if (!options.special && vocabulary.type(id) != TokenType::UserDefined) return {};
    return std::string(vocabulary.text(id));
  }

  TokenizerKind kind;
  Vocabulary vocabulary;
  SpecialTokens special;
  std::unique_ptr<TextCoder> coder;
  std::string chat_template;
};

Tokenizer::Tokenizer(Hidden<State> state) : state_(std::move(state)) {}

Tokenizer Tokenizer::read(const gguf::File& file) { return Tokenizer(Hidden<State>::make(file)); }

std::span<const std::string_view> Tokenizer::supported_pre_tokenizers() noexcept {
  return PreTokenizer::names();
}

TokenizerKind Tokenizer::kind() const noexcept { return state_->kind; }
std::uint32_t Tokenizer::size() const noexcept { return state_->vocabulary.size(); }

std::string_view Tokenizer::text(std::uint32_t id) const {
  state_->check(id);
  return state_->vocabulary.text(id);
}

TokenType Tokenizer::type(std::uint32_t id) const {
  state_->check(id);
  return state_->vocabulary.type(id);
}

std::optional<std::uint32_t> Tokenizer::find(std::string_view text) const noexcept {
  const std::uint32_t id = state_->vocabulary.find(text);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

std::optional<std::uint32_t> Tokenizer::bos() const noexcept { return state_->vocabulary.bos; }
std::optional<std::uint32_t> Tokenizer::eos() const noexcept { return state_->vocabulary.eos; }
std::optional<std::uint32_t> Tokenizer::eot() const noexcept { return state_->vocabulary.eot; }
std::span<const std::uint32_t> Tokenizer::ends() const noexcept {
  return state_->vocabulary.text_ends;
}
bool Tokenizer::is_end(std::uint32_t id) const noexcept {
  return std::ranges::binary_search(ends(), id);
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Vocabulary& vocabulary = state_->vocabulary;
  if (text.size() > kMaxText) {
    refuse(vocabulary.file, "too-long",
           format_text("a text of {} bytes; tokenised are {} bytes or fewer at once", text.size(),
                       kMaxText));
  }
  std::vector<std::uint32_t> ids;
  if (options.add_special && vocabulary.add_bos) ids.push_back(*vocabulary.bos);
  bool after_token = true;
  for (const Fragment& fragment : state_->special.split(text, options.parse_special)) {
    if (fragment.token == kNoToken) {
      state_->coder->encode(fragment.text, after_token, ids);
    } else {
      ids.push_back(fragment.token);
    }
    after_token = fragment.token != kNoToken;
  }
  if (options.add_special && vocabulary.add_eos) ids.push_back(*vocabulary.eos);
  return ids;
}

std::string Tokenizer::piece(std::uint32_t id, DecodeOptions options) const {
  state_->check(id);
  return state_->bytes(id, options);
}

std::string Tokenizer::piece_after(bool& after_token, std::uint32_t id,
                                   DecodeOptions options) const {
  std::string bytes = piece(id, options);
  const bool is_whole = state_->is_whole(id);
  const bool has_prefix = after_token && !is_whole && state_->vocabulary.add_space_prefix;
  if (has_prefix && bytes.starts_with(' ')) bytes.erase(0, 1);
  after_token = is_whole;
  return bytes;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, DecodeOptions options) const {
  std::string text;
  bool after_token = !options.continues;
  for (const std::uint32_t id : ids) text += piece_after(after_token, id, options);
  return text;
}

std::string_view Tokenizer::chat_template() const noexcept { return state_->chat_template; }

std::string Tokenizer::chat(std::span<const ChatMessage> messages,
                            bool add_generation_prompt) const {
  return chat_text(state_->vocabulary.file, state_->chat_template, messages, add_generation_prompt);
}

}  // namespace ptxgen::inline v0::model
