// tests/optimize/program_runner.hpp - runs random programs, what can be seen of a run
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "random_program.hpp"

namespace ptxgen::test {

/// What a run left, and what others could have seen of it.
struct ProgramOutcome {
  emulator::Status status{};
  std::string findings;
  std::vector<std::byte> memory;  ///< `out`, then `sum`
  /// Threads that executed barriers, atomics, fences and ordered or volatile accesses, by opcode.
  std::map<std::string, std::uint64_t> observable;
  std::uint64_t barriers = 0;  ///< of the threads in `observable`, those at barriers
  std::uint64_t warp_instructions = 0;
};

/// Runs PTX with the inputs and the launch of a program. Throws as `emulator::Program::load`.
[[nodiscard]] ProgramOutcome run_program(const RandomProgram& program, std::string_view ptx,
                                         bool all_checks = false);

/// In which way two runs differ, as a sentence; empty if they do not.
[[nodiscard]] std::string difference(const RandomProgram& program, const ProgramOutcome& before,
                                     const ProgramOutcome& after);

}  // namespace ptxgen::test
