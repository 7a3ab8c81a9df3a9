// tests/model/tokenizer/chat_test.cpp - chat templates, by the text they give
#include <catch2/catch.hpp>

#include "model/tokenizer/vocabulary_writer.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using model::ChatMessage;
using Messages = std::vector<ChatMessage>;

namespace {

constexpr const char* kChatMl =
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}";
const std::string kSmolLm2 =
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI "
    "assistant "
    "named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}" +
    std::string(kChatMl);
constexpr const char* kGemma3 =
    "{{ bos_token }}{%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}"
    "{{ '<start_of_turn>' + role + '\n' }}{{ '<end_of_turn>\n' }}";
constexpr const char* kGemma2 =
    "{{ bos_token }}{{ raise_exception('System role not supported') }}"
    "{{ '<start_of_turn>' + role + '\n' }}{{ '<end_of_turn>\n' }}";

Tokenizer with_template(const std::string& text) {
  VocabularyWriter writer = sentence_pieces();
  if (!text.empty()) writer.text("tokenizer.chat_template", text);
  return writer.read();
}

std::string refusal(const std::string& text, const Messages& messages) {
  try {
    (void)with_template(text).chat(messages);
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.file == "model.gguf");
    return error.code + ": " + error.message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("conversations in ChatML") {
  const Tokenizer plain = with_template(kChatMl);
  CHECK(plain.chat_template() == kChatMl);
  const Messages messages = {{"user", "Hi"}, {"assistant", " Hello! "}, {"user", ""}};
  CHECK(plain.chat(messages) ==
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n Hello! <|im_end|>\n"
        "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n");
  CHECK(plain.chat(Messages{{"user", "Hi"}}, false) == "<|im_start|>user\nHi<|im_end|>\n");
  CHECK(plain.chat({}) == "<|im_start|>assistant\n");
}

TEST_CASE("SmolLM2's template has a system message of its own") {
  const Tokenizer tokenizer = with_template(kSmolLm2);
  CHECK(tokenizer.chat(Messages{{"user", "Hi"}}) ==
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
        "Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  CHECK(tokenizer.chat(Messages{{"system", "Be brief."}, {"user", "Hi"}}) ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n");
}

TEST_CASE("conversations in Gemma's form") {
  const Messages messages = {{"user", " Hi\n"}, {"assistant", "Hello!"}, {"user", "And?"}};
  const std::string expected =
      "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"
      "<start_of_turn>user\nAnd?<end_of_turn>\n<start_of_turn>model\n";
  CHECK(with_template(kGemma3).chat(messages) == expected);
  CHECK(with_template(kGemma2).chat(messages) == expected);
  CHECK(with_template(kGemma3).chat(Messages{{"system", "Be brief."}, {"user", "Hi"}}, false) ==
        "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n");
}

TEST_CASE("messages that a template does not take") {
  CHECK(refusal(kChatMl, {{"user", "Hi"}, {"tool", "{}"}}) ==
        "bad-chat-message: message 2 has the role 'tool': expects system, user or assistant");
  CHECK(refusal(kGemma2, {{"system", "Be brief."}, {"user", "Hi"}}) ==
        "bad-chat-message: message 1 has the role 'system': the template of this model has no "
        "system messages");
  CHECK(refusal(kGemma3, {{"system", "Be brief."}, {"assistant", "Hi"}}) ==
        "bad-chat-message: message 2 has the role 'assistant': expects user: user and assistant "
        "take turns, the user begins");
  CHECK(refusal(kGemma3, {{"user", "Hi"}, {"system", "Be brief."}}) ==
        "bad-chat-message: message 2 has the role 'system': expects assistant: user and assistant "
        "take turns, the user begins");
}

TEST_CASE("templates that are not known") {
  constexpr const char* kCure =
      "supported are ChatML as in SmolLM2 and the templates of Gemma 2 and 3; give the text with "
      "its control tokens as it is (without --chat), or the ids of tokens (--tokens)";
  CHECK(refusal("", {{"user", "Hi"}}) ==
        std::string("unsupported-chat-template: the file has no key 'tokenizer.chat_template'; ") +
            kCure);
  CHECK(refusal("[INST]{{ a }}\n", {{"user", "Hi"}}) ==
        std::string("unsupported-chat-template: key 'tokenizer.chat_template' is another template, "
                    "\"[INST]{{ a }}\\n\"; ") +
            kCure);
  // ChatML with more in it: another system message, tools.
  for (const char* more : {"You are Qwen", "{% if tools %}", "<think>"}) {
    CHECK(refusal(kChatMl + std::string(more), {{"user", "Hi"}}).starts_with("unsupported-chat"));
  }
  CHECK(refusal("<start_of_turn><end_of_turn>", {}).starts_with("unsupported-chat"));
}
