// src/model/tokenizer/vocabulary.hpp - the tokens of a model file
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/hash_index.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/model/tokenizer.hpp"

namespace ptxgen::inline v0::model {

/// No token.
inline constexpr std::uint32_t kNoToken = ~std::uint32_t{0};

/// Throws `Error` (Stage::Io) of a file.
[[noreturn]] void refuse(const std::string& file, std::string_view code, std::string message);

/// Tokens, their types and the ids with a meaning; checked when it is read.
class Vocabulary {
 public:
  /// Throws `Error` as `Tokenizer::read`.
  Vocabulary(const gguf::File& file, TokenizerKind kind);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(ends_.size());
  }
  [[nodiscard]] std::string_view text(std::uint32_t id) const noexcept {
    const std::uint32_t begin = id == 0 ? 0 : ends_[id - 1];
    return std::string_view(texts_).substr(begin, ends_[id] - begin);
  }
  [[nodiscard]] TokenType type(std::uint32_t id) const noexcept { return types_[id]; }
  /// `kNoToken` if there is none; none of an empty text.
  [[nodiscard]] std::uint32_t find(std::string_view text) const noexcept;
  /// Bytes of the longest text.
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }

  std::string file;  ///< its name
  std::optional<std::uint32_t> bos;
  std::optional<std::uint32_t> eos;
  std::optional<std::uint32_t> eot;
  std::optional<std::uint32_t> unknown;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  std::vector<std::uint32_t> text_ends;  ///< where generation stops, ascending

 private:
  void read_texts(const gguf::File& file);
  void read_types(const gguf::File& file);
  void read_special(const gguf::File& file, TokenizerKind kind);
  void find_ends(const gguf::File& file);
  [[nodiscard]] std::optional<std::uint32_t> id_of(const gguf::File& file, std::string_view key,
                                                   std::optional<std::uint32_t> otherwise) const;

  std::string texts_;                // one after the other
  std::vector<std::uint32_t> ends_;  // of each in `texts_`
  std::vector<TokenType> types_;
  HashIndex ids_;  // of texts that are not empty
  std::size_t longest_ = 0;
};

}  // namespace ptxgen::inline v0::model
