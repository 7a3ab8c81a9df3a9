// src/cli/commands/model_prompt.cpp - the text that a model is given
#include "cli/commands/model_prompt.hpp"

#include "cli/output/tokens_text.hpp"
#include "cli_common/files.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::string_view kUseTokens = "; give token ids with --tokens";

// By the marks of the turns.
std::string template_name(std::string_view text) {
  if (text.find("<|im_start|>") != std::string_view::npos) return "ChatML";
  if (text.find("<start_of_turn>") != std::string_view::npos) return "Gemma";
  return "the model's";
}

std::string conversation(const model::Tokenizer& tokenizer, const PromptOptions& options,
                         const std::string& text) {
  std::vector<model::ChatMessage> messages;
  if (!options.system.empty()) messages.push_back({"system", options.system});
  messages.push_back({"user", text});
  return tokenizer.chat(messages);
}

}  // namespace

void PromptOptions::check() const {
  const int ways = static_cast<int>(text_option->in_use()) +
                   static_cast<int>(file_option->in_use()) + static_cast<int>(as_tokens());
  if (ways != 1) {
    throw UsageError(format_text("{} prompt: give --prompt TEXT, -f FILE or --tokens 1,2,3{}",
                                 ways == 0 ? "there is no" : "there is more than one",
                                 ways == 0 ? "" : ", one of them"));
  }
  if (chat && as_tokens()) {
    throw UsageError("--chat applies to text; --tokens gives the ids of the whole prompt");
  }
  if (!system.empty() && !chat) throw UsageError("--system is a part of --chat");
}

void add_prompt_options(Command& command, PromptOptions& options) {
  options.text_option.emplace(command.add_option("--prompt", options.text, "the text to continue"));
  options.file_option.emplace(
      command.add_option("-f,--file", options.file, "a file with the text, or - for stdin"));
  options.tokens_option.emplace(command.add_option(
      "--tokens", options.tokens, "token ids, as 1,2,3; what is generated is printed as ids too"));
  command.add_flag("--chat", options.chat,
                   "the text is a user's message: apply the model's chat template");
  command.add_option("--system", options.system, "the system message of --chat");
}

Prompt read_prompt(ModelRun& run, const PromptOptions& options) {
  Prompt prompt;
  if (options.as_tokens()) {
    prompt.option = "--tokens";
    prompt.tokens = token_ids("--tokens", options.tokens);
    run.check_tokens("--tokens", prompt.tokens);
    return prompt;
  }
  prompt.option = options.text_option->in_use() ? "--prompt" : "-f " + options.file;
  const model::Tokenizer& tokenizer = run.tokenizer(kUseTokens);
  std::string text = options.text_option->in_use() ? options.text : read_input(options.file);
  if (text.empty()) throw UsageError(prompt.option + ": the prompt is empty");
  if (options.chat) {
    text = conversation(tokenizer, options, text);
    prompt.chat_template = template_name(text);
  }
  prompt.tokens = tokenizer.encode(text);
  run.check_tokens(prompt.option, prompt.tokens);
  return prompt;
}

}  // namespace ptxgen::cli
