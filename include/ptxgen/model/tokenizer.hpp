// ptxgen/model/tokenizer.hpp - text to token ids and back, by a GGUF file
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::gguf {
class File;
}  // namespace ptxgen::inline v0::gguf

namespace ptxgen::inline v0::model {

/// `tokenizer.ggml.model`.
enum class TokenizerKind : std::uint8_t {
  SentencePiece,  ///< "llama": pairs merged by score, bytes as <0xNN>
  ByteLevelBpe,   ///< "gpt2": pieces of a pre-tokenizer, pairs merged by rank
};

/// `tokenizer.ggml.token_type`; the numbers are those of the file.
enum class TokenType : std::uint8_t {
  Normal = 1,
  Unknown = 2,      ///< what stands for text that no token covers
  Control = 3,      ///< begin of text, end of turn and the like
  UserDefined = 4,  ///< always taken whole where its text occurs
  Unused = 5,
  Byte = 6,  ///< <0xNN>
};

struct EncodeOptions {
  bool add_special = true;    ///< begin and end of text where the file asks for them
  bool parse_special = true;  ///< the text of a control token becomes that token
};

struct DecodeOptions {
  bool special = false;    ///< control tokens as their text; otherwise as nothing
  bool continues = false;  ///< the tokens go on after others: a space at their begin is one
};

/// A message of a conversation. Roles are those of the template: "system", "user", "assistant".
struct ChatMessage {
  std::string role;
  std::string content;
};

/// The tokenizer of a model file: SentencePiece BPE, or byte-level BPE with one of the
/// pre-tokenizers of `supported_pre_tokenizers`. Holds copies: the file may be closed.
///
/// Errors: `Error` (Stage::Io) with `file`; the message has the key and the cure.
///   "no-tokenizer"               the file has no `tokenizer.ggml.model`
///   "unsupported-tokenizer"      another model of tokenizer
///   "unsupported-pre-tokenizer"  another pre-tokenizer, or a build without ICU
///   "bad-vocabulary"             arrays of unlike lengths, no tokens, two tokens of one text,
///                                types, ids and merges that do not fit
///   "out-of-vocabulary"          a token id given to `decode` or `piece`
///   "too-long"                   a text of more than 2^30 bytes
///   "unsupported-chat-template", "bad-chat-message"    `chat`
///   "not-found", "type-mismatch", "out-of-range"       as `gguf::File` on keys that are needed
///
/// Threads: const functions may be called at the same time.
class Tokenizer {
 public:
  [[nodiscard]] static Tokenizer read(const gguf::File& file);
  /// Names for `tokenizer.ggml.pre` that this build can use; none without ICU.
  [[nodiscard]] static std::span<const std::string_view> supported_pre_tokenizers() noexcept;

  [[nodiscard]] TokenizerKind kind() const noexcept;
  /// Tokens; ids are below it.
  [[nodiscard]] std::uint32_t size() const noexcept;
  /// A token's text as stored in the file: with U+2581 for spaces, or in byte-level characters.
  [[nodiscard]] std::string_view text(std::uint32_t id) const;
  [[nodiscard]] TokenType type(std::uint32_t id) const;
  /// The token of a text as stored in the file.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view text) const noexcept;

  [[nodiscard]] std::optional<std::uint32_t> bos() const noexcept;
  [[nodiscard]] std::optional<std::uint32_t> eos() const noexcept;
  /// The end of a message of a conversation.
  [[nodiscard]] std::optional<std::uint32_t> eot() const noexcept;
  /// Where generation stops: `eos`, `eot` and tokens known to end a text; ascending.
  [[nodiscard]] std::span<const std::uint32_t> ends() const noexcept;
  [[nodiscard]] bool is_end(std::uint32_t id) const noexcept;

  /// Time in proportion to n log n. The text need not be UTF-8: SentencePiece gives bytes without a
  /// token of their text as byte tokens; to a pre-tokenizer, bytes that are no UTF-8 are symbols
  /// such as U+FFFD, and are then encoded as they are. A byte that a vocabulary of byte-level BPE
  /// has no token for is left out.
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text,
                                                  EncodeOptions options = {}) const;

  /// The bytes of one token: spaces, and bytes that may be a part of a character.
  [[nodiscard]] std::string piece(std::uint32_t id, DecodeOptions options = {}) const;
  /// The bytes of the tokens, without the space that `encode` puts before a text; the reverse of
  /// `encode`. May end within a character: see `TextStream`.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids,
                                   DecodeOptions options = {}) const;

  /// `tokenizer.chat_template` as stored; empty if there is none.
  [[nodiscard]] std::string_view chat_template() const noexcept;
  /// The text of a conversation in the form that the file's template gives, which must be the
  /// template of SmolLM2 (ChatML) or of Gemma 2 or 3; to be encoded with `parse_special`, and
  /// without a second begin of text: `encode` adds it.
  /// With `add_generation_prompt` it ends with the start of the assistant's message.
  [[nodiscard]] std::string chat(std::span<const ChatMessage> messages,
                                 bool add_generation_prompt = true) const;

 private:
  friend class TextStream;
  struct State;
  explicit Tokenizer(Hidden<State> state);
  // `piece` without the space that `encode` puts after a token that is taken whole.
  [[nodiscard]] std::string piece_after(bool& after_token, std::uint32_t id,
                                        DecodeOptions options) const;
  Hidden<State> state_;
};

/// Text from tokens as they come. Gives whole UTF-8 characters only: the bytes of a character that
/// is not complete are kept for the next token. Bytes that are no UTF-8 are given as they are.
/// The tokenizer must outlive it.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, DecodeOptions options = {});

  /// What the token completes; may be empty.
  [[nodiscard]] std::string push(std::uint32_t id);
  /// The bytes that are kept, and starts anew.
  [[nodiscard]] std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string kept_;
  bool after_token_ = true;
};

}  // namespace ptxgen::inline v0::model
