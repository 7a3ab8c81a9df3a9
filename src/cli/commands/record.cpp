// src/cli/commands/record.cpp - ptxgen record: launches and their inputs in one file
#include <iostream>
#include <memory>

#include "cli/args/module_kernels.hpp"
#include "cli/args/run_options.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli_common/device_choice.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/recording/recording.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct RecordArguments {
  RunOptions run;  // its `file` is a kernel's name or a PTX file
  std::vector<std::string> settings;
  RecordOptions how;
  std::string output;
};

Recording record_ptx(const RecordArguments& options, const DeviceChoice& choice,
                     const Settings& settings) {
  if (!options.settings.empty()) {
    throw UsageError(
        "-p is for kernels of the library; a PTX file takes --grid, --block and --arg");
  }
  const std::string text = read_input(options.run.file);
  const std::string name = input_name(options.run.file);
  const std::vector<emulator::Program::Kernel> kernels = kernels_of(ptx::parse(text, name));
  const emulator::Program::Kernel& kernel = chosen_kernel(kernels, options.run);
  std::vector<emulator::ArgumentSpec> specs;
  for (const std::string& spec : options.run.arguments) {
    specs.push_back(emulator::parse_argument(spec));
  }
  const Context context(options.run.device.open(choice, settings));
  return record(context,
                {.ptx = text,
                 .file = name,
                 .kernel = kernel.name,
                 .geometry = geometry_of(launch_of(options.run, kernel)),
                 .arguments = specs},
                options.how);
}

Recording record_kernel(const RecordArguments& options, const DeviceChoice& choice,
                        const Settings& settings) {
  const std::string& name = options.run.file;
  if (find_kernel(name) == nullptr && (name == "-" || name.ends_with(".ptx"))) {
    throw UsageError(format_text("--grid is missing, and '{}' is PTX", name));
  }
  const LibraryKernel kernel = library_kernel(name, options.settings);
  return record(options.run.device.full_name(choice), *kernel.entry, kernel.values, options.how,
                settings);
}

int record_command(const RecordArguments& options) {
  if (options.how.frames == 0) throw UsageError("--frames 0 records nothing");
  Settings settings = Settings::from_environment();
  settings.repro.clear();  // a launch that fails is in the recording
  const DeviceChoice choice = options.run.device.choice(settings);
  const Recording recording = options.run.grid.empty() ? record_kernel(options, choice, settings)
                                                       : record_ptx(options, choice, settings);
  write_output(options.output, to_json(recording));
  std::cerr << format_text("{}: {}, hash {}, on {}\n", recording.launches.front().kernel,
                           count_text(recording.frame_hashes.size(), "frame"), recording.hash,
                           recording.made_by);
  if (recording.failure.empty()) return kDone;
  std::cerr << format_text("frame {}: {}\n", recording.frame_hashes.size(), recording.failure);
  return kFound;
}

}  // namespace

void add_record(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RecordArguments>();
  RunOptions& run = options->run;
  Command command(
      app, "record",
      "Run a kernel on inputs made from a seed, and keep all that repeats it elsewhere");
  command.footer(
      "A kernel of the library:  ptxgen record gemv -p k=4096 -p n=4096 --frames 100 -o gemv.json\n"
      "Any PTX: ptxgen record vadd.ptx --grid 4 --block 256 --arg random:f32:1024 random:f32:1024 "
      "print:f32:1024 u32:1024 -o vadd.json\n"
      "Each frame has other inputs: `random` without a seed, and operands of at most 2^20 "
      "elements. "
      "`ptxgen replay` runs the file again.");
  command.add_option("kernel", run.file, "a name that `ptxgen list` shows; with --grid, a PTX file")
      .required();
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_option("--frames", options->how.frames, "how often, on other inputs each time")
      .range(1, 1'000'000)
      .capture_default_str();
  command.add_option("--seed", options->how.seed, "of the inputs").capture_default_str();
  command
      .add_option("--keep", options->how.keep_bytes,
                  "bytes of all outputs up to which they are kept, so that a replay can name the "
                  "byte that differs")
      .capture_default_str();
  command.add_option("--entry", run.entry, "of a PTX file: the kernel, if it has several");
  command.add_option("--grid", run.grid, "blocks: X[,Y[,Z]]");
  command.add_option("--block", run.block, "threads of a block: X[,Y[,Z]]");
  command.add_option("--cluster", run.cluster, "blocks of a cluster: X[,Y[,Z]]");
  command.add_option("--smem", run.shared_bytes, "dynamic shared memory, bytes");
  command.add_option("--arg", run.arguments, "argument SPEC as `ptxgen run` has them, repeatable");
  run.device.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &exit_code] { exit_code = record_command(*options); });
}

}  // namespace ptxgen::cli
