// src/model/tokenizer/pre_tokenizer.hpp - text cut into pieces that byte-level BPE merges alone
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::model {

/// The regular expressions of a name of `tokenizer.ggml.pre`. In a build without ICU there is none.
class PreTokenizer {
 public:
  struct Patterns;

  [[nodiscard]] static std::span<const std::string_view> names() noexcept;
  /// One of `names()`.
  explicit PreTokenizer(std::string_view name);

  /// The pieces in order; together they are the text. Bytes that are no UTF-8 count as U+FFFD.
  [[nodiscard]] std::vector<std::string_view> split(std::string_view text) const;

 private:
  Hidden<Patterns> patterns_;
};

}  // namespace ptxgen::inline v0::model
