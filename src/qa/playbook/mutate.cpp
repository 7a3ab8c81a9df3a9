// src/qa/playbook/mutate.cpp - mutants of a state machine
#include <algorithm>

#include "qa/playbook/run.hpp"
#include "support/format.hpp"

namespace ptxgen::qa {

namespace {

class MutantMaker {
 public:
  explicit MutantMaker(const Playbook& playbook) : playbook_(playbook) {}

  std::vector<PlaybookMutant> make() {
    for (const MutationClass kind : playbook_.mutations) {
      kind_ = kind;
      switch (kind) {
        case MutationClass::TransitionRemoval:
          remove_transitions();
          break;
        case MutationClass::StateSkip:
          skip_states();
          break;
        case MutationClass::InvariantWeakening:
          weaken_invariants();
          break;
        case MutationClass::EventSwap:
          swap_events();
          break;
        case MutationClass::TargetSwap:
          swap_targets();
          break;
        case MutationClass::GuardNegation:
          negate_guards();
          break;
      }
    }
    return std::move(mutants_);
  }

 private:
  // A copy to be edited.
  Playbook& add(std::string what) {
    mutants_.push_back({kind_, std::move(what), playbook_});
    return mutants_.back().playbook;
  }

  void remove_transitions() {
    for (std::size_t i = 0; i < all().size(); ++i) {
      Playbook& mutant = add(format_text("transition {} is removed", to_text(all()[i])));
      mutant.transitions.erase(mutant.transitions.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // A transition leads where the next one would.
  void skip_states() {
    for (std::size_t i = 0; i < all().size(); ++i) {
      for (const Transition& next : all()) {
        const Transition& step = all()[i];
        if (next.from != step.to || next.to == step.to || next.to == step.from) continue;
        add(format_text("transition {} skips its state and leads to '{}'", to_text(step), next.to))
            .transitions[i]
            .to = next.to;
      }
    }
  }

  // The condition holds whatever its quantity is.
  void weaken_invariants() {
    for (std::size_t i = 0; i < playbook_.states.size(); ++i) {
      const std::vector<StateCheck>& invariants = playbook_.states[i].invariants;
      for (std::size_t j = 0; j < invariants.size(); ++j) {
        if (invariants[j].severity != Severity::Error) continue;
        const Condition weak = parse_condition(invariants[j].condition.all.front().left + " >= 0");
        add(format_text("the invariant '{}' of state '{}' becomes '{}'",
                        to_text(invariants[j].condition), playbook_.states[i].name, to_text(weak)))
            .states[i]
            .invariants[j]
            .condition = weak;
      }
    }
  }

  void swap_events() {
    for (std::size_t i = 0; i + 1 < all().size(); ++i) {
      const Transition& a = all()[i];
      const Transition& b = all()[i + 1];
      if (a.event == b.event) continue;
      Playbook& mutant =
          add(format_text("transitions {} and {} exchange their events", to_text(a), to_text(b)));
      std::swap(mutant.transitions[i].event, mutant.transitions[i + 1].event);
    }
  }

  // A transition gets the target of the next one that has another.
  void swap_targets() {
    for (std::size_t i = 0; i < all().size(); ++i) {
      for (std::size_t k = 1; k < all().size(); ++k) {
        const std::string& target = all()[(i + k) % all().size()].to;
        if (target == all()[i].to) continue;
        add(format_text("transition {} leads to '{}'", to_text(all()[i]), target))
            .transitions[i]
            .to = target;
        break;
      }
    }
  }

  void negate_guards() {
    for (std::size_t i = 0; i < all().size(); ++i) {
      if (!all()[i].guard) continue;
      Condition& guard =
          *add(format_text("the guard of transition {} is negated", to_text(all()[i])))
               .transitions[i]
               .guard;
      guard.negated = !guard.negated;
    }
  }

  [[nodiscard]] const std::vector<Transition>& all() const { return playbook_.transitions; }

  const Playbook& playbook_;
  MutationClass kind_{};
  std::vector<PlaybookMutant> mutants_;
};

}  // namespace

std::vector<PlaybookMutant> mutants_of(const Playbook& playbook) {
  return MutantMaker(playbook).make();
}

std::size_t MutationOutcome::killed() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      mutants, [](const MutantOutcome& mutant) { return !mutant.killed_by.empty(); }));
}

bool MutationOutcome::ok() const noexcept { return !mutants.empty() && killed() == mutants.size(); }

MutationOutcome run_mutants(const Playbook& playbook, const Device& device,
                            const Settings& settings) {
  MutationOutcome outcome;
  outcome.unchanged_problem = run_playbook(playbook, device, settings).problem();
  if (!outcome.unchanged_problem.empty()) return outcome;
  for (const PlaybookMutant& mutant : mutants_of(playbook)) {
    PlaybookRunOptions options;
    options.stop_at_failure = true;
    const PlaybookOutcome result = run_playbook(mutant.playbook, device, settings, options);
    const auto failed = std::ranges::find_if_not(result.runs, &RunOutcome::ok);
    outcome.mutants.push_back(
        {mutant.kind, mutant.what, failed == result.runs.end() ? "" : failed->failure});
  }
  return outcome;
}

}  // namespace ptxgen::qa
