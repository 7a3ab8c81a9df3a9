// src/ptx/operand_alignment.hpp - matching operands to the specifications of a row
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::ptx {

/// For each operand the number of its specification in the row of `instruction`, whose modifiers
/// say which operands are tied to them. Optional ones that were left out are passed over.
using OperandAlignment = std::array<std::uint8_t, kMaxOperands>;

/// False if the number of operands, or a `|`, is not what the row admits; kinds and types are not
/// looked at.
[[nodiscard]] bool align_operands(const Instruction& instruction, std::span<const Operand> operands,
                                  OperandAlignment& out) noexcept;

}  // namespace ptxgen::inline v0::ptx
