// src/cli/run_options.cpp - how ptxgen run was called
#include "cli/run_options.hpp"

#include <algorithm>
#include <charconv>

#include "cli/commands.hpp"

namespace ptxgen::cli {

namespace {

// `X[,Y[,Z]]`
emulator::Dim3 dimensions(const std::string& option, const std::string& text) {
  emulator::Dim3 size;
  std::uint32_t* const parts[] = {&size.x, &size.y, &size.z};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint32_t* part : parts) {
    const auto [stop, code] = std::from_chars(at, end, *part);
    if (code != std::errc{} || *part == 0) break;
    if (stop == end) return size;
    if (*stop != ',') break;
    at = stop + 1;
  }
  throw UsageError(option + " " + text + ": wants X[,Y[,Z]], whole numbers from 1");
}

std::string comma_text(const emulator::Dim3& size) {
  return std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z);
}

}  // namespace

emulator::Dim3 size_of_option(const std::string& option, const std::string& text) {
  return dimensions(option, text);
}

std::string_view emulator_only(const RunOptions& options) noexcept {
  const RunOptions usual;
  if (options.profile) return "--profile";
  if (options.schedules != usual.schedules) return "--schedules";
  if (options.seed != usual.seed) return "--seed";
  if (options.parallel) return "--parallel";
  if (options.max_instructions != usual.max_instructions) return "--max-instructions";
  if (options.check != usual.check) return "--check";
  if (!options.no_check.empty()) return "--no-check";
  if (!options.suppress.empty()) return "--suppress";
  if (!options.suppressions.empty()) return "--suppressions";
  if (!options.gpu.empty()) return "--gpu";
  return {};
}

const emulator::Program::Kernel& chosen_kernel(std::span<const emulator::Program::Kernel> kernels,
                                               const RunOptions& options) {
  std::string names;
  for (const emulator::Program::Kernel& kernel : kernels) {
    names += (names.empty() ? "" : ", ") + kernel.name;
  }
  if (names.empty()) throw UsageError(input_name(options.file) + " has no entry to run");
  if (options.entry.empty()) {
    if (kernels.size() == 1) return kernels.front();
    throw UsageError(input_name(options.file) +
                     " has several entries, say which with --entry: " + names);
  }
  const auto kernel = std::ranges::find(kernels, options.entry, &emulator::Program::Kernel::name);
  if (kernel == kernels.end()) {
    throw UsageError("--entry " + options.entry + ": " + input_name(options.file) +
                     " has no such entry; it has: " + names);
  }
  return *kernel;
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
  return launch;
}

}  // namespace ptxgen::cli
