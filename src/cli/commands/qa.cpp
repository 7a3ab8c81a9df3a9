// src/cli/commands/qa.cpp - ptxgen qa: checklist, test modes, claims
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/commands/qa_model.hpp"
#include "cli_common/device_choice.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/report/report.hpp"
#include "qa/run.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct QaArguments {
  ModelGateOptions model;
  std::vector<std::string> sections;
  std::string record = "build/test-results/record.json";
  std::string folder;
  bool mutate = false;
  bool full = false;
  DeviceOptions device;
  std::string output;
  bool json = false;
};

qa::RunOptions run_options(const QaArguments& options) {
  qa::RunOptions how;
  how.mutate = options.mutate;
  for (const std::string& name : options.sections) {
    try {
      how.sections.push_back(qa::section_named(name));
    } catch (const Error& error) {
      throw UsageError("--section: " + error.message);
    }
  }
  if (is_terminal(Stream::Err)) {
    how.begin = [](const qa::Line& line) { std::cerr << "\r\033[K" << line.id << std::flush; };
  }
  return how;
}

void write_reports(const std::string& folder, const qa::Report& report) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path path(folder);
  write_output((path / "qa.txt").string(), qa::to_text(report));
  write_output((path / "qa.json").string(), text_of(qa::to_json(report)));
  write_output((path / "qa.html").string(), qa::to_html(report));
}

qa::Report model_report(const QaArguments& options, const Device& device,
                        const Settings& settings) {
  if (options.mutate || !options.sections.empty()) {
    throw UsageError("a model has gates of its own: --section and --mutate do not go with it");
  }
  return run_model_gates(device, settings, options.model);
}

qa::Report checklist_report(const QaArguments& options, const Device& device,
                            const Settings& settings) {
  const qa::RunOptions how = run_options(options);
  const qa::Surroundings shared{settings, device, qa::collect_facts(device, settings),
                                qa::read_record(options.record), options.full};
  qa::Report report = qa::run_lines(shared, how);
  if (how.begin) std::cerr << "\r\033[K";
  return report;
}

int qa_command(const QaArguments& options) {
  Settings settings = Settings::from_environment();
  // Lines load code without gates and provoke errors: what is wrong is in the report.
  if (settings.log == "warn") settings.log = "error";
  const Device device = options.device.open(options.device.choice(settings), settings);
  const qa::Report report = options.model.file.empty() ? checklist_report(options, device, settings)
                                                       : model_report(options, device, settings);
  if (!options.folder.empty()) write_reports(options.folder, report);
  write_output(options.output, options.json ? text_of(qa::to_json(report)) : qa::to_text(report));
  return report.ok() ? kDone : kFound;
}

}  // namespace

void add_qa(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<QaArguments>();
  Command command(app, "qa", "Decide the specification's checklist, test modes and claims");
  command.footer("Example: ptxgen qa --section B --mutate");
  command.add_option("model", options->model.file,
                     "a GGUF file: its seven gates instead of the checklist");
  for (std::size_t gate = 0; gate < kModelGates; ++gate) {
    command.add_flag("--skip-" + std::string(kModelGateNames[gate]), options->model.skip[gate],
                     "of a model: report that gate as skipped");
  }
  command.add_flag("--verbose", options->model.verbose,
                   "of a model: the instructions that violate PTX parity, with their PTX lines");
  command
      .add_option("--section", options->sections,
                  "A to H, 1 to 6, hypotheses, gates or claims; repeatable, default all")
      .one_value_each();
  command.add_flag("--mutate", options->mutate,
                   "run each line again with its mutant, which it must notice");
  command.add_flag("--full", options->full, "more cases of exhaustive lines");
  command
      .add_option("--record", options->record,
                  "what scripts/test --full wrote, for lines about the source tree")
      .capture_default_str();
  command.add_option("--out", options->folder, "write qa.txt, qa.json and qa.html to that folder");
  options->device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"lines\":[{\"id\",\"status\",..}],\"score\",..}");
  command.callback([options, &exit_code] { exit_code = qa_command(*options); });
}

}  // namespace ptxgen::cli
