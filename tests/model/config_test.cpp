// tests/model/config_test.cpp - shapes of decoders, and what is refused
#include <catch2/catch.hpp>

#include <functional>
#include <string>

#include "ptxgen/support/error.hpp"
#include "toy_decoder.hpp"

namespace ptxgen::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using model::Architecture;
using model::ModelConfig;

ModelConfig config_of(const GgufWriter& writer) {
  const std::string bytes = writer.bytes();
  return ModelConfig::read(gguf::File::view(as_bytes(bytes), "toy.gguf"));
}

// "code: message" of the error, whose file must be named.
std::string refusal(const GgufWriter& writer) {
  try {
    static_cast<void>(config_of(writer));
  } catch (const Error& error) {
    CHECK(error.file == "toy.gguf");
    CHECK(error.stage == Stage::Io);
    return error.code + ": " + error.message;
  }
  return "no error";
}

ToyShape shape_of(Architecture architecture) {
  ToyShape shape;
  shape.architecture = architecture;
  shape.layers = 1;
  shape.window = 0;
  return shape;
}

// The toy with one more key.
std::string with_key(Architecture architecture, const std::string& key, const WrittenValue& value) {
  Toy toy = make_toy(shape_of(architecture));
  toy.writer.key(key, value);
  return refusal(toy.writer);
}

// The toy with a change of its shape that only the metadata or only the tensors see.
std::string with_change(const std::function<void(GgufWriter&)>& change) {
  Toy toy = make_toy(shape_of(Architecture::llama));
  change(toy.writer);
  return refusal(toy.writer);
}

WrittenTensor& tensor_of(GgufWriter& writer, std::string_view name) {
  for (WrittenTensor& tensor : writer.tensors) {
    if (tensor.name == name) return tensor;
  }
  FAIL("no tensor " << name);
  return writer.tensors.front();
}

// Metadata of a toy whose values of some keys differ from its tensors.
std::string with_metadata(const std::function<void(ToyShape&)>& change) {
  Toy toy = make_toy(shape_of(Architecture::llama));
  ToyShape other = toy.shape;
  change(other);
  toy.writer.metadata = make_toy(other).writer.metadata;
  return refusal(toy.writer);
}

}  // namespace

TEST_CASE("the shape of a decoder is read") {
  ToyShape shape = shape_of(Architecture::gemma3);
  shape.layers = 7;
  shape.window = 9;
  shape.rope_base = 1e6F;
  shape.rope_divisor = 8;
  const ModelConfig gemma = config_of(make_toy(shape).writer);
  CHECK(gemma.architecture == Architecture::gemma3);
  CHECK(gemma.name == "toy");
  CHECK(gemma.layers == 7);
  CHECK(gemma.width == 64);
  CHECK(gemma.ffn == 96);
  CHECK(gemma.heads == 4);
  CHECK(gemma.kv_heads == 2);
  CHECK(gemma.head_size == 16);
  CHECK(gemma.vocabulary == 101);
  CHECK(gemma.context == 96);
  CHECK(gemma.eps == 1e-5F);
  CHECK(gemma.rope_pairs == RopePairs::Halves);
  CHECK(gemma.rope_base == 1e6F);
  CHECK(gemma.rope_base_local == 10000);
  CHECK(gemma.rope_divisor == 8);
  CHECK(gemma.embedding_scale == 8);
  CHECK(gemma.attention_scale == 0.25F);
  CHECK(gemma.window == 9);
  CHECK_FALSE(gemma.is_global(4));
  CHECK(gemma.is_global(5));
  CHECK_FALSE(gemma.is_global(6));
  CHECK(gemma.tied);
  CHECK(gemma.head_norms);
  CHECK(gemma.post_norms);
  CHECK_FALSE(gemma.qkv_bias);
  CHECK(gemma.activation == model::FfnActivation::Gelu);

  shape = shape_of(Architecture::qwen2);
  shape.tied = false;
  const ModelConfig qwen = config_of(make_toy(shape).writer);
  CHECK(qwen.qkv_bias);
  CHECK_FALSE(qwen.tied);
  CHECK_FALSE(qwen.head_norms);
  CHECK(qwen.is_global(0));
  CHECK(qwen.rope_pairs == RopePairs::Halves);

  shape = shape_of(Architecture::llama);
  shape.window = 11;
  shape.rope_factors = true;
  const ModelConfig mistral = config_of(make_toy(shape).writer);
  CHECK(mistral.window == 11);
  CHECK_FALSE(mistral.is_global(5));
  CHECK(mistral.rope_factors);
  CHECK(mistral.rope_pairs == RopePairs::Interleaved);
}

