// ptxgen/ptx/parser.hpp - PTX text as a module
#pragma once

#include <string_view>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// Parses PTX text of any producer. `file` names the text in messages.
///
/// An instruction outside the op table is kept as text (StatementKind::Unknown). Undeclared names
/// become unresolved symbols, which the verifier reports. Comments are dropped.
///
/// Throws `Error` (Stage::Verify, code "syntax") with line, column, what was expected and the
/// quoted line. Memory and time are linear in the size of any text.
[[nodiscard]] Module parse(std::string_view text, std::string_view file = "<ptx>");

/// Parses statements (instructions, labels, declarations) in the scope of
/// `module.functions[function]` and appends them to its body. Throws as `parse`, with the module
/// unchanged.
void parse_into(Module& module, std::uint32_t function, std::string_view statements);

}  // namespace ptxgen::inline v0::ptx
