// src/cli/commands/coverage.cpp - ptxgen coverage: what launches execute of kernels
#include <iostream>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/commands/coverage_runs.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli/output/coverage_text.hpp"
#include "cli_common/device_choice.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct CoverageArguments {
  RunOptions run;  // its `file` is a kernel's name, "all", or a PTX file
  std::vector<std::string> settings;
  bool cases = false;
  std::vector<std::string> cells;
  std::vector<std::string> merge;
  std::string folder;
  std::uint64_t require = 0;
};

struct Job {
  const KernelDescription* kernel = nullptr;
  std::vector<std::uint64_t> values;
};

void add_cases(const KernelDescription& kernel, std::vector<Job>& jobs) {
  for (std::vector<std::uint64_t>& values : kernel.cases()) {
    jobs.push_back({&kernel, std::move(values)});
  }
}

std::vector<Job> jobs_of(const CoverageArguments& options) {
  std::vector<Job> jobs;
  if (options.run.file == "all") {
    if (!options.settings.empty() || !options.cells.empty()) {
      throw UsageError("coverage all takes no -p and no --cells: they are of one kernel");
    }
    for (const KernelDescription& kernel : catalog()) add_cases(kernel, jobs);
    return jobs;
  }
  const LibraryKernel kernel = library_kernel(options.run.file, options.settings);
  if (!options.cases) {
    jobs.push_back({kernel.entry, kernel.values});
  } else if (!options.settings.empty()) {
    throw UsageError("coverage takes -p or --cases, not both");
  } else {
    add_cases(*kernel.entry, jobs);
  }
  return jobs;
}

// Every case as `verify` runs it; cells from a second run of the same launches.
coverage::Coverage kernel_coverage(const CoverageArguments& options, RunNotes& notes) {
  const std::vector<CellChoice> cells = cell_choices(options.cells);
  const std::vector<Job> jobs = jobs_of(options);
  const Settings settings = Settings::from_environment();
  const DeviceChoice choice = choose_device(options.run.device.device, "coverage", settings);
  const Device device = options.run.device.open(choice, settings);
  const Context context(device);
  LauncherOptions how;
  how.settings = settings;
  const Launcher launcher(context, how);
  coverage::Coverage all;
  for (const Job& job : jobs) {
    const std::string of(job.kernel->name);
    const std::string case_name = shape_text(*job.kernel, job.kernel->make_spec(job.values).get());
    LaunchCoverage launches(context, of, case_name);
    VerifyOptions verify_options;
    verify_options.seed = options.run.seed;
    const Verification result = verify(launcher, context, *job.kernel, job.values, verify_options);
    if (!result.ok()) {
      notes.wrong.push_back(format_text("{} {} is not right; see `ptxgen verify`", of, case_name));
    }
    coverage::merge(all, launches.take());
    if (options.run.file == "all") continue;
    coverage::merge(
        all, kernel_cells(options.run.device.full_name(choice), gpu_of(device.info()), *job.kernel,
                          job.values, cells, case_name, options.run.seed, settings, notes));
  }
  return all;
}

coverage::Coverage file_coverage(const CoverageArguments& options, RunNotes& notes) {
  if (!options.settings.empty() || options.cases) {
    throw UsageError(
        "-p and --cases are for kernels of the library; a PTX file takes --grid, "
        "--block and --arg");
  }
  const Settings settings = Settings::from_environment();
  const DeviceChoice choice = choose_device(options.run.device.device, "coverage", settings);
  const std::string text = read_input(options.run.file);
  const std::string target = ptx::parse(text, input_name(options.run.file)).target;
  return ptx_coverage(options.run, chosen_gpu(options.run.device.gpu, choice, target), text,
                      cell_choices(options.cells), notes);
}

coverage::Coverage recorded(const CoverageArguments& options, RunNotes& notes) {
  const std::string& name = options.run.file;
  if (name.empty()) {
    if (!options.merge.empty()) return {};
    throw UsageError("coverage expects a kernel, all, or a PTX file with --grid; or --merge FILE");
  }
  if (!options.run.grid.empty()) return file_coverage(options, notes);
  if (name != "all" && find_kernel(name) == nullptr && (name == "-" || name.ends_with(".ptx"))) {
    throw UsageError(format_text("--grid is missing, and '{}' is PTX", name));
  }
  return kernel_coverage(options, notes);
}

