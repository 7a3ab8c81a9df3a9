// ptxgen/ptx/unknown.hpp - what is wrong with an instruction outside the op table
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// `rule` and `message` as in `verify`. The rule is `unknown-instruction` where nothing can be said
/// for certain, such as of an instruction newer than the table; any other is an error.
struct UnknownFault {
  std::string_view rule;
  std::string message;
  std::string cure;  ///< what to write instead, or empty
};

/// Of a statement that the parser kept as text (`StatementKind::Unknown`), because its opcode or
/// its operands fit no row of the table.
[[nodiscard]] UnknownFault check_unknown(const Module& module, const Function& function,
                                         const Instruction& instruction);

/// The same from an instruction's text alone ("ld.globl.u32 %r1, [%rd1];", without guard): for code
/// that is not in a module yet. Says nothing of operands. An empty rule: the opcode is in the
/// table.
[[nodiscard]] UnknownFault check_opcode(std::string_view instruction);

}  // namespace ptxgen::inline v0::ptx
