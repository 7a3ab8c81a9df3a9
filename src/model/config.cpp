// src/model/config.cpp - the shape of a decoder from a file's metadata
#include "ptxgen/model/config.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/printable.hpp"
#include "model/tensors.hpp"
#include "ptxgen/kernels/attention/decode.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::uint32_t kMaxSize = 1u << 24;         // of widths
constexpr std::uint32_t kMaxContext = 1u << 30;      // positions of a cache
constexpr std::uint32_t kGemmaWindowPattern = 6;     // five local layers, one global
constexpr std::uint32_t kLayersOfLargestGemma = 62;  // of 27B, whose scale differs
constexpr std::uint32_t kMaxHeadSize = 256;          // of the attention
constexpr std::uint32_t kHeadSizeMultiple = 16;

// Keys of one architecture: "llama.block_count".
class Reader {
 public:
  Reader(const gguf::File& file, Architecture architecture)
      : file_(file), architecture_(architecture) {}

  [[nodiscard]] const gguf::File& file() const { return file_; }
  [[nodiscard]] std::string key(std::string_view name) const {
    return format_text("{}.{}", to_string(architecture_), name);
  }
  [[nodiscard]] bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }
  [[nodiscard]] std::uint32_t size(std::string_view name, std::uint32_t max = kMaxSize) const {
    return within(name, file_.u32(key(name)), max);
  }
  [[nodiscard]] std::uint32_t size_or(std::string_view name, std::uint32_t otherwise) const {
    return within(name, file_.u32(key(name), otherwise), kMaxSize);
  }
  [[nodiscard]] float positive(std::string_view name) const {
    return positive(name, file_.f32(key(name)));
  }
  [[nodiscard]] float positive_or(std::string_view name, float otherwise) const {
    return positive(name, file_.f32(key(name), otherwise));
  }
  /// "unsupported-model"
  [[noreturn]] void unsupported(std::string message) const {
    refuse_file(file_, "unsupported-model", std::move(message));
  }
  [[noreturn]] void bad(std::string_view name, const std::string& value,
                        std::string_view expected) const {
    refuse_file(file_, "bad-config", format_text("{} is {}; {}", key(name), value, expected));
  }

 private:
  [[nodiscard]] std::uint32_t within(std::string_view name, std::uint32_t value,
                                     std::uint32_t max) const {
    if (value == 0 || value > max) {
      bad(name, std::to_string(value), format_text("expects 1 to {}", max));
    }
    return value;
  }
  [[nodiscard]] float positive(std::string_view name, float value) const {
    if (!(value > 0) || !std::isfinite(value)) {
      bad(name, format_text("{}", value), "expects a positive number");
    }
    return value;
  }

  const gguf::File& file_;
  Architecture architecture_;
};

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

void read_heads(const Reader& reader, ModelConfig& config) {
  config.heads = reader.size("attention.head_count");
  config.kv_heads = reader.size_or("attention.head_count_kv", config.heads);
  if (config.heads % config.kv_heads != 0) {
    reader.bad("attention.head_count_kv", std::to_string(config.kv_heads),
               format_text("expects a divisor of the {} heads", config.heads));
  }
  if (!reader.has("attention.key_length") && config.width % config.heads != 0) {
    reader.bad("embedding_length", std::to_string(config.width),
               format_text("expects a multiple of the {} heads, or {}", config.heads,
                           reader.key("attention.key_length")));
  }
  config.head_size =
      reader.size_or("attention.key_length", std::max(1u, config.width / config.heads));
  const std::uint32_t values = reader.size_or("attention.value_length", config.head_size);
  if (values != config.head_size) {
    reader.unsupported(
        format_text("keys have {} elements and values {} (attention.key_length, "
                    "attention.value_length); only equal sizes are supported",
                    config.head_size, values));
  }
  if (config.head_size > kMaxHeadSize || config.head_size % kHeadSizeMultiple != 0) {
    reader.unsupported(
        format_text("heads have {} elements; attention supports multiples of {} up "
                    "to {}",
                    config.head_size, kHeadSizeMultiple, kMaxHeadSize));
  }
  const AttentionDecode attention{.group = config.heads / config.kv_heads,
                                  .head_size = config.head_size};
  if (attention.group > 16 || attention.block_heads() > (config.head_size <= 128 ? 8u : 6u)) {
    reader.unsupported(
        format_text("{} query heads share a key and value head of {} elements; "
                    "attention supports groups of up to 8 (6 for heads of more than "
                    "128 elements), and twice as many if even",
                    attention.group, config.head_size));
  }
  if (std::uint64_t{config.heads} * config.head_size > kMaxSize) {
    reader.bad("attention.head_count", std::to_string(config.heads),
               format_text("heads of {} elements make more than {}", config.head_size, kMaxSize));
  }
}

