// src/cli/args/pass_choice.cpp - passes on the command line and their report
#include "cli/args/pass_choice.hpp"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands/commands.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"

namespace ptxgen::cli {

using nlohmann::json;

namespace {

json to_json(const optimize::Decision& decision) {
  json cpp = nullptr;
  if (decision.cpp.known()) cpp = {{"file", decision.cpp.file}, {"line", decision.cpp.line}};
  return {{"fired", decision.fired},     {"reason", decision.reason},
          {"message", decision.message}, {"kernel", decision.kernel},
          {"line", decision.line},       {"statement", decision.statement},
          {"cpp", std::move(cpp)}};
}

json to_json(const optimize::PassReport& pass) {
  json counts = json::array();
  for (const optimize::ReasonCount& count : pass.counts) {
    counts.push_back({{"reason", count.reason}, {"fired", count.fired}, {"count", count.count}});
  }
  json decisions = json::array();
  for (const optimize::Decision& decision : pass.decisions) decisions.push_back(to_json(decision));
  json entry = {
      {"name", pass.name},
      {"changed", pass.changed},
      {"decisions", std::move(decisions)},
      {"counts", std::move(counts)},
      {"visits", pass.visits},
      {"statements", {{"before", pass.statements_before}, {"after", pass.statements_after}}},
      {"microseconds", pass.microseconds},
      {"verify_microseconds", pass.verify_microseconds}};
  if (!pass.before.empty()) entry["ptx"] = {{"before", pass.before}, {"after", pass.after}};
  return entry;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace

void PassChoice::add_to(Command& command) {
  command
      .add_option("--passes", passes,
                  "passes and groups (cleanup, default, none) in the order in which they run")
      .capture_default_str();
  command.add_option("--contract", contract, "on or off: whether mul and add may become fma")
      .capture_default_str();
  command
      .add_option("--split-threshold", split_threshold,
                  "instructions that make a condition worth a loop split; 0 never, 1 always")
      .capture_default_str()
      .range(0, static_cast<std::uint64_t>(std::numeric_limits<std::int16_t>::max()));
}

optimize::PassOptions PassChoice::options() const {
  optimize::PassOptions options;
  options.passes = split(passes);
  if (contract != "on" && contract != "off") {
    throw UsageError("--contract " + contract + ": expects on or off");
  }
  options.contract = contract == "on";
  options.split_threshold = static_cast<std::int16_t>(split_threshold);
  try {
    optimize::check_pass_names(options.passes);
  } catch (const Error& error) {
    throw UsageError("--passes " + passes + ": " + error.message);
  }
  return options;
}

json to_json(const optimize::PipelineReport& report) {
  json passes = json::array();
  for (const optimize::PassReport& pass : report.passes) passes.push_back(to_json(pass));
  return passes;
}

std::string passes_text(const optimize::PipelineReport& report, const ptx::Module& module,
                        bool all) {
  if (all) return optimize::to_text(report, module);
  constexpr std::size_t kShown = 3;
  optimize::PipelineReport shown = report;
  std::size_t hidden = 0;
  for (optimize::PassReport& pass : shown.passes) {
    std::map<std::pair<bool, std::string>, std::size_t> seen;
    hidden += std::erase_if(pass.decisions, [&](const optimize::Decision& decision) {
      return ++seen[{decision.fired, std::string(decision.reason)}] > kShown;
    });
  }
  std::string text = optimize::to_text(shown, module);
  if (hidden != 0) {
    text += "not shown: " + count_text(hidden, "decision") +
            " of the same kinds; --all shows every one\n";
  }
  return text;
}

}  // namespace ptxgen::cli
