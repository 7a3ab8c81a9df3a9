// src/model/tokenizer/pre_tokenizer_none.cpp - pre-tokenizers of a build without ICU
#include "model/tokenizer/pre_tokenizer.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

struct PreTokenizer::Patterns {};

std::span<const std::string_view> PreTokenizer::names() noexcept { return {}; }

PreTokenizer::PreTokenizer(std::string_view) {
  throw Error(Stage::Io, "unsupported-pre-tokenizer", "this build of ptxgen is without ICU");
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const { return {text}; }

}  // namespace ptxgen::inline v0::model
