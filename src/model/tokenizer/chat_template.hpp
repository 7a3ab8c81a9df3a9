// src/model/tokenizer/chat_template.hpp - conversations as text, in the forms that are known
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/model/tokenizer.hpp"

namespace ptxgen::inline v0::model {

/// The conversation as the template of a file gives it. Throws `Error` as `Tokenizer::chat`.
[[nodiscard]] std::string chat_text(const std::string& file, std::string_view chat_template,
                                    std::span<const ChatMessage> messages,
                                    bool add_generation_prompt);

}  // namespace ptxgen::inline v0::model
