// tests/model/session_test.cpp - sessions: caches, sequences, saving, errors, observers
#include <catch2/catch.hpp>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "model_bench.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

using Catch::Matchers::Contains;
using model::Architecture;
using model::Session;
using model::SessionOptions;

ToyShape small_shape(Architecture architecture = Architecture::llama) {
  ToyShape shape;
  shape.architecture = architecture;
  shape.layers = 2;
  shape.head_size = 32;
  shape.window = 0;
  shape.context = 40;
  return shape;
}

std::vector<float> logits_of(Session& session, std::uint32_t sequence = 0) {
  const auto logits = session.logits(sequence);
  return {logits.begin(), logits.end()};
}

using Tokens = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("caches of fewer bits are as exact as their types") {
  struct Row {
    ElementType type;
    double bound;
  };
  const ToyShape shape = small_shape(Architecture::qwen3);
  const ModelBench bench(shape);
  const Tokens tokens = toy_tokens(shape, 24, 6);
  const std::vector<double> expected = toy_logits(bench.toy, tokens);
  for (const Row& row : {Row{ElementType::f32, 1e-9}, Row{ElementType::f16, 1e-5},
                         Row{ElementType::bf16, 1e-4}, Row{ElementType::q8_0, 1e-3}}) {
    INFO(to_string(row.type));
    SessionOptions options;
    options.cache = row.type;
    Session session(bench.model, options);
    const double error = nmse(expected, session.prefill_all(tokens));
    CHECK(error <= row.bound);
    // The type was used: smaller ones are less exact.
    if (row.type != ElementType::f32) CHECK(error > 1e-9);
  }
  CHECK(bench.device.findings().empty());
}

TEST_CASE("sequences side by side give what each alone gives") {
  for (const Architecture architecture : {Architecture::llama, Architecture::gemma3}) {
    ToyShape shape = small_shape(architecture);
    shape.window = architecture == Architecture::gemma3 ? 5 : 0;
    const ModelBench bench(shape);
    SessionOptions options;
    options.sequences = 3;
    Session together(bench.model, options);
    const Tokens prompts[] = {toy_tokens(shape, 7, 1), toy_tokens(shape, 1, 2),
                              toy_tokens(shape, 12, 3)};
    for (std::uint32_t i = 0; i < 3; ++i) together.prefill(prompts[i], i);
    std::vector<Session> alone;
    for (const Tokens& prompt : prompts) {
      alone.emplace_back(bench.model).prefill(prompt);
    }
    for (int step = 0; step < 5; ++step) {
      Tokens next;
      for (std::uint32_t i = 0; i < 3; ++i) {
        INFO(step << ' ' << i);
        const std::vector<float> expected = logits_of(alone[i]);
        const std::vector<double> exact(expected.begin(), expected.end());
        CHECK(nmse(exact, logits_of(together, i)) <= 1e-12);
        if (architecture == Architecture::llama) CHECK(logits_of(together, i) == expected);
        CHECK(together.greedy(i) == alone[i].greedy());
        CHECK(together.position(i) == alone[i].position());
        next.push_back(together.greedy(i));
        alone[i].decode(next.back());
      }
      together.decode(next);
    }
    CHECK(bench.device.findings().empty());
  }
}

TEST_CASE("a saved session goes on where it was") {
  const ToyShape shape = small_shape();
  const ModelBench bench(shape);
  const Tokens tokens = toy_tokens(shape, 20, 7);
  for (const ElementType type : {ElementType::f32, ElementType::q8_0}) {
    SessionOptions options;
    options.cache = type;
    Session first(bench.model, options);
    first.prefill(std::span(tokens).first(13));
    const std::vector<std::byte> saved = first.save();
    CHECK(first.save() == saved);
    SessionOptions shorter = options;
    shorter.context = 21;
    Session second(bench.model, shorter);
    second.prefill(std::span(tokens).first(2));
    second.restore(saved);
    CHECK(second.position() == 13);
    CHECK_THAT(error_of([&] { (void)second.logits(); }), Contains("no-logits"));
    for (std::size_t i = 13; i < tokens.size(); ++i) {
      first.decode(tokens[i]);
      second.decode(tokens[i]);
      CHECK(logits_of(first) == logits_of(second));
    }
  }
}

