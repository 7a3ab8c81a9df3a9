// ptxgen/ptx/unknown.hpp - diagnosing instructions outside the op table
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// `rule` and `message` as in `verify`. The rule is `unknown-instruction` if the instruction may be
/// legal, for example newer than the table; any other rule is an error.
struct UnknownFault {
  std::string_view rule;
  std::string message;
  std::string cure;  ///< what to write instead, or empty
};

/// Diagnoses a statement that the parser kept as text (`StatementKind::Unknown`) because its opcode
/// or operands match no row of the table.
[[nodiscard]] UnknownFault check_unknown(const Module& module, const Function& function,
                                         const Instruction& instruction);

/// The same for the text of an instruction without guard ("ld.globl.u32 %r1, [%rd1];"), for code
/// that is not in a module yet. Does not check operands. An empty rule means that the opcode is in
/// the table.
[[nodiscard]] UnknownFault check_opcode(std::string_view instruction);

}  // namespace ptxgen::inline v0::ptx
