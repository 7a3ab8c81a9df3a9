// src/check/analyze/analyze.cpp - the gate analyze
#include "check/analyze/rules.hpp"
#include "check/module_facts.hpp"

namespace ptxgen::inline v0::gates {

std::vector<Finding> analyze(ModuleFacts& facts) {
  std::vector<Finding> all;
  for (const ptx::Item& item : facts.module().items) {
    if (item.kind != ptx::Item::Kind::Function) continue;
    const ptx::Function& function = facts.module().functions[item.index];
    if (function.declaration) continue;
    const std::shared_ptr<analysis::Facts> of_function = facts.of(function);
    RuleFindings findings(*of_function);
    find_shared_64bit_addresses(findings);
    find_loop_branch_directions(findings);
    find_stale_accumulators(findings);
    find_self_subtractions(findings);
    find_unchecked_bounds(findings, facts.options());
    if (function.entry) find_unmasked_padding(findings);
    if (function.entry) find_missing_barriers(findings, facts.races(function));
    findings.take(all);
  }
  return all;
}

std::vector<Finding> analyze(const ptx::Module& module, const GateOptions& options) {
  ModuleFacts facts(module, options);
  return analyze(facts);
}

}  // namespace ptxgen::inline v0::gates
