// src/model/weights.cpp - tensors of a file to the device
#include "model/weights.hpp"

#include <algorithm>

#include "model/format.hpp"
#include "model/tensors.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::model {

namespace {

constexpr std::size_t kPiece = std::size_t{8} << 20;  // bytes copied, then released, at a time

class Loader {
 public:
  Loader(const Context& context, const gguf::File& file, const ModelOptions& options)
      : context_(context), file_(file), progress_(options.progress), repacks_(options.repack) {
    for (const gguf::Tensor& tensor : file.tensors()) total_ += tensor.bytes;
  }

  // For products; repacked if that was asked for and its type has such a form.
  Matrix matrix(Weights& weights, const std::string& name) {
    const ElementType type = *file_.tensor(name).type->element;
    return repacks_ && !repacked_fields(type).empty() ? repacked(weights, name)
                                                      : stored(weights, name);
  }
  Matrix stored(Weights& weights, const std::string& name) {
    const gguf::Tensor& tensor = file_.tensor(name);
    Buffer<b8> memory(context_, tensor.bytes);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.data.data());
    for (std::size_t at = 0; at < tensor.data.size(); at += kPiece) {
      const std::size_t size = std::min(kPiece, tensor.data.size() - at);
      memory.write_part(at, {bytes + at, size});
      file_.release(tensor.data.subspan(at, size));
      copied(size);
    }
    // Parts of pages between pieces.
    file_.release(tensor.data);
    return kept(weights, tensor, std::move(memory), false);
  }

  [[nodiscard]] std::vector<float> host_vector(const std::string& name) const {
    const gguf::Tensor& tensor = file_.tensor(name);
    const std::vector<double> values = to_values(*tensor.type->element, tensor.data);
    return {values.begin(), values.end()};  // of floats: exact
  }
  DeviceRange vector(Weights& weights, const std::string& name) {
    const DeviceRange range = upload(weights, host_vector(name));
    copied(file_.tensor(name).bytes);
    return range;
  }
  DeviceRange upload(Weights& weights, const std::vector<float>& values) {
    Buffer<f32> memory(context_, values);
    const DeviceRange range = memory;
    weights.device_bytes += memory.bytes();
    weights.vectors.push_back(std::move(memory));
    return range;
  }

 private:
  Matrix repacked(Weights& weights, const std::string& name) {
    const gguf::Tensor& tensor = file_.tensor(name);
    const ElementType type = *tensor.type->element;
    const std::uint64_t values = tensor.shape[0];
    const auto stored_row = static_cast<std::size_t>(bytes(type, values));
    const auto row = static_cast<std::size_t>(repacked_bytes(type, values));
    const std::size_t rows = tensor.data.size() / stored_row;
    Buffer<b8> memory(context_, rows * row);
    const std::size_t at_once = std::max<std::size_t>(1, kPiece / row);
    std::vector<std::byte> piece(std::min(at_once, rows) * row);
    for (std::size_t first = 0; first < rows; first += at_once) {
      const std::size_t count = std::min(at_once, rows - first);
      const auto from = tensor.data.subspan(first * stored_row, count * stored_row);
      for (std::size_t i = 0; i < count; ++i) {
        repack_row(type, values, from.subspan(i * stored_row, stored_row),
                   std::span(piece).subspan(i * row, row));
      }
      memory.write_part(first * row,
                        {reinterpret_cast<const std::uint8_t*>(piece.data()), count * row});
      file_.release(from);
      copied(from.size());
    }
    file_.release(tensor.data);
    return kept(weights, tensor, std::move(memory), true);
  }
  static Matrix kept(Weights& weights, const gguf::Tensor& tensor, Buffer<b8> memory,
                     bool repacked) {
    const DeviceRange range(memory.address().value, memory.bytes());
    weights.device_bytes += memory.bytes();
    weights.matrices.push_back(std::move(memory));
    return {range, *tensor.type->element, static_cast<std::uint32_t>(tensor.shape[0]),
            static_cast<std::uint32_t>(tensor.shape[1]), repacked};
  }
  void copied(std::uint64_t bytes) {
    done_ += bytes;
    if (progress_.report != nullptr) progress_.report(progress_.user, done_, total_);
  }

  const Context& context_;
  const gguf::File& file_;
  const LoadProgress& progress_;
  bool repacks_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

LayerWeights load_layer(Loader& loader, Weights& weights, const ModelConfig& config,
                        std::uint32_t layer) {
  const auto matrix = [&](std::string_view name) {
    return loader.matrix(weights, layer_tensor(layer, name));
  };
  const auto vector = [&](std::string_view name, bool there = true) {
    return there ? loader.vector(weights, layer_tensor(layer, name)) : DeviceRange();
  };
  LayerWeights all;
  all.attn_norm = vector("attn_norm.weight");
  all.q = matrix("attn_q.weight");
  all.k = matrix("attn_k.weight");
  all.v = matrix("attn_v.weight");
  all.q_bias = vector("attn_q.bias", config.qkv_bias);
  all.k_bias = vector("attn_k.bias", config.qkv_bias);
  all.v_bias = vector("attn_v.bias", config.qkv_bias);
  all.q_norm = vector("attn_q_norm.weight", config.head_norms);
  all.k_norm = vector("attn_k_norm.weight", config.head_norms);
  all.o = matrix("attn_output.weight");
  all.post_attention_norm = vector("post_attention_norm.weight", config.post_norms);
  all.ffn_norm = vector("ffn_norm.weight");
  all.gate = matrix("ffn_gate.weight");
  all.up = matrix("ffn_up.weight");
  all.down = matrix("ffn_down.weight");
  all.post_ffw_norm = vector("post_ffw_norm.weight", config.post_norms);
  return all;
}

// What divides the frequencies: the file's factors, and the divisor of positions.
void load_factors(Loader& loader, Weights& weights, const ModelConfig& config) {
  std::vector<float> factors(config.head_size / 2, 1);
  if (config.rope_factors) factors = loader.host_vector("rope_freqs.weight");
  const auto upload = [&](float divisor) {
    std::vector<float> all = factors;
    for (float& factor : all) factor *= divisor;
    const bool ones = std::ranges::all_of(all, [](float factor) { return factor == 1; });
    return ones ? DeviceRange() : loader.upload(weights, all);
  };
  weights.factors = upload(config.rope_divisor);
  weights.local_factors = upload(1);
}

}  // namespace

Weights::Weights(const Context& context, const gguf::File& file, const ModelConfig& config,
                 const ModelOptions& options) {
  Loader loader(context, file, options);
  try {
    embedding = loader.stored(*this, "token_embd.weight");
    load_factors(loader, *this, config);
    for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
      layers.push_back(load_layer(loader, *this, config, layer));
    }
    output_norm = loader.vector(*this, "output_norm.weight");
    // Rows of the embedding are looked up as stored.
    const bool both = options.repack && !repacked_fields(embedding.type).empty();
    const std::string_view name = config.tied ? "token_embd.weight" : "output.weight";
    output = config.tied && !both ? embedding : loader.matrix(*this, std::string(name));
    // Metadata, and what the system mapped around the pages that were read.
    file.release();
  } catch (Error& error) {
    if (error.code != "out-of-memory") throw;
    std::uint64_t needs = 0;
    for (const gguf::Tensor& tensor : file.tensors()) needs += tensor.bytes;
    error.message += format_text("; the tensors of the model take {} bytes", needs);
    error.file = file.name();
    throw error.refresh();
  }
}

}  // namespace ptxgen::inline v0::model
