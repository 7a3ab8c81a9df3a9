// ptxgen/model/session.hpp - a decoder at work: KV cache, prefill, decode
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/model/model.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0::model {

/// `SessionOptions::context` = 0 takes the model's context, but not more positions than this.
inline constexpr std::uint32_t kDefaultContext = 4096;
/// Chunks of a prompt of at least this many tokens are multiplied by GEMM kernels, smaller ones by
/// batched GEMVs, which read each matrix once for 8 tokens.
inline constexpr std::uint32_t kMinGemmRows = 32;
inline constexpr std::uint32_t kMaxPrefillRows = 1024;

struct SessionOptions {
  std::uint32_t context = 0;             ///< positions of each sequence; at most the model's
  ElementType cache = ElementType::f32;  ///< of keys and values: f32, f16, bf16 or q8_0
  std::uint32_t sequences = 1;           ///< decoded side by side, 1 to 64
  std::uint32_t prefill_rows = 512;      ///< tokens of a prompt computed together, 1 to 1024
  /// f32: products of a prompt are exact, as those of single tokens. f16, bf16: those of chunks of
  /// at least `kMinGemmRows` tokens run on tensor cores, with weights and activations rounded to
  /// that type; not on the host or with repacked weights. An activation that f16 does not have is
  /// an error of `prefill`, "activation-overflow".
  ElementType prefill_type = ElementType::f32;
  bool graph = true;  ///< decode replays a captured graph
};

/// A tensor of the last `prefill` or `decode`, copied to the host. Names, with their columns:
///   "embedding" (width), of no layer; then of each layer
///   "attn_norm" (width), "q" (heads * head_size), "k", "v" (kv_heads * head_size) before norms and
///   rotation, "q_rope", "attn" (heads * head_size), "attn_out" (width): h after it,
///   "ffn_norm" (width), "ffn_gate" (ffn): the gated activations, "ffn_out" (width): h after it;
///   then "output_norm" (width) and "logits" (vocabulary), of no layer
struct LayerTensor {
  std::uint32_t layer = 0;  ///< `kNoLayer`: of none
  std::string_view name;
  std::uint32_t rows = 0;  ///< of the prompt's chunk, or the sequences
  std::uint32_t columns = 0;
  std::uint32_t position = 0;     ///< of the first row, in the prompt's sequence
  std::span<const float> values;  ///< [rows][columns], valid during the call
};
inline constexpr std::uint32_t kNoLayer = std::numeric_limits<std::uint32_t>::max();

/// A receiver of tensors. While there is one, nothing is captured and every launch is waited for.
/// Exceptions pass through `prefill` and `decode`, which then count as failed.
struct LayerObserver {
  void (*tensor)(void* user, const LayerTensor& tensor) = nullptr;
  void* user = nullptr;
};

/// A launch of a token, in order.
struct Step {
  std::uint32_t layer = 0;  ///< `kNoLayer`: of none
  std::string_view name;    ///< "qkv", "attention"
  std::string_view kernel;  ///< of the catalog
};

/// One or several sequences of tokens over a model. `prefill` appends a prompt to one, `decode` a
/// token to each; logits of the last position stay on the device until they are asked for.
///
/// Steady state: a `decode` is one copy of 12 bytes a sequence to the device, one launch of a graph
/// and one copy of the greedy tokens back; nothing is allocated or loaded.
///
/// A sequence whose context is full is an error; so is a prompt that does not fit, before anything
/// is computed. A call that fails because of an argument changes nothing. After any other failure
/// the sequences have the tokens that they had before the call (`restore`: none) and no logits,
/// unless the context is lost: then every call throws "context-lost" and the session can only be
/// destroyed.
///
/// Errors (Stage::Launch unless stated): "context-full", "bad-token", "bad-sequence", "arguments"
/// (wrong number of tokens, a position beyond the end), "no-logits" (nothing was computed yet),
/// "activation-overflow" (a prompt with `prefill_type` f16 or bf16 has an activation that is not
/// finite in it; the message names the layer),
/// "bad-option" (constructor), "bad-session" (Stage::Io, `restore`: not a saved session, of another
/// model, type or number of sequences, or longer than this context), and what launches throw.
///
/// Threads: one at a time. The model must outlive the session.
class Session {
 public:
  explicit Session(const Model& model, SessionOptions options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  [[nodiscard]] const Model& model() const noexcept;
  /// As given, with the context in effect.
  [[nodiscard]] const SessionOptions& options() const noexcept;

  /// Appends tokens, at least one, to a sequence. Afterwards `logits(sequence)` are those of the
  /// last one.
  void prefill(std::span<const std::uint32_t> tokens, std::uint32_t sequence = 0);
  /// The same; returns the logits of every token, [tokens][vocabulary].
  [[nodiscard]] std::vector<float> prefill_all(std::span<const std::uint32_t> tokens,
                                               std::uint32_t sequence = 0);
  /// Appends one token to the only sequence.
  void decode(std::uint32_t token);
  /// Appends one token to each sequence, in their order.
  void decode(std::span<const std::uint32_t> tokens);

  /// After the last token of a sequence, `vocabulary` values; copied from the device by the first
  /// call after `prefill` or `decode`, valid until the next of these.
  [[nodiscard]] std::span<const float> logits(std::uint32_t sequence = 0);
  /// The token with the largest logit, the lowest of equal ones.
  [[nodiscard]] std::uint32_t greedy(std::uint32_t sequence = 0) const;

  /// Tokens that a sequence holds.
  [[nodiscard]] std::uint32_t position(std::uint32_t sequence = 0) const;
  /// Forgets the tokens from `position` on; the logits too, unless it is the end.
  void truncate(std::uint32_t position, std::uint32_t sequence = 0);
  /// Forgets all tokens of all sequences.
  void clear();

  /// Positions, keys and values as bytes, with a header that says of which model and type; for a
  /// session of the same model, cache type and number of sequences, in any process. Logits are not
  /// part of it.
  [[nodiscard]] std::vector<std::byte> save() const;
  void restore(std::span<const std::byte> saved);

  /// Replaces the observer; one without `tensor` removes it.
  void observe(LayerObserver observer);
  /// The launches of a `decode`.
  [[nodiscard]] std::span<const Step> steps() const noexcept;
  /// Of KV cache and intermediate tensors.
  [[nodiscard]] std::uint64_t device_bytes() const noexcept;
  [[nodiscard]] const Stream& stream() const noexcept;

 private:
  struct State;
  Hidden<State> state_;
};

}  // namespace ptxgen::inline v0::model
