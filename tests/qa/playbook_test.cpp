// tests/qa/playbook_test.cpp - playbooks: errors with lines, defects, pictures, runs, mutants
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "ptxgen/support/error.hpp"
#include "qa/playbook/run.hpp"
#include "qa/playbook/subject.hpp"

using namespace ptxgen;
using namespace ptxgen::qa;

namespace {

// Two states of a door; nothing in it is of the launcher.
constexpr std::string_view kDoor = R"(version: "1"
machine:
  id: door
  initial: shut
  states:
    shut:
      invariants: [angle == 0]
    open:
      final: true
  transitions:
    - id: push
      from: shut
      to: open
      event: push
      guard: force > 3
)";

std::string changed(std::string_view from, std::string_view to, std::string_view text = kDoor) {
  std::string result(text);
  const auto at = result.find(from);
  REQUIRE(at != std::string::npos);
  return result.replace(at, from.size(), to);
}

// "LINE: CODE: MESSAGE" of the error, or "no error".
std::string load_error(const std::string& yaml) {
  try {
    (void)load_playbook(yaml, "door.yaml");
  } catch (const Error& error) {
    CHECK(error.file == "door.yaml");
    return std::to_string(error.line) + ": " + error.code + ": " + error.message;
  }
  return "no error";
}

std::vector<std::string> findings_of(const std::string& yaml) {
  std::vector<std::string> texts;
  for (const Finding& finding : validate(load_playbook(yaml, "door.yaml"))) {
    texts.push_back(to_text(finding));
  }
  return texts;
}

const Device& emulator_device() {
  static const Device kDevice = Device::open("emulator");
  return kDevice;
}

Settings quiet() {
  Settings settings = Settings::from_environment();
  settings.log = "off";
  return settings;
}

PlaybookOutcome driven(const Playbook& playbook) {
  return run_playbook(playbook, emulator_device(), quiet());
}

std::string binding_error(const Playbook& playbook) {
  try {
    (void)driven(playbook);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool has_text(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("playbook: conditions are read, printed and evaluated") {
  const std::map<std::string, std::int64_t, std::less<>> values = {{"a", 3}, {"b", 0}, {"c", -2}};
  const Quantities quantities = [&](std::string_view name) { return values.find(name)->second; };
  const std::vector<std::tuple<std::string, std::string, bool>> cases = {
      {"a", "a", true},
      {"!a", "!a", false},
      {"b==0", "b==0", true},
      {"a >= 3 && c < b", "a >= 3 && c < b", true},
      {"a != 3", "a != 3", false},
      {"c > -3", "c > -3", true},
      {"c <= -3", "c <= -3", false},
      {" a == a ", "a == a", true}};
  for (const auto& [text, printed, expected] : cases) {
    INFO(text);
    Condition condition = parse_condition(text);
    CHECK(to_text(condition) == printed);
    CHECK(holds(condition, quantities) == expected);
    condition.negated = true;
    CHECK(to_text(condition) == "not (" + printed + ")");
    CHECK(holds(condition, quantities) != expected);
  }
  CHECK(values_text(parse_condition("a > b && a < 4"), quantities) == "a = 3, b = 0");
}

TEST_CASE("playbook: a condition that cannot be read is refused with its place") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"angle =< 0",
       "8: bad-condition: state 'shut', invariants: condition 'angle =< 0': a "
       "relation (==, !=, <, <=, >, >=) or && is expected at column 7"},
      {"angle ==", "an integer or the name of a quantity is expected at column 9"},
      {"angle == 0 &&", "the name of a quantity is expected at column 14"},
      {"3 == angle", "the name of a quantity is expected at column 1"},
      {"'!angle == 0'", "'!' goes with a quantity alone, not with a comparison at column 10"}};
  for (const auto& [condition, message] : cases) {
    INFO(condition);
    std::string text = load_error(changed("[angle == 0]", "\n        - " + condition));
    CHECK_THAT(text, Catch::EndsWith(message));
    CHECK_THAT(text, Catch::StartsWith("8: bad-condition: "));
  }
}

