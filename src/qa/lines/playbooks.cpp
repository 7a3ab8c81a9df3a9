// src/qa/lines/playbooks.cpp - the launcher's playbook: driven, evaluated, mutated
#include <algorithm>

#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/playbook/run.hpp"
#include "qa/playbook/subject.hpp"
#include "qa/tally.hpp"
#include "support/count.hpp"

namespace ptxgen::qa {

namespace playing {
namespace {

void check_runs(Tally& tally, const PlaybookOutcome& outcome) {
  for (const RunOutcome& run : outcome.runs) tally.check(run.ok(), "{}", run.failure);
}

std::size_t runs_with(const Playbook& playbook, std::string PlaybookRun::*member) {
  return static_cast<std::size_t>(std::ranges::count_if(
      playbook.runs, [&](const PlaybookRun& run) { return !(run.*member).empty(); }));
}

// Each transition is taken, cuda_error from each state by a call of the driver that fails.
Outcome transitions_driven(Fixture& fixture, const Line&) {
  Tally tally;
  const Playbook playbook = launcher_playbook();
  for (const Finding& finding : validate(playbook)) {
    tally.check(finding.severity == Severity::Note, "{}", to_text(finding));
  }
  PlaybookRunOptions options;
  if (fixture.changed()) options.defect = "lost_launch";
  const PlaybookOutcome outcome =
      run_playbook(playbook, fixture.device(), fixture.settings(), options);
  check_runs(tally, outcome);
  tally.check(playbook.states.size() == 7, "{} states, not 7", playbook.states.size());
  tally.check(outcome.not_driven.empty(), "{}", outcome.problem());
  for (const FaultSite& site : fault_sites()) {
    tally.check(std::ranges::any_of(playbook.runs,
                                    [&](const PlaybookRun& run) {
                                      return run.fault == site.name && run.ends == "error";
                                    }),
                "no run has the fault '{}'", site.name);
  }
  tally.figure("{}, {} of {} transitions, {} with an injected fault",
               count_text(outcome.runs.size(), "run"), outcome.driven.size(),
               playbook.transitions.size(),
               count_text(runs_with(playbook, &PlaybookRun::fault), "run"));
  return tally.outcome();
}

// Every invariant holds in its state and is violated by a launcher that does that thing wrong.
Outcome real_state(Fixture& fixture, const Line&) {
  Tally tally;
  const Playbook playbook = launcher_playbook();
  PlaybookRunOptions options;
  options.frozen = fixture.changed();
  const PlaybookOutcome outcome =
      run_playbook(playbook, fixture.device(), fixture.settings(), options);
  check_runs(tally, outcome);
  std::size_t conditions = 0;
  const auto among = [](const std::vector<std::string>& texts, const std::string& text) {
    return std::ranges::find(texts, text) != texts.end();
  };
  for (const MachineState& state : playbook.states) {
    for (const StateCheck& invariant : state.invariants) {
      const std::string text = to_text(invariant.condition);
      ++conditions;
      tally.check(among(outcome.held, text), "'{}' of state '{}' never held", text, state.name);
      tally.check(among(outcome.violated, text), "no run violates '{}' of state '{}'", text,
                  state.name);
    }
  }
  tally.figure("{} held and were violated; {} of a launcher with a defect",
               count_text(conditions, "invariant"),
               count_text(runs_with(playbook, &PlaybookRun::defect), "run"));
  return tally.outcome();
}

Outcome mutants_killed(Fixture& fixture, const Line&) {
  Tally tally;
  Playbook playbook = launcher_playbook();
  if (fixture.changed()) {
    std::erase_if(playbook.runs, [](const PlaybookRun& run) { return !run.defect.empty(); });
  }
  const MutationOutcome outcome = run_mutants(playbook, fixture.device(), fixture.settings());
  tally.check(outcome.unchanged_problem.empty(), "{}", outcome.unchanged_problem);
  tally.check(!outcome.mutants.empty(), "there are no mutants");
  for (const MutantOutcome& mutant : outcome.mutants) {
    tally.check(!mutant.killed_by.empty(), "no run fails: {}", mutant.what);
  }
  for (const MutationClass kind : playbook.mutations) {
    const auto of_kind = std::ranges::count(outcome.mutants, kind, &MutantOutcome::kind);
    tally.check(of_kind != 0, "no mutant of class {}", to_string(kind));
    tally.figure("{} {}", of_kind, to_string(kind));
  }
  tally.check(playbook.mutations.size() == 6, "{} classes, not 6", playbook.mutations.size());
  tally.figure("{} of {} killed by a run", outcome.killed(), outcome.mutants.size());
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"3.S1",
     Section::Playbooks,
     5,
     "each transition is driven on the launcher",
     "seven states; every transition is taken by a run on a real launcher, cuda_error by faults of "
     "the driver at create, compile, allocation, launch and sync",
     Means::Emulator,
     transitions_driven,
     {"the launcher's launch does nothing"},
     "ptxgen playbook --run"},
    {"3.S2",
     Section::Playbooks,
     5,
     "conditions are evaluated against real state",
     "each invariant holds in its state, and is violated by a launcher with a defect",
     Means::Emulator,
     real_state,
     {"conditions see the state before the first event"},
     "ptxgen playbook --run"},
    {"3.S3",
     Section::Playbooks,
     5,
     "every mutant of the playbook is killed by a run",
     "six classes; at least one mutant of each, and a run of each mutant fails",
     Means::Emulator,
     mutants_killed,
     {"no run has a launcher with a defect"},
     "ptxgen playbook --mutate"},
};

}  // namespace
}  // namespace playing

std::span<const Line> playbook_lines() { return playing::kLines; }

}  // namespace ptxgen::qa
