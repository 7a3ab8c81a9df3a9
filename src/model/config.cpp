// src/model/config.cpp - the shape of a decoder from a file's metadata
#include "ptxgen/model/config.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/format.hpp"
#include "model/keys.hpp"
#include "model/printable.hpp"
#include "model/tensors.hpp"
#include "ptxgen/kernels/attention/decode.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::uint32_t kMaxSize = Keys::kMaxSize;
constexpr std::uint32_t kGemmaWindowPattern = 6;     // five local layers, one global
constexpr std::uint32_t kLayersOfLargestGemma = 62;  // of 27B, whose scale differs
constexpr std::uint32_t kMaxHeadSize = 256;          // of the attention
constexpr std::uint32_t kHeadSizeMultiple = 16;

Architecture read_architecture(const gguf::File& file) {
  const std::string_view name = file.string("general.architecture");
  const auto found = std::ranges::find(kArchitectureNames, name);
  if (found != std::end(kArchitectureNames)) {
    return static_cast<Architecture>(found - std::begin(kArchitectureNames));
  }
  std::string known;
  for (const std::string_view one : kArchitectureNames) {
    if (!known.empty()) known += ", ";
    known += one;
  }
  refuse_file(file, "unsupported-architecture",
              format_text("the architecture is '{}', whose graph is not implemented; supported: {}",
                          printable(name), known));
}

void read_sizes_of(const Keys& keys, ModelConfig& config) {
  const KeySizes sizes = read_sizes(keys);
  config.width = sizes.width;
  config.ffn = sizes.ffn;
  config.context = sizes.context;
  config.heads = sizes.heads;
  config.kv_heads = sizes.kv_heads;
  if (config.heads % config.kv_heads != 0) {
    keys.bad("attention.head_count_kv", std::to_string(config.kv_heads),
             format_text("expects a divisor of the {} heads", config.heads));
  }
  if (!keys.has("attention.key_length") && config.width % config.heads != 0) {
    keys.bad("embedding_length", std::to_string(config.width),
             format_text("expects a multiple of the {} heads, or {}", config.heads,
                         keys.key("attention.key_length")));
  }
  config.head_size = sizes.head_size;
  const std::uint32_t values = keys.size_or("attention.value_length", config.head_size);
  if (values != config.head_size) {
    keys.unsupported(
        format_text("keys have {} elements and values {} (attention.key_length, "
                    "attention.value_length); only equal sizes are supported",
                    config.head_size, values));
  }
  if (config.head_size > kMaxHeadSize || config.head_size % kHeadSizeMultiple != 0) {
    keys.unsupported(
        format_text("heads have {} elements; attention supports multiples of {} up "
                    "to {}",
                    config.head_size, kHeadSizeMultiple, kMaxHeadSize));
  }
  const AttentionDecode attention{.group = config.heads / config.kv_heads,
                                  .head_size = config.head_size};
  if (attention.group > 16 || attention.block_heads() > (config.head_size <= 128 ? 8u : 6u)) {
    keys.unsupported(
        format_text("{} query heads share a key and value head of {} elements; "
                    "attention supports groups of up to 8 (6 for heads of more than "
                    "128 elements), and twice as many if even",
                    attention.group, config.head_size));
  }
  if (std::uint64_t{config.heads} * config.head_size > kMaxSize) {
    keys.bad("attention.head_count", std::to_string(config.heads),
             format_text("heads of {} elements make more than {}", config.head_size, kMaxSize));
  }
}

