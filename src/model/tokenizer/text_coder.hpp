// src/model/tokenizer/text_coder.hpp - what each kind of tokenizer does differently
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/vocabulary.hpp"

namespace ptxgen::inline v0::model {

/// Text without special tokens to tokens and back.
class TextCoder {
 public:
  virtual ~TextCoder() = default;

  /// Appends the tokens of a text. `after_token`: it begins the whole, or a special token is before
  /// it.
  virtual void encode(std::string_view text, bool after_token,
                      std::vector<std::uint32_t>& ids) const = 0;
  /// The bytes of a token that is normal or a byte.
  [[nodiscard]] virtual std::string bytes(std::uint32_t id) const = 0;
};

}  // namespace ptxgen::inline v0::model
