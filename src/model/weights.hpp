// src/model/weights.hpp - the tensors of a model on the device
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/operand.hpp"
#include "ptxgen/model/config.hpp"
#include "ptxgen/model/model.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

namespace ptxgen::inline v0::model {

/// W[n x k], row-major.
struct Matrix {
  DeviceRange memory;
  ElementType type = ElementType::f32;
  std::uint32_t k = 0;
  std::uint32_t n = 0;
  bool repacked = false;  ///< as `repack_row` writes rows
};

/// Empty ranges: the model has no such tensor.
struct LayerWeights {
  DeviceRange attn_norm, q_bias, k_bias, v_bias, q_norm, k_norm, post_attention_norm, ffn_norm,
      post_ffw_norm;
  Matrix q, k, v, o, gate, up, down;
};

struct Weights {
  std::vector<Buffer<b8>> matrices;
  std::vector<Buffer<f32>> vectors;
  Matrix embedding;
  Matrix output;
  DeviceRange output_norm;
  DeviceRange factors;        ///< of the frequencies of global layers; empty: all are 1
  DeviceRange local_factors;  ///< of local layers
  std::vector<LayerWeights> layers;
  std::uint64_t device_bytes = 0;

  Weights() = default;
  /// Copies all tensors, and repacks matrices if asked for. Throws as `Model`.
  Weights(const Context& context, const gguf::File& file, const ModelConfig& config,
          const ModelOptions& options);
};

}  // namespace ptxgen::inline v0::model
