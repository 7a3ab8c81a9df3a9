// src/model/tokenizer/byte_pairs.hpp - byte-level BPE: pairs merged by rank, piece by piece
#pragma once

#include <array>
#include <unordered_map>

#include "model/tokenizer/merge.hpp"
#include "model/tokenizer/pre_tokenizer.hpp"
#include "model/tokenizer/text_coder.hpp"

namespace ptxgen::inline v0::model {

class BytePairs final : public TextCoder {
 public:
  /// Throws `Error` as `Tokenizer::read`. The vocabulary must outlive it.
  BytePairs(const gguf::File& file, const Vocabulary& vocabulary);

  void encode(std::string_view text, bool after_token,
              std::vector<std::uint32_t>& ids) const override;
  [[nodiscard]] std::string bytes(std::uint32_t id) const override;

 private:
  struct Merge {
    std::uint32_t rank = 0;
    std::uint32_t token = 0;
  };
  void read_merges(const gguf::File& file);
  void encode_piece(std::string_view piece, SymbolList& symbols,
                    std::vector<std::uint32_t>& ids) const;

  const Vocabulary& vocabulary_;
  PreTokenizer pre_tokenizer_;
  bool whole_pieces_ = false;  // a piece that is a token is not merged
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // by left << 32 | right
};

}  // namespace ptxgen::inline v0::model