TEST_CASE("another architecture is refused by name") {
  GgufWriter writer;
  writer.key("general.architecture", written("mamba"));
  CHECK(refusal(writer) ==
        "unsupported-architecture: the architecture is 'mamba', whose graph is not implemented; "
        "supported: llama, qwen2, qwen3, gemma3");
}

TEST_CASE("features that would change the logits are refused") {
  const auto llama = Architecture::llama;
  CHECK(with_key(llama, "llama.rope.scaling.type", written("yarn")) ==
        "unsupported-model: positions are scaled by the method 'yarn' (rope.scaling.type); "
        "supported: none, linear, and rope_freqs.weight");
  CHECK_THAT(with_key(llama, "llama.expert_count", written(ValueType::u32, 8)),
             StartsWith("unsupported-model: the model is a mixture of experts (expert_count)"));
  CHECK_THAT(with_key(Architecture::gemma3, "gemma3.final_logit_softcapping", written(30.0F)),
             Contains("capped (gemma3.final_logit_softcapping)"));
  CHECK(with_change(
            [](GgufWriter& writer) { writer.tensor("blk.0.attn_output.bias", {64}, "F32"); }) ==
        "unsupported-model: tensor 'blk.0.attn_output.bias' has no place in a decoder of the "
        "architecture llama with 1 layers; models that need it are not supported");
  ToyShape shape = shape_of(llama);
  shape.head_size = 24;
  CHECK(refusal(make_toy(shape).writer) ==
        "unsupported-model: heads have 24 elements; attention supports multiples of 16 up to 256");
  shape = shape_of(llama);
  shape.heads = 9;
  shape.kv_heads = 1;
  CHECK_THAT(refusal(make_toy(shape).writer),
             StartsWith("unsupported-model: 9 query heads share a key and value head of 16"));
}

TEST_CASE("rotation of a part of each head is refused") {
  Toy toy = make_toy(shape_of(Architecture::llama));
  GgufWriter writer = toy.writer;
  std::string& text = writer.metadata;
  const std::string key = "llama.rope.dimension_count";
  const std::size_t at = text.find(key) + key.size() + 4;
  text[at] = 8;
  CHECK(refusal(writer) ==
        "unsupported-model: 8 of 16 elements of a head are rotated (rope.dimension_count); only "
        "whole heads are supported");
  writer = toy.writer;
  const std::string values = "llama.attention.value_length";
  writer.metadata[writer.metadata.find(values) + values.size() + 4] = 32;
  CHECK_THAT(refusal(writer), Contains("keys have 16 elements and values 32"));
}

TEST_CASE("metadata that no model can have is refused") {
  CHECK(with_metadata([](ToyShape& s) { s.kv_heads = 3; }) ==
        "bad-config: llama.attention.head_count_kv is 3; expects a divisor of the 4 heads");
  CHECK(with_metadata([](ToyShape& s) { s.width = 0; }) ==
        "bad-config: llama.embedding_length is 0; expects 1 to 16777216");
  CHECK(with_metadata([](ToyShape& s) { s.rope_base = -1; }) ==
        "bad-config: llama.rope.freq_base is -1; expects a positive number");
  GgufWriter writer;
  writer.key("general.architecture", written("qwen3"));
  CHECK_THAT(refusal(writer), Contains("not-found: the file has no key 'qwen3.block_count'"));
}

TEST_CASE("tensors that do not fit the metadata are refused") {
  CHECK(with_change([](GgufWriter& writer) {
          tensor_of(writer, "blk.0.ffn_up.weight").name = "blk.0.ffn_upp.weight";
        }) ==
        "missing-tensor: the file has no tensor 'blk.0.ffn_up.weight', which would be [64, 96]");
  CHECK(with_change([](GgufWriter& writer) {
          tensor_of(writer, "token_embd.weight").name = "token.weight";
        }) ==
        "missing-tensor: the file has no tensor 'token_embd.weight', which would be [64, tokens of "
        "the vocabulary]");
  CHECK(with_change([](GgufWriter& writer) {
          tensor_of(writer, "blk.0.attn_k.weight").dims = {32, 64};
        }) ==
        "bad-tensor: tensor 'blk.0.attn_k.weight' is [32, 64]; the metadata makes it [64, 32]");
  CHECK_THAT(with_metadata([](ToyShape& s) { s.layers = 2; }),
             Contains("no tensor 'blk.1.attn_norm.weight'"));
  CHECK(with_change([](GgufWriter& writer) {
          tensor_of(writer, "blk.0.attn_q.weight").type = gguf::find_tensor_type("I32")->id;
        }) ==
        "unsupported-type: tensor 'blk.0.attn_q.weight' is I32, for which there is no kernel; it "
        "may be F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16");
}

}  // namespace ptxgen::test
