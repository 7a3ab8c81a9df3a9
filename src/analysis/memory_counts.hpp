// src/analysis/memory_counts.hpp - sectors and wavefronts of one request
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ptxgen/ptx/types.hpp"

namespace ptxgen::inline v0::analysis {

// Written apart from the emulator's counters on purpose: tests compare the two.

/// Where a lane of a request reads or writes.
struct LaneAddress {
  std::uint32_t lane = 0;
  std::uint64_t address = 0;
};

struct RequestFigures {
  std::uint64_t sectors = 0;         ///< global, local: distinct 32-byte sectors
  std::uint64_t distinct_bytes = 0;  ///< likewise
  std::uint64_t wavefronts = 0;      ///< shared; constant: distinct words
  std::uint64_t phases = 0;          ///< shared: with a lane in them; constant: 1
  [[nodiscard]] std::uint64_t ideal_sectors() const noexcept { return (distinct_bytes + 31) / 32; }
};

/// Lanes in ascending order, `bytes` each. Nothing of spaces other than these four.
[[nodiscard]] RequestFigures count_request(ptx::Space space, std::span<const LaneAddress> lanes,
                                           std::uint32_t bytes);
/// Of a copy of so many bytes of global memory from an address on.
[[nodiscard]] RequestFigures count_range(std::uint64_t address, std::uint64_t bytes);

}  // namespace ptxgen::inline v0::analysis
