// tests/check/barrier_corpus.hpp - kernels with barriers, judged by hand
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// A kernel of the corpus. In its file it is as
///
///     case NAME: error|warning|exits|clean, fails|leaves|passes|cannot run, block X [Y [Z]]..
///       ..[, n N][, shape S]
///     PTX
///
/// What the gate must say (`exits`: nothing but exited-before-barrier), whether a run must meet a
/// fault at a barrier or threads that left before one (`leaves`), and with which block and
/// parameter `n` (40 if not said). `shape known`: the gate is told the block, `reqntid`: the kernel
/// says it, `unknown`: neither does. The PTX is the body of a kernel with parameters n (u32) and
/// data (u64, 1024 words 0, 1, 2, ..), shared memory `tile`, a constant `table`, registers %p %r
/// %rd, and %tx, %n, %data already read; `.func` ... `}` goes before it.
struct BarrierCase {
  enum class Verdict : std::uint8_t { Clean, Exits, Warning, Error } verdict{};
  enum class Run : std::uint8_t { Passes, Leaves, Fails, CannotRun } run{};
  enum class Shape : std::uint8_t { Known, Required, Unknown } shape{};
  std::string name;
  std::string ptx;
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t n = 40;
};

/// All cases of a file; throws std::runtime_error that says what is wrong with it.
[[nodiscard]] std::vector<BarrierCase> read_barrier_cases(const std::string& file);

/// A kernel around a body, and functions before it.
[[nodiscard]] std::string barrier_kernel(const std::string& body, const std::string& functions = {},
                                         const std::string& head = {});

/// What a launch of the kernel found at barriers.
struct BarrierRun {
  bool fault = false;  ///< barrier-divergence, barrier-deadlock, or sync-mask of bar.warp.sync
  bool left = false;   ///< threads left the kernel before a barrier that others reached
  bool over_budget = false;  ///< it never reached its end
  bool other_mask = false;   ///< sync-mask of another instruction
  std::string findings;
};

/// A kernel loaded on a device of its own.
class BarrierProgram {
 public:
  explicit BarrierProgram(const std::string& ptx);
  [[nodiscard]] BarrierRun run(std::array<std::uint32_t, 3> block, std::uint32_t n,
                               std::uint64_t seed);

 private:
  std::vector<bool> is_warp_sync_;  // by line
  emulator::Device device_;
  emulator::Program program_;
  std::uint64_t data_ = 0;
};

}  // namespace ptxgen::test
