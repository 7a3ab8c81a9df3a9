// src/check/analyze/analyze.cpp - the gate analyze
#include "check/analyze/rules.hpp"
#include "ptxgen/check/gates.hpp"

namespace ptxgen::inline v0::gates {

std::vector<Finding> analyze(const ptx::Module& module, const GateOptions& options) {
  std::vector<Finding> all;
  const SharedAccesses accesses(module);
  for (const ptx::Item& item : module.items) {
    if (item.kind != ptx::Item::Kind::Function) continue;
    const ptx::Function& function = module.functions[item.index];
    if (function.declaration) continue;
    analysis::Facts facts(module, function, {.block = options.block});
    RuleFindings findings(facts);
    find_shared_64bit_addresses(findings);
    find_loop_branch_directions(findings);
    find_stale_accumulators(findings);
    find_self_subtractions(findings);
    find_unchecked_bounds(findings, options);
    find_missing_barriers(findings, accesses, options);
    findings.take(all);
  }
  return all;
}

}  // namespace ptxgen::inline v0::gates