void read_rope(const Keys& keys, ModelConfig& config) {
  const std::uint32_t rotated = keys.size_or("rope.dimension_count", config.head_size);
  if (rotated != config.head_size) {
    keys.unsupported(
        format_text("{} of {} elements of a head are rotated (rope.dimension_count); "
                    "only whole heads are supported",
                    rotated, config.head_size));
  }
  config.rope_base = keys.positive_or("rope.freq_base", 10000);
  const gguf::File& file = keys.file();
  const std::string_view scaling = file.string(keys.key("rope.scaling.type"), "none");
  if (scaling == "linear") {
    config.rope_divisor = keys.positive("rope.scaling.factor");
  } else if (scaling != "none") {
    keys.unsupported(
        format_text("positions are scaled by the method '{}' (rope.scaling.type); "
                    "supported: none, linear, and rope_freqs.weight",
                    printable(scaling)));
  } else if (keys.has("rope.scale_linear")) {
    config.rope_divisor = keys.positive("rope.scale_linear");
  }
}

void read_gemma(const Keys& keys, ModelConfig& config) {
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.width)));
  config.activation = FfnActivation::Gelu;
  config.head_norms = true;
  config.post_norms = true;
  config.rope_base_local = keys.positive_or("rope.freq_base_swa", 10000);
  config.window = keys.file().u32(keys.key("attention.sliding_window"), 0);
  config.global_every = kGemmaWindowPattern;
  if (config.layers == kLayersOfLargestGemma) {
    config.attention_scale =
        static_cast<float>(1 / std::sqrt(static_cast<double>(config.width) / config.heads));
  }
}

void read_features(const Keys& keys, ModelConfig& config) {
  const gguf::File& file = keys.file();
  config.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.head_size)));
  config.rope_pairs =
      config.architecture == Architecture::llama ? RopePairs::Interleaved : RopePairs::Halves;
  config.tied = file.find_tensor("output.weight") == nullptr;
  config.rope_factors = file.find_tensor("rope_freqs.weight") != nullptr;
  switch (config.architecture) {
    case Architecture::llama:
      config.qkv_bias = file.find_tensor(layer_tensor(0, "attn_q.bias")) != nullptr;
      config.window = file.u32(keys.key("attention.sliding_window"), 0);
      config.rope_base_local = config.rope_base;
      break;
    case Architecture::qwen2:
      config.qkv_bias = true;
      break;
    case Architecture::qwen3:
      config.head_norms = true;
      break;
    case Architecture::gemma3:
      read_gemma(keys, config);
      break;
  }
}

std::uint32_t read_vocabulary(const gguf::File& file, std::uint32_t width) {
  const gguf::Tensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    refuse_file(
        file, "missing-tensor",
        format_text("the file has no tensor 'token_embd.weight', which would be [{}, tokens "
                    "of the vocabulary]",
                    width));
  }
  if (embedding->shape[1] > kMaxSize) {
    refuse_file(file, "bad-tensor",
                format_text("tensor 'token_embd.weight' has {} rows; at most {} are supported",
                            embedding->shape[1], kMaxSize));
  }
  return static_cast<std::uint32_t>(embedding->shape[1]);
}

// Features that would change the logits.
void refuse_features(const Keys& keys) {
  if (keys.file().u32(keys.key("expert_count"), 0) != 0) {
    keys.unsupported(
        "the model is a mixture of experts (expert_count); only dense "
        "feed-forward networks are supported");
  }
  for (const std::string_view name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (keys.file().f32(keys.key(name), 0) != 0) {
      keys.unsupported(
          format_text("scores or logits are capped ({}), which is not supported", keys.key(name)));
    }
  }
}

}  // namespace

ModelConfig ModelConfig::read(const gguf::File& file) {
  ModelConfig config;
  config.architecture = read_architecture(file);
  const Keys keys(file);
  refuse_features(keys);
  config.name = std::string(file.string("general.name", ""));
  config.layers = keys.size("block_count", 1u << 16);
  config.eps = keys.positive_or("attention.layer_norm_rms_epsilon", 1e-5f);
  read_sizes_of(keys, config);
  read_rope(keys, config);
  read_features(keys, config);
  config.vocabulary = read_vocabulary(file, config.width);
  check_tensors(file, config);
  return config;
}

}  // namespace ptxgen::inline v0::model
