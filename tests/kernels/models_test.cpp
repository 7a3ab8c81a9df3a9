// tests/kernels/models_test.cpp - the model table against published parameter counts
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "ptxgen/kernels/gemv/models.hpp"

using namespace ptxgen;

namespace {

// Parameters in millions, as each model's safetensors index or report has them.
const std::map<std::string_view, double> kPublished = {
    {"llama-2-7b", 6738}, {"llama-3-70b", 70554},  {"llama-3-8b", 8030},  {"llama-3.2-1b", 1236},
    {"mistral-7b", 7242}, {"phi-3-mini", 3821},    {"qwen2.5-0.5b", 494}, {"qwen2.5-1.5b", 1544},
    {"qwen2.5-7b", 7616}, {"tinyllama-1.1b", 1100}};

std::uint64_t elements_of(const std::vector<DecodeShape>& shapes) {
  std::uint64_t sum = 0;
  for (const DecodeShape& shape : shapes) sum += shape.elements();
  return sum;
}

}  // namespace

TEST_CASE("matrices and embedding make up the published parameter count") {
  CHECK(kPublished.size() == decoder_models().size());
  for (const DecoderModel& model : decoder_models()) {
    INFO(model.name);
    const std::uint64_t embedding =
        model.tied_head ? 0 : std::uint64_t{model.hidden} * model.vocabulary;
    const double millions =
        static_cast<double>(elements_of(decode_shapes(model, true)) + embedding) / 1e6;
    // Norms and biases are the rest: less than 0.1 %.
    CHECK(millions == Approx(kPublished.at(model.name)).epsilon(0.001));
    CHECK(model.heads % model.kv_heads == 0);
  }
}

TEST_CASE("fused and unfused decode shapes hold the same weights") {
  for (const DecoderModel& model : decoder_models()) {
    INFO(model.name);
    const auto fused = decode_shapes(model, true);
    const auto apart = decode_shapes(model, false);
    CHECK(fused.size() == 5);
    CHECK(apart.size() == 8);
    CHECK(elements_of(fused) == elements_of(apart));
    CHECK(fused.back() == apart.back());
    CHECK(fused.back().count == 1);
  }
}

TEST_CASE("the decode shapes of Llama-2-7B") {
  const DecoderModel* const model = find_decoder_model("llama-2-7b");
  REQUIRE(model != nullptr);
  const std::vector<DecodeShape> expected = {{"qkv", 4096, 12288, 32},
                                             {"o", 4096, 4096, 32},
                                             {"gate_up", 4096, 22016, 32},
                                             {"down", 11008, 4096, 32},
                                             {"head", 4096, 32000, 1}};
  CHECK(decode_shapes(*model, true) == expected);
  // Grouped queries: the matrices of k and v are smaller than that of q.
  const auto grouped = decode_shapes(*find_decoder_model("llama-3-8b"), false);
  CHECK(grouped[0] == DecodeShape{"q", 4096, 4096, 32});
  CHECK(grouped[1] == DecodeShape{"k", 4096, 1024, 32});
}

TEST_CASE("models are found by name and are in alphabetical order") {
  const auto models = decoder_models();
  CHECK(std::is_sorted(models.begin(), models.end(),
                       [](const auto& a, const auto& b) { return a.name < b.name; }));
  CHECK(find_decoder_model("qwen2.5-7b")->hidden == 3584);
  CHECK(find_decoder_model("llama") == nullptr);
}
