// src/ptx/requirements.hpp - target and version requirements, internal interface
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/operand_specs.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0::ptx {

/// A requirement that is not met (`rule` set), and the lowest version of what is.
struct TargetFault {
  std::string_view rule;
  std::string message;
  Version lowest;
};

[[nodiscard]] std::string text(Version version);

/// Whether one of the alternatives is met.
[[nodiscard]] TargetFault judge(std::string_view subject, std::span<const Requirement> alternatives,
                                TargetName target, Version version);

/// The row's `never` that the instruction's modifiers meet, or nullptr.
[[nodiscard]] const Need* illegal_combination(const Instruction& instruction) noexcept;

/// The row's needs under the instruction's modifiers, and those of special registers it reads and
/// of numbers of tensormap.replace.
[[nodiscard]] TargetFault judge(const Function& function, const Instruction& instruction,
                                TargetName target, Version version);

/// Whether its operands may need more than its modifiers do: special registers, numbers of
/// tensormap.replace.
[[nodiscard]] bool operands_have_needs(const Function& function,
                                       const Instruction& instruction) noexcept;

/// Whether `check_operands` judges the values of the row's constants.
[[nodiscard]] bool judges_constants(Op op) noexcept;

/// `check_operands` with specifications already looked up. `modifiers` is false if the modifiers
/// are known to be a legal combination.
[[nodiscard]] InstructionFault check_operands(const Module& module, const Function& function,
                                              const Instruction& instruction,
                                              const OperandSpecs& specs, bool modifiers);

/// What declarations need beyond the oldest PTX: `.b128`, bytes of an address in an initialiser.
[[nodiscard]] TargetFault judge(const RegisterDecl& decl, TargetName target, Version version);
[[nodiscard]] TargetFault judge(const Variable& variable, TargetName target, Version version);

}  // namespace ptxgen::inline v0::ptx
