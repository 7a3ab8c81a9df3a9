// src/qa/playbook/run.cpp - playbooks driven against the launcher
#include "qa/playbook/run.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "qa/playbook/subject.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::qa {

namespace {

[[noreturn]] void undefined(const Playbook& playbook, std::uint32_t line, std::string message) {
  Error error(Stage::Verify, "undefined-symbol", std::move(message));
  error.file = playbook.file;
  error.line = line;
  throw error.refresh();
}

bool is_one_of(std::span<const NamedDoc> names, std::string_view name) {
  return std::ranges::find(names, name, &NamedDoc::name) != names.end();
}

void check_names(const Playbook& playbook, const Condition& condition, std::uint32_t line) {
  for (const std::string& name : names_of(condition)) {
    if (is_one_of(LauncherSubject::quantities(), name)) continue;
    undefined(
        playbook, line,
        format_text("condition '{}': there is no quantity '{}'; quantities: {}", to_text(condition),
                    name, join_text(LauncherSubject::quantities(), ", ", &NamedDoc::name)));
  }
}

void check_run(const Playbook& playbook, const PlaybookRun& run) {
  for (const std::string& event : run.events) {
    if (is_one_of(LauncherSubject::events(), event)) continue;
    undefined(
        playbook, run.line,
        event == kErrorEvent
            ? format_text("run '{}': '{}' is raised by a call that fails; give the run a "
                          "fault instead",
                          run.id, event)
            : format_text("run '{}': the launcher has no event '{}'; events: {}", run.id, event,
                          join_text(LauncherSubject::events(), ", ", &NamedDoc::name)));
  }
  if (!run.fault.empty() && fault_site(run.fault) == nullptr) {
    undefined(playbook, run.line,
              format_text("run '{}': there is no fault '{}'; faults: {}", run.id, run.fault,
                          join_text(fault_sites(), ", ", &FaultSite::name)));
  }
  if (!run.defect.empty() && !is_one_of(LauncherSubject::defects(), run.defect)) {
    undefined(playbook, run.line,
              format_text("run '{}': there is no defect '{}'; defects: {}", run.id, run.defect,
                          join_text(LauncherSubject::defects(), ", ", &NamedDoc::name)));
  }
}

// Everything that is bound by name has that name.
void check_bindings(const Playbook& playbook) {
  for (const MachineState& state : playbook.states) {
    for (const StateCheck& check : state.invariants) {
      check_names(playbook, check.condition, check.line);
    }
  }
  for (const Transition& step : playbook.transitions) {
    if (step.guard) check_names(playbook, *step.guard, step.line);
    for (const StateCheck& check : step.assertions) {
      check_names(playbook, check.condition, check.line);
    }
  }
  if (playbook.runs.empty()) {
    Error error(Stage::Verify, "no-runs",
                "the playbook has no runs, so that nothing is driven; add a list 'runs'");
    error.file = playbook.file;
    throw error.refresh();
  }
  for (const PlaybookRun& run : playbook.runs) check_run(playbook, run);
}

// What all runs of a playbook have noticed.
struct DrivenParts {
  std::set<std::string> driven;
  std::set<std::string> held, violated;
};

// One run, against a launcher of its own.
class RunDriver {
 public:
  RunDriver(const Playbook& playbook, const PlaybookRun& run, LauncherSubject& subject,
            DriverProbe& probe, bool frozen, DrivenParts& coverage)
      : playbook_(playbook),
        run_(run),
        subject_(subject),
        probe_(probe),
        coverage_(coverage),
        state_(playbook.initial) {
    outcome_.id = run.id;
    if (!frozen) return;
    for (const NamedDoc& quantity : LauncherSubject::quantities()) {
      frozen_[std::string(quantity.name)] = subject.value(quantity.name);
    }
  }

  RunOutcome drive() {
    check(playbook_.state(state_)->invariants);
    for (std::size_t i = 0; i < run_.events.size() && running(); ++i) {
      event(run_.events[i], i + 1 == run_.events.size());
    }
    if (outcome_.ok()) finish();
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] bool running() const { return outcome_.ok() && violations_.empty(); }

  [[nodiscard]] Quantities quantities() const {
    return [this](std::string_view name) {
      const auto found = frozen_.find(name);
      return found == frozen_.end() ? subject_.value(name) : found->second;
    };
  }

  void fail(std::string text) {
    if (outcome_.ok()) outcome_.failure = format_text("run '{}': {}", run_.id, text);
  }

  void check(const std::vector<StateCheck>& checks) {
    for (const StateCheck& one : checks) {
      const bool ok = holds(one.condition, quantities());
      (ok ? coverage_.held : coverage_.violated).insert(to_text(one.condition));
      if (ok) continue;
      const std::string values = values_text(one.condition, quantities());
      if (one.severity != Severity::Error) {
        outcome_.warnings.push_back(format_text("{}: {} ({})", state_, one.message, values));
        continue;
      }
      violations_.push_back(one.message);
      violation_texts_.push_back(format_text("'{}' ({})", one.message, values));
    }
  }

