// src/qa/playbook/validate.cpp - defects of a state machine that show without running it
#include <algorithm>
#include <set>

#include "qa/playbook/playbook.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::qa {

namespace {

using StateNames = std::set<std::string, std::less<>>;

// The states from which `begin` is reached by steps of `next`, `begin` included.
template <class Next>
StateNames closure(StateNames begin, const Next& next) {
  std::vector<std::string> open(begin.begin(), begin.end());
  while (!open.empty()) {
    const std::string state = std::move(open.back());
    open.pop_back();
    for (const std::string& other : next(state)) {
      if (begin.insert(other).second) open.push_back(other);
    }
  }
  return begin;
}

// Whether they are one comparison with opposite relations, such as n > 0 and n <= 0.
bool excludes(const Condition& a, const Condition& b) {
  if (a.all.size() != 1 || b.all.size() != 1 || a.negated || b.negated) return false;
  constexpr std::pair<Relation, Relation> kOpposite[] = {{Relation::Equal, Relation::NotEqual},
                                                         {Relation::Less, Relation::GreaterEqual},
                                                         {Relation::Greater, Relation::LessEqual}};
  const Comparison& x = a.all.front();
  const Comparison& y = b.all.front();
  if (x.left != y.left || x.right.name != y.right.name || x.right.number != y.right.number) {
    return false;
  }
  return std::ranges::any_of(kOpposite, [&](const auto& pair) {
    return (x.relation == pair.first && y.relation == pair.second) ||
           (x.relation == pair.second && y.relation == pair.first);
  });
}

class Validator {
 public:
  explicit Validator(const Playbook& playbook) : playbook_(playbook) {}

  std::vector<Finding> run() {
    check_reachable();
    check_ends();
    check_transitions();
    check_pairs();
    check_events();
    std::ranges::stable_sort(findings_, {}, &Finding::line);
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string rule, std::uint32_t line, std::string message,
           std::string cure) {
    Finding finding;
    finding.severity = severity;
    finding.rule = std::move(rule);
    finding.message = std::move(message);
    finding.file = playbook_.file;
    finding.line = line;
    finding.details.push_back(std::move(cure));
    findings_.push_back(std::move(finding));
  }

  void check_reachable() {
    const StateNames reached = closure({playbook_.initial}, [&](const std::string& state) {
      std::vector<std::string> targets;
      for (const Transition& step : playbook_.transitions) {
        if (step.from == state) targets.push_back(step.to);
      }
      return targets;
    });
    for (const MachineState& state : playbook_.states) {
      if (reached.contains(state.name)) continue;
      add(Severity::Error, "orphaned-state", state.line,
          format_text("state '{}' is not reachable from '{}'", state.name, playbook_.initial),
          "add a transition that leads to it, or remove it");
    }
  }

  void check_ends() {
    StateNames finals;
    for (const MachineState& state : playbook_.states) {
      if (state.final) finals.insert(state.name);
    }
    const StateNames ending = closure(finals, [&](const std::string& state) {
      std::vector<std::string> sources;
      for (const Transition& step : playbook_.transitions) {
        if (step.to == state) sources.push_back(step.from);
      }
      return sources;
    });
    for (const MachineState& state : playbook_.states) {
      const bool left = std::ranges::any_of(playbook_.transitions, [&](const Transition& step) {
        return step.from == state.name && step.to != state.name;
      });
      if (!left && !state.final) {
        add(Severity::Error, "dead-end", state.line,
            format_text("state '{}' is not final, and no transition leaves it", state.name),
            "add a transition, or make it final: true");
      } else if (!ending.contains(state.name)) {
        add(Severity::Warning, "no-path-to-final", state.line,
            format_text("no final state is reachable from state '{}'", state.name),
            "add a transition on the way to a final state");
      }
    }
  }

  void check_transitions() {
    for (const Transition& step : playbook_.transitions) {
      if (step.from == step.to && !step.guard) {
        add(Severity::Warning, "unguarded-self-loop", step.line,
            format_text("transition '{}' returns to its own state '{}' without a guard", step.id,
                        step.from),
            "give it a guard that ends the repetition");
      }
      if (const ForbiddenStep* const forbidden = playbook_.forbids(step.from, step.to)) {
        add(Severity::Error, "forbidden-transition", step.line,
            format_text("transition {} is forbidden in line {}: {}", to_text(step), forbidden->line,
                        forbidden->reason),
            "remove one of both");
      }
    }
  }

  void check_pairs() {
    const std::vector<Transition>& all = playbook_.transitions;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        if (all[i].from != all[j].from || all[i].event != all[j].event) continue;
        if (all[i].guard && all[j].guard && excludes(*all[i].guard, *all[j].guard)) continue;
        add(Severity::Warning, "nondeterminism", all[j].line,
            format_text("in state '{}' the event '{}' may take transition '{}' or '{}'",
                        all[i].from, all[i].event, all[i].id, all[j].id),
            "give them guards that exclude each other, such as n > 0 and n <= 0");
      }
    }
  }

  void check_events() {
    StateNames events;
    for (const Transition& step : playbook_.transitions) events.insert(step.event);
    for (const MachineState& state : playbook_.states) {
      if (state.final) continue;
      StateNames unhandled = events;
      for (const Transition& step : playbook_.transitions) {
        if (step.from == state.name) unhandled.erase(step.event);
      }
      if (unhandled.empty()) continue;
      add(Severity::Note, "unhandled-event", state.line,
          format_text("state '{}' does not handle: {}", state.name, join_text(unhandled)),
          "a run that has such an event in this state fails");
    }
  }

  const Playbook& playbook_;
  std::vector<Finding> findings_;
};

}  // namespace

std::string to_text(const Transition& transition) {
  return format_text("{} ({} -> {})", transition.id, transition.from, transition.to);
}

std::string_view to_string(MutationClass kind) noexcept {
  constexpr std::string_view kNames[] = {"transition_removal", "state_skip",  "invariant_weakening",
                                         "event_swap",         "target_swap", "guard_negation"};
  return kNames[static_cast<std::size_t>(kind)];
}

const MachineState* Playbook::state(std::string_view name) const noexcept {
  const auto found = std::ranges::find(states, name, &MachineState::name);
  return found == states.end() ? nullptr : &*found;
}

const ForbiddenStep* Playbook::forbids(std::string_view from, std::string_view to) const noexcept {
  const auto found = std::ranges::find_if(
      forbidden, [&](const ForbiddenStep& step) { return step.from == from && step.to == to; });
  return found == forbidden.end() ? nullptr : &*found;
}

std::vector<Finding> validate(const Playbook& playbook) { return Validator(playbook).run(); }

}  // namespace ptxgen::qa
