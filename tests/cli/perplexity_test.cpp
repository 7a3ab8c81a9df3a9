// tests/cli/perplexity_test.cpp - ptxgen perplexity on a model of the alphabet
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model_file.hpp"
#include "support/npy.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

struct PerplexityModel : ModelFile {
  [[nodiscard]] SubprocessResult perplexity(std::vector<std::string> options) const {
    return run("perplexity", std::move(options));
  }
  [[nodiscard]] json perplexity_json(std::vector<std::string> options) const {
    return run_json("perplexity", std::move(options));
  }
};

// -log of the probability of `token`, from the logits that `generate` writes.
double nll_of(std::span<const float> logits, std::uint32_t token) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) - static_cast<double>(logits[token]);
}

}  // namespace

TEST_CASE("perplexity is exp of the mean negative log-likelihood of the logits") {
  const PerplexityModel model;
  // Two windows of 6; a seventh token in none. Without a tokenizer nothing is put before them.
  const std::vector<std::uint32_t> tokens = {265, 270, 271, 260, 261, 280, 262,
                                             263, 264, 3,   266, 267, 268};
  std::string list;
  for (const std::uint32_t token : tokens)
    list += (list.empty() ? "" : ",") + std::to_string(token);
  double half = 0, all = 0;
  for (std::size_t window = 0; window < 2; ++window) {
    std::string ids;
    for (std::size_t i = 0; i < 6; ++i) {
      ids += (i == 0 ? "" : ",") + std::to_string(tokens[window * 6 + i]);
    }
    const std::string file = model.folder.file("logits.npy");
    REQUIRE(model.run("generate", {"--tokens", ids, "-n", "0", "--logits", file}).exit_code == 0);
    const std::vector<float> logits = floats_in(parse_npy(read_file(file), file).data);
    for (std::size_t i = 0; i < 5; ++i) {
      constexpr std::size_t kVocabulary = AlphabetModel::kVocabulary;
      const double nll =
          nll_of({&logits[i * kVocabulary], kVocabulary}, tokens[window * 6 + i + 1]);
      all += nll;
      if (i >= 3) half += nll;
    }
  }
  const json by_half = model.perplexity_json({"--tokens", list, "--context", "6"});
  CHECK(by_half.at("tokens") == 4);
  CHECK(by_half.at("windows") == 2);
  CHECK(by_half.at("context") == 6);
  CHECK(by_half.at("positions") == "second-half");
  CHECK(by_half.at("nll").get<double>() == Approx(half / 4).epsilon(1e-4));
  CHECK(by_half.at("perplexity").get<double>() ==
        Approx(std::exp(by_half.at("nll").get<double>())));
  const json by_all =
      model.perplexity_json({"--tokens", list, "--context", "6", "--all-positions"});
  CHECK(by_all.at("tokens") == 10);
  CHECK(by_all.at("nll").get<double>() == Approx(all / 10).epsilon(1e-4));
  CHECK(by_all.at("error") > 0);
  const json first = model.perplexity_json(
      {"--tokens", list, "--context", "6", "--all-positions", "--windows", "1"});
  CHECK(first.at("tokens") == 5);
}

TEST_CASE("a text that the model expects has a perplexity near 1, another one not") {
  const PerplexityModel model;
  const std::string file = model.folder.file("text.txt");
  write_file(file, "abcdefghijklmnopqrstuvwxyz");
  const auto result = model.perplexity({"-f", file, "--context", "10"});
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("perplexity 1.0"));
  CHECK(contains(result.out, " +/- "));
  CHECK(contains(result.out,
                 "\n8 tokens counted, the second half in each of 2 windows of 10 (27 "
                 "tokens in the text)\n"));
  write_file(file, "zyxwvutsrqponmlkjihgfedcba");
  CHECK(model.perplexity_json({"-f", file, "--context", "10"}).at("perplexity") > 100);
}

TEST_CASE("each window begins with the begin of text where the tokenizer puts one") {
  const PerplexityModel model;
  // The second window would begin with `f`, after which the model expects g.
  const json document = model.perplexity_json(
      {"--prompt", "abcdefabcd", "--context", "6", "--all-positions", "--windows", "1"});
  CHECK(document.at("perplexity") < 1.1);
  const std::string bos = std::to_string(AlphabetModel::kBegin);
  std::string ids = bos;
  for (const char letter : std::string("abcde")) {
    ids += "," + std::to_string(AlphabetModel::letter(letter));
  }
  const json same = model.perplexity_json({"--tokens", ids, "--context", "6", "--all-positions"});
  CHECK(same.at("nll") == document.at("nll"));
  // z in the place of the second window's begin.
  const json both =
      model.perplexity_json({"--prompt", "abcdezabcde", "--context", "6", "--all-positions"});
  CHECK(both.at("windows") == 2);
  CHECK(both.at("perplexity") < 1.1);
}

TEST_CASE("a short text is one window, and a shorter one is refused") {
  const PerplexityModel model;
  const auto result = model.perplexity({"--prompt", "abcdef"});
  CHECK(result.exit_code == 0);
  CHECK(contains(result.err, "one window of 7 tokens: the text has no more\n"));
  CHECK(contains(result.out, "3 tokens counted"));
  const auto refused = model.perplexity({"--tokens", "5"});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "--tokens: 1 token in a window of 1 leave none to predict"));
  const auto none = model.perplexity({});
  CHECK(none.exit_code == 2);
  CHECK(contains(none.err, "there is no prompt"));
  const auto wide = model.perplexity({"--prompt", "abc", "--context", "97"});
  CHECK(wide.exit_code == 2);
  CHECK(contains(wide.err, "--context 97: the model was made for 96 positions"));
}
