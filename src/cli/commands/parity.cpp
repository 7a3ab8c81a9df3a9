// src/cli/commands/parity.cpp - ptxgen parity: batched kernels against their single-row twins
#include "ptxgen/runtime/launch/parity.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/model/layer_sizes.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct ParityArguments {
  std::string model;
  bool verbose = false;
  bool skip = false;
  bool code = false;
  std::uint64_t seed = 1;
  DeviceOptions device;
  std::string output;
  bool json = false;
};

// The sizes of a model's layers; without a model those of Qwen2.5-Coder-1.5B.
LayerSizes sizes_of(const std::string& model) {
  return model.empty() ? LayerSizes() : gguf::layer_sizes(gguf::File(model));
}

nlohmann::json as_json(const ParityResult& pair) {
  nlohmann::json checks = nlohmann::json::array();
  for (const gates::ParityCheck& check : pair.checks) {
    nlohmann::json one = {{"name", check.name}, {"ok", check.ok}, {"detail", check.detail}};
    if (!check.findings.empty()) one.update(to_json(check.findings));
    checks.push_back(std::move(one));
  }
  return {{"batched", pair.batched},
          {"single", pair.single},
          {"strategy", to_string(pair.strategy)},
          {"ok", pair.ok()},
          {"checks", checks},
          {"code_ms", pair.code_ms},
          {"ms", pair.ms}};
}

nlohmann::json as_json(const ParityReport& report) {
  nlohmann::json pairs = nlohmann::json::array();
  for (const ParityResult& pair : report.pairs) pairs.push_back(as_json(pair));
  return {{"pairs", pairs},    {"passed", report.passed()}, {"total", report.registered},
          {"ok", report.ok()}, {"skipped", false},          {"ms", report.ms}};
}

std::string checks_text(const ParityResult& pair, bool verbose) {
  std::string text;
  for (const gates::ParityCheck& check : pair.checks) {
    if (check.ok && !verbose) continue;
    text += format_text("  {} {}: {}\n", check.ok ? "ok  " : "FAIL", check.name, check.detail);
    if (!verbose) continue;
    for (const Finding& finding : check.findings) text += to_text(finding) + "\n";
  }
  return text;
}

std::string as_text(const ParityReport& report, bool verbose) {
  TextTable table({"batched", "single", "strategy", "", "checks", "ms"});
  for (const ParityResult& pair : report.pairs) {
    table.add({pair.batched, pair.single, std::string(to_string(pair.strategy)),
               pair.ok() ? "PASS" : "FAIL", std::to_string(pair.checks.size()),
               format_text("{:.1f}", pair.ms)});
  }
  std::string text;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    text += table.line(i) + "\n";
    if (i != 0) text += checks_text(report.pairs[i - 1], verbose);
  }
  return text + report.summary() + "\n";
}

int skipped(const ParityArguments& options) {
  const std::size_t pairs = registered_pairs(catalog());
  const nlohmann::json json = {{"pairs", nlohmann::json::array()},
                               {"passed", 0},
                               {"total", pairs},
                               {"ok", true},
                               {"skipped", true},
                               {"ms", 0}};
  write_output(options.output, options.json ? text_of(json)
                                            : format_text("SKIP: PTX parity of {}, by --skip\n",
                                                          count_text(pairs, "kernel pair")));
  return kDone;
}

int parity_command(const ParityArguments& options) {
  if (options.skip) return skipped(options);
  const Settings settings = Settings::from_environment();
  ParityOptions how;
  how.sizes = sizes_of(options.model);
  how.seed = options.seed;
  how.launches = !options.code;
  const Device device = options.device.open(options.device.choice(settings), settings);
  const ParityReport report = check_parity(device, how);
  write_output(options.output,
               options.json ? text_of(as_json(report)) : as_text(report, options.verbose));
  return report.ok() ? kDone : kFound;
}

}  // namespace

void add_parity(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ParityArguments>();
  Command command(app, "parity",
                  "Compare every batched kernel with its single-row twin, as code and in launches");
  command.footer("Example: ptxgen parity model.gguf --verbose");
  command.add_option("model", options->model, "a GGUF file whose layers' sizes are used");
  command.add_flag("--verbose", options->verbose,
                   "every check, and of a failure the instruction with its PTX line");
  command.add_flag("--skip", options->skip, "compare nothing, and report SKIP");
  command.add_flag("--code", options->code, "compare the code alone, and launch nothing");
  command.add_option("--seed", options->seed, "of the operands").capture_default_str();
  options->device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"pairs\":[{\"batched\",\"single\",\"ok\",..}],..}");
  command.callback([options, &exit_code] { exit_code = parity_command(*options); });
}

}  // namespace ptxgen::cli
