// src/cli/commands/tokenize.cpp - ptxgen tokenize: text to token ids and back
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/output/tokens_text.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/model/tokenizer.hpp"

namespace ptxgen::cli {

namespace {

struct TokenizeArguments {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  std::string decode;
  std::string output;
  bool null = false;
  bool chat = false;
  bool no_special = false;
  bool no_control = false;
  bool pieces = false;
  bool json = false;
};

std::vector<std::string> split_at_null(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != text.npos; begin = end + 1) {
    end = text.find('\0', begin);
    parts.push_back(text.substr(begin, end == text.npos ? end : end - begin));
  }
  if (parts.back().empty()) parts.pop_back();  // after a NUL at the end
  return parts;
}

std::vector<std::string> texts_of(const TokenizeArguments& options) {
  if (!options.file.empty() && !options.texts.empty()) {
    throw UsageError("--file: texts are given as arguments, too; give one of the two");
  }
  if (options.null && options.file.empty()) {
    throw UsageError("--null: there is no --file to be split");
  }
  if (!options.file.empty()) {
    const std::string text = read_input(options.file);
    return options.null ? split_at_null(text) : std::vector<std::string>{text};
  }
  if (options.texts.empty()) {
    throw UsageError("no text: give it as an argument or with --file, or ids with --decode");
  }
  return options.texts;
}

// A conversation with these messages; the user begins.
std::string conversation(const model::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::vector<model::ChatMessage> messages;
  for (const std::string& text : texts) {
    messages.push_back({messages.size() % 2 == 0 ? "user" : "assistant", text});
  }
  return tokenizer.chat(messages);
}

std::string decoded(const model::Tokenizer& tokenizer, const TokenizeArguments& options) {
  if (!options.file.empty() || !options.texts.empty() || options.chat) {
    throw UsageError("--decode: gives text from ids; it does not go with texts");
  }
  const model::DecodeOptions decode{.special = !options.no_control, .continues = false};
  const std::string text = tokenizer.decode(token_ids("--decode", options.decode), decode);
  return options.json ? text_of(nlohmann::json{{"text", text}}) : text;
}

std::string encoded(const model::Tokenizer& tokenizer, const TokenizeArguments& options) {
  std::vector<std::string> texts = texts_of(options);
  if (options.chat) texts = {conversation(tokenizer, texts)};
  const model::EncodeOptions encode{.add_special = !options.no_special,
                                    .parse_special = !options.no_control};
  std::vector<TokenizedText> results;
  for (std::string& text : texts) {
    std::vector<std::uint32_t> ids = tokenizer.encode(text, encode);
    results.push_back({std::move(text), std::move(ids)});
  }
  if (options.json) return text_of(to_json(tokenizer, results));
  return options.pieces ? pieces_text(tokenizer, results) : ids_text(results);
}

std::string run(const TokenizeArguments& options) {
  const model::Tokenizer tokenizer = model::Tokenizer::read(gguf::File(options.model));
  return options.decode.empty() ? encoded(tokenizer, options) : decoded(tokenizer, options);
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenizeArguments>();
  Command command(app, "tokenize", "Give the token ids of texts by the tokenizer of a GGUF file");
  command.footer(
      "Example: ptxgen tokenize model.gguf \"Once upon a time\"\n"
      "Ids are printed with commas between them, one line for each text.");
  command.add_option("model", options->model, "a GGUF file with a tokenizer").required();
  command.add_option("text", options->texts, "texts, each for itself");
  command.add_option("-f,--file", options->file, "a file with the text, or - for stdin");
  command.add_flag("--null", options->null, "texts in --file are separated by NUL bytes");
  command.add_flag("--chat", options->chat,
                   "the texts are messages of a conversation, the user's first; the file's chat "
                   "template makes them one text");
  command.add_flag("--no-special", options->no_special,
                   "without the begin and end of text that the file asks for");
  command.add_flag(
      "--no-control", options->no_control,
      "the text of a control token is text; with --decode: control tokens are left out");
  command.add_option("--decode", options->decode,
                     "print the text of these ids, separated by commas or spaces");
  command.add_flag("--pieces", options->pieces, "one line for each token: its id and its text");
  command.add_flag("--json", options->json,
                   "one JSON document: each text with its ids and their texts");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &exit_code] {
    write_output(options->output, run(*options));
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