TEST_CASE("playbook: what is wrong in a file is reported with its line") {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"initial: shut", "initial: shot",
       "4: undefined-state: the initial state: there is no state 'shot'; states: shut, open"},
      {"to: open", "to: opened",
       "13: undefined-state: transition 'push', to: there is no state 'opened'; states: shut, "
       "open"},
      {"from: shut", "from: sut",
       "12: undefined-state: transition 'push', from: there is no state 'sut'; states: shut, open"},
      {"    open:\n", "    shut:\n", "8: duplicate-name: state 'shut' is there twice"},
      {"    - id: push\n", "    - id: push\n      id: pull\n",
       "12: duplicate-name: a transition: 'id' is there twice"},
      {"      guard: force > 3\n", "    - {id: push, from: shut, to: open, event: kick}\n",
       "15: duplicate-name: transition 'push' is there twice"},
      {"version: \"1\"", "version: 2", "1: bad-playbook: version 2: this program reads version 1"},
      {"  id: door\n", "", "3: bad-playbook: the machine: the key 'id' is missing"},
      {"      event: push\n", "",
       "11: bad-playbook: transition 'push': the key 'event' is missing"},
      {"      final: true", "      final: maybe",
       "9: bad-playbook: state 'open', final: true or false is expected"},
      {"      final: true", "      finale: true",
       "9: bad-playbook: state 'open': there is no key 'finale'; keys: description, invariants, "
       "final"},
      {"from: shut", "from: [shut]",
       "12: bad-playbook: transition 'push', from: a text is expected"},
      {"  id: door", "  id: {door", "3: syntax: it is no YAML: "},
      {"[angle == 0]", "[{condition: angle == 0, severity: fatal}]",
       "7: bad-playbook: state 'shut', invariants: severity 'fatal'; it is error, warning or info"},
      {"[angle == 0]", "[]",
       "7: bad-playbook: state 'shut', invariants: a list with at least one entry is expected"}};
  CHECK(load_error(std::string(kDoor)) == "no error");
  for (const auto& [from, to, message] : cases) {
    INFO(from << " -> " << to);
    CHECK_THAT(load_error(changed(from, to)), Catch::StartsWith(message));
  }
}

TEST_CASE("playbook: empty sets are refused") {
  const std::string head = "version: \"1\"\nmachine:\n  id: m\n  initial: a\n";
  CHECK(load_error(head + "  states: {}\n  transitions: []\n") ==
        "5: bad-playbook: the machine, states: a map with at least one state is expected");
  CHECK(load_error(head + "  states: {a: {}}\n  transitions: []\n") ==
        "6: bad-playbook: the machine, transitions: a list with at least one entry is expected");
  CHECK(load_error(head + "  states: {a: {final: true}}\n  transitions:\n"
                          "    - {id: t, from: '*', to: a, event: e}\n") ==
        "7: bad-playbook: transition 't', from: '*' stands for the states that are neither final "
        "nor the target, and there are none");
  CHECK(load_error("") ==
        "0: bad-playbook: the playbook: a map with the keys version, machine, "
        "mutations, runs is expected");
}

TEST_CASE("playbook: runs and mutations name what there is") {
  const std::string text(kDoor);
  CHECK(load_error(text + "mutations: [state_jump]\n") ==
        "16: bad-playbook: mutations: there is no class 'state_jump'; classes: transition_removal, "
        "state_skip, invariant_weakening, event_swap, target_swap, guard_negation");
  const std::string run = text + "runs:\n  - {id: r, events: [push], ";
  CHECK(load_error(run + "ends: open}\n") == "no error");
  CHECK(load_error(run + "ends: opened}\n") ==
        "17: undefined-state: run 'r', ends: there is no state 'opened'; states: shut, open");
  CHECK(load_error(run + "violates: [angle == 1]}\n") ==
        "17: bad-playbook: run 'r', violates: no invariant or assertion has the message 'angle == "
        "1'");
  CHECK(load_error(run + "fault: x}\n") ==
        "17: bad-playbook: run 'r': it either ends in a state (ends) or violates checks "
        "(violates)");
  CHECK(load_error(text + "runs:\n  - {id: r, events: [pull], ends: open}\n") ==
        "17: bad-playbook: run 'r': no transition has the event 'pull'");
}

