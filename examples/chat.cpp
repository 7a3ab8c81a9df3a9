// examples/chat.cpp - a conversation with a model in a GGUF file
//
// usage: chat MODEL.gguf [QUESTION...]
//
// Without a question it reads them from standard input, one a line. Runs on the first GPU, or on
// the emulated device; PTXGEN_DEVICE selects another one.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "ptxgen/model.hpp"
#include "ptxgen/support/error.hpp"

namespace {

using namespace ptxgen;

class Conversation {
 public:
  explicit Conversation(const model::Model& model)
      : tokenizer_(model::Tokenizer::read(model.file())), session_(model) {
    options_.max_tokens = 256;
    options_.stop.assign(tokenizer_.ends().begin(), tokenizer_.ends().end());
  }

  void answer(const std::string& question) {
    messages_.push_back({"user", question});
    const std::vector<std::uint32_t> prompt = tokenizer_.encode(tokenizer_.chat(messages_));
    // What the session holds already, from earlier questions, is not computed again; the last token
    // is, for its logits.
    std::size_t known = 0;
    const std::size_t limit = std::min(prompt.size() - 1, held_.size());
    while (known < limit && prompt[known] == held_[known]) ++known;
    session_.truncate(static_cast<std::uint32_t>(known));

    Printer printer{model::TextStream(tokenizer_, {.continues = true}), {}};
    options_.on_token = {&Printer::token, &printer};
    const model::Generated generated =
        generate(session_, std::span(prompt).subspan(known), options_);
    printer.print(printer.stream.finish());
    std::putchar('\n');
    std::fflush(stdout);
    std::fprintf(stderr, "[%zu tokens, %s]\n", generated.tokens.size(),
                 std::string(to_string(generated.reason)).c_str());
    messages_.push_back({"assistant", printer.text});
    held_ = prompt;
    held_.insert(held_.end(), generated.tokens.begin(), generated.tokens.end());
    held_.resize(session_.position());
  }

 private:
  struct Printer {
    model::TextStream stream;
    std::string text;

    void print(const std::string& piece) {
      text += piece;
      std::fputs(piece.c_str(), stdout);
      std::fflush(stdout);
    }
    static bool token(void* user, std::uint32_t token) {
      auto& self = *static_cast<Printer*>(user);
      self.print(self.stream.push(token));
      return true;
    }
  };

  model::Tokenizer tokenizer_;
  model::Session session_;
  model::GenerateOptions options_;
  std::vector<model::ChatMessage> messages_;
  std::vector<std::uint32_t> held_;  // tokens of the session
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: chat MODEL.gguf [QUESTION...]\n", stderr);
    return 2;
  }
  try {
    const Device device = Device::open();
    const Context context(device);
    const model::Model model(context, argv[1]);
    Conversation conversation(model);
    for (int i = 2; i < argc; ++i) conversation.answer(argv[i]);
    std::string line;
    while (argc == 2 && std::getline(std::cin, line)) {
      if (!line.empty()) conversation.answer(line);
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
