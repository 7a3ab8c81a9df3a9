// ptxgen/model/config.hpp - what a GGUF file says about its decoder
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/kernels/attention/rope_pairs.hpp"
#include "ptxgen/model/gguf.hpp"

namespace ptxgen::inline v0::model {

// id, name as in `general.architecture`
#define PTXGEN_ARCHITECTURES(X) \
  X(llama)                      \
  X(qwen2)                      \
  X(qwen3)                      \
  X(gemma3)

/// The decoders that can be run. Mistral and SmolLM are `llama` in their files.
enum class Architecture : std::uint8_t {
#define PTXGEN_ARCHITECTURE_ENUMERATOR(id) id,
  PTXGEN_ARCHITECTURES(PTXGEN_ARCHITECTURE_ENUMERATOR)
#undef PTXGEN_ARCHITECTURE_ENUMERATOR
};

inline constexpr std::string_view kArchitectureNames[] = {
#define PTXGEN_ARCHITECTURE_NAME(id) #id,
    PTXGEN_ARCHITECTURES(PTXGEN_ARCHITECTURE_NAME)
#undef PTXGEN_ARCHITECTURE_NAME
};
#undef PTXGEN_ARCHITECTURES

/// "llama", "gemma3"
[[nodiscard]] constexpr std::string_view to_string(Architecture architecture) noexcept {
  return kArchitectureNames[static_cast<std::size_t>(architecture)];
}

/// Of the gated feed-forward network: `activation(gate) * up`.
enum class FfnActivation : std::uint8_t {
  Silu,
  Gelu,  ///< the tanh form
};

/// The shape of a decoder: everything but its weights.
///
/// Per token, with `norm` = RMSNorm: h = embedding[token] * embedding_scale; per layer
/// a = norm(h); q, k, v = W a (+ bias); q and k normalised head by head with `head_norms`, then
/// rotated; o = attention; h += Wo o, with `post_norms` norm(Wo o); f = norm(h);
/// h += Wdown (activation(Wgate f) * (Wup f)), with `post_norms` its norm; at the end
/// logits = Woutput norm(h). A query head uses K/V head `head * kv_heads / heads`.
struct ModelConfig {
  Architecture architecture = Architecture::llama;
  std::string name;  ///< `general.name`; may be empty
  std::uint32_t layers = 0;
  std::uint32_t width = 0;  ///< elements of h
  std::uint32_t ffn = 0;    ///< rows of gate and up
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;   ///< divides `heads`
  std::uint32_t head_size = 0;  ///< of q, k and v; heads * head_size may differ from width
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  ///< positions that the model was made for
  float eps = 1e-5f;          ///< of every RMSNorm
  RopePairs rope_pairs = RopePairs::Interleaved;
  float rope_base = 10000;         ///< of global layers
  float rope_base_local = 10000;   ///< of local layers
  float rope_divisor = 1;          ///< of the positions in global layers (linear scaling)
  bool rope_factors = false;       ///< `rope_freqs.weight` divides the frequencies
  std::uint32_t window = 0;        ///< last positions that local layers see; 0: no layer is local
  std::uint32_t global_every = 0;  ///< layer i is global where (i + 1) % it is 0; 0: none is
  float embedding_scale = 1;
  float attention_scale = 1;  ///< of the scores
  bool tied = false;          ///< the output matrix is the embedding
  bool qkv_bias = false;
  bool head_norms = false;
  bool post_norms = false;
  FfnActivation activation = FfnActivation::Silu;

  /// Whether a layer sees all positions.
  [[nodiscard]] constexpr bool is_global(std::uint32_t layer) const noexcept {
    return window == 0 || (global_every != 0 && (layer + 1) % global_every == 0);
  }
  [[nodiscard]] constexpr std::uint32_t q_width() const noexcept { return heads * head_size; }
  [[nodiscard]] constexpr std::uint32_t kv_width() const noexcept { return kv_heads * head_size; }

  /// Reads the metadata, and compares the name, shape and type of every tensor with it.
  ///
  /// Throws `Error` (Stage::Io) with the file's name:
  ///   "unsupported-architecture"    names it, and those that are supported
  ///   "unsupported-model"           the architecture with a feature that is not: what and where
  ///   "bad-config"                  a value that no model can have, with key and value
  ///   "missing-tensor"              its name, and the shape that it would have
  ///   "bad-tensor"                  a shape other than expected; both
  ///   "unsupported-type"            a tensor's type that no kernel takes; the types that are
  ///   and what the getters of `gguf::File` throw
  [[nodiscard]] static ModelConfig read(const gguf::File& file);
};

}  // namespace ptxgen::inline v0::model
