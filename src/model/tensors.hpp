// src/model/tensors.hpp - the tensors that a decoder's file has
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/model/config.hpp"

namespace ptxgen::inline v0::model {

/// What a tensor is used as, which decides the types that it may have.
enum class TensorUse : std::uint8_t {
  Vector,     ///< norm weights, biases, factors: f32 on the device
  Matrix,     ///< of a GEMV
  Embedding,  ///< looked up by rows
  Both,       ///< an embedding that is the output matrix too
};

struct ExpectedTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  ///< dims[0] is contiguous
  TensorUse use = TensorUse::Vector;
};

/// All tensors of a decoder of that shape, in an order of their own.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// Compares the file's tensors with them; throws as `ModelConfig::read`.
void check_tensors(const gguf::File& file, const ModelConfig& config);

/// "blk.3.attn_q.weight"
[[nodiscard]] std::string layer_tensor(std::uint32_t layer, std::string_view name);

/// An `Error` (Stage::Io) of that file.
[[noreturn]] void refuse_file(const gguf::File& file, std::string_view code, std::string message);

}  // namespace ptxgen::inline v0::model
