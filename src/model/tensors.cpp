// src/model/tensors.cpp - the tensors that a decoder's file has
#include "model/tensors.hpp"

#include <algorithm>
#include <set>

#include "model/format.hpp"
#include "model/printable.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/kernels/tokens/embedding.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

using Dims = std::vector<std::uint64_t>;

std::string dims_text(std::span<const std::uint64_t> dims) {
  std::string text = "[";
  for (const std::uint64_t dim : dims) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dim);
  }
  return text + "]";
}

// The types of a use, by their names in the file.
bool is_type_of(TensorUse use, ElementType type) {
  const auto in = [type](const auto& words) {
    return std::ranges::any_of(words, [type](const auto& word) { return word.value == type; });
  };
  switch (use) {
    case TensorUse::Vector:
      return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
    case TensorUse::Matrix:
      return in(kGemvWeights);
    case TensorUse::Embedding:
      return in(kTableTypes);
    case TensorUse::Both:
      return in(kGemvWeights) && in(kTableTypes);
  }
  return false;
}

std::string types_of(TensorUse use) {
  std::string text;
  for (const gguf::TensorType& type : gguf::tensor_types()) {
    if (!type.element || !is_type_of(use, *type.element)) continue;
    if (!text.empty()) text += ", ";
    text += type.name;
  }
  return text;
}

void add_layer(std::vector<ExpectedTensor>& all, const ModelConfig& config, std::uint32_t layer) {
  const std::uint64_t width = config.width;
  const std::uint64_t q = config.q_width();
  const std::uint64_t kv = config.kv_width();
  const auto add = [&](std::string_view name, Dims dims, TensorUse use) {
    all.push_back({layer_tensor(layer, name), std::move(dims), use});
  };
  add("attn_norm.weight", {width}, TensorUse::Vector);
  add("attn_q.weight", {width, q}, TensorUse::Matrix);
  add("attn_k.weight", {width, kv}, TensorUse::Matrix);
  add("attn_v.weight", {width, kv}, TensorUse::Matrix);
  if (config.qkv_bias) {
    add("attn_q.bias", {q}, TensorUse::Vector);
    add("attn_k.bias", {kv}, TensorUse::Vector);
    add("attn_v.bias", {kv}, TensorUse::Vector);
  }
  if (config.head_norms) {
    add("attn_q_norm.weight", {config.head_size}, TensorUse::Vector);
    add("attn_k_norm.weight", {config.head_size}, TensorUse::Vector);
  }
  add("attn_output.weight", {q, width}, TensorUse::Matrix);
  if (config.post_norms) add("post_attention_norm.weight", {width}, TensorUse::Vector);
  add("ffn_norm.weight", {width}, TensorUse::Vector);
  add("ffn_gate.weight", {width, config.ffn}, TensorUse::Matrix);
  add("ffn_up.weight", {width, config.ffn}, TensorUse::Matrix);
  add("ffn_down.weight", {config.ffn, width}, TensorUse::Matrix);
  if (config.post_norms) add("post_ffw_norm.weight", {width}, TensorUse::Vector);
}

void check_tensor(const gguf::File& file, const ExpectedTensor& expected) {
  const gguf::Tensor* tensor = file.find_tensor(expected.name);
  if (tensor == nullptr) {
    refuse_file(file, "missing-tensor",
                format_text("the file has no tensor '{}', which would be {}", expected.name,
                            dims_text(expected.dims)));
  }
  Dims found(tensor->dims().begin(), tensor->dims().end());
  while (found.size() > expected.dims.size() && found.back() == 1) found.pop_back();
  if (found != expected.dims) {
    refuse_file(file, "bad-tensor",
                format_text("tensor '{}' is {}; the metadata makes it {}", expected.name,
                            dims_text(tensor->dims()), dims_text(expected.dims)));
  }
  if (!tensor->type->element || !is_type_of(expected.use, *tensor->type->element)) {
    refuse_file(file, "unsupported-type",
                format_text("tensor '{}' is {}, for which there is no kernel; it may be {}",
                            expected.name, tensor->type->name, types_of(expected.use)));
  }
}

}  // namespace

std::string layer_tensor(std::uint32_t layer, std::string_view name) {
  return format_text("blk.{}.{}", layer, name);
}

void refuse_file(const gguf::File& file, std::string_view code, std::string message) {
  Error error(Stage::Io, std::string(code), std::move(message));
  error.file = file.name();
  throw error.refresh();
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> all;
  const Dims table = {config.width, config.vocabulary};
  all.push_back({"token_embd.weight", table, config.tied ? TensorUse::Both : TensorUse::Embedding});
  if (config.rope_factors) {
    all.push_back({"rope_freqs.weight", {config.head_size / 2}, TensorUse::Vector});
  }
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) add_layer(all, config, layer);
  all.push_back({"output_norm.weight", {config.width}, TensorUse::Vector});
  if (!config.tied) all.push_back({"output.weight", table, TensorUse::Matrix});
  return all;
}

void check_tensors(const gguf::File& file, const ModelConfig& config) {
  std::set<std::string, std::less<>> known;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    check_tensor(file, expected);
    known.insert(expected.name);
  }
  // One that would be left out, and the logits wrong.
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    refuse_file(file, "unsupported-model",
                format_text("tensor '{}' has no place in a decoder of the architecture {} with {} "
                            "layers; models that need it are not supported",
                            printable(tensor.name), to_string(config.architecture), config.layers));
  }
}

}  // namespace ptxgen::inline v0::model