TEST_CASE("bytes that are no saved session of this model are refused") {
  const ToyShape shape = small_shape();
  const ModelBench bench(shape);
  Session session(bench.model);
  session.prefill(toy_tokens(shape, 5, 8));
  const std::vector<std::byte> saved = session.save();
  const auto refusal = [&](Session& of, std::vector<std::byte> bytes) {
    return error_of([&] { of.restore(bytes); });
  };
  CHECK(refusal(session, {}) ==
        "bad-session: the bytes are not a saved session, which begins with 'PTXGKV01'");
  std::vector<std::byte> damaged = saved;
  damaged[saved.size() / 2] ^= std::byte{1};
  CHECK(refusal(session, damaged) ==
        "bad-session: the saved session is damaged or incomplete: its hash differs");
  damaged = saved;
  damaged.pop_back();
  CHECK_THAT(refusal(session, damaged), Contains("damaged or incomplete"));
  CHECK(session.position() == 5);  // refused before anything was changed

  SessionOptions options;
  options.cache = ElementType::f16;
  Session other_type(bench.model, options);
  CHECK(
      refusal(other_type, saved) ==
      "bad-session: the session was saved with 1 sequences and a cache of f32; this one has 1 and "
      "f16");
  options = {};
  options.context = 4;
  Session shorter(bench.model, options);
  CHECK(refusal(shorter, saved) ==
        "bad-session: sequence 0 was saved with 5 tokens; the context of this session is 4");
  ToyShape wider = shape;
  wider.ffn += 32;
  const ModelBench other(wider);
  Session of_other(other.model);
  CHECK_THAT(refusal(of_other, saved), Contains("saved with another model"));
}

TEST_CASE("a truncated session computes what a new one computes") {
  const ToyShape shape = small_shape();
  const ModelBench bench(shape);
  const Tokens tokens = toy_tokens(shape, 10, 9);
  Session session(bench.model);
  session.prefill(toy_tokens(shape, 30, 10));
  session.clear();
  CHECK(session.position() == 0);
  session.prefill(std::span(tokens).first(6));
  const std::vector<float> expected = logits_of(session);
  session.decode(3);
  session.decode(4);
  session.truncate(5);
  CHECK_THAT(error_of([&] { (void)session.greedy(); }), Contains("no-logits"));
  session.decode(tokens[5]);
  CHECK(logits_of(session) == expected);
  session.truncate(6);  // where it is: nothing is forgotten
  CHECK(logits_of(session) == expected);
  CHECK_THAT(error_of([&] { session.truncate(7); }),
             Contains("arguments: position is 7; sequence 0 has 6 tokens"));
}

