// ptxgen/runtime/assemble/disassembler.hpp - the machine code of a cubin
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

/// One instruction of SASS, as nvdisasm prints its parts.
struct SassInstruction {
  std::uint32_t offset = 0;  ///< bytes from the start of the function
  std::string predicate;     ///< "@!P0", or empty
  std::string opcode;        ///< "LDG.E.128.CONSTANT"
  std::string operands;      ///< "R4,desc[UR6][R2.64+0x20]"
};

struct SassFunction {
  std::string name;
  std::vector<SassInstruction> instructions;
};

/// Loads from global memory in flight together: so many are on their way before an instruction
/// names a register that one of them loads.
struct SassLoads {
  std::uint32_t loads = 0;
  std::uint32_t bytes = 0;   ///< of a thread
  std::uint32_t offset = 0;  ///< of the last of them
};

/// An innermost loop: the instructions from a branch target to the branch back to it.
struct SassLoop {
  std::uint32_t first = 0;  ///< offset of its first instruction
  std::uint32_t last = 0;   ///< offset of the branch
  std::uint32_t instructions = 0;
  std::uint32_t loaded_bytes = 0;  ///< from global memory, by a thread in an iteration
  std::uint32_t copied_bytes = 0;  ///< by cp.async
  SassLoads in_flight;             ///< within one iteration
  SassLoads streamed;              ///< the same of loads that bypass the L1 (`.NA`)
};

/// What the machine code of a function does with memory.
struct SassSummary {
  std::uint32_t instructions = 0;
  std::uint32_t spills = 0;  ///< loads and stores of local memory
  SassLoads in_flight;       ///< the maximum anywhere
  SassLoads streamed;        ///< the same of loads that bypass the L1
  std::vector<SassLoop> loops;
  /// The innermost loop that brings most bytes from global memory in an iteration, or nullptr.
  [[nodiscard]] const SassLoop* main_loop() const noexcept;
};
[[nodiscard]] SassSummary summary_of(const SassFunction& function);

/// Disassembles with the nvdisasm program, which the CUDA toolkit and PyPI's nvidia-cuda-nvdisasm
/// have. Const members may be called from several threads.
class Disassembler {
 public:
  /// Looks for the program: `Settings::nvdisasm_path`, then as for ptxas.
  explicit Disassembler(const Settings& settings);

  [[nodiscard]] bool available() const noexcept { return !program_.empty(); }
  [[nodiscard]] const std::string& program() const noexcept { return program_; }
  /// Every place tried, a line each; empty if the program was found.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

  /// The functions of a cubin, in its order. Throws `Error` (stage assemble): "no-disassembler" if
  /// the program was not found, "tool-failed" with its words if it fails or prints something else.
  [[nodiscard]] std::vector<SassFunction> disassemble(std::span<const std::byte> cubin) const;

 private:
  std::string program_;
  std::string why_not_;
  std::string temp_dir_;
};

}  // namespace ptxgen::inline v0
