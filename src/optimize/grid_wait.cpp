// src/optimize/grid_wait.cpp - kernels that may start before the one ahead of them has ended
#include "ptxgen/optimize/grid_wait.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "optimize/edits.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0::optimize {

namespace {

bool waits(const ptx::Function& function) {
  return std::ranges::any_of(function.body, [](const ptx::Instruction& statement) {
    return statement.is(ptx::Op::griddepcontrol) &&
           statement.get(ptx::Field::GridAction) == ptx::Modifier::wait;
  });
}

// The row without `.nc`.
std::optional<ptx::Op> plain_load(const ptx::Instruction& statement) {
  if (statement.is(ptx::Op::ld_nc)) return ptx::Op::ld;
  if (statement.is(ptx::Op::ld_nc_evict)) return ptx::Op::ld_evict;
  if (statement.is(ptx::Op::ld_nc_evict_l2)) return ptx::Op::ld_evict_l2;
  return std::nullopt;
}

void make_loads_plain(Edits& edits, const ptx::Function& function) {
  for (std::uint32_t at = 0; at < function.body.size(); ++at) {
    const ptx::Instruction statement = function.body[at];
    const std::optional<ptx::Op> op = plain_load(statement);
    if (!op) continue;
    std::vector<ptx::Modifier> modifiers;
    for (const ptx::Modifier modifier : statement.modifiers) {
      if (modifier != ptx::Modifier::none && modifier != ptx::Modifier::nc) {
        modifiers.push_back(modifier);
      }
    }
    const std::span<const ptx::Operand> of = function.operands_of(statement);
    const std::vector<ptx::Operand> operands(of.begin(), of.end());
    ptx::Instruction plain = edits.make(*op, modifiers, operands, at);
    plain.guard = statement.guard;
    edits.replace(at, plain);
  }
}

}  // namespace

void wait_for_previous_grid(ptx::Module& module) {
  if (ptx::target(module.target).sm < 90) return;
  for (ptx::Function& function : module.functions) {
    if (!function.entry || function.declaration || waits(function)) continue;
    Edits edits(module, function);
    edits.insert_before(0, edits.make(ptx::Op::griddepcontrol, {ptx::Modifier::wait}, {}, 0));
    make_loads_plain(edits, function);
    edits.apply();
  }
}

}  // namespace ptxgen::inline v0::optimize
