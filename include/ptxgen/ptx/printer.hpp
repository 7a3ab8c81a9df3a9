// ptxgen/ptx/printer.hpp - a module as PTX text
#pragma once

#include <string>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0 {
class TextBuffer;
}

namespace ptxgen::inline v0::ptx {

/// Line numbers of the printed text: `lines[f][i]` is the 1-based line of statement i of function
/// f.
struct LineMap {
  std::vector<std::vector<std::uint32_t>> lines;
};

/// The module as PTX text; equal modules give equal bytes, in every process. The printer
/// makes no decisions: it prints the module as it is.
[[nodiscard]] std::string print(const Module& module, LineMap* lines = nullptr);

/// Appends to `out` instead.
void print(TextBuffer& out, const Module& module, LineMap* lines = nullptr);

/// One statement on one line, without indentation or newline; for messages and tests.
[[nodiscard]] std::string print(const Module& module, const Function& function,
                                const Instruction& statement);

}  // namespace ptxgen::inline v0::ptx
