// tests/model/decoder_test.cpp - decoders of every architecture against fp64
#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

#include "model_bench.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using model::Architecture;
using model::Session;
using model::SessionOptions;

struct Case {
  const char* name;
  ToyShape shape;
};

std::vector<Case> cases() {
  const auto of = [](Architecture architecture) {
    ToyShape shape;
    shape.architecture = architecture;
    shape.window = architecture == Architecture::gemma3 ? 5 : 0;
    return shape;
  };
  std::vector<Case> all = {{"llama", of(Architecture::llama)},
                           {"qwen2", of(Architecture::qwen2)},
                           {"qwen3", of(Architecture::qwen3)},
                           {"gemma3", of(Architecture::gemma3)}};
  all[3].shape.layers = 7;  // the sixth is global
  all[3].shape.rope_base = 1e6F;
  all[2].shape.tied = false;

  ToyShape odd = of(Architecture::llama);
  odd.width = 50;
  odd.ffn = 37;
  odd.heads = 3;
  odd.kv_heads = 1;
  odd.head_size = 48;
  odd.matrices = "F16";
  odd.tied = false;
  all.push_back({"odd sizes, f16", odd});
  odd.matrices = "BF16";
  odd.ffn_matrices = "BF16";
  odd.embedding = "BF16";
  odd.architecture = Architecture::qwen2;
  all.push_back({"odd sizes, bf16, biases", odd});

  ToyShape scaled = of(Architecture::llama);
  scaled.rope_factors = true;
  scaled.rope_divisor = 4;
  all.push_back({"rope factors and divisor", scaled});
  ToyShape window = of(Architecture::llama);
  window.window = 7;
  all.push_back({"mistral's window", window});

  ToyShape small = of(Architecture::llama);
  small.matrices = "Q4_1";
  small.ffn_matrices = "Q4_0";
  small.embedding = "Q8_0";
  all.push_back({"q4_1, q4_0, q8_0", small});
  small.architecture = Architecture::qwen3;
  small.matrices = "Q5_0";
  small.ffn_matrices = "Q5_1";
  small.embedding = "Q4_1";
  all.push_back({"q5_0, q5_1, q4_1", small});
  ToyShape large = of(Architecture::gemma3);
  large.layers = 6;
  large.width = 256;
  large.ffn = 512;  // with two blocks of q6_k lanes have rows of their own
  large.head_size = 64;
  large.heads = 4;
  large.kv_heads = 1;
  large.matrices = "Q4_K";
  large.ffn_matrices = "Q6_K";
  large.embedding = "Q5_K";
  large.rope_base = 1e6F;
  large.rope_divisor = 8;
  all.push_back({"q4_k, q6_k, q5_k", large});
  // Sanitizers look at memory, not at numbers, and take ten times as long.
  std::vector<Case> taken;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (takes(i, 2, 9)) taken.push_back(all[i]);
  }
  return taken;
}

// Logits of each token, computed in chunks of that many tokens.
std::vector<float> in_chunks(const ModelBench& bench, std::span<const std::uint32_t> tokens,
                             std::uint32_t rows) {
  SessionOptions options;
  options.prefill_rows = rows;
  Session session(bench.model, options);
  return session.prefill_all(tokens);
}

std::vector<float> token_by_token(const ModelBench& bench, std::span<const std::uint32_t> tokens) {
  Session session(bench.model);
  std::vector<float> found;
  for (const std::uint32_t token : tokens) {
    session.decode(token);
    const auto logits = session.logits();
    found.insert(found.end(), logits.begin(), logits.end());
  }
  CHECK(session.position() == tokens.size());
  return found;
}

// Eleven tokens of a prompt in chunks of 6, the others decoded: the logits of both ends.
void check_prompt_and_decode(const ModelBench& bench, std::span<const std::uint32_t> tokens,
                             std::span<const double> expected) {
  const std::size_t vocabulary = expected.size() / tokens.size();
  SessionOptions options;
  options.prefill_rows = 6;
  Session session(bench.model, options);
  session.prefill(tokens.first(11));
  CHECK(nmse(expected.subspan(10 * vocabulary, vocabulary), session.logits()) <= 1e-9);
  for (const std::uint32_t token : tokens.subspan(11)) session.decode(token);
  CHECK(nmse(expected.last(vocabulary), session.logits()) <= 1e-9);
}

}  // namespace

