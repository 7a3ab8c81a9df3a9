// src/check/gates.cpp - the list of gates
#include "ptxgen/check/gates.hpp"

#include <algorithm>
#include <iterator>

#include "check/module_facts.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using Gate = std::vector<Finding> (*)(const ptx::Module&, const GateOptions&);

std::vector<Finding> verify(const ptx::Module& module, const GateOptions& options) {
  return ptx::verify(module, {.target = options.target, .entry = options.entry});
}

/// A gate that needs no analyses.
template <Gate gate>
std::vector<Finding> alone(ModuleFacts& facts) {
  return gate(facts.module(), facts.options());
}

constexpr GateInfo kGates[] = {
    {"verify", "legal PTX for its target", verify, alone<verify>},
    {"target_limits", "directives and variables within the target's limits", target_limits,
     alone<target_limits>},
    {"barrier_safety", "all threads that a barrier counts reach it", barrier_safety,
     barrier_safety},
    {"shared_race", "accesses to shared memory that no barrier separates", shared_race,
     shared_race},
    {"warpgroup_order", "registers of wgmma are fenced before it and untouched until it ends",
     warpgroup_order, warpgroup_order},
    {"analyze", "legal PTX that is likely a mistake", analyze, analyze, false},
    {"performance_notes", "accesses and registers that cost more than they need", performance_notes,
     alone<performance_notes>, false},
};

bool is_error(const Finding& finding) { return finding.severity == Severity::Error; }

}  // namespace

std::span<const GateInfo> all_gates() noexcept { return kGates; }

GateRun::GateRun(const ptx::Module& module, const GateOptions& options)
    : facts_(Hidden<ModuleFacts>::make(module, options)) {}

std::vector<Finding> run(const ptx::Module& module, const GateOptions& options) {
  std::vector<Finding> all;
  GateRun gates(module, options);
  for (const GateInfo& gate : kGates) {
    std::vector<Finding> found = gates.run(gate);
    const bool stop = gate.run == verify && std::any_of(found.begin(), found.end(), is_error);
    all.insert(all.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
    if (stop) break;
  }
  return all;
}

}  // namespace ptxgen::inline v0::gates
