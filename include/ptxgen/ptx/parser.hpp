// ptxgen/ptx/parser.hpp - PTX text as a module
#pragma once

#include <string_view>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// Reads PTX text of any producer. `file` is what messages call the text.
///
/// An instruction outside the op table stays as it was written (StatementKind::Unknown). Names that
/// are declared nowhere stay unresolved symbols for the verifier to report. Comments are dropped.
///
/// Throws `Error` (Stage::Verify, code "syntax") with line, column, what was expected and the
/// quoted line. Memory and time are linear in the size of the text, whatever it holds.
[[nodiscard]] Module parse(std::string_view text, std::string_view file = "<ptx>");

/// Reads statements (instructions, labels, declarations) as if they stood at the end of the body of
/// `module.functions[function]`, and appends them there. Throws as `parse`; the module is unchanged
/// then.
void parse_into(Module& module, std::uint32_t function, std::string_view statements);

}  // namespace ptxgen::inline v0::ptx
