// tests/model/programmatic_test.cpp - sessions of a programmatic launcher
#include <catch2/catch.hpp>

#include <vector>

#include "model_bench.hpp"

namespace ptxgen::test {

TEST_CASE("a session of a programmatic launcher has the same logits and tokens") {
  for (const model::Architecture architecture :
       {model::Architecture::llama, model::Architecture::gemma3}) {
    ToyShape shape;
    shape.architecture = architecture;
    const ModelBench bench(shape);
    model::ModelOptions options = model_options();
    options.launcher.programmatic = true;
    const model::Model programmatic(
        bench.context, gguf::File::view(as_bytes(bench.toy.bytes), "toy.gguf"), options);
    const std::vector<std::uint32_t> prompt = toy_tokens(shape, 5, 3);
    const auto decoded = [&](const model::Model& model) {
      model::Session session(model);
      session.prefill(prompt);
      for (const std::uint32_t token : {7u, 9u}) session.decode(token);
      const auto logits = session.logits();
      return std::vector<float>(logits.begin(), logits.end());
    };
    CHECK(decoded(programmatic) == decoded(bench.model));
    CHECK(bench.device.findings().empty());
  }
}

}  // namespace ptxgen::test
