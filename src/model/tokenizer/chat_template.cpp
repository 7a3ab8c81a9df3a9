// src/model/tokenizer/chat_template.cpp - conversations as text, in the forms that are known
#include "model/tokenizer/chat_template.hpp"

#include "model/format.hpp"
#include "model/printable.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::string_view kKey = "tokenizer.chat_template";
// SmolLM2's template puts this where a conversation does not begin with a system message.
constexpr std::string_view kSmolLm2System =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

enum class Form { ChatMl, SmolLm2, Gemma2, Gemma3, Other };

// By what no other template has; tools and other system messages are not in these forms.
Form form_of(std::string_view text) {
  const auto has = [&](std::string_view marker) { return text.find(marker) != text.npos; };
  if (has("<|im_start|>") && has("<|im_end|>") && !has("tool") && !has("<think>")) {
    if (has(kSmolLm2System)) return Form::SmolLm2;
    if (!has("You are")) return Form::ChatMl;
  }
  if (has("<start_of_turn>") && has("<end_of_turn>") && !has("tool")) {
    if (has("first_user_prefix")) return Form::Gemma3;
    if (has("System role not supported")) return Form::Gemma2;
  }
  return Form::Other;
}

[[noreturn]] void unsupported(const std::string& file, std::string_view text) {
  constexpr std::string_view kCure =
      "supported are ChatML as in SmolLM2 and the templates of Gemma 2 and 3; give the text with "
      "its control tokens as it is (without --chat), or the ids of tokens (--tokens)";
  if (text.empty()) {
    refuse(file, "unsupported-chat-template",
           format_text("the file has no key '{}'; {}", kKey, kCure));
  }
  refuse(file, "unsupported-chat-template",
         format_text("key '{}' is another template, \"{}\"; {}", kKey, printable(text), kCure));
}

[[noreturn]] void bad_message(const std::string& file, std::size_t index,
                              const ChatMessage& message, std::string_view rule) {
  refuse(file, "bad-chat-message",
         format_text("message {} has the role '{}': {}", index + 1, printable(message.role), rule));
}

bool is_known_role(std::string_view role) {
  return role == "system" || role == "user" || role == "assistant";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string chat_ml(const std::string& file, std::span<const ChatMessage> messages,
                    std::string_view system, bool add_generation_prompt) {
  std::string text;
  const auto add = [&](std::string_view role, std::string_view content) {
    text += format_text("<|im_start|>{}\n{}<|im_end|>\n", role, content);
  };
  if (!system.empty() && (messages.empty() || messages.front().role != "system")) {
    add("system", system);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!is_known_role(messages[i].role)) {
      bad_message(file, i, messages[i], "expects system, user or assistant");
    }
    add(messages[i].role, messages[i].content);
  }
  if (add_generation_prompt) text += "<|im_start|>assistant\n";
  return text;
}

std::string gemma(const std::string& file, std::span<const ChatMessage> messages, bool with_system,
                  bool add_generation_prompt) {
  std::string text;
  std::string prefix;  // of the first message
  std::size_t first = 0;
  if (!messages.empty() && messages.front().role == "system") {
    if (!with_system) {
      bad_message(file, 0, messages.front(), "the template of this model has no system messages");
    }
    prefix = messages.front().content + "\n\n";
    first = 1;
  }
  for (std::size_t i = first; i < messages.size(); ++i) {
    const std::string_view expected = (i - first) % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != expected) {
      bad_message(
          file, i, messages[i],
          format_text("expects {}: user and assistant take turns, the user begins", expected));
    }
    const std::string_view role = expected == "user" ? "user" : "model";
    text += format_text("<start_of_turn>{}\n{}{}<end_of_turn>\n", role, prefix,
                        trimmed(messages[i].content));
    prefix.clear();
  }
  if (add_generation_prompt) text += "<start_of_turn>model\n";
  return text;
}

}  // namespace

std::string chat_text(const std::string& file, std::string_view chat_template,
                      std::span<const ChatMessage> messages, bool add_generation_prompt) {
  switch (form_of(chat_template)) {
    case Form::ChatMl:
      return chat_ml(file, messages, {}, add_generation_prompt);
    case Form::SmolLm2:
      return chat_ml(file, messages, kSmolLm2System, add_generation_prompt);
    case Form::Gemma2:
      return gemma(file, messages, false, add_generation_prompt);
    case Form::Gemma3:
      return gemma(file, messages, true, add_generation_prompt);
    case Form::Other:
      break;
  }
  unsupported(file, chat_template);
}

}  // namespace ptxgen::inline v0::model
