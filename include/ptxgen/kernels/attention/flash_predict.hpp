// ptxgen/kernels/attention/flash_predict.hpp - predicted times of attention of many queries
#pragma once

#include <variant>

#include "ptxgen/kernels/attention/flash.hpp"
#include "ptxgen/kernels/attention/flash_tensor_core.hpp"
#include "ptxgen/kernels/attention/flash_wgmma.hpp"
#include "ptxgen/kernels/model/errors.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Times of a launch, in microseconds. Each is what its resource alone would take.
struct FlashTerms {
  double launch = 0;   ///< from the kernel ahead of it in a graph
  double tensor = 0;   ///< products by tensor cores (or `fma`) of the busiest SM
  double exp = 0;      ///< its weights: `ex2`, 16 a clock, and the f32 instructions of a score
  double shared = 0;   ///< its copies to and fragments from shared memory
  double latency = 0;  ///< its steps, each after a load from the L2
  double l2 = 0;       ///< tiles of keys and values from the L2
  double dram = 0;     ///< q, k, v and out once
  double merge = 0;    ///< parts of split keys, written and read, after the others
};

/// Predicted behaviour of a kernel on a GPU; docs/attention.md has the law.
struct FlashPrediction {
  double us = 0;  ///< as a node of a graph
  FlashTerms terms;
  /// "launch", "shared", "latency", "l2", "dram"; or of "tensor" and "exp", which are added, the
  /// larger.
  std::string_view bound_by;
  std::uint64_t blocks = 0;
  std::uint32_t blocks_per_sm = 0;
  double tflops = 0;         ///< of 4 head_size operations for each query and key it attends
  double share_of_peak = 0;  ///< of the datasheet's tensor rate for the type; 0 without
  ErrorBand error;
};

[[nodiscard]] FlashPrediction predict(const FlashAttention& kernel, const ptx::Gpu& gpu);
[[nodiscard]] FlashPrediction predict(const FlashAttentionTensorCore& kernel, const ptx::Gpu& gpu);
[[nodiscard]] FlashPrediction predict(const FlashAttentionWgmma& kernel, const ptx::Gpu& gpu);

/// A kernel on tensor cores.
using FlashPlan = std::variant<FlashAttentionTensorCore, FlashAttentionWgmma>;

/// The kernel on tensor cores, with tile and splits, that is predicted to be the fastest of those
/// that the GPU can run. Throws what `check` throws if there is none.
[[nodiscard]] FlashPlan plan_flash(const FlashProblem& problem, const ptx::Gpu& gpu);
/// "flash_attention_tensor_core 64x64", "flash_attention_tensor_core 64x32, 8 splits".
[[nodiscard]] std::string to_text(const FlashPlan& plan);

}  // namespace ptxgen::inline v0
