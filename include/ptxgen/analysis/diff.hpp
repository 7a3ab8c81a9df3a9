// ptxgen/analysis/diff.hpp - what two modules do differently
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

enum class ChangeKind : std::uint8_t {
  Module,        ///< version, target, address size, variables of the module
  Function,      ///< a kernel or device function that is in one module, or has another name
  Parameters,    ///< their number, order, names, types, alignment; what a function returns
  Resources,     ///< directives as `.maxntid`, shared and local variables
  Barrier,       ///< a barrier or fence that is in one module, or is another one
  AddressWidth,  ///< an address of shared memory in a register of another width
  AccessWidth,   ///< bytes of a memory access
  Rounding,      ///< rounding, saturation, flushing of subnormal numbers, approximation
  Instruction,   ///< an instruction that is in one module, or differs in another way
  Operand,       ///< the same instruction with a value that is computed otherwise
  Order,         ///< two accesses or barriers that must keep their order have the other one
  ControlFlow,   ///< a branch with another target, an instruction in another block
  Mix,           ///< how often an opcode occurs, where that differs
};
/// "barrier", "address_width", as the program's JSON has it.
[[nodiscard]] std::string_view name(ChangeKind kind) noexcept;

/// One difference. Of an instruction that only one module has, the other text is empty and its line
/// 0.
struct Change {
  ChangeKind kind{};
  std::string kernel;                    ///< or device function; empty for changes of the module
  std::string a, b;                      ///< what is there: a statement, a declaration, a number
  std::uint32_t line_a = 0, line_b = 0;  ///< of the texts that were parsed; 0: none, or built
  std::string what;  ///< the same in words: "barrier removed"; of a Mix the opcode
};

/// The differences of two modules in what they compute; empty if there are none. Neither the names
/// of registers, labels and scopes nor the order of statements that do not depend on one another
/// count, nor `.loc`, `.file` and code that is never reached. Everything else counts: equal results
/// by other instructions are a change.
///
/// Instructions depend on one another through registers, through memory that may be the same (one
/// state space, and not two pieces of one address that do not overlap), and through barriers and
/// fences. They are compared by what they compute from what, and by what is computed from them;
/// what has no such partner, by the instruction alone. So a change is reported where it is, not at
/// all that depends on it.
///
/// Functions are compared by name; if one of each module is left, also these two. Changes are in
/// the order of the text of `a`, module first, mix last. For n statements it takes about n log n
/// for each step of the longest chain of dependent statements.
[[nodiscard]] std::vector<Change> diff(const ptx::Module& a, const ptx::Module& b);

/// "gemv: line 12: barrier removed: bar.sync 0;"
[[nodiscard]] std::string to_text(const Change& change);

}  // namespace ptxgen::inline v0::analysis
