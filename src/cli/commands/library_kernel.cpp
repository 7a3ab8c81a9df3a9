// src/cli/commands/library_kernel.cpp - a kernel of the library, named on the command line
#include "cli/commands/library_kernel.hpp"

#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/nearest.hpp"
#include "cli_common/numbers.hpp"

namespace ptxgen::cli {

namespace {

std::string known_kernels() {
  std::string text;
  for (const KernelDescription& entry : catalog())
    text += (text.empty() ? "" : ", ") + std::string(entry.name);
  return text;
}

std::string known_parameters(const KernelDescription& kernel) {
  std::string text;
  for (const ParameterInfo& parameter : kernel.parameters) {
    text += (text.empty() ? "" : ", ") + std::string(parameter.name) + " (" +
            range_text(parameter) + ")";
  }
  return text.empty() ? "none" : text;
}

std::uint64_t value_of(const ParameterInfo& parameter, const std::string& text) {
  for (std::size_t i = 0; i < parameter.words.size(); ++i) {
    if (parameter.words[i] == text) return i;
  }
  const std::string option = "-p " + std::string(parameter.name) + "=";
  if (parameter.words.empty()) return whole_number(option, text, parameter.min, parameter.max);
  throw UsageError(with_value(option, text) + ": expects one of " + range_text(parameter));
}

// `k=4096` into the place of `k`.
void assign(const KernelDescription& kernel, std::vector<std::uint64_t>& values,
            const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("-p expects NAME=VALUE, not '" + setting + "'");
  }
  const std::string name = setting.substr(0, equals);
  const std::string number = setting.substr(equals + 1);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ParameterInfo& parameter = kernel.parameters[i];
    if (parameter.name != name) continue;
    values[i] = value_of(parameter, number);
    return;
  }
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : kernel.parameters) names.emplace_back(parameter.name);
  throw UsageError("kernel '" + std::string(kernel.name) + "' has no parameter '" + name + "'" +
                   did_you_mean(name, names) + "; it has: " + known_parameters(kernel));
}

}  // namespace

std::string value_text(const ParameterInfo& parameter, std::uint64_t value) {
  if (value < parameter.words.size()) return std::string(parameter.words[value]);
  return std::to_string(value);
}

nlohmann::json parameters_json(const KernelDescription& kernel,
                               std::span<const std::uint64_t> values) {
  nlohmann::json parameters = nlohmann::json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ParameterInfo& info = kernel.parameters[i];
    nlohmann::json& value = parameters[std::string(info.name)];
    if (info.words.empty()) {
      value = values[i];
    } else {
      value = value_text(info, values[i]);
    }
  }
  return parameters;
}

LibraryKernel library_kernel(const std::string& name, const std::vector<std::string>& settings) {
  LibraryKernel kernel;
  kernel.entry = find_kernel(name);
  if (kernel.entry == nullptr) {
    std::vector<std::string> names;
    for (const KernelDescription& entry : catalog()) names.emplace_back(entry.name);
    throw UsageError("there is no kernel '" + name + "'" + did_you_mean(name, names) +
                     "; there are: " + known_kernels());
  }
  for (const ParameterInfo& parameter : kernel.entry->parameters) {
    kernel.values.push_back(parameter.default_value);
  }
  for (const std::string& setting : settings) assign(*kernel.entry, kernel.values, setting);
  return kernel;
}

const ptx::Target& target_named(const std::string& name) {
  if (const ptx::Target* target = ptx::find_target(name)) return *target;
  std::string known;
  for (const ptx::Target& row : ptx::targets()) known += " " + std::string(row.name);
  throw UsageError("there is no target '" + name + "'; there are:" + known);
}

}  // namespace ptxgen::cli
