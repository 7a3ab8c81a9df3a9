// tests/cli/generate_test.cpp - ptxgen generate on a model of the alphabet
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model_file.hpp"
#include "support/harness.hpp"
#include "support/npy.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

struct Model : ModelFile {
  using ModelFile::ModelFile;
  [[nodiscard]] SubprocessResult generate(std::vector<std::string> options) const {
    return run("generate", std::move(options));
  }
  [[nodiscard]] json generate_json(std::vector<std::string> options) const {
    return run_json("generate", std::move(options));
  }
  // The message of a call that is refused.
  [[nodiscard]] std::string refusal(std::vector<std::string> options) const {
    const auto result = generate(std::move(options));
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    return result.err;
  }
};

std::string floats_of(const std::string& file, std::vector<std::uint64_t> shape) {
  const NpyArray array = parse_npy(read_file(file), file);
  CHECK(array.type == "<f4");
  CHECK(array.shape == shape);
  return array.data;
}

std::size_t largest(std::span<const float> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

TEST_CASE("generate prints the text, and what it took on standard error") {
  const Model model;
  const auto result = model.generate({"--prompt", "ab", "--greedy", "-n", "3"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "cde\n");
  CHECK(contains(result.err, "model       Alphabet, 2 layers, 0.4 MB on NVIDIA H200"));
  CHECK(contains(result.err, "prompt      3 tokens in "));
  CHECK(contains(result.err, "first token after "));
  CHECK(contains(result.err, "generated   3 tokens (length)\n"));
  CHECK(contains(result.err, " tokens/s, 2 steps in "));
  CHECK(contains(result.err, "; the emulator's speed, not a GPU's\n"));
  CHECK(contains(result.err, "a token     0.3 MB: 0.3 MB of weights, 0.0 MB of keys and values\n"));
  CHECK(contains(result.err, " million lane instructions\n"));
}

TEST_CASE("generate stops where the text ends, unless it is told not to") {
  const Model model;
  const json document = model.generate_json({"--prompt", "w", "--greedy"});
  CHECK(document.at("text") == "xyz");
  CHECK(document.at("stop") == "stop-token");
  CHECK(document.at("tokens").back() == AlphabetModel::letter('z'));
  const json on = model.generate_json({"--prompt", "w", "--greedy", "--ignore-eos", "-n", "5"});
  CHECK(on.at("tokens").size() == 5);
  CHECK(on.at("tokens")[3] == AlphabetModel::kEnd);
  CHECK(on.at("text").get<std::string>().starts_with("xyz"));
  CHECK(on.at("stop") == "length");
}

TEST_CASE("generate --json has the keys of the contract") {
  const Model model;
  const json document = model.generate_json({"--prompt", "ab", "--greedy", "-n", "3"});
  const auto letter = AlphabetModel::letter;
  CHECK(document.at("prompt_tokens") == json({AlphabetModel::kBegin, letter('a'), letter('b')}));
  CHECK(document.at("tokens") == json({letter('c'), letter('d'), letter('e')}));
  CHECK(document.at("text") == "cde");
  CHECK(document.at("chat_template") == nullptr);
  CHECK(document.at("prefill_seconds") > 0);
  CHECK(document.at("first_token_seconds") >= document.at("prefill_seconds"));
  CHECK(document.at("decode_seconds") > 0);
  CHECK(document.at("load_seconds") > 0);
  const double speed = document.at("tokens_per_second");
  CHECK(speed == Approx(2 / document.at("decode_seconds").get<double>()));
  CHECK(document.at("device") == "emulator");
  CHECK(document.at("peak_resident_bytes") > 1'000'000);
  CHECK(document.at("lane_instructions_per_token") > 100'000);
  CHECK(document.at("findings") == json::parse(R"({"errors":0,"notes":0,"warnings":0})"));
  // Everything but the embedding, which is no output here; and keys and values of 32 floats, in two
  // layers, at the positions 4 and 5.
  using A = AlphabetModel;
  const std::uint64_t layer =
      2 * A::kWidth + A::kWidth * (4 * A::kHeadSize + 2 * A::kHeadSize) + 3 * A::kWidth * A::kFfn;
  const std::uint64_t weights = 2 * layer + A::kWidth + A::kWidth * A::kVocabulary;
  CHECK(document.at("bytes_per_token") ==
        4.0 * static_cast<double>(weights) + 2 * 2 * 32 * 4 * 4.5);
}

TEST_CASE("the prompt may be text, a file, standard input or ids") {
  const Model model;
  const std::vector<std::string> how = {"--greedy", "-n", "2"};
  const auto with = [&](std::vector<std::string> prompt) {
    prompt.insert(prompt.end(), how.begin(), how.end());
    const auto result = model.generate(std::move(prompt));
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  CHECK(with({"--prompt", "ab"}) == "cd\n");
  const std::string file = model.folder.file("prompt.txt");
  write_file(file, "klm");
  CHECK(with({"-f", file}) == "no\n");
  const auto piped = run_program({"/bin/sh", "-c",
                                  "printf rs | " + std::string(PTXGEN_PROGRAM) + " generate " +
                                      model.path + " -f - --greedy -n 2"});
  CHECK(piped.out == "tu\n");
  // Ids for ids; nothing is put before them.
  const std::string c = std::to_string(AlphabetModel::letter('c'));
  CHECK(with({"--tokens", c}) == std::to_string(AlphabetModel::letter('d')) + " " +
                                     std::to_string(AlphabetModel::letter('e')) + "\n");
  const json document = model.generate_json({"--tokens", c, "--greedy", "-n", "1"});
  CHECK(document.at("prompt_tokens") == json({AlphabetModel::letter('c')}));
  CHECK(document.at("text") == "d");
}

TEST_CASE("generate --chat applies the model's template, and says which") {
  const Model model;
  const auto result = model.generate({"--chat", "--prompt", "hi", "--greedy"});
  CHECK(result.out == "xyz\n");
  CHECK(contains(result.err, "template    ChatML\n"));
  const json document =
      model.generate_json({"--chat", "--system", "a", "--prompt", "b", "--greedy"});
  CHECK(document.at("chat_template") == "ChatML");
  CHECK(document.at("prompt_tokens")[1] == AlphabetModel::kChatStart);
  const std::vector<std::uint32_t> tokens = document.at("prompt_tokens");
  CHECK(std::ranges::count(tokens, +AlphabetModel::kChatStart) == 3);
  CHECK(
      contains(model.refusal({"--system", "a", "--prompt", "b"}), "--system is a part of --chat"));
  CHECK(contains(model.refusal({"--chat", "--tokens", "1"}),
                 "--chat applies to text; --tokens gives the ids of the whole prompt"));
  const Model plain({.chat_template = false});
  const std::string refusal = plain.refusal({"--chat", "--prompt", "b"});
  CHECK(contains(refusal, "[unsupported-chat-template]"));
  CHECK(contains(refusal, "without --chat"));
}

TEST_CASE("a seed gives the same text, another one another text") {
  const Model model;
  const auto text = [&](const std::string& seed) {
    return model
        .generate_json({"--prompt", "a", "-n", "12", "--seed", seed, "--temperature", "30",
                        "--top-k", "0", "--top-p", "1", "--min-p", "0", "--ignore-eos"})
        .at("tokens");
  };
  const json first = text("1");
  CHECK(first == text("1"));
  CHECK(first != text("2"));
  // What is left of the tokens decides, also at that temperature.
  const json narrow = model.generate_json(
      {"--prompt", "ab", "-n", "3", "--temperature", "30", "--top-k", "1", "--seed", "7"});
  CHECK(narrow.at("text") == "cde");
  const json likely = model.generate_json({"--prompt", "ab", "-n", "3", "--temperature", "30",
                                           "--top-k", "0", "--top-p", "0.5", "--seed", "7"});
  CHECK(likely.at("text") == "cde");
}

TEST_CASE("generate --logits writes a row for every position of prompt and continuation") {
  const Model model;
  const std::string file = model.folder.file("logits.npy");
  const json document =
      model.generate_json({"--prompt", "ab", "--greedy", "-n", "2", "--logits", file});
  CHECK(document.at("text") == "cd");
  const std::vector<float> logits = floats_in(floats_of(file, {5, AlphabetModel::kVocabulary}));
  for (std::size_t i = 0; i < 5; ++i) {
    const std::span<const float> row(&logits[i * AlphabetModel::kVocabulary],
                                     AlphabetModel::kVocabulary);
    CHECK(largest(row) == AlphabetModel::kA + i);
  }
  const json only = model.generate_json({"--prompt", "ab", "-n", "0", "--logits", file});
  CHECK(only.at("tokens") == json::array());
  CHECK(only.at("tokens_per_second") == 0);
  const std::vector<float> prompt = floats_in(floats_of(file, {3, AlphabetModel::kVocabulary}));
  CHECK(std::equal(prompt.begin(), prompt.end(), logits.begin(),
                   [](float a, float b) { return a == Approx(b).margin(1e-4); }));
}

TEST_CASE("generate --compare-logits compares with another run") {
  const Model model;
  const std::string file = model.folder.file("logits.npy");
  const std::vector<std::string> how = {"--prompt", "ab", "--greedy", "-n", "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), how.begin(), how.end());
    return more;
  };
  (void)model.generate_json(with({"--logits", file}));
  const json same = model.generate_json(with({"--compare-logits", file}));
  CHECK(same.at("logits_nmse") == 0);
  CHECK(same.at("logits_compared") == 6);
  CHECK(same.at("logits_first_difference") == nullptr);
  // A cache of q8_0 rounds; another prompt has other logits.
  const auto rounded = model.generate(with({"--compare-logits", file, "--kv-type", "q8_0"}));
  CHECK(contains(rounded.err, "logits      nmse "));
  const auto other =
      model.generate({"--prompt", "ay", "--greedy", "-n", "3", "--compare-logits", file});
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err,
                 " over 3 positions, another top token at position 2; WRONG: expects at "
                 "most 1e-06\n"));
  CHECK(contains(model.refusal({"--prompt", "ab", "--compare-logits", file}),
                 "--compare-logits: tokens that are drawn differ; add --greedy, here and there"));
  write_file(file, npy_header("<f4", std::vector<std::uint64_t>{0, 3}));
  CHECK(contains(model.refusal(with({"--compare-logits", file})),
                 ": expects f32 [positions, 288], the logits of another run with --logits"));
}

TEST_CASE("generate --dump-layer writes an output of a layer at every position") {
  const Model model;
  const std::string out = model.folder.file("out.npy"), q = model.folder.file("q.npy");
  const std::string embedding = model.folder.file("embedding.npy");
  (void)model.generate_json({"--prompt", "ab", "--greedy", "-n", "3", "--dump-layer", "1", out,
                             "--dump-layer", "0:q", q, "--dump-layer", "embedding", embedding});
  // The third token is not computed with.
  CHECK(floats_of(out, {5, AlphabetModel::kWidth}) !=
        floats_of(embedding, {5, AlphabetModel::kWidth}));
  (void)floats_of(q, {5, AlphabetModel::kHeads * AlphabetModel::kHeadSize});
  for (const float value : floats_in(floats_of(embedding, {5, AlphabetModel::kWidth}))) {
    CHECK(std::abs(value) == 1);
  }
  CHECK(contains(model.refusal({"--prompt", "a", "--dump-layer", "2", out}),
                 "--dump-layer 2: the model has the layers 0 to 1"));
  CHECK(
      contains(model.refusal({"--prompt", "a", "--dump-layer", "1:x", out}),
               "--dump-layer 1:x: there is no tensor 'x' in a layer; there are: attn, attn_norm"));
  CHECK(contains(model.refusal({"--prompt", "a", "--dump-layer", "x", out}),
                 "there is no tensor 'x' outside of the layers; there are: embedding, logits"));
}

TEST_CASE("generate --stats counts the launches of a token by kernel") {
  const Model model;
  const auto result = model.generate({"--prompt", "ab", "--greedy", "-n", "3", "--stats"});
  CHECK(contains(result.err, "a token, by kernel:\n"));
  CHECK(contains(result.err, "kernel  launches  lane instructions  time, %\n"));
  CHECK(contains(result.err, " resident at most, "));
  const json document = model.generate_json({"--prompt", "ab", "--greedy", "-n", "3", "--stats"});
  double lanes = 0, share = 0;
  for (const json& kernel : document.at("kernels")) {
    lanes += kernel.at("lane_instructions_per_token").get<double>();
    share += kernel.at("time_share").get<double>();
    if (kernel.at("kernel") == "attention_decode") CHECK(kernel.at("launches_per_token") == 2);
  }
  CHECK(lanes == Approx(document.at("lane_instructions_per_token").get<double>()));
  CHECK(share == Approx(1));
}

TEST_CASE("cache types, checks and GPUs can be chosen") {
  const Model model;
  for (const std::string type : {"f16", "bf16", "q8_0"}) {
    const json document =
        model.generate_json({"--prompt", "ab", "--greedy", "-n", "3", "--kv-type", type});
    CHECK(document.at("text") == "cde");
    CHECK(document.at("kv_type") == type);
  }
  const json l4 = model.generate_json(
      {"--prompt", "ab", "--greedy", "-n", "2", "--check", "none", "--gpu", "l4"});
  CHECK(l4.at("text") == "cd");
  CHECK(contains(l4.at("gpu").get<std::string>(), "L4"));
  CHECK(contains(model.refusal({"--prompt", "a", "--kv-type", "q4_0"}),
                 "--kv-type q4_0: expects one of f32, f16, bf16, q8_0"));
  CHECK(contains(model.refusal({"--prompt", "a", "--check", "some"}), "--check some: "));
  CHECK(contains(model.refusal({"--prompt", "a", "--check", "none", "--device", "cuda:0"}),
                 "--check needs the emulator, and --device cuda:0 is a GPU"));
}

TEST_CASE("generate ends where the context is full, and refuses a prompt that is longer") {
  const Model model;
  const json document = model.generate_json({"--prompt", "abc", "--greedy", "--context", "6"});
  CHECK(document.at("context") == 6);
  CHECK(document.at("text") == "def");
  CHECK(document.at("stop") == "context-full");
  CHECK(contains(model.refusal({"--prompt", "abcdef", "--context", "6"}),
                 "--prompt: 7 tokens, and the context has 6 positions; give a shorter prompt or a "
                 "longer --context (the model has 96)"));
  CHECK(contains(model.refusal({"--prompt", "a", "--context", "97"}),
                 "--context 97: the model was made for 96 positions"));
  CHECK(contains(model.refusal({"--prompt", "a", "--context", "0"}), "--context 0"));
}

TEST_CASE("calls of generate that are wrong are refused with what to write") {
  const Model model;
  CHECK(contains(model.refusal({}),
                 "there is no prompt: give --prompt TEXT, -f FILE or --tokens 1,2,3"));
  CHECK(contains(model.refusal({"--prompt", "a", "--tokens", "1"}),
                 "there is more than one prompt: give --prompt TEXT, -f FILE or --tokens 1,2,3, "
                 "one of them"));
  CHECK(contains(model.refusal({"--prompt", ""}), "--prompt: the prompt is empty"));
  CHECK(contains(model.refusal({"--tokens", "1,x"}), "--tokens x: expects"));
  CHECK(contains(model.refusal({"--tokens", ","}),
                 "--tokens: no tokens; a model continues at least one"));
  CHECK(contains(model.refusal({"--tokens", "1,288"}),
                 "--tokens: there is no token 288; the model has 288, 0 to 287"));
  CHECK(contains(model.refusal({"-f", model.folder.file("none.txt")}), "No such file"));
  CHECK(contains(model.refusal({"--prompt", "a", "--top-p", "1.5"}),
                 "--top-p 1.5: expects a number from 0 to 1"));
  CHECK(contains(model.refusal({"--prompt", "a", "--temperature", "-1"}),
                 "--temperature -1: expects a number from 0"));
  CHECK(contains(model.refusal({"--prompt", "a", "--greedy", "--temperature", "1"}),
                 "--greedy is --temperature 0; give one of them"));
  CHECK(contains(model.refusal({"--prompt", "a", "--logits", model.folder.path()}),
                 "is a folder; name a file in it"));
  const auto missing =
      ptxgen_program({"generate", model.folder.file("none.gguf"), "--prompt", "a"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "none.gguf: error: cannot map the file: No such file or directory"));
  const std::string text = model.folder.file("text.gguf");
  write_file(text, "no model at all, but long enough");
  const auto other = ptxgen_program({"generate", text, "--prompt", "a"});
  CHECK(other.exit_code == 2);
  CHECK(contains(other.err, "[not-gguf]"));
}

TEST_CASE("a tokenizer that is not supported leaves ids") {
  for (const std::string tokenizer : {"", "rwkv"}) {
    const Model model({.tokenizer = tokenizer});
    const std::string refusal = model.refusal({"--prompt", "ab"});
    CHECK(contains(refusal, "give the ids of tokens (--tokens) instead of text"));
    const std::string c = std::to_string(AlphabetModel::letter('w'));
    const json document = model.generate_json({"--tokens", c, "--greedy"});
    CHECK(document.at("tokens").size() == 3);  // the file says what ends a text
    CHECK(document.at("text") == nullptr);
  }
}

TEST_CASE("generate writes its text and its trace to files") {
  const Model model;
  const std::string text = model.folder.file("text.txt"), trace = model.folder.file("trace.json");
  const auto result =
      model.generate({"--prompt", "ab", "--greedy", "-n", "2", "-o", text, "--trace", trace});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "");
  CHECK(read_file(text) == "cd\n");
  const json spans = json::parse(read_file(trace));
  CHECK(spans.at("traceEvents").size() > 10);
  CHECK(contains(model.refusal({"--prompt", "a", "--trace", model.folder.file("no/trace.json")}),
                 "--trace: "));
}

TEST_CASE("the first Ctrl-C ends the text with its statistics") {
  if (run_program({"/bin/sh", "-c", "command -v timeout"}).exit_code != 0) {
    return skip("timeout is not here");
  }
  const Model model({.context = 4096});
  // Far more than it can have generated by then. Without --foreground the signal would come twice.
  const auto result = run_program({"/usr/bin/env", "timeout", "--foreground", "-s", "INT", "3",
                                   PTXGEN_PROGRAM, "generate", model.path, "--prompt", "a",
                                   "--greedy", "--ignore-eos", "-n", "4000"});
  INFO(result.err);
  CHECK(result.out.starts_with("bcd"));
  CHECK(result.out.ends_with("\n"));
  CHECK(contains(result.err, " tokens (interrupted)\n"));
  CHECK(contains(result.err, " tokens/s, "));
}
