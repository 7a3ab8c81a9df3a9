// ptxgen/model/estimate.hpp - the time of one token, predicted kernel by kernel
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "ptxgen/kernels/model/predict.hpp"
#include "ptxgen/model/config.hpp"
#include "ptxgen/model/gguf.hpp"

namespace ptxgen::inline v0::model {

struct EstimateOptions {
  std::uint32_t context = 512;           ///< positions in the KV cache, with the token's own
  ElementType cache = ElementType::f16;  ///< of keys and values: f32, f16, bf16 or q8_0
  Boundary boundary = Boundary::Graph;   ///< between the launches
};

/// Launches of a token with one name and one shape.
struct EstimatedLaunches {
  std::string step;    ///< as `Step::name`: "qkv"
  std::string kernel;  ///< of the catalog: "gemv_group"
  std::string shape;   ///< "k = 4096, n0 = 4096, .."
  std::uint32_t launches = 0;
  std::uint64_t bytes = 0;    ///< that one of them reads and writes, each once
  double us = 0;              ///< of one of them, predicted
  double boundary_us = 0;     ///< the part before it that the launch costs
  std::string_view bound_by;  ///< the largest term: "launch", "dram", "issue", ..
  ErrorBand error;            ///< of such predictions
};

/// A token of one sequence: the launches that `Session::decode` makes, in order of their first
/// appearance.
struct DecodeEstimate {
  std::vector<EstimatedLaunches> rows;
  std::uint32_t launches = 0;
  std::uint64_t weight_bytes = 0;  ///< read once; of an embedding that is no head one row
  std::uint64_t cache_bytes = 0;   ///< read: all positions, or those of a window
  double us = 0;
  double boundary_us = 0;  ///< part of `us`
  ErrorBand error;         ///< of `us`: those of the rows by their share of the time

  [[nodiscard]] double tokens_per_s() const noexcept { return 1e6 / us; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return weight_bytes + cache_bytes; }
  /// Tokens per second if weights and cache arrive at that rate, in 1e9 bytes per second, and
  /// nothing else takes time.
  [[nodiscard]] double roofline(double gb_per_s) const noexcept {
    return gb_per_s * 1e9 / static_cast<double>(bytes());
  }
};

/// Predicts the decoder of a file; its tensors are not read. Throws as `ModelConfig::read`, and
/// `Error` (Stage::Launch, "arguments") for a context of 0 or more than the model's, and what the
/// kernels throw for a cache that does not go with the model.
[[nodiscard]] DecodeEstimate estimate_decode(const gguf::File& file, const ptx::Gpu& gpu,
                                             const EstimateOptions& options = {});
/// The same of a decoder without a file. `weights`: the type of all matrices, "f32" to "q6_k", or
/// "q4_k_m", the mix of q4_k and q6_k of files with that name. Also throws `Error` (Stage::Launch,
/// "arguments") for other types, and for rows that are not whole blocks.
[[nodiscard]] DecodeEstimate estimate_decode(const ModelConfig& config, std::string_view weights,
                                             const ptx::Gpu& gpu,
                                             const EstimateOptions& options = {});

/// The shape of a model of the table as a llama, without biases and windows.
[[nodiscard]] ModelConfig config_of(const DecoderModel& model);

}  // namespace ptxgen::inline v0::model
