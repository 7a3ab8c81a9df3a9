// src/cli/cmd_explain.cpp - ptxgen explain: passes, memory, registers, occupancy
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/explanation.hpp"
#include "cli/library_kernel.hpp"
#include "cli/pass_choice.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::cli {

namespace {

struct Options {
  std::string subject;
  std::vector<std::string> settings;
  std::string target;
  std::string gpu;
  std::string output;
  PassChoice passes;
  bool json = false;
};

bool is_file_name(const std::string& subject) {
  return subject == "-" || subject.find_first_of("./\\") != std::string::npos;
}

std::optional<ptx::Gpu> named_gpu(const Options& options) {
  if (options.gpu.empty()) return {};
  try {
    return emulator::gpu_named(options.gpu);
  } catch (const Error& error) {
    throw UsageError("--gpu " + options.gpu + ": " + error.message);
  }
}

Subject subject_of(const Options& options) {
  Subject subject;
  subject.name = options.subject;
  const std::optional<ptx::Gpu> gpu = named_gpu(options);
  if (is_file_name(options.subject)) {
    if (!options.settings.empty()) throw UsageError("-p is for kernels of the library");
    if (!options.target.empty()) throw UsageError("--target is for kernels of the library");
    subject.name = input_name(options.subject);
    subject.module = ptx::parse(read_input(options.subject), subject.name);
  } else {
    const LibraryKernel kernel = library_kernel(options.subject, options.settings);
    const std::string target = !options.target.empty() ? options.target
                               : gpu                   ? std::string(gpu->target)
                                                       : std::string("sm_89");
    subject.module = kernel.entry->build(kernel.values, target_named(target));
    subject.geometry = kernel.entry->geometry(kernel.values, target_named(target));
    subject.cost = kernel.entry->cost(kernel.values);
  }
  subject.gpu = gpu ? *gpu : emulator::default_gpu(subject.module.target);
  return subject;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  Command command(app, "explain",
                  "Say what passes do to a kernel, and what it asks of memory, registers and SMs");
  command.footer("Example: ptxgen explain gemv_strided -p k=4096 -p n=4096 --gpu h200");
  command
      .add_option("subject", options->subject,
                  "a name that `ptxgen list` shows, or a PTX file, or - for standard input")
      .required();
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_option("--gpu", options->gpu, "the GPU to judge for: t4 to rtx5090, or sm_XX");
  command.add_option("--target", options->target, "the target to build a library kernel for");
  options->passes.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"target\",\"gpu\",\"passes\",\"kernels\",\"prediction\"}");
  command.callback([options, &exit_code] {
    optimize::PassOptions passes = options->passes.options();
    passes.explain = true;
    const Explanation explanation = explain(subject_of(*options), passes);
    write_output(options->output,
                 options->json ? text_of(to_json(explanation)) : to_text(explanation));
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
