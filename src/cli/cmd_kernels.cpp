// src/cli/cmd_kernels.cpp - ptxgen list and dump: the library's kernels
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::cli {

namespace {

std::string range_text(const ParameterInfo& parameter) {
  return std::to_string(parameter.least) + ".." + std::to_string(parameter.most);
}

std::string known_kernels() {
  std::string text;
  for (const CatalogEntry& entry : catalog())
    text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

std::string known_parameters(const CatalogEntry& kernel) {
  std::string text;
  for (const ParameterInfo& parameter : kernel.parameters) {
    text += (text.empty() ? "" : ", ") + std::string(parameter.name) + " (" +
            range_text(parameter) + ")";
  }
  return text.empty() ? "none" : text;
}

// `k=4096` into the place of `k`.
void assign(const CatalogEntry& kernel, std::vector<std::uint64_t>& values,
            const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("-p wants NAME=VALUE, not '" + setting + "'");
  }
  const std::string name = setting.substr(0, equals);
  const std::string number = setting.substr(equals + 1);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ParameterInfo& parameter = kernel.parameters[i];
    if (parameter.name != name) continue;
    const char* end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, values[i]);
    if (error != std::errc{} || stop != end || values[i] < parameter.least ||
        values[i] > parameter.most) {
      throw UsageError("-p " + name + "=" + number + ": wants a whole number in " +
                       range_text(parameter));
    }
    return;
  }
  throw UsageError("kernel '" + std::string(kernel.name) + "' has no parameter '" + name +
                   "'; it has: " + known_parameters(kernel));
}

nlohmann::json as_json() {
  nlohmann::json kernels = nlohmann::json::array();
  for (const CatalogEntry& entry : catalog()) {
    nlohmann::json parameters = nlohmann::json::array();
    for (const ParameterInfo& parameter : entry.parameters) {
      parameters.push_back({{"name", parameter.name},
                            {"type", parameter.type},
                            {"default", parameter.default_value},
                            {"doc", parameter.doc},
                            {"range", {parameter.least, parameter.most}}});
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
  for (const CatalogEntry& entry : catalog()) {
    text += std::string(entry.name) + "\n    " + std::string(entry.doc) + "\n    " +
            std::string(entry.access_pattern) + "\n";
    for (const ParameterInfo& parameter : entry.parameters) {
      text += "    -p " + std::string(parameter.name) + "=" +
              std::to_string(parameter.default_value) + "  " + std::string(parameter.type) + " " +
              range_text(parameter) + "  " + std::string(parameter.doc) + "\n";
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

void add_dump(CLI::App& app, int& exit_code) {
  struct Options {
    std::string kernel;
    std::vector<std::string> settings;
    std::string target = "sm_89";
    std::string output;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command(app, "dump", "Print the PTX of a kernel of the library");
  command.footer("Example: ptxgen dump gemv_coalesced -p k=4096 -p n=4096 --target sm_90");
  command.add_option("kernel", options->kernel, "a name that `ptxgen list` shows").required();
  command.add_option("-p", options->settings, "NAME=VALUE, repeatable").one_value_each();
  command.add_option("--target", options->target, "sm_75 to sm_121, a and f variants")
      .capture_default_str();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json, "one JSON document: {\"ptx\",\"kernel\",\"target\"}");
  command.callback([options, &exit_code] {
    const CatalogEntry* kernel = find_kernel(options->kernel);
    if (kernel == nullptr) {
      throw UsageError("there is no kernel '" + options->kernel +
                       "'; there are: " + known_kernels());
    }
    const ptx::Target* target = ptx::find_target(options->target);
    if (target == nullptr) {
      std::string known;
      for (const ptx::Target& row : ptx::targets()) known += " " + std::string(row.name);
      throw UsageError("there is no target '" + options->target + "'; there are:" + known);
    }
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : kernel->parameters)
      values.push_back(parameter.default_value);
    for (const std::string& setting : options->settings) assign(*kernel, values, setting);
    const std::string text = ptx::print(kernel->build(values, *target));
    if (options->json) {
      if (!options->output.empty()) write_output(options->output, text);
      write_output({},
                   text_of({{"ptx", text}, {"kernel", kernel->name}, {"target", target->name}}));
    } else {
      write_output(options->output, text);
    }
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
