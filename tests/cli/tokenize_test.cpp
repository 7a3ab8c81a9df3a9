// tests/cli/tokenize_test.cpp - ptxgen tokenize: ids, pieces, JSON, text of ids, refusals
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "model/tokenizer/vocabulary_writer.hpp"
#include "program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

// "a" is 259, "b" 260, "ab" 261, a space 262, "<|im_end|>" 263.
VocabularyWriter small_vocabulary() {
  VocabularyWriter writer = sentence_pieces();
  writer.add("a", -3).add("b", -3).add("ab", -1).add("\xe2\x96\x81", -2);
  writer.add("<|im_end|>", 0, TokenType::Control);
  writer.more = {};
  writer.flag("add_space_prefix", false);
  writer.text("tokenizer.chat_template", "<|im_start|>role content<|im_end|>");
  return writer;
}

struct VocabularyFile {
  TemporaryDirectory folder;
  std::string path = folder.file("model.gguf");
  explicit VocabularyFile(const VocabularyWriter& writer = small_vocabulary()) {
    write_file(path, writer.bytes());
  }
  [[nodiscard]] SubprocessResult run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"tokenize", path});
    return ptxgen_program(arguments);
  }
  [[nodiscard]] std::string out(const std::vector<std::string>& arguments) const {
    const SubprocessResult result = run(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.err == "");
    return result.out;
  }
};

}  // namespace

TEST_CASE("tokenize prints the ids of each text") {
  const VocabularyFile model;
  CHECK(model.out({"ab a"}) == "1,261,262,259\n");
  CHECK(model.out({"ab", "", "b"}) == "1,261\n1\n1,260\n");
  CHECK(model.out({"--no-special", "ab", ""}) == "261\n\n");
  CHECK(model.out({"ab<|im_end|>"}) == "1,261,263\n");
  CHECK(model.out({"--no-control", "b<s>"}) == "1,260,63,118,65\n");
}

TEST_CASE("tokenize reads files and standard input, also with several texts") {
  const VocabularyFile model;
  const std::string text = model.folder.file("text.txt");
  write_file(text, "a\nb");
  CHECK(model.out({"-f", text}) == "1,259,13,260\n");
  write_file(text, std::string("ab\0\0b\0", 6));
  CHECK(model.out({"-f", text, "--null"}) == "1,261\n1\n1,260\n");
  const auto piped = run_program({"/bin/sh", "-c",
                                  "printf 'ab' | " + std::string(PTXGEN_PROGRAM) + " tokenize " +
                                      model.path + " -f - -o " + model.folder.file("ids.txt")});
  CHECK(piped.exit_code == 0);
  CHECK(piped.out == "");
  CHECK(read_file(model.folder.file("ids.txt")) == "1,261\n");
}

TEST_CASE("tokenize --pieces and --json") {
  const VocabularyFile model;
  CHECK(model.out({"--pieces", "ab\xc3\xa9", "a"}) ==
        "     1  \"<s>\"\n   261  \"ab\"\n   198  \"\\xc3\"\n   172  \"\\xa9\"\n\n"
        "     1  \"<s>\"\n   259  \"a\"\n");
  const json document = json::parse(model.out({"--json", "ab a", "<|im_end|>"}));
  CHECK(document == json::parse(R"({"texts": [
      {"text": "ab a", "ids": [1, 261, 262, 259], "pieces": ["<s>", "ab", " ", "a"]},
      {"text": "<|im_end|>", "ids": [1, 263], "pieces": ["<s>", "<|im_end|>"]}]})"));
}

TEST_CASE("tokenize --decode prints the text of ids") {
  const VocabularyFile model;
  CHECK(model.out({"--decode", "1,261,262,259"}) == "<s>ab a");
  CHECK(model.out({"--decode", " 261 262\n259, 263,", "--no-control"}) == "ab a");
  CHECK(model.out({"--decode", "198,172"}) == "\xc3\xa9");
  CHECK(json::parse(model.out({"--decode", "261", "--json"})) == json{{"text", "ab"}});
}

TEST_CASE("tokenize --chat applies the file's template to messages") {
  const VocabularyFile model;
  const std::string text =
      "<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>assistant\n";
  CHECK(model.out({"--chat", "ab", "b"}) == model.out({text}));
}

TEST_CASE("tokenize refuses what it cannot do") {
  const VocabularyFile model;
  const auto refused = [&](const std::vector<std::string>& arguments, int code) {
    const SubprocessResult result = model.run(arguments);
    CHECK(result.exit_code == code);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(contains(refused({}, 2),
                 "no text: give it as an argument or with --file, or ids with "
                 "--decode"));
  CHECK(contains(refused({"a", "-f", "b"}, 2),
                 "--file: texts are given as arguments, too; give one of the two"));
  CHECK(contains(refused({"a", "--null"}, 2), "--null: there is no --file to be split"));
  CHECK(contains(refused({"a", "--decode", "1"}, 2),
                 "--decode: gives text from ids; it does not go with texts"));
  CHECK(contains(refused({"--decode", "1,x"}, 2), "--decode x"));
  CHECK(contains(refused({"--decode", "4294967296"}, 2), "--decode 4294967296"));
  CHECK(contains(refused({"--decode", "1,264"}, 2),
                 model.path + ": error: token 264 is beyond the vocabulary, which has 264 tokens"));
  VocabularyWriter other = small_vocabulary();
  other.model = "bert";
  const VocabularyFile unsupported(other);
  const SubprocessResult result = unsupported.run({"a"});
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "key 'tokenizer.ggml.model' is 'bert'; supported are llama "));
  CHECK(contains(result.err, "(--tokens)"));
}
