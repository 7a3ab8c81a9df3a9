// src/cli/output/tokens_text.cpp - tokens as text and JSON
#include "cli/output/tokens_text.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli_common/numbers.hpp"
#include "model/printable.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

std::string piece_of(const model::Tokenizer& tokenizer, std::uint32_t id) {
  return tokenizer.piece(id, {.special = true, .continues = false});
}

}  // namespace

std::vector<std::uint32_t> token_ids(std::string_view option, std::string_view text) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  std::vector<std::uint32_t> ids;
  for (std::size_t at = text.find_first_not_of(kSeparators); at != text.npos;
       at = text.find_first_not_of(kSeparators, at)) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::uint64_t id = whole_number(option, text.substr(at, end - at), 0,
                                          std::numeric_limits<std::uint32_t>::max());
    ids.push_back(static_cast<std::uint32_t>(id));
    at = end;
  }
  return ids;
}

std::string ids_text(const std::vector<TokenizedText>& texts) {
  std::string result;
  for (const TokenizedText& text : texts) {
    for (std::size_t i = 0; i < text.ids.size(); ++i) {
      if (i != 0) result += ',';
      result += std::to_string(text.ids[i]);
    }
    result += '\n';
  }
  return result;
}

std::string pieces_text(const model::Tokenizer& tokenizer,
                        const std::vector<TokenizedText>& texts) {
  std::string result;
  for (const TokenizedText& text : texts) {
    if (&text != texts.data()) result += '\n';
    for (const std::uint32_t id : text.ids) {
      const std::string piece = piece_of(tokenizer, id);
      result += format_text("{:>6}  \"{}\"\n", id, printable(piece, piece.size() * 6));
    }
  }
  return result;
}

nlohmann::json to_json(const model::Tokenizer& tokenizer, const std::vector<TokenizedText>& texts) {
  nlohmann::json list = nlohmann::json::array();
  for (const TokenizedText& text : texts) {
    nlohmann::json pieces = nlohmann::json::array();
    for (const std::uint32_t id : text.ids) pieces.push_back(piece_of(tokenizer, id));
    list.push_back({{"text", text.text}, {"ids", text.ids}, {"pieces", std::move(pieces)}});
  }
  return {{"texts", std::move(list)}};
}

}  // namespace ptxgen::cli
