// src/builder/rows.hpp - selecting the row for modifiers and operands
#pragma once

#include <span>

#include "ptxgen/builder/core.hpp"

namespace ptxgen::inline v0::detail {

/// The row's operand for each operand of an instruction.
using OperandSpecs = std::array<const ptx::OperandSpec*, ptx::kMaxOperands>;

/// Whether modifiers and operand count make the row `form.op`; fills in `op` and `modifiers` of
/// `out`. Modifiers may come in any order. With `fill` modifiers that are always there may be
/// missing. `specs` receives the row's operand for each of `operands`.
[[nodiscard]] bool fit_row(const Form& form, std::span<const ptx::Operand> operands, bool fill,
                           ptx::Instruction& out, OperandSpecs* specs = nullptr);

/// The same for the first row with the mnemonic of `form.op`, beginning there.
[[nodiscard]] bool find_row(const Form& form, std::span<const ptx::Operand> operands,
                            ptx::Instruction& out);

}  // namespace ptxgen::inline v0::detail
