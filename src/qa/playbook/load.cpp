// src/qa/playbook/load.cpp - playbooks from YAML
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <initializer_list>

#include "ptxgen/support/error.hpp"
#include "qa/playbook/playbook.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::qa {

namespace {

constexpr std::string_view kAnyState = "*";

class PlaybookReader {
 public:
  explicit PlaybookReader(const std::string& file) { playbook_.file = file; }

  Playbook read(std::string_view yaml) {
    YAML::Node root;
    try {
      root = YAML::Load(std::string(yaml));
    } catch (const YAML::ParserException& error) {
      fail(error.mark, "syntax", "it is no YAML: " + error.msg);
    }
    check_map(root, "the playbook", {"version", "machine", "mutations", "runs"});
    playbook_.version = text_at(root, "the playbook", "version");
    if (playbook_.version != "1") {
      fail(root["version"], "bad-playbook",
           format_text("version {}: this program reads version 1", playbook_.version));
    }
    read_machine(at(root, "the playbook", "machine"));
    if (root["mutations"]) read_mutations(root["mutations"]);
    if (root["runs"]) read_runs(root["runs"]);
    return std::move(playbook_);
  }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, std::string code, std::string message) const {
    Error error(Stage::Verify, std::move(code), std::move(message));
    error.file = playbook_.file;
    if (!mark.is_null()) {
      error.line = static_cast<std::uint32_t>(mark.line + 1);
      error.column = static_cast<std::uint32_t>(mark.column + 1);
    }
    throw error.refresh();
  }
  [[noreturn]] void fail(const YAML::Node& node, std::string code, std::string message) const {
    fail(node.Mark(), std::move(code), std::move(message));
  }

  static std::uint32_t line_of(const YAML::Node& node) {
    return static_cast<std::uint32_t>(node.Mark().line + 1);
  }