// One model a case for all of it: most of the time goes into building its kernels.
TEST_CASE("a decoder's logits agree with fp64, token by token and however a prompt is cut") {
  std::size_t listed = 0;
  std::size_t compared = 0;
  for (const Case& one : cases()) {
    if (!test::takes(listed++, 2, 2)) continue;
    ++compared;
    INFO(one.name);
    const ModelBench bench(one.shape);
    const std::vector<std::uint32_t> tokens = toy_tokens(one.shape, 19, 4);
    const std::vector<double> expected = toy_logits(bench.toy, tokens);
    const std::vector<float> at_once = in_chunks(bench, tokens, 64);
    CHECK(nmse(expected, at_once) <= 1e-9);
    CHECK(in_chunks(bench, tokens, 7) == at_once);
    // A token a chunk is as slow as decoding.
    const std::vector<float> first = in_chunks(bench, std::span(tokens).first(4), 1);
    CHECK(std::equal(first.begin(), first.end(), at_once.begin()));
    check_prompt_and_decode(bench, tokens, expected);

    const std::vector<float> decoded = token_by_token(bench, std::span(tokens).first(12));
    CHECK(nmse(std::span(expected).first(decoded.size()), decoded) <= 1e-9);
    // The sums have the same order, hence the same bits, unless a plan divides a row, or rows of
    // blocks belong to one lane when a single token is decoded: then it is roundings that differ.
    const auto same = std::span(at_once).first(decoded.size());
    const bool blocks = one.shape.matrices.starts_with('Q');
    const double error = nmse(std::vector<double>(same.begin(), same.end()), decoded);
    INFO("NMSE in units of 1e-12: " << error * 1e12);
    CHECK(error <= (blocks ? 1e-11 : 1e-12));
    if (one.shape.architecture != Architecture::gemma3 && !blocks)
      CHECK(std::equal(decoded.begin(), decoded.end(), at_once.begin()));
    CHECK(bench.device.findings().empty());
  }
  CHECK(compared >= cases().size() / (test::full() ? 1 : 2));
}

TEST_CASE("repacked weights give the same logits") {
  for (const auto& [matrices, ffn] :
       {std::pair("Q4_1", "Q6_K"), std::pair("Q8_0", "Q4_K"), std::pair("Q5_0", "Q5_1")}) {
    ToyShape shape;
    shape.window = 0;
    shape.matrices = matrices;
    shape.ffn_matrices = ffn;
    shape.width = 256;
    shape.ffn = 512;
    shape.layers = 1;
    const std::vector<std::uint32_t> tokens = toy_tokens(shape, 5, 6);
    model::ModelOptions options = model_options();
    options.repack = true;
    const ModelBench repacked(shape, options);
    Session session(repacked.model);
    // Several rows at a time, then one.
    session.prefill(std::span(tokens).first(3));
    for (const std::uint32_t token : std::span(tokens).subspan(3)) session.decode(token);
    const std::vector<double> expected = toy_logits(repacked.toy, tokens);
    CHECK(nmse(std::span(expected).last(shape.vocabulary), session.logits()) <= 1e-9);
    CHECK(repacked.device.findings().empty());
    // Sums are added in another order.
    const ModelBench stored(shape);
    CHECK(repacked.model.device_bytes() >= stored.model.device_bytes());
    CHECK(repacked.model.bytes_per_token() >= stored.model.bytes_per_token());
  }
}

TEST_CASE("the plans of a GPU give the same logits") {
  ToyShape shape;
  shape.window = 0;
  shape.matrices = "Q4_1";
  shape.ffn_matrices = "Q6_K";
  shape.width = 256;
  shape.ffn = 512;
  shape.layers = 1;
  const std::vector<std::uint32_t> tokens = toy_tokens(shape, 5, 6);
  model::ModelOptions options = model_options();
  options.gpu_plans = true;
  const ModelBench bench(shape, options);
  Session session(bench.model);
  for (const std::uint32_t token : tokens) session.decode(token);
  const std::vector<double> expected = toy_logits(bench.toy, tokens);
  CHECK(nmse(std::span(expected).last(shape.vocabulary), session.logits()) <= 1e-9);
  CHECK(bench.device.findings().empty());
}

}  // namespace ptxgen::test