TEST_CASE("wrong calls are refused and change nothing") {
  const ToyShape shape = small_shape();
  const ModelBench bench(shape);
  SessionOptions options;
  options.context = 8;
  Session session(bench.model, options);
  CHECK(error_of([&] { (void)session.logits(); }) ==
        "no-logits: sequence 0 has no logits: call prefill or decode first, also after truncate, "
        "restore and a call that failed");
  session.prefill(Tokens{1, 2, 3});
  const std::vector<float> before = logits_of(session);
  CHECK(error_of([&] { session.prefill(Tokens(6, 1)); }) ==
        "context-full: sequence 0 has 3 of 8 positions, and 6 more tokens do not fit: shorten the "
        "prompt, truncate the sequence, or make a session with a larger context (the model's is "
        "40)");
  CHECK(error_of([&] { session.decode(101u); }) ==
        "bad-token: token 0 of the call is 101; the vocabulary has 101 tokens, numbered from 0");
  CHECK_THAT(error_of([&] { session.prefill({}); }), Contains("it needs at least one"));
  CHECK(error_of([&] { session.prefill(Tokens{1}, 1); }) ==
        "bad-sequence: sequence is 1; the session has 1, numbered from 0");
  CHECK(error_of([&] {
          session.decode(Tokens{1, 2});
        }) ==
        "arguments: decode was given 2 tokens; the session has 1 sequences, which take one each");
  CHECK(session.position() == 3);
  CHECK(logits_of(session) == before);
  for (int i = 0; i < 5; ++i) session.decode(1u);
  CHECK_THAT(error_of([&] { session.decode(1u); }), Contains("8 of 8 positions"));

  const auto option_error = [&](auto change) {
    SessionOptions wrong;
    change(wrong);
    return error_of([&] { const Session session_of(bench.model, wrong); });
  };
  CHECK(option_error([](auto& o) { o.context = 41; }) ==
        "bad-option: context is 41 positions; the model was made for 40");
  CHECK(option_error([](auto& o) { o.sequences = 65; }) ==
        "bad-option: sequences is 65; expects 1 to 64");
  CHECK(option_error([](auto& o) { o.prefill_rows = 0; }) ==
        "bad-option: prefill_rows is 0; expects 1 to 1024");
  CHECK(option_error([](auto& o) { o.cache = ElementType::q4_0; }) ==
        "bad-option: cache is q4_0; expects f32, f16, bf16 or q8_0");
  ToyShape narrow = shape;
  narrow.head_size = 16;
  const ModelBench other(narrow);
  SessionOptions blocks;
  blocks.cache = ElementType::q8_0;
  CHECK(error_of([&] { const Session session_of(other.model, blocks); }) ==
        "bad-option: cache is q8_0, whose blocks have 32 values; heads of this model have 16: use "
        "f32, f16 or bf16");
}

TEST_CASE("the default context is the model's, up to 4096") {
  ToyShape shape = small_shape();
  shape.context = 5000;
  const ModelBench bench(shape);
  CHECK(Session(bench.model).options().context == 4096);
  shape.context = 40;
  CHECK(Session(ModelBench(shape).model).options().context == 40);
}

TEST_CASE("an observer sees the tensors of each layer") {
  const ToyShape shape = small_shape(Architecture::gemma3);
  const ModelBench bench(shape);
  const Tokens tokens = toy_tokens(shape, 6, 11);
  Session plain(bench.model);
  plain.prefill(tokens);
  const std::vector<float> expected = logits_of(plain);

  struct Seen {
    std::vector<std::string> names;
    std::vector<float> logits, embedding;
    std::vector<std::uint32_t> rows, positions;
  } seen;
  const auto watch = [](void* user, const model::LayerTensor& tensor) {
    Seen& all = *static_cast<Seen*>(user);
    const std::string layer =
        tensor.layer == model::kNoLayer ? "" : std::to_string(tensor.layer) + ".";
    all.names.push_back(layer + std::string(tensor.name) + ":" + std::to_string(tensor.columns));
    all.rows.push_back(tensor.rows);
    all.positions.push_back(tensor.position);
    CHECK(tensor.values.size() == std::size_t{tensor.rows} * tensor.columns);
    if (tensor.name == "logits") all.logits.assign(tensor.values.begin(), tensor.values.end());
    if (tensor.name == "embedding")
      all.embedding.assign(tensor.values.begin(), tensor.values.end());
  };
  Session watched(bench.model);
  watched.observe({watch, &seen});
  watched.prefill(tokens);
  const std::vector<std::string> names = {
      "embedding:64", "0.attn_norm:64", "0.q:128",       "0.k:64",        "0.v:64",
      "0.q_rope:128", "0.attn:128",     "0.attn_out:64", "0.ffn_norm:64", "0.ffn_gate:96",
      "0.ffn_out:64", "1.attn_norm:64", "1.q:128",       "1.k:64",        "1.v:64",
      "1.q_rope:128", "1.attn:128",     "1.attn_out:64", "1.ffn_norm:64", "1.ffn_gate:96",
      "1.ffn_out:64", "output_norm:64", "logits:101"};
  CHECK(seen.names == names);
  CHECK(seen.logits == expected);
  CHECK(logits_of(watched) == expected);
  CHECK(seen.rows.front() == 6);
  CHECK(seen.rows.back() == 1);
  const auto& table = bench.toy.tensors.at("token_embd.weight").values;
  CHECK(seen.embedding[64] == static_cast<float>(table[tokens[1] * 64]) * 8);

  // In a decode too, and not after it was removed.
  seen = {};
  watched.decode(5u);
  plain.decode(5u);
  CHECK(seen.names == names);
  CHECK(seen.positions.back() == 6);
  CHECK(seen.logits == logits_of(plain));
  watched.observe({});
  seen = {};
  watched.decode(6u);
  plain.decode(6u);
  CHECK(seen.names.empty());
  CHECK(logits_of(watched) == logits_of(plain));
}

