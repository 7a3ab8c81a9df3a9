// tests/optimize/translation.hpp - a pass on a program, held against the emulator
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "program_runner.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "random_program.hpp"

namespace ptxgen::test {

/// What became of one program.
struct Translation {
  std::string failure;  ///< what is wrong with it, with the text before and after; or empty
  bool changed = false;
  std::uint64_t fired = 0, refused = 0;
  std::string after;                                              ///< PTX
  std::uint64_t instructions_before = 0, instructions_after = 0;  ///< by warps
};

/// Runs the pass or group on the program, both on the emulator, and compares: the same bits in
/// memory, the same threads at barriers, atomics, fences, ordered and volatile accesses. Pairs that
/// fma_fusion reports are rounded once in what is compared with, and no others. A second run of the
/// pass must change nothing, and a kernel whose barriers are shown safe must stay so.
/// `before` is the program's own run.
[[nodiscard]] Translation translate(const RandomProgram& program, const ProgramOutcome& before,
                                    const std::string& pass);

/// A program with fewer lines that still fails, in at most `attempts` trials.
[[nodiscard]] RandomProgram shrink(const RandomProgram& program, const std::string& pass,
                                   unsigned attempts = 4000);

}  // namespace ptxgen::test
