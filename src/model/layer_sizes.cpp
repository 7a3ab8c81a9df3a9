// src/model/layer_sizes.cpp - sizes of a model's layers, from its metadata
#include "ptxgen/model/layer_sizes.hpp"

#include "model/keys.hpp"

namespace ptxgen::inline v0::gguf {

LayerSizes layer_sizes(const File& file) {
  const model::Keys keys(file);
  const model::KeySizes from = model::read_sizes(keys);
  LayerSizes sizes;
  sizes.hidden = from.width;
  sizes.intermediate = sizes.outputs = from.ffn;
  sizes.heads = from.heads;
  sizes.kv_heads = from.kv_heads;
  sizes.head_size = from.head_size;
  sizes.positions = from.context;
  const Value* const tokens = file.find("tokenizer.ggml.tokens");
  const std::uint64_t listed = tokens == nullptr ? 0 : tokens->size();
  sizes.vocabulary = listed != 0 && listed <= model::Keys::kMaxSize
                         ? keys.size_or("vocab_size", static_cast<std::uint32_t>(listed))
                         : keys.size("vocab_size");
  return sizes;
}

}  // namespace ptxgen::inline v0::gguf
