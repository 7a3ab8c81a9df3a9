// src/cli/args/run_options.cpp - how ptxgen run was called
#include "cli/args/run_options.hpp"

#include <algorithm>

#include "cli/args/entry_name.hpp"
#include "cli/commands/commands.hpp"
#include "cli_common/numbers.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

std::string comma_text(const emulator::Dim3& size) {
  return format_text("{},{},{}", size.x, size.y, size.z);
}

}  // namespace

emulator::Dim3 size_of_option(const std::string& option, const std::string& text) {
  return dimensions(option, text);
}

std::string_view emulator_only(const RunOptions& options) noexcept {
  const RunOptions usual;
  if (options.profile) return "--profile";
  if (options.profile_source) return "--profile-source";
  if (options.schedules != usual.schedules) return "--schedules";
  if (options.seed != usual.seed) return "--seed";
  if (options.parallel) return "--parallel";
  if (options.max_instructions != usual.max_instructions) return "--max-instructions";
  if (options.max_launch_instructions != usual.max_launch_instructions) {
    return "--max-launch-instructions";
  }
  if (options.check != usual.check) return "--check";
  if (!options.no_check.empty()) return "--no-check";
  if (!options.suppress.empty()) return "--suppress";
  if (!options.suppressions.empty()) return "--suppressions";
  if (!options.device.gpu.empty()) return "--gpu";
  return {};
}

const emulator::Program::Kernel& chosen_kernel(std::span<const emulator::Program::Kernel> kernels,
                                               const RunOptions& options) {
  std::vector<std::string> names;
  for (const emulator::Program::Kernel& kernel : kernels) names.push_back(kernel.name);
  return kernels[entry_index(names, options.entry, input_name(options.file))];
}

std::string parameter_name(const emulator::Program::Kernel& kernel, std::size_t index) {
  const std::string& name = kernel.parameters[index].name;
  return name.starts_with(kernel.name + "_") ? name.substr(kernel.name.size() + 1) : name;
}

void check_outputs(const RunOptions& options, std::span<const emulator::ArgumentSpec> specs) {
  std::vector<std::string> paths;
  const auto check = [&paths](const std::string& option, const std::string& path) {
    if (path.empty() || path == "-") return;
    check_writable(option, path);
    if (std::ranges::find(paths, path) != paths.end()) {
      throw UsageError(option + ": '" + path + "' is written twice; name another file");
    }
    paths.push_back(path);
  };
  check("-o", options.output);
  for (const emulator::ArgumentSpec& spec : specs) check("--arg " + spec.text, spec.output);
}

emulator::Launch launch_of(const RunOptions& options, const emulator::Program::Kernel& kernel) {
  const bool block_required = kernel.required_block.count() != 0;
  const bool cluster_required = kernel.required_cluster.count() != 0;
  if (options.block.empty() && !block_required) {
    throw UsageError("--block is missing, and the kernel requires no block size of its own");
  }
  emulator::Launch launch;
  launch.kernel = kernel.name;
  launch.grid = dimensions("--grid", options.grid);
  launch.block =
      options.block.empty() ? kernel.required_block : dimensions("--block", options.block);
  if (cluster_required) launch.cluster = kernel.required_cluster;
  if (!options.cluster.empty()) {
    launch.cluster = dimensions("--cluster", options.cluster);
    if (cluster_required && launch.cluster != kernel.required_cluster) {
      throw UsageError("--cluster " + options.cluster + ": the kernel's .reqnctapercluster is " +
                       comma_text(kernel.required_cluster) +
                       "; leave --cluster out or say the same");
    }
  }
  launch.dynamic_shared_bytes = options.shared_bytes;
  launch.cooperative = options.cooperative;
  return launch;
}

LaunchGeometry geometry_of(const emulator::Launch& launch) {
  const auto size = [](const emulator::Dim3& d) { return Dim3{d.x, d.y, d.z}; };
  LaunchGeometry geometry;
  geometry.grid = size(launch.grid);
  geometry.block = size(launch.block);
  geometry.cluster = size(launch.cluster);
  geometry.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  geometry.cooperative = launch.cooperative;
  return geometry;
}

}  // namespace ptxgen::cli