// Whether at least that share of blocks, edges, outcomes and cells was executed, each over all
// kernels; says what falls short.
bool enough(const coverage::Coverage& all, std::uint64_t percent) {
  coverage::Shares sum;
  for (const coverage::KernelCoverage& kernel : all.kernels) sum += coverage::shares(kernel);
  bool ok = true;
  const auto require = [&](std::string_view what, const coverage::Share& share) {
    if (share.percent() >= static_cast<double>(percent)) return;
    ok = false;
    std::cerr << format_text("--require {}: {} of {} {} are executed, {:.1f} %\n", percent,
                             share.covered, share.all, what, share.percent());
  };
  require("blocks", sum.blocks);
  require("edges", sum.edges);
  require("outcomes", sum.outcomes());
  require("cells", sum.cells);
  return ok;
}

int coverage_command(const CoverageArguments& options) {
  RunNotes notes;
  coverage::Coverage all = recorded(options, notes);
  for (const std::string& file : options.merge) {
    coverage::merge(all, coverage::parse(read_input(file), input_name(file)));
  }
  if (all.kernels.empty()) throw UsageError("coverage: there is no launch to report");
  if (options.run.json) {
    write_output(options.run.output, coverage::to_json(all));
  } else {
    write_output(options.run.output,
                 options.run.file == "all" ? coverage_overview(all) : coverage_text(all));
  }
  if (!options.folder.empty()) {
    for (const std::string& name : write_coverage(options.folder, all)) {
      std::cerr << "written: " << name << '\n';
    }
    if (!coverage::has_png()) {
      std::cerr << "no PNG: this build has no libpng (package libpng-dev)\n";
    }
  }
  for (const std::string& note : notes.notes) std::cerr << "note: " << note << '\n';
  for (const std::string& wrong : notes.wrong) std::cerr << "error: " << wrong << '\n';
  const bool reached = enough(all, options.require);
  return notes.wrong.empty() && reached ? kDone : kFound;
}

void add_ptx_launch_options(Command& command, RunOptions& run) {
  command.add_option("--entry", run.entry, "of a PTX file: the kernel, if it has several");
  command.add_option("--grid", run.grid, "blocks: X[,Y[,Z]]");
  command.add_option("--block", run.block, "threads of a block: X[,Y[,Z]]");
  command.add_option("--cluster", run.cluster, "blocks of a cluster: X[,Y[,Z]]");
  command.add_option("--smem", run.shared_bytes, "dynamic shared memory, bytes");
  command.add_flag("--cooperative", run.cooperative, "launch as cuLaunchCooperativeKernel does");
  command.add_option("--arg", run.arguments, "argument SPEC as `ptxgen run` has them, repeatable");
}

}  // namespace

void add_coverage(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CoverageArguments>();
  options->run.seed = 1;
  RunOptions& run = options->run;
  Command command(app, "coverage",
                  "Which blocks, edges, outcomes and cells of buffers the launches of a kernel "
                  "execute, and which none does");
  command.footer(
      "A kernel of the library:  ptxgen coverage gemv_coalesced --cases --out coverage\n"
      "All of them:              ptxgen coverage all\n"
      "Any PTX: ptxgen coverage vadd.ptx --grid 4 --block 256 --arg random:f32:1024 "
      "random:f32:1024 print:f32:1024 u32:1000\n"
      "Runs are added up: ptxgen coverage --merge a.json --merge b.json");
  command.add_option("kernel", run.file,
                     "a name that `ptxgen list` shows, or all; with --grid, a PTX file");
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_flag("--cases", options->cases, "every case of the kernel's description");
  command
      .add_option("--cells", options->cells,
                  "count the accesses to this buffer alone: NAME[:ROWSxCOLUMNS], repeatable")
      .one_value_each();
  command.add_option("--seed", run.seed, "of the inputs").capture_default_str();
  add_ptx_launch_options(command, run);
  command.add_option("--merge", options->merge, "add a coverage.json of an earlier run, repeatable")
      .one_value_each();
  command
      .add_option("--require", options->require,
                  "exit with 1 if less than this percentage of blocks, edges, outcomes or cells is "
                  "executed")
      .range(0, 100);
  command.add_option("--out", options->folder,
                     "write coverage.json and heat maps (SVG, PNG) into this folder");
  run.device.add_to(command);
  command.add_option("-o,--output", run.output, "write there instead of standard output");
  command.add_flag("--json", run.json, "one JSON document, which is that of --out");
  command.callback([options, &exit_code] { exit_code = coverage_command(*options); });
}

}  // namespace ptxgen::cli
