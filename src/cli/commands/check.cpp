// src/cli/commands/check.cpp - ptxgen check: verifier, gates, analyzer
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/run_options.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/finding_text.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/source_map.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::cli {

namespace {

struct CheckArguments {
  std::string file;
  std::string target;
  std::string entry;
  std::string block;
  std::string output;
  bool json = false;
  bool strict = false;
  bool all = false;
};

// In `check`, PTX that cannot be parsed is a finding like any other.
Finding from(const Error& error) {
  Finding finding;
  finding.rule = error.code;
  finding.message = error.message;
  finding.file = error.file;
  finding.line = error.line;
  for (std::size_t at = 0; at < error.excerpt.size();) {
    const std::size_t end = std::min(error.excerpt.find('\n', at), error.excerpt.size());
    finding.details.push_back(error.excerpt.substr(at, end - at));
    at = end + 1;
  }
  return finding;
}

std::vector<Finding> check(const CheckArguments& options) {
  if (!options.target.empty()) {
    ptx::TargetName parsed;
    if (!ptx::parse_target_name(options.target, parsed)) {
      throw UsageError("--target: '" + options.target + "' is not a target, try sm_89");
    }
  }
  const std::string text = read_input(options.file);
  ptx::Module module;
  try {
    module = ptx::parse(text, input_name(options.file));
  } catch (const Error& error) {
    if (error.code != "syntax") throw;
    return {from(error)};
  }
  gates::GateOptions gates{.target = options.target, .entry = options.entry};
  if (!options.block.empty()) {
    const emulator::Dim3 block = size_of_option("--block", options.block);
    gates.block = {block.x, block.y, block.z};
  }
  std::vector<Finding> findings = gates::run(module, gates);
  ptx::fill_sources(findings, module);
  return findings;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CheckArguments>();
  Command command(app, "check", "Parse and verify any PTX, and look for mistakes in it");
  command.footer("Example: ptxgen check kernel.ptx --target sm_90");
  command.add_option("file", options->file, "PTX file, - for standard input").required();
  command.add_option("--target", options->target,
                     "check for this target instead of the file's own");
  command.add_option("--entry", options->entry, "the entry that must be there");
  command.add_option("--block", options->block,
                     "threads of a block: X[,Y[,Z]]; what is wrong with it for sure is an error");
  command.add_option("-o,--output", options->output, "write the findings there");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"findings\":[..],\"groups\":[..]}");
  command.add_flag("--all", options->all,
                   "every finding; without it those of one source line and cause are one entry");
  command.add_flag("--strict", options->strict, "exit with 1 for warnings too");
  command.callback([options, &exit_code] {
    const std::vector<Finding> findings = check(*options);
    if (options->json) {
      nlohmann::json document = to_json(findings);
      document["groups"] = groups_json(findings);
      write_output(options->output, text_of(document));
    } else {
      write_output(options->output, findings_text(findings, options->all));
    }
    exit_code = verdict(findings, options->strict);
  });
}

}  // namespace ptxgen::cli
