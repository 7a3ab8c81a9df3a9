// src/cli/output/tokens_text.hpp - tokens as text and JSON
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/model/tokenizer.hpp"

namespace ptxgen::cli {

struct TokenizedText {
  std::string text;
  std::vector<std::uint32_t> ids;
};

/// Ids separated by commas, spaces or line ends. Throws `UsageError` that begins with `option`.
[[nodiscard]] std::vector<std::uint32_t> token_ids(std::string_view option, std::string_view text);

/// "1,2,3", one line for each text.
[[nodiscard]] std::string ids_text(const std::vector<TokenizedText>& texts);
/// "    1  <s>", one line for each token, an empty line between texts; characters that a terminal
/// would act on are escaped.
[[nodiscard]] std::string pieces_text(const model::Tokenizer& tokenizer,
                                      const std::vector<TokenizedText>& texts);
/// `{"texts":[{"text","ids":[..],"pieces":[..]}]}`
[[nodiscard]] nlohmann::json to_json(const model::Tokenizer& tokenizer,
                                     const std::vector<TokenizedText>& texts);

}  // namespace ptxgen::cli
