// tests/emulator/kernel_runner.hpp - runs random kernels, all that a run leaves behind
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel_generator.hpp"
#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// What a launch left: equal runs have equal ones.
struct KernelOutcome {
  emulator::Status status{};
  std::string findings;  ///< as text, a line each
  std::string counters;  ///< as a table and beside every line
  std::string printed;
  std::vector<std::byte> out;
  std::vector<std::byte> sum;
};

/// Which handlers a program runs with.
enum class Handlers : std::uint8_t { Chosen, LaneByLane, Baseline, Avx2, Avx512 };
/// Whether this build has them and this processor can run them.
[[nodiscard]] bool offers(Handlers handlers);
[[nodiscard]] const char* name(Handlers handlers);

/// A kernel loaded on a device of its own, with fresh buffers for each run.
class KernelRunner {
 public:
  explicit KernelRunner(const RandomKernel& kernel, Handlers handlers = Handlers::Chosen);
  [[nodiscard]] KernelOutcome run(const emulator::Options& options);
  /// How many steps have other handlers than decoding chose.
  [[nodiscard]] std::size_t replaced() const noexcept { return replaced_; }

 private:
  [[nodiscard]] emulator::Program load(Handlers handlers);
  void use(Handlers handlers);

  const RandomKernel& kernel_;
  std::size_t replaced_ = 0;
  emulator::Device device_;
  emulator::Program program_;
};

}  // namespace ptxgen::test
