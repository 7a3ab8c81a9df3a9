// src/model/tokenizer/sentence_piece.hpp - pairs merged by the score of what they become
#pragma once

#include <array>

#include "model/tokenizer/text_coder.hpp"

namespace ptxgen::inline v0::model {

class SentencePiece final : public TextCoder {
 public:
  /// Throws `Error` as `Tokenizer::read`. The vocabulary must outlive it.
  SentencePiece(const gguf::File& file, const Vocabulary& vocabulary);

  void encode(std::string_view text, bool after_token,
              std::vector<std::uint32_t>& ids) const override;
  [[nodiscard]] std::string bytes(std::uint32_t id) const override;

 private:
  const Vocabulary& vocabulary_;
  std::vector<float> scores_;
  std::array<std::uint32_t, 256> byte_tokens_{};
};

}  // namespace ptxgen::inline v0::model
