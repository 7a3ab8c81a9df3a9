// src/cli/commands/gemv.cpp - ptxgen gemv: generate, check, run, compare
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/commands/gemv_job.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli/output/finding_text.hpp"
#include "cli/output/run_report.hpp"
#include "cli/output/verification_text.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/gemv_problem.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/numbers.hpp"
#include "ptxgen/emulator/report/profile.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct GemvArguments {
  std::vector<std::string> settings;
  std::string x_type = "f32";
  std::string y_type = "f32";
  bool bias = false;
  bool residual = false;
  std::string alpha = "1";
  std::string beta = "0";
  std::string impl = "auto";
  std::uint64_t seed = 0;
  std::string target;
  DeviceOptions device;
  std::string output;
  bool json = false;
  bool strict = false;
};

GemvJob job_of(const GemvArguments& options) {
  GemvJob job;
  job.problem = gemv_problem(options.settings);
  GemvProblem& problem = job.problem;
  const auto type = [&](std::string_view option, const std::string& name) {
    const ElementType parsed = gemv_type(std::string(option) + " " + name, name);
    if (parsed == ElementType::f32 || parsed == problem.weights) return parsed;
    throw UsageError(format_text(
        "{} {}: with weights of {} it may be f32{}", option, name, to_string(problem.weights),
        problem.weights == ElementType::f32 ? ""
                                            : format_text(" or {}", to_string(problem.weights))));
  };
  problem.x = type("--x-type", options.x_type);
  problem.y = type("--y-type", options.y_type);
  problem.bias = options.bias;
  problem.residual = options.residual;
  job.alpha = real_number("--alpha", options.alpha);
  job.beta = real_number("--beta", options.beta);
  problem.scaled = job.alpha != 1 || job.beta != 0;
  return job;
}

GemvChoice choice_of(const GemvArguments& options) {
  try {
    return gemv_choice(options.impl);
  } catch (const Error&) {
    throw UsageError(format_text("--impl {}: there is no such GEMV; there are: {}", options.impl,
                                 gemv_choice_names()));
  }
}

// The device, as the report names it.
struct Place {
  std::string device;  // "emulator", "cuda:0"
  std::string gpu;     // "h200"; what the driver calls a real one
  std::string name;    // "NVIDIA H200"
  bool emulated = true;
};

std::string_view status_of(const GemvOutcome& outcome) {
  if (outcome.emulated) return name_of(outcome.emulated->status);
  return outcome.result.error ? "fault" : "ok";
}

nlohmann::json plan_json(const GemvOutcome& outcome, const GemvProblem& problem) {
  const LaunchGeometry& geometry = outcome.geometry;
  nlohmann::json result = {{"kernel", outcome.result.kernel},
                           {"implementation", outcome.result.implementation},
                           {"reason", outcome.result.reason},
                           {"target", outcome.target},
                           {"layout", to_string(problem.layout)},
                           {"dtype", to_string(problem.weights)},
                           {"problem", to_json(problem)},
                           {"grid", {geometry.grid.x, geometry.grid.y, geometry.grid.z}},
                           {"block", {geometry.block.x, geometry.block.y, geometry.block.z}},
                           {"cluster", geometry.cluster.x},
                           {"bytes", outcome.cost.bytes()},
                           {"flops", outcome.cost.flops}};
  if (outcome.plan) result["plan"] = to_json(*outcome.plan);
  if (outcome.plan) result["text"] = to_text(*outcome.plan);
  if (outcome.plan) result["workspace_bytes"] = outcome.plan->workspace_bytes();
  if (outcome.prediction) result["prediction"] = to_json(*outcome.prediction);
  return result;
}

nlohmann::json as_json(const GemvOutcome& outcome, const GemvJob& job, const Place& place) {
  nlohmann::json stages = nlohmann::json::object();
  for (const StageTime& stage : outcome.stages.stages) stages[stage.stage] = stage.microseconds;
  nlohmann::json findings = nlohmann::json::array();
  if (outcome.emulated) findings = to_json(outcome.emulated->findings);
  for (const Finding& finding : outcome.check) findings.push_back(to_json(finding));
  nlohmann::json result = {{"nmse", outcome.result.nmse},
                           {"max_error", outcome.result.max_error},
                           {"bound", outcome.result.worst_bound},
                           {"worst_error_over_bound", outcome.result.worst_share},
                           {"outside_bound", outcome.result.wrong},
                           {"ok", outcome.ok()},
                           {"k", job.problem.k},
                           {"n", job.problem.n},
                           {"seed", job.seed},
                           {"device", place.device},
                           {"gpu", place.gpu},
                           {"status", status_of(outcome)},
                           {"plan", plan_json(outcome, job.problem)},
                           {"ptx_hash", outcome.hash},
                           {"module", outcome.origin},
                           {"stages_us", std::move(stages)},
                           {"findings", std::move(findings)}};
  if (outcome.result.error) result["fault"] = outcome.result.error->what();
  if (outcome.emulated) {
    result["counters"] = to_json(outcome.emulated->counters);
    result["unchecked"] = to_json(outcome.emulated->unchecked);
  }
  return result;
}

std::string number(double value) { return format_text("{:.4g}", value); }

