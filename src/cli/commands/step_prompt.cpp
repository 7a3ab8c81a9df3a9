// src/cli/commands/step_prompt.cpp - commands of the debugger, typed
#include "cli/commands/step_prompt.hpp"

#include <algorithm>
#include <optional>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::cli {

namespace {

using Kind = frames::DebuggerCommand::Kind;

constexpr std::string_view kPromptCommands =
    "step [N], back [N], next, continue, reverse, goto N, break LINE|barrier|finding, watch SPEC, "
    "unwatch [SPEC], quit";

Prompted refuse_prompt(std::string message) { return {{Kind::Show}, std::move(message), true}; }

// The first word of the text, which is cut off with the spaces after it.
std::string_view take_word(std::string_view& text) {
  const auto trim = [&] { text.remove_prefix(std::min(text.find_first_not_of(' '), text.size())); };
  trim();
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  trim();
  return word;
}

// Moves with an optional or required count.
struct Move {
  std::string_view name;
  Kind kind;
  bool counts = false;
  bool count_required = false;
};
constexpr Move kMoves[] = {{"step", Kind::Step, true},
                           {"back", Kind::Back, true},
                           {"next", Kind::NextOfWarp},
                           {"continue", Kind::Continue},
                           {"reverse", Kind::ReverseContinue},
                           {"goto", Kind::GoTo, true, true},
                           {"quit", Kind::Quit}};

Prompted move(const Move& move, std::string_view rest) {
  frames::DebuggerCommand command{move.kind, 1};
  if (rest.empty()) {
    if (move.count_required) return refuse_prompt(format_text("{} needs a number", move.name));
    return {command, {}, false};
  }
  const auto count = move.counts ? parse_number<std::uint64_t>(rest) : std::nullopt;
  if (!count) {
    return refuse_prompt(
        move.counts ? format_text("{} {}: expected a number", move.name, rest)
                    : format_text("{} takes no argument, and '{}' is one", move.name, rest));
  }
  command.count = *count;
  return {command, {}, false};
}

Prompted toggle_breakpoint(std::string_view what, frames::Debugger& debugger) {
  const auto state = [](bool on) { return on ? "on" : "off"; };
  if (what == "barrier") {
    debugger.at_barriers = !debugger.at_barriers;
    return {{}, format_text("break at barriers: {}", state(debugger.at_barriers)), false};
  }
  if (what == "finding") {
    debugger.at_findings = !debugger.at_findings;
    return {{}, format_text("break at findings: {}", state(debugger.at_findings)), false};
  }
  const auto line = parse_number<std::uint32_t>(what);
  if (!line || *line == 0) {
    return refuse_prompt(
        format_text("break {}: expected a PTX line, 'barrier' or 'finding'", what));
  }
  const bool on = debugger.toggle_line(*line);
  return {{}, format_text("breakpoint at line {}: {}", *line, state(on)), false};
}

Prompted add_watch(std::string_view spec, frames::Debugger& debugger, const StepLaunch& launch) {
  std::vector<frames::Watch> all(debugger.watches().begin(), debugger.watches().end());
  try {
    all.push_back(frames::parse_watch(spec));
    launch.check(std::span(all).last(1));
  } catch (const Error& error) {
    return refuse_prompt(error.message);
  }
  debugger.set_watches(std::move(all));
  return {{}, format_text("watching {}", spec), false};
}

Prompted remove_watch(std::string_view spec, frames::Debugger& debugger) {
  std::vector<frames::Watch> all(debugger.watches().begin(), debugger.watches().end());
  if (all.empty()) return refuse_prompt("there is no watch");
  const auto found = spec.empty() ? std::prev(all.end())
                                  : std::ranges::find_if(all, [&](const frames::Watch& watch) {
                                      return frames::to_text(watch) == spec || watch.name == spec;
                                    });
  if (found == all.end()) return refuse_prompt(format_text("there is no watch '{}'", spec));
  const std::string removed = frames::to_text(*found);
  all.erase(found);
  debugger.set_watches(std::move(all));
  return {{}, format_text("no longer watching {}", removed), false};
}

}  // namespace

Prompted run_prompt(std::string_view text, frames::Debugger& debugger, const StepLaunch& launch) {
  std::string_view rest = text;
  const std::string_view word = take_word(rest);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (word.empty()) return {};
  if (word == "break") return toggle_breakpoint(rest, debugger);
  if (word == "watch" || word == "w") return add_watch(rest, debugger, launch);
  if (word == "unwatch" || word == "u") return remove_watch(rest, debugger);
  for (const Move& each : kMoves) {
    if (word == each.name || word == each.name.substr(0, 1)) return move(each, rest);
  }
  return refuse_prompt(format_text("'{}' is no command; there are {}", word, kPromptCommands));
}

std::string breakpoints_text(const frames::Debugger& debugger) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const std::uint32_t line : debugger.lines()) add(format_text("line {}", line));
  if (debugger.at_barriers) add("barriers");
  if (debugger.at_findings) add("findings");
  return text.empty() ? "none" : text;
}

}  // namespace ptxgen::cli
