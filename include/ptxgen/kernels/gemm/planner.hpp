// ptxgen/kernels/gemm/planner.hpp - the best kernel of a matrix product for a GPU
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ptxgen/kernels/gemm/mma.hpp"
#include "ptxgen/kernels/gemm/naive.hpp"
#include "ptxgen/kernels/gemm/tiled.hpp"
#include "ptxgen/kernels/gemm/wgmma.hpp"
#include "ptxgen/kernels/model/errors.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Times of a matrix product, in microseconds. Each is what its resource alone would take.
struct GemmTerms {
  double launch = 0;     ///< from the kernel ahead of it in a graph
  double tensor = 0;     ///< tensor cores (or `fma`) of the busiest SM
  double shared = 0;     ///< copies to and fragments from shared memory of the busiest SM
  double latency = 0;    ///< steps of the busiest SM whose copies wait for the L2
  double l2 = 0;         ///< tiles of A and B from the L2
  double dram = 0;       ///< A, B and C, each as often as it is replaced in the L2
  double outputs = 0;    ///< outputs of the busiest SM that are stored while it multiplies nothing
  double reduction = 0;  ///< sums of divided tiles, while nothing is multiplied
};

/// Predicted behaviour of a kernel on a GPU; docs/gemm.md has the law.
struct GemmPrediction {
  double us = 0;  ///< as a node of a graph
  GemmTerms terms;
  /// "launch", "tensor", "shared", "latency", "l2", "dram", "outputs", "reduction"
  std::string_view bound_by;
  std::uint64_t blocks = 0;
  std::uint32_t blocks_per_sm = 0;
  double waves = 0;          ///< blocks / SMs
  double tflops = 0;         ///< of 2 m n k batch operations
  double share_of_peak = 0;  ///< of the datasheet's tensor rate for the type; 0 without
  ErrorBand error;
};

/// One of the kernels of the family.
using GemmKernel = std::variant<GemmMma, GemmTiled, GemmNaive, GemmWgmma>;

struct GemmCandidate {
  GemmKernel kernel;
  GemmPrediction prediction;
  std::string why;  ///< what limits it
};

[[nodiscard]] GemmPrediction predict(const GemmMma& kernel, const ptx::Gpu& gpu);
[[nodiscard]] GemmPrediction predict(const GemmTiled& kernel, const ptx::Gpu& gpu);
[[nodiscard]] GemmPrediction predict(const GemmNaive& kernel, const ptx::Gpu& gpu);
[[nodiscard]] GemmPrediction predict(const GemmWgmma& kernel, const ptx::Gpu& gpu);

/// All tiles and stages that the GPU can run, best first: by time, times within 0.5 % by shared
/// memory. f32 has no plan on tensor cores, which would round the elements; gemm_wgmma has plans
/// for sm_90a, for operands that tensor maps can take. At least one.
/// Deterministic. Throws what `check` throws.
[[nodiscard]] std::vector<GemmCandidate> rank_gemm_plans(const GemmProblem& problem,
                                                         const ptx::Gpu& gpu);
/// "gemm_mma 128x128x32, 3 stages", "gemm_tiled 32x32", "gemm_wgmma 128x256x64, 4 stages, clusters
/// of 2, 132 blocks that divide tiles".
[[nodiscard]] std::string to_text(const GemmKernel& kernel);

}  // namespace ptxgen::inline v0
