// tests/cli/parity_test.cpp - ptxgen parity: text, JSON, models, refusals
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "model_file.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

/// A model with sizes alone, none of which is a multiple of 256.
GgufWriter sizes_of_model() {
  GgufWriter writer;
  writer.key("general.architecture", written("qwen2"))
      .key("qwen2.embedding_length", written(ValueType::u32, 300))
      .key("qwen2.feed_forward_length", written(ValueType::u32, 520))
      .key("qwen2.attention.head_count", written(ValueType::u32, 5))
      .key("qwen2.attention.key_length", written(ValueType::u32, 64))
      .key("qwen2.context_length", written(ValueType::u32, 100))
      .key("qwen2.vocab_size", written(ValueType::u32, 777));
  return writer;
}

std::vector<std::string> parity(std::vector<std::string> more) {
  more.insert(more.begin(), {"parity", "--device", "emulator"});
  return more;
}

}  // namespace

TEST_CASE("parity prints a line for each pair, and how many passed") {
  const GgufFile model(sizes_of_model());
  const auto result = ptxgen_program(parity({model.path, "--code"}));
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "rmsnorm                 rmsnorm           grid_y  PASS       8 "));
  CHECK(contains(result.out,
                 "batched_gemv q6_k               gemv q6_k  register_unroll  PASS       8 "));
  CHECK(contains(result.out, "\n24/24 kernel pairs passed PTX parity in "));
  CHECK_FALSE(contains(result.out, "  ok   "));
  const auto verbose = ptxgen_program(parity({model.path, "--code", "--verbose"}));
  CHECK(
      contains(verbose.out, "\n  ok   parameters: extra m_dim; removed bias, residual, workspace"));
  CHECK(
      contains(verbose.out, "\n  ok   accumulators: 8 independent sums, the twin has 1: 8 rows a"));
}

TEST_CASE("parity --json has each check of each pair, with launches") {
  const GgufFile model(sizes_of_model());
  const auto result = ptxgen_program(parity({model.path, "--json"}));
  CHECK(result.exit_code == 0);
  const json document = json::parse(result.out);
  CHECK(document.at("ok") == true);
  CHECK(document.at("skipped") == false);
  CHECK(document.at("total") == document.at("pairs").size());
  CHECK(document.at("passed") == document.at("total"));
  CHECK(document.at("ms").get<double>() > 0);
  for (const json& pair : document.at("pairs")) {
    INFO(pair.dump(1));
    CHECK(pair.at("ok") == true);
    std::vector<std::string> names;
    for (const json& check : pair.at("checks")) names.push_back(check.at("name"));
    std::vector<std::string> expected = {"strategy",
                                         "row offsets",
                                         "accumulators",
                                         "parameters",
                                         "loops",
                                         "shared memory",
                                         "shared addresses",
                                         "gates",
                                         "reference",
                                         "M = 1",
                                         "M = 2",
                                         "M = 3",
                                         "M = 4",
                                         "M = 7",
                                         "M = 8",
                                         "M = 16"};
    if (pair.at("strategy") == "register_unroll") expected.push_back("m_dim");
    CHECK(names == expected);
  }
}

TEST_CASE("parity --skip compares nothing, and says so") {
  const auto result = ptxgen_program(parity({"--skip"}));
  CHECK(result.exit_code == 0);
  CHECK(result.out == "SKIP: PTX parity of 24 kernel pairs, by --skip\n");
  const json document = json::parse(ptxgen_program(parity({"--skip", "--json"})).out);
  CHECK(document.at("skipped") == true);
  CHECK(document.at("passed") == 0);
  CHECK(document.at("total") == 24);
}

TEST_CASE("parity refuses files that are no models, and models without sizes") {
  const auto refused = [](const GgufWriter& writer) {
    const GgufFile model(writer);
    const auto result = ptxgen_program(parity({model.path}));
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(contains(refused(GgufWriter()), "general.architecture"));
  GgufWriter zero;
  zero.key("general.architecture", written("llama"))
      .key("llama.embedding_length", written(ValueType::u32, 0));
  CHECK(contains(refused(zero), "llama.embedding_length is 0; expects 1 to 16777216"));
  const auto missing = ptxgen_program(parity({"none.gguf"}));
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "none.gguf: error: cannot map the file"));
}
