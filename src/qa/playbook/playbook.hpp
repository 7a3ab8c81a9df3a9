// src/qa/playbook/playbook.hpp - state machines of the launcher, in YAML
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"
#include "qa/playbook/condition.hpp"

namespace ptxgen::qa {

/// An invariant of a state or an assertion of a transition.
struct StateCheck {
  Condition condition;
  std::string message;  ///< what holds: "the output has n elements"
  Severity severity = Severity::Error;
  std::uint32_t line = 0;
};

struct MachineState {
  std::string name;
  std::string description;
  std::vector<StateCheck> invariants;
  bool final = false;
  std::uint32_t line = 0;
};

struct Transition {
  std::string id;
  std::string from;
  std::string to;
  std::string event;
  std::optional<Condition> guard;
  std::vector<StateCheck> assertions;
  bool wildcard = false;  ///< one of those that `from: "*"` is expanded to
  std::uint32_t line = 0;
};
/// "launch (buffers_allocated -> kernel_launched)"
[[nodiscard]] std::string to_text(const Transition& transition);

struct ForbiddenStep {
  std::string from;
  std::string to;
  std::string reason;
  std::uint32_t line = 0;
};

enum class MutationClass : std::uint8_t {
  TransitionRemoval,
  StateSkip,
  InvariantWeakening,
  EventSwap,
  TargetSwap,
  GuardNegation,
};
/// "transition_removal", "state_skip", ...
[[nodiscard]] std::string_view to_string(MutationClass kind) noexcept;

/// A sequence of events that is driven, and its result.
struct PlaybookRun {
  std::string id;
  std::vector<std::string> events;
  std::string ends;    ///< the state after the last event; empty if checks are violated
  std::string fault;   ///< the driver call of the last event that fails ("allocation"), or empty
  std::string defect;  ///< what the launcher does wrong ("short_output"), or empty
  /// Messages of exactly the checks that the defect violates, in the last step.
  std::vector<std::string> violates;
  std::uint32_t line = 0;
};

struct Playbook {
  std::string file;
  std::string version;
  std::string id;
  std::string initial;
  std::vector<MachineState> states;
  std::vector<Transition> transitions;  ///< `from: "*"` expanded
  std::vector<ForbiddenStep> forbidden;
  std::vector<MutationClass> mutations;
  std::vector<PlaybookRun> runs;

  [[nodiscard]] const MachineState* state(std::string_view name) const noexcept;
  [[nodiscard]] const ForbiddenStep* forbids(std::string_view from,
                                             std::string_view to) const noexcept;
};

/// Reads a playbook. `file` is its name in messages. Throws `Error` (Stage::Verify) with file and
/// line: "syntax", "bad-playbook" (a key that is unknown, missing or of another kind, an empty
/// set), "duplicate-name", "undefined-state" (the initial one, an end of a transition, ...),
/// "bad-condition".
[[nodiscard]] Playbook load_playbook(std::string_view yaml, const std::string& file);

/// The library's own playbook, of its launcher: seven states.
[[nodiscard]] std::string_view launcher_playbook_text() noexcept;
[[nodiscard]] Playbook launcher_playbook();

/// Defects of the machine itself, without running it, ordered by line. Errors: `orphaned-state`
/// (not reachable), `dead-end` (not final, no transition leaves it), `forbidden-transition`;
/// warnings: `no-path-to-final`, `nondeterminism` (two transitions of a state and event whose
/// guards do not exclude each other), `unguarded-self-loop`; notes: `unhandled-event`.
[[nodiscard]] std::vector<Finding> validate(const Playbook& playbook);

/// The machine for graphviz.
[[nodiscard]] std::string to_dot(const Playbook& playbook);
/// The machine as a picture that needs no other file.
[[nodiscard]] std::string to_svg(const Playbook& playbook);

}  // namespace ptxgen::qa
