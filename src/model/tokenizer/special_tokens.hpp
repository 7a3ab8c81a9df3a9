// src/model/tokenizer/special_tokens.hpp - tokens that are taken whole where their text occurs
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/tokenizer/vocabulary.hpp"

namespace ptxgen::inline v0::model {

/// A part of a text: one token, or text between such tokens.
struct Fragment {
  std::string_view text;
  std::uint32_t token = kNoToken;  ///< `kNoToken`: text
};

/// User-defined tokens, and control tokens and the unknown one.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  /// The whole text in order. Longer tokens are taken first, wherever they are; of tokens of one
  /// length the lower id; of one token the first occurrence. `control`: also the tokens that are
  /// not user-defined.
  [[nodiscard]] std::vector<Fragment> split(std::string_view text, bool control) const;

 private:
  struct Entry {
    std::string_view text;
    std::uint32_t id = 0;
    bool user_defined = false;
  };
  struct Occurrence;
  [[nodiscard]] const Entry* longest_at(std::string_view text, std::size_t shorter_than,
                                        bool control) const noexcept;
  [[nodiscard]] std::vector<Occurrence> occurrences(std::string_view text, bool control) const;

  std::vector<Entry> entries_;              // by text
  std::array<std::uint32_t, 257> first_{};  // of those that begin with a byte, in `entries_`
};

}  // namespace ptxgen::inline v0::model