TEST_CASE("playbook: '*' stands for the states that are neither final nor the target") {
  const Playbook playbook = launcher_playbook();
  std::vector<std::string> from;
  for (const Transition& step : playbook.transitions) {
    if (step.wildcard) from.push_back(step.from);
  }
  CHECK(from == std::vector<std::string>{"uninitialized", "initialized", "kernel_compiled",
                                         "buffers_allocated", "kernel_launched"});
}

TEST_CASE("playbook: each defect of a machine is one finding") {
  CHECK(findings_of(std::string(kDoor)).empty());
  const std::string loose = changed("    open:\n", "    ajar: {final: true}\n    open:\n");
  CHECK(
      findings_of(loose) ==
      std::vector<std::string>{"door.yaml:8: error: state 'ajar' is not reachable from 'shut' "
                               "[orphaned-state]\n    add a transition that leads to it, or remove "
                               "it"});
  CHECK(
      findings_of(changed("      final: true", "      description: wide")) ==
      std::vector<std::string>{
          "door.yaml:6: warning: no final state is reachable from state 'shut' "
          "[no-path-to-final]\n    add a transition on the way to a final state",
          "door.yaml:8: error: state 'open' is not final, and no transition leaves it "
          "[dead-end]\n    add a transition, or make it final: true",
          "door.yaml:8: note: state 'open' does not handle: push [unhandled-event]\n    a run that "
          "has such an event in this state fails"});
  const std::string twice =
      std::string(kDoor) + "    - {id: kick, from: shut, to: open, event: push, guard: GUARD}\n";
  CHECK(findings_of(changed("GUARD", "force > 4", twice)) ==
        std::vector<std::string>{
            "door.yaml:16: warning: in state 'shut' the event 'push' may take transition 'push' or "
            "'kick' [nondeterminism]\n    give them guards that exclude each other, such as n > 0 "
            "and n <= 0"});
  CHECK(findings_of(changed("GUARD", "force <= 3", twice)).empty());
  const std::string loop =
      std::string(kDoor) + "    - {id: lean, from: shut, to: shut, event: lean}\n";
  CHECK(findings_of(loop) ==
        std::vector<std::string>{
            "door.yaml:16: warning: transition 'lean' returns to its own state 'shut' without a "
            "guard [unguarded-self-loop]\n    give it a guard that ends the repetition"});
  const std::string forbidden =
      std::string(kDoor) + "  forbidden:\n    - {from: shut, to: open, reason: locked}\n";
  CHECK(findings_of(forbidden) ==
        std::vector<std::string>{"door.yaml:11: error: transition push (shut -> open) is forbidden "
                                 "in line 17: locked [forbidden-transition]\n    remove one of "
                                 "both"});
}

TEST_CASE("playbook: the library's own has no defect") {
  for (const Finding& finding : validate(launcher_playbook())) {
    INFO(to_text(finding));
    CHECK(finding.rule == "unhandled-event");
  }
}

TEST_CASE("playbook: DOT and SVG have every state and event") {
  const Playbook playbook = launcher_playbook();
  const std::string dot = to_dot(playbook);
  const std::string svg = to_svg(playbook);
  for (const MachineState& state : playbook.states) {
    INFO(state.name);
    CHECK(has_text(dot, "  \"" + state.name + "\" [label="));
    CHECK(has_text(svg, ">" + state.name + "</text>"));
  }
  CHECK(has_text(dot,
                 "  \"kernel_compiled\" -> \"buffers_allocated\" [label=\"allocate_buffers "
                 "[free_bytes >= needed_bytes]\"];\n"));
  CHECK(has_text(dot, "  \"*\" -> \"error\" [label=\"cuda_error\"];\n"));
  CHECK(has_text(svg, ">[free_bytes &gt;= needed_bytes]</text>"));
  CHECK(std::ranges::count(svg, '<') == std::ranges::count(svg, '>'));
  // One arrow for each transition, one for the initial state.
  std::size_t arrows = 0;
  for (auto at = svg.find("class=\"edge\""); at != std::string::npos;
       at = svg.find("class=\"edge\"", at + 1)) {
    ++arrows;
  }
  CHECK(arrows == 7);
}

