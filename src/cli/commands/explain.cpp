// src/cli/commands/explain.cpp - ptxgen explain: passes, memory, registers, occupancy
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/pass_choice.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/explanation.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/numbers.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct ExplainArguments {
  std::string subject;
  std::vector<std::string> settings;
  std::string target;
  std::string gpu;
  std::string block;
  std::string output;
  PassChoice passes;
  bool json = false;
  bool all = false;
};

bool is_file_name(const std::string& subject) {
  return subject == "-" || subject.find_first_of("./\\") != std::string::npos;
}

std::array<std::uint32_t, 3> block_of(const ExplainArguments& options) {
  const emulator::Dim3 block = dimensions("--block", options.block);
  if (block.count() > 1024) {
    throw UsageError(format_text("--block {}: has {}", options.block, block.count()) +
                     " threads; a block has at most 1024");
  }
  return {block.x, block.y, block.z};
}

Subject file_subject(const ExplainArguments& options, const DeviceChoice& device) {
  Subject subject;
  if (!options.settings.empty()) throw UsageError("-p is for kernels of the library");
  if (!options.target.empty()) throw UsageError("--target is for kernels of the library");
  subject.name = input_name(options.subject);
  subject.module = ptx::parse(read_input(options.subject), subject.name);
  if (!options.block.empty()) subject.block = block_of(options);
  subject.gpu = chosen_gpu(options.gpu, device, subject.module.target);
  return subject;
}

Subject library_subject(const ExplainArguments& options, const DeviceChoice& device) {
  Subject subject;
  if (!options.block.empty()) {
    throw UsageError("--block is for PTX files; a kernel of the library has a block of its own");
  }
  subject.name = options.subject;
  const LibraryKernel kernel = library_kernel(options.subject, options.settings);
  subject.gpu = chosen_gpu(options.gpu, device, options.target);
  const ptx::Target& target =
      target_named(options.target.empty() ? std::string(subject.gpu.target) : options.target);
  subject.module = kernel.entry->build(kernel.values, target);
  subject.geometry = kernel.entry->geometry(kernel.values, target);
  subject.cost = kernel.entry->cost(kernel.values);
  return subject;
}

Subject subject_of(const ExplainArguments& options) {
  DeviceChoice device;
  device.default_gpu = Settings::from_environment().emulated_gpu;
  return is_file_name(options.subject) ? file_subject(options, device)
                                       : library_subject(options, device);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExplainArguments>();
  Command command(app, "explain",
                  "Say what passes do to a kernel, and what it asks of memory, registers and SMs");
  command.footer("Example: ptxgen explain gemv_strided -p k=4096 -p n=4096 --gpu h200");
  command
      .add_option("subject", options->subject,
                  "a name that `ptxgen list` shows, or a PTX file, or - for standard input")
      .required();
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_option("--gpu", options->gpu, "the GPU to judge for: t4 to rtx5090, or sm_XX");
  command.add_option("--block", options->block,
                     "threads of a block, X[,Y[,Z]], for a PTX file that does not say it");
  command.add_option("--target", options->target, "the target to build a library kernel for");
  options->passes.add_to(command);
  command.add_flag("--all", options->all,
                   "every decision of the passes; without it three of each kind");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"target\",\"gpu\",\"passes\",\"kernels\",\"prediction\"}");
  command.callback([options, &exit_code] {
    optimize::PassOptions passes = options->passes.options();
    passes.explain = true;
    const Explanation explanation = explain(subject_of(*options), passes);
    write_output(options->output, options->json ? text_of(to_json(explanation))
                                                : to_text(explanation, options->all));
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
