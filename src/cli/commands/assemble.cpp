// src/cli/commands/assemble.cpp - ptxgen assemble: PTX to a cubin and its resources
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/nearest.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/assemble/disassembler.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct AssembleArguments {
  std::string file;
  std::string target;
  std::string tool = "fewest";
  std::string output;
  bool sass = false;
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

std::string described(const Assembly& result, const AssembleArguments& options) {
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

std::vector<SassFunction> machine_code(const Assembly& result) {
  const Disassembler disassembler(Settings::from_environment());
  return disassembler.disassemble(result.cubin);
}

std::string in_flight_text(const SassLoads& loads) {
  return format_text("{} of {} bytes in flight", count_text(loads.loads, "load"), loads.bytes);
}

// The instructions, and what they do with memory.
std::string sass_text(const std::vector<SassFunction>& functions) {
  std::string text;
  for (const SassFunction& function : functions) {
    text += format_text("\n{}:\n", function.name);
    for (const SassInstruction& line : function.instructions) {
      text += format_text("  /*{:04x}*/ {:>5} {} {}\n", line.offset, line.predicate, line.opcode,
                          line.operands);
    }
    const SassSummary summary = summary_of(function);
    text += format_text("{}: {}, {}, {} of local memory\n", function.name,
                        count_text(summary.instructions, "instruction"),
                        in_flight_text(summary.in_flight), count_text(summary.spills, "access"));
    for (const SassLoop& loop : summary.loops) {
      text += format_text("  loop 0x{:x} to 0x{:x}: {}, {} loaded, {} copied, {}\n", loop.first,
                          loop.last, count_text(loop.instructions, "instruction"),
                          count_text(loop.loaded_bytes, "byte"),
                          count_text(loop.copied_bytes, "byte"), in_flight_text(loop.in_flight));
    }
  }
  return text;
}

nlohmann::json to_json(const SassLoads& loads) {
  return {{"loads", loads.loads}, {"bytes", loads.bytes}, {"offset", loads.offset}};
}

nlohmann::json sass_json(const std::vector<SassFunction>& functions) {
  nlohmann::json all = nlohmann::json::array();
  for (const SassFunction& function : functions) {
    const SassSummary summary = summary_of(function);
    nlohmann::json loops = nlohmann::json::array();
    for (const SassLoop& loop : summary.loops) {
      loops.push_back({{"first", loop.first},
                       {"last", loop.last},
                       {"instructions", loop.instructions},
                       {"loaded_bytes", loop.loaded_bytes},
                       {"copied_bytes", loop.copied_bytes},
                       {"in_flight", to_json(loop.in_flight)},
                       {"streamed", to_json(loop.streamed)}});
    }
    nlohmann::json instructions = nlohmann::json::array();
    for (const SassInstruction& line : function.instructions) {
      instructions.push_back({line.offset, line.predicate, line.opcode, line.operands});
    }
    all.push_back({{"name", function.name},
                   {"spills", summary.spills},
                   {"in_flight", to_json(summary.in_flight)},
                   {"streamed", to_json(summary.streamed)},
                   {"loops", std::move(loops)},
                   {"instructions", std::move(instructions)}});
  }
  return all;
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

std::string report(const Assembly& result, const AssembleArguments& options) {
  if (!options.sass) return options.json ? text_of(as_json(result)) : described(result, options);
  const std::vector<SassFunction> functions = machine_code(result);
  if (!options.json) return described(result, options) + sass_text(functions);
  nlohmann::json document = as_json(result);
  document["sass"] = sass_json(functions);
  return text_of(document);
}

}  // namespace

void add_assemble(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<AssembleArguments>();
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
  command.add_flag("--sass", options->sass,
                   "also the machine code, by nvdisasm, its loops and the loads in flight");
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
      write_output({}, report(result, *options));
    }
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