TEST_CASE("playbook: the library's own is driven on the launcher") {
  const PlaybookOutcome outcome = driven(launcher_playbook());
  for (const RunOutcome& run : outcome.runs) CHECK(run.failure == "");
  CHECK(outcome.not_driven.empty());
  CHECK(outcome.driven.size() == 10);
  CHECK(outcome.ok());
  CHECK(outcome.runs.front().steps.back().state == "result_ready");
  CHECK(outcome.runs[5].steps.back().event == "synchronize, cuda_error");
  CHECK(outcome.runs[5].steps.back().transition == "fail (kernel_launched -> error)");
}

TEST_CASE("playbook: runs report what does not hold, with its values") {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"condition: output_length == n", "condition: output_length > n",
       "run 'straight': in state 'result_ready' is violated: 'the output has n elements' "
       "(output_length = 60, n = 60)"},
      {"guard: launches_pending > 0", "guard: launches_pending > 1",
       "run 'straight': state 'kernel_launched' has no transition for the event 'synchronize'; the "
       "guard of synchronize (kernel_launched -> result_ready) does not hold: launches_pending > 1 "
       "(launches_pending = 1)"},
      {"    defect: short_output\n", "",
       "run 'output of another length': in state 'result_ready' it violates nothing; expected: "
       "'the output has n elements'"},
      {"    fault: sync\n", "",
       "run 'device fault': it ends in state 'result_ready', not in 'error'"},
      {"    fault: create\n", "    fault: sync\n",
       "run 'no context': the fault 'sync' was not reached"},
      {"    fault: sync\n", "    fault: launch\n",
       "run 'device fault': the fault 'launch' was not reached"},
      {"      to: kernel_launched\n      reason: a launch needs a module and memory",
       "      to: kernel_compiled\n      reason: odd",
       "run 'straight': the step from 'initialized' to 'kernel_compiled' is forbidden: odd"}};
  for (const auto& [from, to, failure] : cases) {
    INFO(from << " -> " << to);
    const Playbook playbook =
        load_playbook(changed(from, to, launcher_playbook_text()), "launcher.yaml");
    const PlaybookOutcome outcome = driven(playbook);
    CHECK_FALSE(outcome.ok());
    CHECK_THAT(outcome.problem(), Catch::StartsWith(failure));
  }
}

TEST_CASE("playbook: a warning does not fail a run, a transition that is not taken does") {
  Playbook playbook = launcher_playbook();
  playbook.states[5].invariants.push_back(
      {parse_condition("output_length > 100"), "long", Severity::Warning, 0});
  playbook.runs.resize(1);
  const PlaybookOutcome outcome = driven(playbook);
  CHECK(outcome.runs.front().ok());
  CHECK(outcome.runs.front().warnings ==
        std::vector<std::string>{"result_ready: long (output_length = 60)"});
  CHECK(outcome.not_driven.size() == 5);
  CHECK(outcome.problem() == "no run takes transition fail (uninitialized -> error)");
}

