// ptxgen/ptx/verifier.hpp - whether a module is legal PTX for its target
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0::ptx {

struct VerifyOptions {
  /// Check against this target instead of the module's, or empty.
  std::string_view target;
  /// The entry that must exist, or empty for any entry or function.
  std::string_view entry;
};

/// Checks names, operand kinds and types, and target and version requirements. Rules:
/// `type-mismatch` `bad-operand` `undefined-register` `undefined-symbol` `duplicate-name`
/// `target-lacks` `version-too-low` `missing-entry` `entry-name` `unknown-instruction` (a warning).
/// Reads the module only; findings come in the order of the text.
[[nodiscard]] std::vector<Finding> verify(const Module& module, const VerifyOptions& options = {});

/// A fault of one instruction, or an empty rule. `rule` and `message` as in `verify`.
struct InstructionFault {
  std::string_view rule;
  std::string message;
};
/// Operand kinds and types of one instruction against its row (no target, no definitions).
[[nodiscard]] InstructionFault check_operands(const Module& module, const Function& function,
                                              const Instruction& instruction);

/// Checks the requirements of one instruction, with its modifiers and special registers, against
/// target and version. An empty rule if they are met. A `version` of {255, 255} skips versions.
[[nodiscard]] InstructionFault check_target(const Function& function,
                                            const Instruction& instruction, TargetName target,
                                            Version version);

/// The lowest `.version` required by the target and by everything in the module. Throws `Error`
/// (code "target-lacks") if the target lacks something.
[[nodiscard]] Version lowest_version(const Module& module, std::string_view target);

}  // namespace ptxgen::inline v0::ptx
