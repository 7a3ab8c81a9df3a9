// src/cli/commands/opt.cpp - ptxgen opt: passes on any PTX
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/pass_choice.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/finding_text.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/source_map.hpp"

namespace ptxgen::cli {

namespace {

struct OptArguments {
  std::string file;
  std::string output;
  PassChoice passes;
  bool explain = false;
  bool dump = false;
  bool json = false;
  bool all = false;
  bool list = false;
};

// `--list-passes`: a line for each pass, then for each group.
std::string list_of_passes() {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view doc) {
    text += std::string(name) + std::string(18 - std::min<std::size_t>(17, name.size()), ' ') +
            std::string(doc) + "\n";
  };
  for (const optimize::PassInfo& pass : optimize::all_passes()) add(pass.name, pass.doc);
  for (const optimize::PassGroup& group : optimize::pass_groups()) add(group.name, group.doc);
  return text;
}

// `--dump`: the text after each pass that changed it.
void print_dumps(const optimize::PipelineReport& report) {
  for (const optimize::PassReport& pass : report.passes) {
    if (pass.changed) std::cerr << "after " << pass.name << ":\n" << pass.after;
  }
}

void opt(const OptArguments& options) {
  if (options.list) {
    write_output({}, list_of_passes());
    return;
  }
  if (options.file.empty()) throw UsageError("file is required");
  optimize::PassOptions how = options.passes.options();
  how.explain = options.explain || options.json;
  how.dump = options.dump;
  ptx::Module module = ptx::parse(read_input(options.file), input_name(options.file));
  const optimize::PipelineReport report = optimize::run_passes(module, how);
  const std::string text = ptx::print(module);
  // The lines of findings are those of the text that was read.
  std::vector<Finding> findings = gates::run(module);
  ptx::fill_sources(findings, module);
  if (!options.output.empty() || !options.json) write_output(options.output, text);
  if (options.json) {
    nlohmann::json document = to_json(findings);
    document["groups"] = groups_json(findings);
    document["ptx"] = text;
    document["passes"] = to_json(report);
    write_output({}, text_of(document));
    return;
  }
  if (options.dump) print_dumps(report);
  if (options.explain) std::cerr << passes_text(report, module, options.all);
  std::cerr << findings_text(findings, options.all);
}

}  // namespace

void add_opt(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<OptArguments>();
  Command command(app, "opt", "Run optimisation passes on any PTX");
  command.footer(
      "Example: ptxgen opt kernel.ptx --passes fma_fusion,cleanup --explain -o fast.ptx");
  command.add_option("file", options->file, "PTX file, - for standard input");
  options->passes.add_to(command);
  command.add_option("-o,--output", options->output, "write the PTX there");
  command.add_flag("--explain", options->explain,
                   "say on standard error what each pass did, and why not more");
  command.add_flag("--all", options->all,
                   "every decision and finding; without it three decisions of each kind, and "
                   "findings of one source line and cause as one");
  command.add_flag("--dump", options->dump, "show the PTX after each pass that changed it");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"ptx\",\"passes\":[..],\"findings\":[..]}");
  command.add_flag("--list-passes", options->list, "list passes and groups, and do nothing else");
  command.callback([options, &exit_code] {
    opt(*options);
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
