// bench/gemv/decode_chain.hpp - the GEMVs of one token as one graph
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gemv/measure.hpp"
#include "bench/gemv/statistics.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::gemv_bench {

/// A matrix shape of a token, and how many matrices of it there are.
struct ChainShape {
  GemvPlan plan;
  std::uint32_t count = 0;
  std::string name;  ///< "qkv"
};

struct ChainMeasurement {
  Statistics us;              ///< of a token
  std::uint32_t kernels = 0;  ///< of the graph
  std::uint64_t weight_bytes = 0;
  std::uint64_t checked = 0;  ///< launches with a checked result
  std::string wrong;          ///< empty, or the GEMV with a wrong result
  [[nodiscard]] double tokens_per_s() const noexcept { return us.median > 0 ? 1e6 / us.median : 0; }
};

/// The order of a token: a matrix of each shape for each layer, then the shapes that have fewer
/// than all layers, as the head: indices into `shapes`.
[[nodiscard]] std::vector<std::size_t> chain_order(const std::vector<ChainShape>& shapes);

/// Measures `samples` launches of a graph that has every GEMV once, each with its own
/// matrix in memory; matrices of one shape have the same random values. Every output is compared
/// with fp64 once, and bit for bit after each sample. Throws `Error` (Stage::Device,
/// "out-of-memory") before anything is generated if the weights do not fit, and the errors of
/// launches.
[[nodiscard]] ChainMeasurement measure_chain(const Device& device,
                                             const std::vector<ChainShape>& shapes,
                                             std::size_t samples, std::uint64_t lead_bytes,
                                             std::uint64_t seed, const Settings& settings);

}  // namespace ptxgen::gemv_bench
