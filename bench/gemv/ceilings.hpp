// bench/gemv/ceilings.hpp - what no GEMV on a device can pass
#pragma once

#include <cstdint>
#include <vector>

#include "bench/gemv/results.hpp"

namespace ptxgen::gemv_bench {

struct CeilingSizes {
  std::uint64_t stream_bytes = std::uint64_t{1} << 29;  ///< read and copied cold
  std::uint64_t hot_bytes = std::uint64_t{1} << 24;     ///< read again and again
  std::uint32_t launches = 64;                          ///< of an empty kernel in a row
};

/// "read" and "copy" of a large buffer, "hot-read" of one that fits the L2, and an empty kernel in
/// a stream, in a graph, and in a graph with programmatic dependent launch. The last is missing,
/// with the reason, where the device does not support it. Every sample of reads and copies is
/// checked. Throws the errors of launches.
[[nodiscard]] std::vector<Ceiling> measure_ceilings(const Context& context,
                                                    const Launcher& launcher, const ArmMaker& maker,
                                                    const Lead& lead, std::size_t samples,
                                                    std::uint64_t seed, const CeilingSizes& sizes);

}  // namespace ptxgen::gemv_bench
