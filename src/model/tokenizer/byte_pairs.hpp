// src/model/tokenizer/byte_pairs.hpp - byte-level BPE: pairs merged by rank, piece by piece
#pragma once

#include <array>
#include <vector>

#include "model/tokenizer/hash_index.hpp"
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
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    std::uint32_t token = 0;
  };
  void read_merges(const gguf::File& file);
  /// Its rank, the place in `merges_`.
  [[nodiscard]] std::uint32_t find_merge(std::uint32_t left, std::uint32_t right) const;
  void encode_piece(std::string_view piece, SymbolList& symbols,
                    std::vector<std::uint32_t>& ids) const;

  const Vocabulary& vocabulary_;
  PreTokenizer pre_tokenizer_;
  bool whole_pieces_ = false;  // a piece that is a token is not merged
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::vector<Merge> merges_;  // as in the file
  HashIndex ranks_;            // by both tokens, of equal pairs the first
};

}  // namespace ptxgen::inline v0::model
