// src/cli/commands/model_prompt.hpp - the text that a model is given
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/model_run.hpp"
#include "cli_common/command_line.hpp"

namespace ptxgen::cli {

/// How the prompt was given: exactly one of the three.
struct PromptOptions {
  std::string text;
  std::string file;
  std::string tokens;
  std::optional<Option> text_option, file_option, tokens_option;
  bool chat = false;
  std::string system;

  /// Throws `UsageError` for none or several of them, and for what does not go together.
  void check() const;
  [[nodiscard]] bool as_tokens() const { return tokens_option && tokens_option->in_use(); }
};
/// `options` must live as long as the command.
void add_prompt_options(Command& command, PromptOptions& options);

struct Prompt {
  std::vector<std::uint32_t> tokens;
  std::string option;         ///< that it came from, for messages
  std::string chat_template;  ///< the name of the template that was applied, or empty
};
/// Throws `UsageError` for an empty prompt and for ids that the model does not have, `Error` for a
/// file that cannot be read and a model whose tokenizer or chat template is not supported.
[[nodiscard]] Prompt read_prompt(ModelRun& run, const PromptOptions& options);

}  // namespace ptxgen::cli
