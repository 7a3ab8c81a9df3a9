// ptxgen/runtime/assemble/assembler.hpp - PTX text to machine code
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/hidden.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

struct ToolOutcome;  // src/runtime/assemble/assembler_tools.hpp

/// The tools that compile PTX to machine code. The names returned by `to_string` are stable.
enum class AssemblerTool : std::uint8_t {
  Automatic,  ///< the first of the next three that is found and supports the target
  NvJitLink,  ///< libnvJitLink, in process: 5 ms for a small kernel; ptxas takes 15 to 20
  Ptxas,      ///< the ptxas program
  Driver,     ///< libcuda's cuLink; needs a GPU, whose architecture limits the targets
  /// Runs nvJitLink and ptxas and keeps the machine code whose largest kernel uses fewer registers;
  /// then the one that spills less; then nvJitLink's. Same as Automatic if neither is found or
  /// supports the target.
  FewestRegisters,
};

/// "automatic", "nvJitLink", "ptxas", "driver", "fewest registers".
[[nodiscard]] std::string_view to_string(AssemblerTool tool) noexcept;

struct AssembleOptions {
  std::string target;                             ///< "sm_89", "sm_90a", "sm_100f"
  AssemblerTool tool = AssemblerTool::Automatic;  ///< a single tool: only that one
  unsigned optimization = 3;                      ///< 0 (quickest to assemble) to 3, as ptxas -O
  unsigned max_registers = 0;                     ///< a thread; 0: no limit
  bool line_info = false;                         ///< keep `.loc` lines for profilers
  std::string file;                               ///< the PTX's name in messages
  std::uint32_t timeout_ms = 120000;              ///< for the ptxas program only
};

/// Resources of one kernel, in bytes unless stated otherwise. Zero where the tool reports nothing.
///
/// nvJitLink compiles functions separately and links them. A kernel that calls a function that is
/// not inlined therefore reports at least the 24 registers of the calling convention; ptxas sees
/// the whole program and can report fewer.
struct KernelResources {
  std::string name;
  std::uint32_t registers = 0;     ///< 32-bit registers per thread
  std::uint32_t barriers = 0;      ///< named barriers
  std::uint64_t spill_stores = 0;  ///< per thread, with those of functions listed in the log
                                   ///  under this kernel
  std::uint64_t spill_loads = 0;   ///< likewise
  std::uint64_t stack = 0;         ///< local memory per thread
  std::uint64_t shared = 0;        ///< static shared memory per block
  std::uint64_t constant = 0;      ///< this kernel's constant banks; bank 0 holds its parameters
};

/// Figures of one tool's result for a module.
struct AssemblerFigures {
  AssemblerTool tool = AssemblerTool::Automatic;
  std::string tool_version;
  std::uint32_t registers = 0;     ///< of the kernel that uses most
  std::uint64_t spill_stores = 0;  ///< as of Assembly
  std::uint64_t spill_loads = 0;
};

/// A module in machine code.
struct Assembly {
  std::vector<std::byte> cubin;
  std::vector<KernelResources> kernels;  ///< sorted by name
  std::uint32_t registers = 0;           ///< of the kernel that uses most
  std::uint64_t spill_stores = 0;        ///< of all kernels and functions together
  std::uint64_t spill_loads = 0;         ///< of all kernels and functions together
  std::uint64_t shared = 0;              ///< of the kernel that uses most
  std::uint64_t constant = 0;            ///< the module's `.const` plus the kernel that uses most
  AssemblerTool tool = AssemblerTool::Automatic;  ///< the tool that produced it
  std::string tool_version;                       ///< "13.0" for nvJitLink, "13.0.88" for ptxas
  std::string log;                                ///< the tool's complete output
  std::vector<AssemblerFigures> compared;         ///< FewestRegisters: the figures of each tool
};

/// Result of the search for one tool.
struct AssemblerFinding {
  AssemblerTool tool = AssemblerTool::Automatic;
  bool found = false;
  std::string where;    ///< the library or program; empty if not found
  std::string version;  ///< empty if not found or not known before use (ptxas, driver)
  std::string why_not;  ///< every place tried, a line each; empty if found
};

/// Assembles PTX with the tools of this machine. The constructor searches for them once.
///
/// Threads: const members from several threads at once; nvJitLink and ptxas run in parallel. The
/// nvJitLink library stays loaded after the last Assembler is destroyed.
class Assembler {
 public:
  explicit Assembler(const Settings& settings);

  /// Whether a tool was found. The driver counts if libcuda was found; the first use checks for a
  /// GPU.
  [[nodiscard]] bool available() const noexcept;

  /// All tools, in the order in which Automatic tries them.
  [[nodiscard]] std::vector<AssemblerFinding> tools() const;
  /// The first tool found, with its version; ptxas is run once to get it. `found` is false if there
  /// is no tool.
  [[nodiscard]] AssemblerFinding first_tool() const;

  /// Throws `Error` (stage assemble) with the tool's complete log:
  /// - "rejected": the tool does not accept the PTX; `line`, `excerpt` and `message` give its first
  ///   diagnostic
  /// - "no-assembler": no tool was found; the message says what to install or to set, the log lists
  ///   the places searched
  /// - "unknown-target": every tool tried is too old, or too new, for the target
  /// - "bad-target": not the name of a target
  /// - "timeout": ptxas did not finish in `timeout_ms`
  /// - "tool-failed": the tool itself failed; `driver_status` holds its exit status or signal
  [[nodiscard]] Assembly assemble(std::string_view ptx, const AssembleOptions& options) const;

 private:
  struct Tools;
  /// Sets `version` if it is only known after the run.
  [[nodiscard]] ToolOutcome run(AssemblerTool tool, const std::string& ptx,
                                const AssembleOptions& options, std::string& version) const;
  [[nodiscard]] Assembly assemble_with_fewest(std::string_view ptx,
                                              const AssembleOptions& options) const;
  Hidden<Tools> tools_;
};

}  // namespace ptxgen::inline v0
