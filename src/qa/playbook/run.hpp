// src/qa/playbook/run.hpp - playbooks driven against the launcher, and their mutants
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/runtime/device/device.hpp"
#include "qa/playbook/playbook.hpp"

namespace ptxgen::qa {

struct PlaybookStep {
  std::string event;
  std::string transition;  ///< as `to_text`; empty: none was taken
  std::string state;       ///< after it
};

struct RunOutcome {
  std::string id;
  std::string failure;  ///< empty: it ran as the playbook says
  std::vector<PlaybookStep> steps;
  std::vector<std::string> warnings;  ///< violated checks of severity warning or info
  [[nodiscard]] bool ok() const noexcept { return failure.empty(); }
};

struct PlaybookOutcome {
  std::vector<RunOutcome> runs;
  std::vector<std::string> driven;      ///< transitions that a run took, as `to_text`
  std::vector<std::string> not_driven;  ///< the others
  /// Conditions that held at some time, and those that did not hold at some time, by their text.
  std::vector<std::string> held, violated;
  /// All runs are as the playbook says, and together they take every transition.
  [[nodiscard]] bool ok() const noexcept;
  /// The first failure, or the first transition that no run takes; empty if `ok`.
  [[nodiscard]] std::string problem() const;
};

struct PlaybookRunOptions {
  /// Ends with the first run that fails.
  bool stop_at_failure = false;
  /// A defect of the launcher in every run without one: for tests of the runs themselves.
  std::string_view defect = {};
  /// Conditions see the state that was there before the first event.
  bool frozen = false;
};

/// Drives every run of the playbook against a new launcher on the device's driver. Each step takes
/// the one transition of the state and event whose guard holds, performs the event, then checks the
/// transition's assertions, the invariants of the next state, and that the step is not forbidden. A
/// call that fails is the event `cuda_error`.
///
/// Throws `Error` (Stage::Verify) with file and line: "undefined-symbol" (a condition names an
/// unknown quantity, a run an unknown event, fault or defect), "no-runs".
[[nodiscard]] PlaybookOutcome run_playbook(const Playbook& playbook, const Device& device,
                                           const Settings& settings,
                                           const PlaybookRunOptions& options = {});

struct PlaybookMutant {
  MutationClass kind{};
  std::string what;  ///< "transition launch (a -> b) is removed"
  Playbook playbook;
};
/// All mutants of the playbook's mutation classes.
[[nodiscard]] std::vector<PlaybookMutant> mutants_of(const Playbook& playbook);

struct MutantOutcome {
  MutationClass kind{};
  std::string what;
  std::string killed_by;  ///< the run that failed and how; empty: it survived
};
struct MutationOutcome {
  /// What is wrong with the runs of the playbook itself: then there are no mutants, since a run of
  /// each would fail anyway.
  std::string unchanged_problem;
  std::vector<MutantOutcome> mutants;
  [[nodiscard]] std::size_t killed() const noexcept;
  /// There are mutants, and a run of each fails.
  [[nodiscard]] bool ok() const noexcept;
};
/// Runs every mutant. A mutant is killed only by a run that fails. Throws as `run_playbook`.
[[nodiscard]] MutationOutcome run_mutants(const Playbook& playbook, const Device& device,
                                          const Settings& settings);

}  // namespace ptxgen::qa