void read_rope(const Reader& reader, ModelConfig& config) {
  const std::uint32_t rotated = reader.size_or("rope.dimension_count", config.head_size);
  if (rotated != config.head_size) {
    reader.unsupported(
        format_text("{} of {} elements of a head are rotated (rope.dimension_count); "
                    "only whole heads are supported",
                    rotated, config.head_size));
  }
  config.rope_base = reader.positive_or("rope.freq_base", 10000);
  const gguf::File& file = reader.file();
  const std::string_view scaling = file.string(reader.key("rope.scaling.type"), "none");
  if (scaling == "linear") {
    config.rope_divisor = reader.positive("rope.scaling.factor");
  } else if (scaling != "none") {
    reader.unsupported(
        format_text("positions are scaled by the method '{}' (rope.scaling.type); "
                    "supported: none, linear, and rope_freqs.weight",
                    printable(scaling)));
  } else if (reader.has("rope.scale_linear")) {
    config.rope_divisor = reader.positive("rope.scale_linear");
  }
}

void read_gemma(const Reader& reader, ModelConfig& config) {
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.width)));
  config.activation = FfnActivation::Gelu;
  config.head_norms = true;
  config.post_norms = true;
  config.rope_base_local = reader.positive_or("rope.freq_base_swa", 10000);
  config.window = reader.file().u32(reader.key("attention.sliding_window"), 0);
  config.global_every = kGemmaWindowPattern;
  if (config.layers == kLayersOfLargestGemma) {
    config.attention_scale =
        static_cast<float>(1 / std::sqrt(static_cast<double>(config.width) / config.heads));
  }
}

void read_features(const Reader& reader, ModelConfig& config) {
  const gguf::File& file = reader.file();
  config.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(config.head_size)));
  config.rope_pairs =
      config.architecture == Architecture::llama ? RopePairs::Interleaved : RopePairs::Halves;
  config.tied = file.find_tensor("output.weight") == nullptr;
  config.rope_factors = file.find_tensor("rope_freqs.weight") != nullptr;
  switch (config.architecture) {
    case Architecture::llama:
      config.qkv_bias = file.find_tensor(layer_tensor(0, "attn_q.bias")) != nullptr;
      config.window = file.u32(reader.key("attention.sliding_window"), 0);
      config.rope_base_local = config.rope_base;
      break;
    case Architecture::qwen2:
      config.qkv_bias = true;
      break;
    case Architecture::qwen3:
      config.head_norms = true;
      break;
    case Architecture::gemma3:
      read_gemma(reader, config);
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
void refuse_features(const Reader& reader) {
  if (reader.file().u32(reader.key("expert_count"), 0) != 0) {
    reader.unsupported(
        "the model is a mixture of experts (expert_count); only dense "
        "feed-forward networks are supported");
  }
  for (const std::string_view name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (reader.file().f32(reader.key(name), 0) != 0) {
      reader.unsupported(format_text("scores or logits are capped ({}), which is not supported",
                                     reader.key(name)));
    }
  }
}

}  // namespace

ModelConfig ModelConfig::read(const gguf::File& file) {
  ModelConfig config;
  config.architecture = read_architecture(file);
  const Reader reader(file, config.architecture);
  refuse_features(reader);
  config.name = std::string(file.string("general.name", ""));
  config.layers = reader.size("block_count", 1u << 16);
  config.width = reader.size("embedding_length");
  config.ffn = reader.size("feed_forward_length");
  config.context = reader.size("context_length", kMaxContext);
  config.eps = reader.positive_or("attention.layer_norm_rms_epsilon", 1e-5f);
  read_heads(reader, config);
  read_rope(reader, config);
  read_features(reader, config);
  config.vocabulary = read_vocabulary(file, config.width);
  check_tensors(file, config);
  return config;
}

}  // namespace ptxgen::inline v0::model
