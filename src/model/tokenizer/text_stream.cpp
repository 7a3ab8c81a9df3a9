// src/model/tokenizer/text_stream.cpp - text from tokens as they come
#include "ptxgen/model/tokenizer.hpp"

#include <algorithm>
#include <utility>

namespace ptxgen::inline v0::model {

namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// Bytes of the character that begins with this one, by table 3-7 of the Unicode Standard; 1 where
// none does.
std::size_t character_bytes(std::uint8_t lead) {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Whether the second byte may follow the first.
bool may_follow(std::uint8_t lead, std::uint8_t second) {
  if ((second & 0xc0) != 0x80) return false;
  if (lead == 0xe0) return second >= 0xa0;
  if (lead == 0xed) return second < 0xa0;
  if (lead == 0xf0) return second >= 0x90;
  if (lead == 0xf4) return second < 0x90;
  return true;
}

// Bytes at the end that begin a character and do not complete it.
std::size_t incomplete_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const std::uint8_t lead = byte_at(text, text.size() - back);
    if ((lead & 0xc0) == 0x80) continue;
    if (character_bytes(lead) <= back) return 0;
    const bool fits = back == 1 || may_follow(lead, byte_at(text, text.size() - back + 1));
    return fits ? back : 0;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(options), after_token_(!options.continues) {}

std::string TextStream::push(std::uint32_t id) {
  // The token first: what throws leaves the stream as it was.
  const std::string piece = tokenizer_->piece_after(after_token_, id, options_);
  std::string text = kept_ + piece;
  const std::size_t complete = text.size() - incomplete_bytes(text);
  kept_ = text.substr(complete);
  text.resize(complete);
  return text;
}

std::string TextStream::finish() {
  after_token_ = !options_.continues;
  return std::exchange(kept_, {});
}

}  // namespace ptxgen::inline v0::model