TEST_CASE("a graph gives what launches give") {
  const ToyShape shape = small_shape();
  const ModelBench bench(shape);
  SessionOptions options;
  options.graph = false;
  Session launches(bench.model, options);
  Session graph(bench.model);
  for (const std::uint32_t token : toy_tokens(shape, 8, 12)) {
    launches.decode(token);
    graph.decode(token);
    CHECK(logits_of(launches) == logits_of(graph));
  }
}

TEST_CASE("generate continues a prompt") {
  const ToyShape shape = small_shape();
  const ModelBench bench(shape);
  const Tokens prompt = toy_tokens(shape, 4, 13);
  Tokens expected;
  {
    Session session(bench.model);
    session.prefill(prompt);
    for (int i = 0; i < 10; ++i) {
      expected.push_back(session.greedy());
      session.decode(expected.back());
    }
  }
  model::GenerateOptions options;
  options.sampler.temperature = 0;
  options.max_tokens = 10;
  const auto run = [&](const model::GenerateOptions& with, std::uint32_t context = 0) {
    SessionOptions session_options;
    session_options.context = context;
    Session session(bench.model, session_options);
    return model::generate(session, prompt, with);
  };
  model::Generated result = run(options);
  CHECK(result.tokens == expected);
  CHECK(result.reason == model::StopReason::Length);

  model::GenerateOptions stop = options;
  const auto first = std::find(expected.begin(), expected.end(), expected[5]);
  stop.stop = {expected[5]};
  result = run(stop);
  CHECK(result.tokens == Tokens(expected.begin(), first));
  CHECK(result.reason == model::StopReason::StopToken);

  result = run(options, 7);
  CHECK(result.tokens == Tokens(expected.begin(), expected.begin() + 4));
  CHECK(result.reason == model::StopReason::ContextFull);

  struct Calls {
    Tokens tokens;
  } calls;
  options.on_token = {[](void* user, std::uint32_t token) {
                        Tokens& all = static_cast<Calls*>(user)->tokens;
                        all.push_back(token);
                        return all.size() < 3;
                      },
                      &calls};
  result = run(options);
  CHECK(result.reason == model::StopReason::Caller);
  CHECK(result.tokens == calls.tokens);
  CHECK(result.tokens.size() == 3);

  options.on_token = {};
  options.sampler = {};
  options.sampler.seed = 5;
  CHECK(run(options).tokens == run(options).tokens);
  SessionOptions several;
  several.sequences = 2;
  Session two(bench.model, several);
  CHECK_THAT(error_of([&] { model::generate(two, prompt, options); }),
             Contains("generate continues one sequence; the session has 2"));
}

}  // namespace ptxgen::test