TEST_CASE("playbook: names that the launcher does not have are refused with their line") {
  const std::string own(launcher_playbook_text());
  const auto error_with = [&](std::string_view from, std::string_view to) {
    return binding_error(load_playbook(changed(from, to, own), "launcher.yaml"));
  };
  CHECK(has_text(error_with("condition: modules == 0", "condition: moduls == 0"),
                 "launcher.yaml:21: error: condition 'moduls == 0': there is no quantity 'moduls'; "
                 "quantities: scheduler_present, context_present, "));
  CHECK(
      has_text(error_with("defect: lost_launch", "defect: lost"),
               "run 'nothing launched': there is no defect 'lost'; defects: leftover_scheduler, "));
  CHECK(has_text(error_with("fault: sync", "fault: wait"),
                 "there is no fault 'wait'; faults: create, compile, allocation, launch, sync"));
  CHECK(has_text(error_with("events: [create_scheduler]", "events: [cuda_error]"),
                 "run 'no context': 'cuda_error' is raised by a call that fails; give the run a "
                 "fault instead"));
  Playbook without = launcher_playbook();
  without.runs.clear();
  CHECK(has_text(binding_error(without), "the playbook has no runs"));
}

TEST_CASE("playbook: every mutant is killed by a run, and survives without the run for it") {
  Playbook playbook = launcher_playbook();
  const MutationOutcome all = run_mutants(playbook, emulator_device(), quiet());
  for (const MutantOutcome& mutant : all.mutants) {
    INFO(mutant.what);
    CHECK(mutant.killed_by != "");
  }
  CHECK(all.ok());
  CHECK(all.mutants.size() > 40);
  // The specification's example: a weak invariant of the length is seen with a short output only.
  playbook.mutations = {MutationClass::InvariantWeakening};
  std::erase_if(playbook.runs, [](const PlaybookRun& run) { return run.defect == "short_output"; });
  const MutationOutcome some = run_mutants(playbook, emulator_device(), quiet());
  CHECK_FALSE(some.ok());
  REQUIRE(some.killed() + 1 == some.mutants.size());
  for (const MutantOutcome& mutant : some.mutants) {
    if (!mutant.killed_by.empty()) continue;
    CHECK(mutant.what ==
          "the invariant 'output_length == n' of state 'result_ready' becomes 'output_length >= "
          "0'");
  }
}

TEST_CASE("playbook: no mutants is a failure, and so is a playbook that fails unchanged") {
  Playbook playbook = launcher_playbook();
  playbook.mutations.clear();
  const MutationOutcome none = run_mutants(playbook, emulator_device(), quiet());
  CHECK(none.mutants.empty());
  CHECK_FALSE(none.ok());
  playbook = launcher_playbook();
  playbook.runs.front().ends = "initialized";
  const MutationOutcome broken = run_mutants(playbook, emulator_device(), quiet());
  CHECK(broken.unchanged_problem ==
        "run 'straight': it ends in state 'result_ready', not in 'initialized'");
  CHECK(broken.mutants.empty());
  CHECK_FALSE(broken.ok());
}

TEST_CASE("playbook: an event that fails before the last one is a failure, with its reason") {
  const Playbook playbook = load_playbook(R"(version: "1"
machine:
  id: hasty
  initial: begin
  states:
    begin: {}
    end: {final: true}
  transitions:
    - {id: compile, from: begin, to: end, event: compile_gemv_kernel}
    - {id: fail, from: begin, to: end, event: cuda_error}
runs:
  - {id: twice, events: [compile_gemv_kernel, compile_gemv_kernel], ends: end}
  - {id: once, events: [compile_gemv_kernel], ends: end}
)",
                                          "hasty.yaml");
  const PlaybookOutcome outcome = driven(playbook);
  REQUIRE(outcome.runs.size() == 2);
  CHECK(outcome.runs[0].failure ==
        "run 'twice': the event 'compile_gemv_kernel' failed before the last one: there is no "
        "launcher; the event 'create_scheduler' makes it");
  CHECK(outcome.runs[1].failure == "");
  CHECK(outcome.runs[1].steps.back().transition == "fail (begin -> end)");
}

TEST_CASE("playbook: one runs at a time") {
  const DriverProbe probe(emulator_device().table());
  CHECK(has_text(binding_error(launcher_playbook()),
                 "a playbook is running already in this process"));
}