  // The transition of the state and event whose guard holds; null after `fail`.
  const Transition* transition(const std::string& event) {
    const Transition* chosen = nullptr;
    std::string refused;
    for (const Transition& step : playbook_.transitions) {
      if (step.from != state_ || step.event != event) continue;
      if (step.guard && !holds(*step.guard, quantities())) {
        refused = format_text("; the guard of {} does not hold: {} ({})", to_text(step),
                              to_text(*step.guard), values_text(*step.guard, quantities()));
        continue;
      }
      if (chosen != nullptr) {
        fail(format_text("in state '{}' the event '{}' may take {} or {}", state_, event,
                         to_text(*chosen), to_text(step)));
        return nullptr;
      }
      chosen = &step;
    }
    if (chosen == nullptr) {
      fail(
          format_text("state '{}' has no transition for the event '{}'{}", state_, event, refused));
    }
    return chosen;
  }

  void event(const std::string& name, bool last) {
    outcome_.steps.push_back({name, {}, state_});
    const Transition* step = transition(name);
    if (step == nullptr) return;
    // Events before the last one make such calls too.
    if (last) probe_.fail_next(fault_site(run_.fault));
    try {
      subject_.perform(name);
    } catch (const Error& error) {
      outcome_.steps.back().event = format_text("{}, {}", name, kErrorEvent);
      if (!last) {
        fail(format_text("the event '{}' failed before the last one: {}", name, error.message));
        return;
      }
      step = transition(std::string(kErrorEvent));
      if (step == nullptr) return;
    }
    const std::string from = std::exchange(state_, step->to);
    outcome_.steps.back().transition = to_text(*step);
    outcome_.steps.back().state = state_;
    check(step->assertions);
    check(playbook_.state(state_)->invariants);
    if (const ForbiddenStep* const forbidden = playbook_.forbids(from, state_)) {
      fail(format_text("the step from '{}' to '{}' is forbidden: {}", from, state_,
                       forbidden->reason));
    }
    if (running()) coverage_.driven.insert(to_text(*step));
  }

  void finish() {
    if (!run_.fault.empty() && !probe_.failed()) {
      fail(format_text("the fault '{}' was not reached", run_.fault));
    }
    std::vector<std::string> expected = run_.violates;
    std::vector<std::string> found = violations_;
    std::ranges::sort(expected);
    std::ranges::sort(found);
    if (expected != found) {
      const std::string where = format_text("in state '{}'", state_);
      fail(expected.empty()
               ? format_text("{} is violated: {}", where, join_text(violation_texts_))
               : format_text("{} it violates {}; expected: '{}'", where,
                             violations_.empty() ? "nothing" : join_text(violation_texts_),
                             join_text(expected, "', '")));
    }
    if (outcome_.ok() && run_.violates.empty() && state_ != run_.ends) {
      fail(format_text("it ends in state '{}', not in '{}'", state_, run_.ends));
    }
  }

  const Playbook& playbook_;
  const PlaybookRun& run_;
  LauncherSubject& subject_;
  DriverProbe& probe_;
  DrivenParts& coverage_;
  std::string state_;
  std::map<std::string, std::int64_t, std::less<>> frozen_;
  std::vector<std::string> violations_, violation_texts_;
  RunOutcome outcome_;
};

}  // namespace

bool PlaybookOutcome::ok() const noexcept {
  return !runs.empty() && std::ranges::all_of(runs, &RunOutcome::ok) && not_driven.empty();
}

std::string PlaybookOutcome::problem() const {
  const auto failed = std::ranges::find_if_not(runs, &RunOutcome::ok);
  if (failed != runs.end()) return failed->failure;
  return not_driven.empty() ? std::string()
                            : format_text("no run takes transition {}", not_driven.front());
}

PlaybookOutcome run_playbook(const Playbook& playbook, const Device& device,
                             const Settings& settings, const PlaybookRunOptions& options) {
  check_bindings(playbook);
  // PTX that a driver rejects is kept in the folder for temporary files.
  const TemporaryDirectory folder(settings.temp_dir);
  Settings quiet = settings;
  quiet.temp_dir = folder.path();
  DrivenParts coverage;
  PlaybookOutcome outcome;
  for (const PlaybookRun& run : playbook.runs) {
    DriverProbe probe(device.table());
    const Device probed =
        Device::open(probe.table(), device.info().ordinal, device.info().kind, quiet);
    LauncherSubject subject(probed, probe, quiet, run.defect.empty() ? options.defect : run.defect);
    outcome.runs.push_back(
        RunDriver(playbook, run, subject, probe, options.frozen, coverage).drive());
    if (options.stop_at_failure && !outcome.runs.back().ok()) break;
  }
  for (const Transition& step : playbook.transitions) {
    std::string text = to_text(step);
    (coverage.driven.contains(text) ? outcome.driven : outcome.not_driven)
        .push_back(std::move(text));
  }
  outcome.held.assign(coverage.held.begin(), coverage.held.end());
  outcome.violated.assign(coverage.violated.begin(), coverage.violated.end());
  return outcome;
}

}  // namespace ptxgen::qa
