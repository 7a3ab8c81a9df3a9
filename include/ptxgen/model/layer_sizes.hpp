// ptxgen/model/layer_sizes.hpp - sizes of a model's layers, from its metadata
#pragma once

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/model/gguf.hpp"

namespace ptxgen::inline v0::gguf {

/// The sizes of the layers of a GGUF file, by the keys of its `general.architecture`: hidden size,
/// feed-forward size, heads, K/V heads (as many as heads where the file does not say), head size
/// (`attention.key_length`, or else hidden size / heads), vocabulary (`vocab_size`, or else the
/// number of `tokenizer.ggml.tokens`), positions (`context_length`). `outputs` is the feed-forward
/// size.
///
/// Throws what the getters of `File` throw, and `Error` (Stage::Io, "bad-config") for a size of 0
/// or beyond 2^24 (positions: 2^30).
[[nodiscard]] LayerSizes layer_sizes(const File& file);

}  // namespace ptxgen::inline v0::gguf
