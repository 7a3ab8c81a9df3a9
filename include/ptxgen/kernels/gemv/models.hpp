// ptxgen/kernels/gemv/models.hpp - language models, and the GEMVs of one token
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

/// A decoder with gated feed-forward layers, from its model card. All counts in elements.
struct DecoderModel {
  std::string_view name;  ///< "llama-2-7b", as `--model` takes it
  std::string_view card;  ///< source of the figures: the model's public repository
  std::uint32_t hidden = 0;
  std::uint32_t intermediate = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocabulary = 0;
  bool tied_head = false;  ///< the output head is the embedding; it is still read
};

/// All models, by name in alphabetical order.
[[nodiscard]] std::span<const DecoderModel> decoder_models() noexcept;
/// The row with that name, or nullptr.
[[nodiscard]] const DecoderModel* find_decoder_model(std::string_view name) noexcept;

/// One shape of a token's GEMVs: `count` matrices with k inputs and n outputs.
struct DecodeShape {
  std::string_view name;  ///< "qkv", "o", "gate_up", "down", "head"; unfused "q", "k", ...
  std::uint32_t k = 0;
  std::uint32_t n = 0;
  std::uint32_t count = 0;
  [[nodiscard]] std::uint64_t elements() const noexcept { return std::uint64_t{k} * n * count; }
  friend bool operator==(const DecodeShape&, const DecodeShape&) = default;
};

/// The GEMVs of one token in the order of execution, the head last. Fused: q, k and v are one
/// matrix, gate and up another (4 per layer); otherwise 7 per layer.
[[nodiscard]] std::vector<DecodeShape> decode_shapes(const DecoderModel& model, bool fused);

}  // namespace ptxgen::inline v0
