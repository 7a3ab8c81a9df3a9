// src/cli/commands/verify.cpp - ptxgen verify: kernels against their fp64 references
#include "ptxgen/runtime/launch/verify.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli/output/repro.hpp"
#include "cli/output/verification_text.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct VerifyArguments {
  std::string kernel;
  std::vector<std::string> settings;
  bool cases = false;
  std::uint64_t offset = 0;
  bool in_place = false;
  bool dependence = false;
  std::uint64_t seed = 1;
  DeviceOptions device;
  std::string output;
  bool json = false;
};

struct Job {
  const KernelDescription* kernel = nullptr;
  std::vector<std::uint64_t> values;
};

struct Done {
  Job job;
  Verification result;
};

// What the command line asks for: one shape, or every case of one kernel or all.
std::vector<Job> jobs_of(const VerifyArguments& options) {
  std::vector<Job> jobs;
  const auto add_cases = [&](const KernelDescription& kernel) {
    for (std::vector<std::uint64_t>& values : kernel.cases()) {
      jobs.push_back({&kernel, std::move(values)});
    }
  };
  if (options.kernel == "all") {
    if (!options.settings.empty()) {
      throw UsageError("verify all takes no -p: each kernel has its own parameters");
    }
    for (const KernelDescription& kernel : catalog()) add_cases(kernel);
    return jobs;
  }
  const LibraryKernel kernel = library_kernel(options.kernel, options.settings);
  if (options.cases) {
    if (!options.settings.empty()) throw UsageError("verify takes -p or --cases, not both");
    add_cases(*kernel.entry);
  } else {
    jobs.push_back({kernel.entry, kernel.values});
  }
  return jobs;
}

nlohmann::json as_json(const Done& done, const std::string& device) {
  const Verification& result = done.result;
  return {{"kernel", done.job.kernel->name},
          {"parameters", parameters_json(*done.job.kernel, done.job.values)},
          {"device", device},
          {"ok", result.ok()},
          {"implementation", result.implementation},
          {"compared", result.compared},
          {"wrong", result.wrong},
          {"first_wrong", result.first_wrong},
          {"bytes_changed_outside", result.outside},
          {"worst_error_over_bound", result.worst_share},
          {"max_error", result.max_error},
          {"nmse", result.nmse},
          {"findings", result.findings},
          {"error", result.error_text()}};
}

std::string as_text(const std::vector<Done>& all, const std::string& device) {
  TextTable table({"kernel", "shape", "", "compared", "error / bound", "max error"});
  std::string reasons;
  std::size_t wrong = 0;
  for (const Done& done : all) {
    const Verification& result = done.result;
    table.add({std::string(done.job.kernel->name), result.shape, result.ok() ? "ok" : "WRONG",
               std::to_string(result.compared), format_text("{:.3f}", result.worst_share),
               format_text("{:.3g}", result.max_error)});
    if (result.ok()) continue;
    ++wrong;
    reasons += format_text("{} {}: {}\n", done.job.kernel->name, result.shape, reason_of(result));
  }
  std::string text = device + "\n";
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  return text + reasons + format_text("{} of {} right\n", all.size() - wrong, all.size());
}

int verify_command(const VerifyArguments& options) {
  const Settings settings = Settings::from_environment();
  const std::vector<Job> jobs = jobs_of(options);
  // Wrong values are recorded as findings are: here.
  Settings plain = settings;
  plain.repro.clear();
  const Device device = options.device.open(options.device.choice(settings), plain);
  const Context context(device);
  LauncherOptions how;
  how.settings = settings;
  const Launcher launcher(context, how);
  VerifyOptions verify_options;
  verify_options.seed = options.seed;
  verify_options.in_place = options.in_place;
  verify_options.dependence = options.dependence;
  verify_options.offset = static_cast<std::uint32_t>(options.offset);
  std::vector<Done> all;
  bool ok = !jobs.empty();
  for (const Job& job : jobs) {
    all.push_back({job, verify(launcher, context, *job.kernel, job.values, verify_options)});
    if (all.back().result.ok()) continue;
    ok = false;
    write_repro(settings, format_text("verify-{}", job.kernel->name), [&] {
      return record(options.device.full_name(options.device.choice(settings)), *job.kernel,
                    job.values, {.seed = options.seed, .frames = 1}, plain);
    });
  }
  const std::string& name = device.info().name;
  if (options.json) {
    nlohmann::json results = nlohmann::json::array();
    for (const Done& done : all) results.push_back(as_json(done, name));
    write_output(options.output, text_of(results));
  } else {
    write_output(options.output, as_text(all, name));
  }
  return ok ? kDone : kFound;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<VerifyArguments>();
  Command command(app, "verify",
                  "Launch a kernel on random inputs and compare it with its fp64 reference");
  command.footer("Example: ptxgen verify vadd -p n=1000 -p type=bf16");
  command.add_option("kernel", options->kernel, "a name that `ptxgen list` shows, or all")
      .required();
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_flag("--cases", options->cases, "every case of the kernel's description");
  command
      .add_option("--offset", options->offset,
                  "elements (or the alignment that the kernel requires) after a 256-byte boundary")
      .range(0, 4096)
      .capture_default_str();
  command.add_flag("--in-place", options->in_place, "outputs are inputs where that is allowed");
  command.add_flag("--dependence", options->dependence,
                   "also change parts of the inputs: outputs depend on what their references do");
  command.add_option("--seed", options->seed, "of the inputs").capture_default_str();
  options->device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: [{\"kernel\",\"parameters\",\"ok\",..}]");
  command.callback([options, &exit_code] { exit_code = verify_command(*options); });
}

}  // namespace ptxgen::cli