  // A map with known keys only, each at most once.
  void check_map(const YAML::Node& node, const std::string& what,
                 std::initializer_list<std::string_view> keys) const {
    if (!node.IsMap()) {
      fail(node, "bad-playbook",
           format_text("{}: a map with the keys {} is expected", what, join_text(keys)));
    }
    std::vector<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.as<std::string>("");
      if (std::ranges::find(keys, key) == keys.end()) {
        fail(entry.first, "bad-playbook",
             format_text("{}: there is no key '{}'; keys: {}", what, key, join_text(keys)));
      }
      if (std::ranges::find(seen, key) != seen.end()) {
        fail(entry.first, "duplicate-name", format_text("{}: '{}' is there twice", what, key));
      }
      seen.push_back(key);
    }
  }

  YAML::Node at(const YAML::Node& map, const std::string& what, const char* key) const {
    const YAML::Node node = map[key];
    if (!node) fail(map, "bad-playbook", format_text("{}: the key '{}' is missing", what, key));
    return node;
  }

  std::string text_of(const YAML::Node& node, const std::string& what) const {
    if (!node.IsScalar() || node.Scalar().empty()) {
      fail(node, "bad-playbook", what + ": a text is expected");
    }
    return node.Scalar();
  }
  std::string text_at(const YAML::Node& map, const std::string& what, const char* key) const {
    return text_of(at(map, what, key), what + ", " + key);
  }
  std::string optional_text(const YAML::Node& map, const std::string& what, const char* key) const {
    return map[key] ? text_of(map[key], what + ", " + key) : std::string();
  }

  YAML::Node list_at(const YAML::Node& map, const std::string& what, const char* key) const {
    const YAML::Node node = at(map, what, key);
    if (!node.IsSequence() || node.size() == 0) {
      fail(node, "bad-playbook",
           format_text("{}, {}: a list with at least one entry is expected", what, key));
    }
    return node;
  }

  Condition condition_of(const YAML::Node& node, const std::string& what) const {
    try {
      return parse_condition(text_of(node, what));
    } catch (const Error& error) {
      if (error.line != 0) throw;
      fail(node, error.code, what + ": " + error.message);
    }
  }

  Severity severity_of(const YAML::Node& map, const std::string& what) const {
    const std::string text = optional_text(map, what, "severity");
    if (text.empty() || text == "error") return Severity::Error;
    if (text == "warning") return Severity::Warning;
    if (text == "info") return Severity::Note;
    fail(map["severity"], "bad-playbook",
         format_text("{}: severity '{}'; it is error, warning or info", what, text));
  }

  // A condition alone, or with message and severity.
  StateCheck check_of(const YAML::Node& node, const std::string& what) const {
    StateCheck check;
    check.line = line_of(node);
    if (node.IsScalar()) {
      check.condition = condition_of(node, what);
      check.message = to_text(check.condition);
      return check;
    }
    check_map(node, what, {"condition", "message", "severity"});
    check.condition = condition_of(at(node, what, "condition"), what);
    check.message = optional_text(node, what, "message");
    if (check.message.empty()) check.message = to_text(check.condition);
    check.severity = severity_of(node, what);
    return check;
  }

  std::vector<StateCheck> checks_at(const YAML::Node& map, const std::string& what,
                                    const char* key) const {
    std::vector<StateCheck> checks;
    if (!map[key]) return checks;
    for (const YAML::Node& node : list_at(map, what, key)) {
      checks.push_back(check_of(node, what + ", " + key));
    }
    return checks;
  }

  void read_machine(const YAML::Node& machine) {
    const std::string what = "the machine";
    check_map(machine, what, {"id", "initial", "states", "transitions", "forbidden"});
    playbook_.id = text_at(machine, what, "id");
    playbook_.initial = text_at(machine, what, "initial");
    read_states(at(machine, what, "states"));
    check_state(machine["initial"], "the initial state", playbook_.initial);
    for (const YAML::Node& node : list_at(machine, what, "transitions")) read_transition(node);
    if (!machine["forbidden"]) return;
    for (const YAML::Node& node : list_at(machine, what, "forbidden")) {
      const std::string step = "a forbidden step";
      check_map(node, step, {"from", "to", "reason"});
      ForbiddenStep forbidden{text_at(node, step, "from"), text_at(node, step, "to"),
                              text_at(node, step, "reason"), line_of(node)};
      check_state(node["from"], step + ", from", forbidden.from);
      check_state(node["to"], step + ", to", forbidden.to);
      playbook_.forbidden.push_back(std::move(forbidden));
    }
  }

  void read_states(const YAML::Node& states) {
    if (!states.IsMap() || states.size() == 0) {
      fail(states, "bad-playbook",
           "the machine, states: a map with at least one state is expected");
    }
    for (const auto& entry : states) {
      MachineState state;
      state.name = text_of(entry.first, "the name of a state");
      state.line = line_of(entry.first);
      const std::string what = "state '" + state.name + "'";
      if (playbook_.state(state.name) != nullptr) {
        fail(entry.first, "duplicate-name", what + " is there twice");
      }
      check_map(entry.second, what, {"description", "invariants", "final"});
      state.description = optional_text(entry.second, what, "description");
      state.invariants = checks_at(entry.second, what, "invariants");
      if (const YAML::Node final = entry.second["final"]) {
        if (!final.IsScalar() || !YAML::convert<bool>::decode(final, state.final)) {
          fail(final, "bad-playbook", what + ", final: true or false is expected");
        }
      }
      playbook_.states.push_back(std::move(state));
    }
  }

  void check_state(const YAML::Node& node, const std::string& what, const std::string& name) const {
    if (playbook_.state(name) != nullptr) return;
    fail(node, "undefined-state",
         format_text("{}: there is no state '{}'; states: {}", what, name,
                     join_text(playbook_.states, ", ", &MachineState::name)));
  }

  void read_transition(const YAML::Node& node) {
    Transition read;
    check_map(node, "a transition", {"id", "from", "to", "event", "guard", "assertions"});
    read.id = text_at(node, "a transition", "id");
    const std::string what = "transition '" + read.id + "'";
    if (std::ranges::find(ids_, read.id) != ids_.end()) {
      fail(node["id"], "duplicate-name", what + " is there twice");
    }
    ids_.push_back(read.id);
    read.from = text_at(node, what, "from");
    read.to = text_at(node, what, "to");
    read.event = text_at(node, what, "event");
    if (node["guard"]) read.guard = condition_of(node["guard"], what + ", guard");
    read.assertions = checks_at(node, what, "assertions");
    read.line = line_of(node);
    check_state(node["to"], what + ", to", read.to);
    if (read.from != kAnyState) {
      check_state(node["from"], what + ", from", read.from);
      playbook_.transitions.push_back(std::move(read));
      return;
    }
    read.wildcard = true;
    const std::size_t before = playbook_.transitions.size();
    for (const MachineState& state : playbook_.states) {
      if (state.final || state.name == read.to) continue;
      playbook_.transitions.push_back(read);
      playbook_.transitions.back().from = state.name;
    }
    if (playbook_.transitions.size() == before) {
      fail(node["from"], "bad-playbook",
           what +
               ", from: '*' stands for the states that are neither final nor the target, and "
               "there are none");
    }
  }

  void read_mutations(const YAML::Node& node) {
    if (!node.IsSequence()) fail(node, "bad-playbook", "mutations: a list of classes is expected");
    constexpr MutationClass kAll[] = {
        MutationClass::TransitionRemoval,  MutationClass::StateSkip,
        MutationClass::InvariantWeakening, MutationClass::EventSwap,
        MutationClass::TargetSwap,         MutationClass::GuardNegation};
    for (const YAML::Node& entry : node) {
      const std::string name = text_of(entry, "mutations");
      const auto found = std::ranges::find(
          kAll, name, [](MutationClass kind) { return std::string(to_string(kind)); });
      if (found == std::end(kAll)) {
        fail(
            entry, "bad-playbook",
            format_text("mutations: there is no class '{}'; classes: {}", name,
                        join_text(kAll, ", ", [](MutationClass kind) { return to_string(kind); })));
      }
      playbook_.mutations.push_back(*found);
    }
  }

  void read_runs(const YAML::Node& node) {
    if (!node.IsSequence()) fail(node, "bad-playbook", "runs: a list is expected");
    for (const YAML::Node& entry : node) read_run(entry);
  }

  void read_run(const YAML::Node& node) {
    PlaybookRun run;
    check_map(node, "a run", {"id", "events", "ends", "fault", "defect", "violates"});
    run.id = text_at(node, "a run", "id");
    run.line = line_of(node);
    const std::string what = "run '" + run.id + "'";
    if (std::ranges::find(playbook_.runs, run.id, &PlaybookRun::id) != playbook_.runs.end()) {
      fail(node["id"], "duplicate-name", what + " is there twice");
    }
    const YAML::Node events = at(node, what, "events");
    if (!events.IsSequence()) {
      fail(events, "bad-playbook", what + ", events: a list is expected");
    }
    for (const YAML::Node& event : events) {
      run.events.push_back(text_of(event, what + ", events"));
      check_event(event, what, run.events.back());
    }
    run.fault = optional_text(node, what, "fault");
    run.defect = optional_text(node, what, "defect");
    if (node["ends"]) {
      run.ends = text_at(node, what, "ends");
      check_state(node["ends"], what + ", ends", run.ends);
    }
    if (node["violates"]) {
      for (const YAML::Node& message : list_at(node, what, "violates")) {
        run.violates.push_back(text_of(message, what + ", violates"));
        check_message(message, what, run.violates.back());
      }
    }
    if (run.ends.empty() == run.violates.empty()) {
      fail(node, "bad-playbook",
           what + ": it either ends in a state (ends) or violates checks (violates)");
    }
    playbook_.runs.push_back(std::move(run));
  }

  void check_event(const YAML::Node& node, const std::string& what,
                   const std::string& event) const {
    if (std::ranges::find(playbook_.transitions, event, &Transition::event) !=
        playbook_.transitions.end()) {
      return;
    }
    fail(node, "bad-playbook", format_text("{}: no transition has the event '{}'", what, event));
  }

  void check_message(const YAML::Node& node, const std::string& what,
                     const std::string& message) const {
    const auto in = [&](const std::vector<StateCheck>& checks) {
      return std::ranges::find(checks, message, &StateCheck::message) != checks.end();
    };
    if (std::ranges::any_of(playbook_.states, in, &MachineState::invariants) ||
        std::ranges::any_of(playbook_.transitions, in, &Transition::assertions)) {
      return;
    }
    fail(
        node, "bad-playbook",
        format_text("{}, violates: no invariant or assertion has the message '{}'", what, message));
  }

  Playbook playbook_;
  std::vector<std::string> ids_;
};

}  // namespace

Playbook load_playbook(std::string_view yaml, const std::string& file) {
  try {
    return PlaybookReader(file).read(yaml);
  } catch (const YAML::Exception& exception) {
    Error error(Stage::Verify, "syntax", "it cannot be read: " + exception.msg);
    error.file = file;
    if (!exception.mark.is_null()) {
      error.line = static_cast<std::uint32_t>(exception.mark.line + 1);
    }
    throw error.refresh();
  }
}

Playbook launcher_playbook() { return load_playbook(launcher_playbook_text(), "launcher.yaml"); }

}  // namespace ptxgen::qa
