// src/optimize/cleanup/cleanup.hpp - helpers of the cleanup passes
#pragma once

#include <string>

#include "optimize/edits.hpp"
#include "optimize/function_facts.hpp"
#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::inline v0::optimize {

/// Those of the shared facts that all cleanup passes read. The function must not lose statements
/// while they are in use.
struct CleanupFacts {
  explicit CleanupFacts(FunctionFacts& facts, bool names = true)
      : cfg(facts.cfg()),
        index(facts.index()),
        versions(facts.versions()),
        constants(facts.constants(names)) {}
  const analysis::Cfg& cfg;
  const analysis::RegisterIndex& index;
  const analysis::Versions& versions;
  const Constants& constants;
};

/// Whether every instruction is in the op table. If not, the pass leaves the function alone, since
/// such an instruction may read and write anything; that is noted as a decision.
[[nodiscard]] bool understood(const ptx::Function& function, PassContext& context);

/// Whether the instruction computes its destinations from its sources and does nothing else.
[[nodiscard]] bool only_computes(const ptx::Instruction& instruction);

/// The type with which `mov` fits a register: its own, or untyped bits of its width.
[[nodiscard]] ptx::Type move_type(ptx::Type reg);
/// A constant of that type, from its bits.
[[nodiscard]] ptx::Operand constant_operand(ptx::Type type, std::uint64_t bits);

/// "'add.u32 %r1, %r2, 0'", for messages.
[[nodiscard]] std::string quoted(const PassContext& context, const ptx::Function& function,
                                 const ptx::Instruction& instruction);

}  // namespace ptxgen::inline v0::optimize
