// src/check/analyze/rules.hpp - the rules of the gate analyze
#pragma once

#include "check/rule_findings.hpp"
#include "check/shared_race/check.hpp"
#include "ptxgen/check/gates.hpp"

namespace ptxgen::inline v0::gates {

// Each looks at one function with a body. Near-linear in it, but for missing barriers.

/// `shared-64bit-address`.
void find_shared_64bit_addresses(RuleFindings& findings);
/// `loop-branch-direction`.
void find_loop_branch_directions(RuleFindings& findings);
/// `stale-accumulator`.
void find_stale_accumulators(RuleFindings& findings);
/// `self-subtract`.
void find_self_subtractions(RuleFindings& findings);
/// `unchecked-bounds`; of kernels only.
void find_unchecked_bounds(RuleFindings& findings, const GateOptions& options);

/// `unmasked-padding`; of kernels only.
void find_unmasked_padding(RuleFindings& findings);

/// `missing-barrier`; of kernels only. What is proved to be a race is left to shared_race.
void find_missing_barriers(RuleFindings& findings, const RaceCheck& check);

/// The version that a version is a plain copy of, over any number of moves.
[[nodiscard]] std::uint32_t copied_version(analysis::Facts& facts, std::uint32_t version);

}  // namespace ptxgen::inline v0::gates
