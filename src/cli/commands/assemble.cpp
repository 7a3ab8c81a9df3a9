// src/cli/commands/assemble.cpp - ptxgen assemble: PTX to a cubin and its resources
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/nearest.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct Options {
  std::string file;
  std::string target;
  std::string tool = "fewest";
  std::string output;
  bool json = false;
};

constexpr std::string_view kTools = "fewest, nvjitlink, ptxas or driver";

AssemblerTool tool_named(const std::string& name) {
  if (name == "fewest") return AssemblerTool::FewestRegisters;
  if (name == "nvjitlink") return AssemblerTool::NvJitLink;
  if (name == "ptxas") return AssemblerTool::Ptxas;
  if (name == "driver") return AssemblerTool::Driver;
  const std::vector<std::string> names = {"fewest", "nvjitlink", "ptxas", "driver"};
  throw UsageError("--with " + name + ": expects " + std::string(kTools) +
                   did_you_mean(name, names));
}

std::string titled(AssemblerTool tool, const std::string& version) {
  return std::string(to_string(tool)) + (version.empty() ? "" : " " + version);
}

// ", which uses the fewest registers: 32 (nvJitLink 13.0: 47)", or empty.
std::string others(const Assembly& result) {
  std::string text;
  for (const AssemblerFigures& figures : result.compared) {
    if (figures.tool == result.tool) continue;
    text += (text.empty() ? " (" : ", ") +
            format_text("{}: {}", titled(figures.tool, figures.tool_version), figures.registers);
  }
  if (text.empty()) return {};
  return format_text(", which uses the fewest registers: {}{})", result.registers, text);
}

std::string described(const Assembly& result, const Options& options) {
  std::string text =
      format_text("{}: {} bytes for {} by {}{}\n", input_name(options.file), result.cubin.size(),
                  options.target, titled(result.tool, result.tool_version), others(result));
  for (const KernelResources& kernel : result.kernels) {
    text += format_text(
        "  {}: {} registers, {} bytes shared, {} bytes constant, spills {} bytes stored, {} bytes "
        "loaded\n",
        kernel.name, kernel.registers, kernel.shared, kernel.constant, kernel.spill_stores,
        kernel.spill_loads);
  }
  return text;
}

nlohmann::json as_json(const Assembly& result) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelResources& kernel : result.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"registers", kernel.registers},
                       {"barriers", kernel.barriers},
                       {"spill_stores", kernel.spill_stores},
                       {"spill_loads", kernel.spill_loads},
                       {"stack", kernel.stack},
                       {"shared", kernel.shared},
                       {"constant", kernel.constant}});
  }
  nlohmann::json compared = nlohmann::json::array();
  for (const AssemblerFigures& figures : result.compared) {
    compared.push_back({{"tool", titled(figures.tool, figures.tool_version)},
                        {"registers", figures.registers},
                        {"spill_stores", figures.spill_stores},
                        {"spill_loads", figures.spill_loads}});
  }
  return {{"registers", result.registers},
          {"spill_stores", result.spill_stores},
          {"spill_loads", result.spill_loads},
          {"shared", result.shared},
          {"constant", result.constant},
          {"tool", titled(result.tool, result.tool_version)},
          {"log", result.log},
          {"bytes", result.cubin.size()},
          {"compared", std::move(compared)},
          {"kernels", std::move(kernels)}};
}

}  // namespace

void add_assemble(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  Command command(app, "assemble", "Assemble PTX through nvJitLink, ptxas or the driver");
  command.footer("Example: ptxgen assemble kernel.ptx --target sm_90 -o kernel.cubin");
  command.add_option("file", options->file, "PTX file, - for standard input").required();
  command.add_option("--target", options->target, "target to assemble for").required();
  command
      .add_option(
          "--with", options->tool,
          "nvjitlink, ptxas or driver; fewest: nvJitLink and ptxas, and the cubin of the one "
          "that uses the fewest registers")
      .capture_default_str();
  command.add_option("-o,--output", options->output, "write the cubin there");
  command.add_flag("--json", options->json,
                   "one JSON document: registers, spills, shared, constant, tool, log");
  command.callback([options, &exit_code] {
    const std::string text = read_input(options->file);
    const Assembler assembler(Settings::from_environment());
    const Assembly result = assembler.assemble(text, {.target = options->target,
                                                      .tool = tool_named(options->tool),
                                                      .file = input_name(options->file)});
    const auto* bytes = reinterpret_cast<const char*>(result.cubin.data());
    if (options->output == "-") {
      if (options->json) throw UsageError("-o - and --json both use standard output");
      write_output("-", {bytes, result.cubin.size()});
      std::cerr << described(result, *options);
    } else {
      if (!options->output.empty()) write_output(options->output, {bytes, result.cubin.size()});
      write_output({}, options->json ? text_of(as_json(result)) : described(result, *options));
    }
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
