// tests/emulator/kernel_generator.hpp - random kernels that keep within their memory
#pragma once

#include <cstdint>
#include <string>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// A kernel `k(in, out, sum)` with branches, loops, a table of targets, calls, predicated code,
/// shared, local and global memory, and, where all threads come, barriers and shuffles.
struct RandomKernel {
  std::string ptx;
  emulator::Dim3 grid;
  emulator::Dim3 block;
};

inline constexpr std::uint32_t kInputWords = 256;  ///< of `in`, read only
inline constexpr std::uint32_t kOutputWords = 8;   ///< of `out`, for each thread
inline constexpr std::uint32_t kSumWords = 8;      ///< of `sum`, added to by all threads
inline constexpr std::uint32_t kMaxBlockThreads = 160;

enum class RaceKind : std::uint8_t {
  None,    ///< whatever the schedule, the same bytes and no finding
  Shared,  ///< threads of a block race for words of shared memory
  Global,  ///< all threads race for words of `sum`
};

/// The same kernel for the same number, everywhere.
[[nodiscard]] RandomKernel random_kernel(std::uint64_t number, RaceKind races);

}  // namespace ptxgen::test
