// ptxgen/runtime/assemble/assembler.hpp - PTX text to machine code
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/hidden.hpp"

namespace ptxgen::inline v0 {

/// What turns PTX into machine code. The names returned by `to_string` are stable.
enum class AssemblerTool : std::uint8_t {
  Automatic,  ///< the first of the others, in this order, that is found and knows the target
  NvJitLink,  ///< libnvJitLink, in the process: 5 ms for a small kernel, ptxas takes 15 to 20
  Ptxas,      ///< the ptxas program
  Driver,     ///< cuLink of libcuda; needs a GPU, whose architecture limits the targets
  /// nvJitLink and ptxas, as far as they are found: the machine code whose largest kernel uses the
  /// fewer registers, then the one that spills less, then nvJitLink's. Where neither is found or
  /// knows the target, as Automatic.
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

/// What one kernel of the module uses, in bytes unless said otherwise. Zero for what the tool does
/// not report.
///
/// nvJitLink assembles functions apart and links them, so a kernel that calls a function that is
/// not inlined shows the 24 registers that the calling convention asks for at least; ptxas, which
/// sees the whole program, can come out lower.
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

/// What one tool made of a module.
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
  AssemblerTool tool = AssemblerTool::Automatic;  ///< which one did it
  std::string tool_version;                       ///< "13.0" for nvJitLink, "13.0.88" for ptxas
  std::string log;  ///< all that the tool said, with its own figures and warnings
  std::vector<AssemblerFigures> compared;  ///< FewestRegisters: what each tool came to
};

/// One tool, as it was found or not.
struct AssemblerFinding {
  AssemblerTool tool = AssemblerTool::Automatic;
  bool found = false;
  std::string where;    ///< the library or program; empty if not found
  std::string version;  ///< empty if not found or not known before use (ptxas, driver)
  std::string why_not;  ///< every place tried, a line each; empty if found
};

/// Assembles PTX with whatever this machine has. Looks for the tools once, when constructed.
///
/// Const members may be called from several threads at once; nvJitLink and ptxas then work in
/// parallel. The library that nvJitLink lives in stays in the process after the last Assembler.
class Assembler {
 public:
  explicit Assembler(const Settings& settings);

  /// Whether there is a tool to try. The driver counts when libcuda is found; whether it has a GPU
  /// shows at first use.
  [[nodiscard]] bool available() const noexcept;

  /// All tools, in the order in which Automatic tries them.
  [[nodiscard]] std::vector<AssemblerFinding> tools() const;
  /// The first tool that was found, with its version, for which ptxas is run once; a finding
  /// without `found` if there is none.
  [[nodiscard]] AssemblerFinding first_tool() const;

  /// Throws `Error` (stage assemble), always with the tool's whole log:
  /// - "rejected": the tool does not accept the PTX; `line`, `excerpt` and `message` name the
  ///   first line it complains about and its words
  /// - "no-assembler": nothing to assemble with; the message says what to install or to set and
  ///   the log where it was looked for
  /// - "unknown-target": every tool tried is too old, or too new, for the target
  /// - "bad-target": not the name of a target
  /// - "timeout": ptxas did not finish in `timeout_ms`
  /// - "tool-failed": the tool itself broke; `driver_status` holds its exit status or signal
  [[nodiscard]] Assembly assemble(std::string_view ptx, const AssembleOptions& options) const;

 private:
  struct Tools;
  [[nodiscard]] Assembly assemble_with_fewest(std::string_view ptx,
                                              const AssembleOptions& options) const;
  Hidden<Tools> tools_;
};

}  // namespace ptxgen::inline v0
