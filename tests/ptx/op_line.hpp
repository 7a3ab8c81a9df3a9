// tests/ptx/op_line.hpp - the one-line instructions that exercise each row
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::test {

/// One instruction and the row it belongs to.
struct OpLine {
  ptx::Op op;
  std::string_view text;
  bool lax = false;  ///< ptxas 13.0 takes it even where the ISA, and so the table, asks for more
};

[[nodiscard]] std::span<const OpLine> op_lines();

/// Everything such a line may refer to, then the lines, as one kernel. The first line is on
/// line `first_line()` of the text, the next below it.
[[nodiscard]] std::string module_with(std::span<const OpLine> lines, std::string_view target,
                                      ptx::Version version);
[[nodiscard]] std::uint32_t first_line();

/// The statement that is on a line of the text.
[[nodiscard]] const ptx::Instruction* statement_on(const ptx::Function& function,
                                                   std::uint32_t line);

/// The first row of the target table that offers what the instruction needs, or nullptr.
[[nodiscard]] const ptx::Target* lowest_target(const ptx::Function& function,
                                               const ptx::Instruction& instruction);

/// The PTX versions there are, in order.
[[nodiscard]] std::span<const ptx::Version> versions();

}  // namespace ptxgen::test
