// src/cli/commands/kernels.cpp - ptxgen list and dump: the library's kernels
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/args/pass_choice.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/library_kernel.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::cli {

namespace {

nlohmann::json as_json() {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelDescription& entry : catalog()) {
    nlohmann::json parameters = nlohmann::json::array();
    for (const ParameterInfo& parameter : entry.parameters) {
      nlohmann::json one = {{"name", parameter.name},
                            {"type", parameter.type},
                            {"default", parameter.default_value},
                            {"doc", parameter.doc},
                            {"range", {parameter.min, parameter.max}}};
      if (!parameter.words.empty()) {
        one["default"] = value_text(parameter, parameter.default_value);
        one["range"] = parameter.words;
      }
      if (parameter.multiple_of != 1) one["multiple_of"] = parameter.multiple_of;
      parameters.push_back(std::move(one));
    }
    kernels.push_back({{"name", entry.name},
                       {"doc", entry.doc},
                       {"access_pattern", entry.access_pattern},
                       {"parameters", std::move(parameters)}});
  }
  return kernels;
}

std::string described() {
  std::string text;
  for (const KernelDescription& entry : catalog()) {
    text += std::string(entry.name) + "\n    " + std::string(entry.doc) + "\n    " +
            std::string(entry.access_pattern) + "\n";
    for (const ParameterInfo& parameter : entry.parameters) {
      text += "    -p " + std::string(parameter.name) + "=" +
              value_text(parameter, parameter.default_value) + "  " + std::string(parameter.type) +
              " " + range_text(parameter) + "  " + std::string(parameter.doc) + "\n";
    }
  }
  return text;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  struct Options {
    bool json = false;
    std::string output;
  };
  auto options = std::make_shared<Options>();
  Command command(app, "list", "List the kernels and their parameters");
  command.footer("Example: ptxgen list --json");
  command.add_flag("--json", options->json, "one JSON document: an array of kernels");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &exit_code] {
    write_output(options->output, options->json ? text_of(as_json()) : described());
    exit_code = kDone;
  });
}

namespace {

const ptx::Target& usual_target(const KernelDescription& kernel) {
  const ptx::Target& usual = ptx::target("sm_89");
  if (kernel.serves(usual)) return usual;
  const auto targets = ptx::targets();
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const ptx::Target& target) { return kernel.serves(target); });
  return found != targets.end() ? *found : usual;
}

}  // namespace

void add_dump(CLI::App& app, int& exit_code) {
  struct Options {
    std::string kernel;
    std::vector<std::string> settings;
    std::string target;
    std::string output;
    PassChoice passes;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command(app, "dump", "Print the PTX of a kernel of the library as it is loaded");
  command.footer("Example: ptxgen dump gemv_coalesced -p k=4096 -p n=4096 --target sm_90");
  command.add_option("kernel", options->kernel, "a name that `ptxgen list` shows").required();
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_option("--target", options->target,
                     "sm_75 to sm_121, a and f variants; default: sm_89, or the first that has "
                     "what the kernel needs");
  options->passes.add_to(command);
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json, "one JSON document: {\"ptx\",\"kernel\",\"target\"}");
  command.callback([options, &exit_code] {
    const LibraryKernel kernel = library_kernel(options->kernel, options->settings);
    const ptx::Target& target =
        options->target.empty() ? usual_target(*kernel.entry) : target_named(options->target);
    const optimize::PassOptions passes = options->passes.options();
    ptx::Module module = kernel.entry->build(kernel.values, target);
    (void)optimize::run_passes(module, passes);
    const std::string text = ptx::print(module);
    if (options->json) {
      if (!options->output.empty()) write_output(options->output, text);
      write_output(
          {}, text_of({{"ptx", text}, {"kernel", kernel.entry->name}, {"target", target.name}}));
    } else {
      write_output(options->output, text);
    }
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