std::string described(const GemvOutcome& outcome, const GemvJob& job, const Place& place) {
  std::string text;
  const auto row = [&text](std::string_view name, const std::string& value) {
    text += format_text("{:<19} {}\n", name, value);
  };
  const LaunchGeometry& geometry = outcome.geometry;
  const Verification& result = outcome.result;
  row(job.problem.layout == GemvLayout::T ? "y = A^T x" : "y = W x",
      format_text("{}, seed {}", to_text(job.problem), job.seed));
  row("kernel", result.kernel + " (" + result.reason + ")");
  if (outcome.plan) row("plan", to_text(*outcome.plan));
  if (outcome.prediction) {
    row("predicted", fixed(outcome.prediction->isolated_us, 2) + " us, " +
                         fixed(outcome.prediction->chained_us, 2) + " us in a chain; " +
                         error_text(outcome.prediction->error));
  }
  const std::string built = outcome.hash.empty() ? "" : ", PTX for " + outcome.target;
  row(place.emulated ? "emulated on" : "run on", place.name + built);
  if (!outcome.hash.empty()) {
    row("launch",
        count_text(geometry.grid.x, "block") + " of " + count_text(geometry.block.x, "thread"));
    row("PTX", outcome.hash);
    row("module", outcome.origin);
  }
  if (result.error) {
    row("result", "none, the kernel was stopped");
  } else {
    row("result", format_text("{}: largest error {}, at most {} % of the error bound, nmse {}",
                              outcome.ok() ? "right" : "WRONG", number(result.max_error),
                              number(100 * result.worst_share), number(result.nmse)));
    if (!outcome.ok()) row("", reason_of(result));
  }
  if (outcome.emulated) {
    row("status",
        format_text("{}, {} findings{}", status_of(outcome), outcome.emulated->findings.size(),
                    not_checked(outcome.emulated->unchecked)));
    text += emulator::to_text(outcome.emulated->counters);
  }
  for (const StageTime& stage : outcome.stages.stages) {
    row(format_text("time, {}", stage.stage), number(stage.microseconds / 1000) + " ms");
  }
  return text;
}

int exit_code_of(const GemvOutcome& outcome, bool strict) {
  if (!outcome.ok()) return kFound;
  const ExitCode check = verdict(outcome.check, strict);
  if (check != kDone || !outcome.emulated) return check;
  return verdict(outcome.emulated->findings, strict);
}

void gemv_command(const GemvArguments& options, int& exit_code) {
  const Settings settings = Settings::from_environment();
  GemvJob job = job_of(options);
  job.choice = choice_of(options);
  job.seed = options.seed;
  if (!options.target.empty()) job.target = &target_named(options.target);
  const DeviceChoice choice = options.device.choice(settings);
  const ptx::Gpu gpu = chosen_gpu(options.device.gpu, choice, options.target);
  const Device device = open_device(choice, gpu, settings);
  const DeviceInfo& info = device.info();
  const GemvProblem& problem = job.problem;
  // With a large lda the number of elements may not fit 64 bits.
  const double elements = static_cast<double>(problem.leading_dimension()) *
                          (problem.layout == GemvLayout::T ? problem.k : problem.n);
  if (elements * bytes(problem.weights) > static_cast<double>(info.limits.memory_bytes)) {
    throw UsageError(format_text("-p k={} -p n={}: A does not fit into the {} of {}", problem.k,
                                 problem.n, count_text(info.limits.memory_bytes, "byte"),
                                 choice.emulator ? std::string(gpu.name) : info.name));
  }
  const Place place{choice.name, choice.emulator ? std::string(gpu.name) : info.name,
                    choice.emulator ? std::string(gpu.full_name) : info.name, choice.emulator};

  GemvOutcome outcome;
  try {
    outcome = run_gemv(device, job, settings);
  } catch (const std::bad_alloc&) {
    throw UsageError(format_text("the host has too little memory for a matrix of {}",
                                 count_text(problem.matrix_elements(), "element")));
  }
  exit_code = exit_code_of(outcome, options.strict);
  if (options.json) {
    write_output(options.output, text_of(as_json(outcome, job, place)));
    return;
  }
  std::cerr << findings_text(outcome.check, false);
  if (outcome.emulated) std::cerr << findings_text(outcome.emulated->findings, false);
  if (outcome.result.error) std::cerr << outcome.result.error->what() << '\n';
  write_output(options.output, described(outcome, job, place));
}

}  // namespace

void add_gemv(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GemvArguments>();
  Command command(
      app, "gemv",
      "The main job: generate y = A^T x or y = W x, check it, load it, run it, compare with fp64");
  command.footer("Example: ptxgen gemv -p k=4096 -p n=4096 --json");
  command.add_option("-p", options->settings, std::string(kGemvSettingsHelp)).one_value_each();
  command.add_option("--x-type", options->x_type, "of x: f32, or as the weights")
      .capture_default_str();
  command.add_option("--y-type", options->y_type, "of y, bias, residual: f32, or as the weights")
      .capture_default_str();
  command.add_flag("--bias", options->bias, "add n random elements");
  command.add_flag("--residual", options->residual, "add n random elements");
  command.add_option("--alpha", options->alpha, "multiplies the sums").capture_default_str();
  command.add_option("--beta", options->beta, "multiplies the old y, which is added")
      .capture_default_str();
  command.add_option("--impl", options->impl, gemv_choice_names()).capture_default_str();
  command.add_option("--seed", options->seed, "of the random inputs").capture_default_str();
  command.add_option("--target", options->target, "generate for it (default: the GPU's own)");
  options->device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: nmse, max_error, bound, ok, plan, stages_us, counters");
  command.add_flag("--strict", options->strict, "exit with 1 for warnings too");
  command.callback([options, &exit_code] { gemv_command(*options, exit_code); });
}

}  // namespace ptxgen::cli
