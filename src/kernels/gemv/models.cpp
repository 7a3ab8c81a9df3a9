// src/kernels/gemv/models.cpp - language models, and the GEMVs of one token
#include "ptxgen/kernels/gemv/models.hpp"

namespace ptxgen::inline v0 {

namespace {

// The config.json of each model's public repository (`card`).
constexpr DecoderModel kModels[] = {
    {"llama-2-7b", "meta-llama/Llama-2-7b-hf", 4096, 11008, 32, 32, 32, 128, 32000, false},
    {"llama-3-70b", "meta-llama/Meta-Llama-3-70B", 8192, 28672, 80, 64, 8, 128, 128256, false},
    {"llama-3-8b", "meta-llama/Meta-Llama-3-8B", 4096, 14336, 32, 32, 8, 128, 128256, false},
    {"llama-3.2-1b", "meta-llama/Llama-3.2-1B", 2048, 8192, 16, 32, 8, 64, 128256, true},
    {"mistral-7b", "mistralai/Mistral-7B-v0.1", 4096, 14336, 32, 32, 8, 128, 32000, false},
    {"phi-3-mini", "microsoft/Phi-3-mini-4k-instruct", 3072, 8192, 32, 32, 32, 96, 32064, false},
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", 896, 4864, 24, 14, 2, 64, 151936, true},
    {"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B", 1536, 8960, 28, 12, 2, 128, 151936, true},
    {"qwen2.5-7b", "Qwen/Qwen2.5-7B", 3584, 18944, 28, 28, 4, 128, 152064, false},
    {"tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", 2048, 5632, 22, 32, 4, 64, 32000,
     false},
};

}  // namespace

std::span<const DecoderModel> decoder_models() noexcept { return kModels; }

const DecoderModel* find_decoder_model(std::string_view name) noexcept {
  for (const DecoderModel& row : kModels) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<DecodeShape> decode_shapes(const DecoderModel& model, bool fused) {
  const std::uint32_t q = model.heads * model.head_dim;
  const std::uint32_t kv = model.kv_heads * model.head_dim;
  std::vector<DecodeShape> shapes;
  const auto add = [&](std::string_view name, std::uint32_t k, std::uint32_t n) {
    shapes.push_back({name, k, n, model.layers});
  };
  if (fused) {
    add("qkv", model.hidden, q + 2 * kv);
  } else {
    add("q", model.hidden, q);
    add("k", model.hidden, kv);
    add("v", model.hidden, kv);
  }
  add("o", q, model.hidden);
  if (fused) {
    add("gate_up", model.hidden, 2 * model.intermediate);
  } else {
    add("gate", model.hidden, model.intermediate);
    add("up", model.hidden, model.intermediate);
  }
  add("down", model.intermediate, model.hidden);
  shapes.push_back({"head", model.hidden, model.vocabulary, 1});
  return shapes;
}

}  // namespace ptxgen::inline v0
