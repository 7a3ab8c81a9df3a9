// src/model/layer_sizes.cpp - sizes of a model's layers, from its metadata
#include "ptxgen/model/layer_sizes.hpp"

#include <string>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gguf {

namespace {

/// Sizes by the keys of one architecture.
class Sizes {
 public:
  explicit Sizes(const File& file)
      : file_(file), prefix_(std::string(file.string("general.architecture")) + ".") {}

  [[nodiscard]] std::uint32_t size(std::string_view key) const {
    return positive(key, file_.u32(prefix_ + std::string(key)));
  }
  [[nodiscard]] std::uint32_t size(std::string_view key, std::uint32_t otherwise) const {
    return positive(key, file_.u32(prefix_ + std::string(key), otherwise));
  }

 private:
  [[nodiscard]] std::uint32_t positive(std::string_view key, std::uint32_t value) const {
    if (value != 0) return value;
    throw Error(Stage::Io, "out-of-range",
                format_text("key '{}{}' is 0; a layer has a size of at least 1", prefix_, key))
        .refresh();
  }

  const File& file_;
  std::string prefix_;
};

}  // namespace

LayerSizes layer_sizes(const File& file) {
  const Sizes model(file);
  LayerSizes sizes;
  sizes.hidden = model.size("embedding_length");
  sizes.intermediate = sizes.outputs = model.size("feed_forward_length");
  sizes.heads = model.size("attention.head_count");
  sizes.kv_heads = model.size("attention.head_count_kv", sizes.heads);
  sizes.head_size = model.size("attention.key_length", sizes.hidden / sizes.heads);
  sizes.positions = model.size("context_length");
  const Value* const tokens = file.find("tokenizer.ggml.tokens");
  const std::uint64_t listed = tokens == nullptr ? 0 : tokens->size();
  sizes.vocabulary = listed != 0 && listed <= 0xffffffffu
                         ? model.size("vocab_size", static_cast<std::uint32_t>(listed))
                         : model.size("vocab_size");
  return sizes;
}

}  // namespace ptxgen::inline v0::gguf
