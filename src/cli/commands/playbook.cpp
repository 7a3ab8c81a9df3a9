// src/cli/commands/playbook.cpp - ptxgen playbook: state machines driven against the launcher
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli_common/device_choice.hpp"
#include "qa/playbook/run.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct PlaybookArguments {
  std::string file;
  bool print = false;
  bool validate = false;
  std::string dot, svg;
  bool run = false;
  bool mutate = false;
  DeviceOptions device;
  std::string output;
  bool json = false;
  bool strict = false;
};

// What was asked for.
struct PlaybookReport {
  std::string id;
  std::vector<Finding> findings;
  std::optional<qa::PlaybookOutcome> runs;
  std::optional<qa::MutationOutcome> mutants;
};

nlohmann::json json_of(const qa::PlaybookOutcome& outcome) {
  nlohmann::json runs = nlohmann::json::array();
  for (const qa::RunOutcome& run : outcome.runs) {
    nlohmann::json steps = nlohmann::json::array();
    for (const qa::PlaybookStep& step : run.steps) {
      steps.push_back(
          {{"event", step.event}, {"transition", step.transition}, {"state", step.state}});
    }
    runs.push_back({{"id", run.id},
                    {"ok", run.ok()},
                    {"failure", run.failure},
                    {"warnings", run.warnings},
                    {"steps", std::move(steps)}});
  }
  return {{"ok", outcome.ok()},
          {"runs", std::move(runs)},
          {"driven", outcome.driven},
          {"not_driven", outcome.not_driven}};
}

nlohmann::json json_of(const qa::MutationOutcome& outcome) {
  nlohmann::json list = nlohmann::json::array();
  for (const qa::MutantOutcome& mutant : outcome.mutants) {
    list.push_back({{"class", qa::to_string(mutant.kind)},
                    {"what", mutant.what},
                    {"killed", !mutant.killed_by.empty()},
                    {"by", mutant.killed_by}});
  }
  return {{"ok", outcome.ok()},
          {"problem", outcome.unchanged_problem},
          {"killed", outcome.killed()},
          {"total", outcome.mutants.size()},
          {"mutants", std::move(list)}};
}

nlohmann::json json_of(const PlaybookReport& report) {
  nlohmann::json document = to_json(report.findings);
  document["playbook"] = report.id;
  document["run"] = report.runs ? json_of(*report.runs) : nlohmann::json(nullptr);
  document["mutation"] = report.mutants ? json_of(*report.mutants) : nlohmann::json(nullptr);
  return document;
}

std::string runs_text(const qa::PlaybookOutcome& outcome) {
  std::string text;
  for (const qa::RunOutcome& run : outcome.runs) {
    text += format_text("  {:<6} {}", run.ok() ? "ok" : "FAILED", run.id);
    if (run.ok() && !run.steps.empty()) text += ": " + run.steps.back().state;
    text += '\n';
    if (!run.ok()) text += "         " + run.failure + '\n';
    for (const std::string& warning : run.warnings) text += "         warning: " + warning + '\n';
  }
  text += format_text("{}, {} of {} driven\n", count_text(outcome.runs.size(), "run"),
                      outcome.driven.size(),
                      count_text(outcome.driven.size() + outcome.not_driven.size(), "transition"));
  for (const std::string& transition : outcome.not_driven) {
    text += "  not driven: " + transition + '\n';
  }
  return text;
}

std::string mutants_text(const qa::MutationOutcome& outcome) {
  std::string text;
  for (const qa::MutantOutcome& mutant : outcome.mutants) {
    text += format_text("  {:<8} {}: {}\n", mutant.killed_by.empty() ? "SURVIVED" : "killed",
                        qa::to_string(mutant.kind), mutant.what);
    if (!mutant.killed_by.empty()) text += "           by " + mutant.killed_by + '\n';
  }
  if (!outcome.unchanged_problem.empty()) {
    return "no mutants: the playbook itself fails: " + outcome.unchanged_problem + '\n';
  }
  if (outcome.mutants.empty()) {
    return "no mutants: the playbook has no mutation classes, or nothing that they change\n";
  }
  return text + format_text("{} of {} killed by a run\n", outcome.killed(),
                            count_text(outcome.mutants.size(), "mutant"));
}

std::string text_of_report(const PlaybookReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += to_text(finding) + '\n';
  if (report.findings.empty()) text += report.id + ": no finding\n";
  if (report.runs) text += runs_text(*report.runs);
  if (report.mutants) text += mutants_text(*report.mutants);
  return text;
}

int playbook_command(const PlaybookArguments& options) {
  check_writable("--dot", options.dot);
  check_writable("--svg", options.svg);
  const std::string text =
      options.file.empty() ? std::string(qa::launcher_playbook_text()) : read_input(options.file);
  if (options.print) {
    write_output(options.output, text);
    return kDone;
  }
  const qa::Playbook playbook =
      qa::load_playbook(text, options.file.empty() ? "launcher.yaml" : input_name(options.file));
  if (!options.dot.empty()) write_output(options.dot, qa::to_dot(playbook));
  if (!options.svg.empty()) write_output(options.svg, qa::to_svg(playbook));
  const bool only_drawn = (!options.dot.empty() || !options.svg.empty()) && !options.validate &&
                          !options.run && !options.mutate;
  if (only_drawn) return kDone;
  PlaybookReport report;
  report.id = playbook.id;
  report.findings = qa::validate(playbook);
  ExitCode code = verdict(report.findings, options.strict);
  if (options.run || options.mutate) {
    Settings settings = Settings::from_environment();
    // Runs provoke errors: what is wrong is in the report.
    if (settings.log == "warn") settings.log = "error";
    const Device device = options.device.open(options.device.choice(settings), settings);
    report.runs = qa::run_playbook(playbook, device, settings);
    if (options.mutate) report.mutants = qa::run_mutants(playbook, device, settings);
    if (!report.runs->ok() || (report.mutants && !report.mutants->ok())) code = kFound;
  }
  write_output(options.output, options.json ? text_of(json_of(report)) : text_of_report(report));
  return code;
}

}  // namespace

void add_playbook(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlaybookArguments>();
  Command command(app, "playbook",
                  "Validate, draw, run and mutate a state machine of the launcher");
  command.footer("Example: ptxgen playbook --mutate --svg launcher.svg");
  command.add_option("file", options->file,
                     "a YAML file, - for standard input; without it the library's own playbook");
  command.add_flag("--print", options->print, "print the YAML and do nothing else");
  command.add_flag("--validate", options->validate,
                   "report defects of the machine; the default without other options");
  command.add_option("--dot", options->dot, "write the machine there, for graphviz");
  command.add_option("--svg", options->svg, "write a picture of the machine there");
  command.add_flag("--run", options->run,
                   "drive its runs against a launcher; exit with 1 if one fails, or if a "
                   "transition is not taken");
  command.add_flag("--mutate", options->mutate,
                   "also run its mutants; exit with 1 if one survives, or if there are none");
  options->device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"findings\",\"run\":{\"runs\",\"driven\",..},"
                   "\"mutation\":{\"killed\",\"total\",\"mutants\"}}");
  command.add_flag("--strict", options->strict, "exit with 1 for warnings of --validate too");
  command.callback([options, &exit_code] { exit_code = playbook_command(*options); });
}

}  // namespace ptxgen::cli
