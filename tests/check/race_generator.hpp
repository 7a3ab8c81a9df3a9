// tests/check/race_generator.hpp - random exchanges through shared memory
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::test {

/// A kernel `k(in, out, n)` whose threads write and read words of shared memory: by their number,
/// shifted, reversed, scaled, mixed up, by a loop's counter, by data; all of them or some; with
/// barriers of block and warp or without. It keeps within its memory.
struct Exchange {
  std::string ptx;
  emulator::Dim3 block;
  std::uint32_t n = 0;
};

/// The same kernel for the same number, everywhere.
[[nodiscard]] Exchange random_exchange(std::uint64_t number);

/// Pairs of lines, the lower first.
using LinePairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;
[[nodiscard]] inline std::pair<std::uint32_t, std::uint32_t> line_pair(std::uint32_t a,
                                                                       std::uint32_t b) {
  return a < b ? std::pair{a, b} : std::pair{b, a};
}

/// Where the emulator finds shared races under seeds 0 to `seeds` - 1. Throws if the kernel does
/// anything else wrong.
[[nodiscard]] LinePairs emulated_races(const Exchange& exchange, int seeds);

/// Lines of findings of the rule shared-race with that severity.
[[nodiscard]] LinePairs reported_races(const std::vector<Finding>& findings, Severity severity);

}  // namespace ptxgen::test
