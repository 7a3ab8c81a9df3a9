// src/cli/args/run_options.cpp - how ptxgen run was called
#include "cli/args/run_options.hpp"

#include <algorithm>

#include "cli/args/entry_name.hpp"
#include "cli/commands/commands.hpp"
#include "cli_common/numbers.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

std::string comma_text(const emulator::Dim3& size) {
  return format_text("{},{},{}", size.x, size.y, size.z);
}

constexpr const char* kArgumentHelp =
    "An argument SPEC, one for each parameter, in their order:\n"
    "  u8:VALUE .. u64:VALUE, s8:VALUE .. s64:VALUE, f16:VALUE, bf16:VALUE, f32:VALUE, "
    "f64:VALUE\n"
    "  bytes:HEX, null\n"
    "  in:FILE              a read-only buffer with the file's bytes\n"
    "  out:BYTES:FILE       a buffer, not initialised, written to the file afterwards\n"
    "  inout:FILE:FILE2     a buffer with the bytes of the one, written to the other\n"
    "  zero:BYTES:FILE      a buffer of zeros, written to the file afterwards\n"
    "  npy:FILE             a read-only buffer with the elements of a NumPy file\n"
    "  npy:FILE:FILE2       the same, written to another NumPy file afterwards\n"
    "  npy:TYPE:SHAPE:FILE  a buffer, not initialised, written to a NumPy file\n"
    "  random:TYPE:SHAPE[:SEED]         read-only; floats in [-1, 1), integers of full range\n"
    "  iota:TYPE:SHAPE[:START[:STEP]]   read-only; START, START + STEP, ... (0, 1, 2, ...)\n"
    "  fill:TYPE:SHAPE:VALUE            read-only; every element the same\n"
    "  print:TYPE:SHAPE     a buffer, not initialised, printed afterwards\n"
    "  print:SPEC           the buffer of an npy, random, iota or fill SPEC, printed afterwards\n"
    "  TYPE is u8 to u64, s8 to s64, f16, bf16, f32 or f64; SHAPE is N, NxM, ...\n\n";

}  // namespace

std::string argument_help(const std::string& example) { return kArgumentHelp + example; }

void add_launch_options(Command& command, RunOptions& options) {
  command
      .add_option("file", options.file,
                  "PTX file, - for standard input; CUDA C++ (*.cu) is compiled by NVRTC or nvcc")
      .required();
  command.add_option(
      "--entry", options.entry,
      "the kernel, if the file has several: its name, its C++ name or a piece of it");
  command.add_option("--grid", options.grid, "blocks: X[,Y[,Z]]").required();
  command.add_option(
      "--block", options.block,
      "threads of a block: X[,Y[,Z]]; may be left out where the kernel requires one");
  command.add_option("--cluster", options.cluster, "blocks of a cluster: X[,Y[,Z]]");
  command.add_option("--smem", options.shared_bytes, "dynamic shared memory, bytes");
  command.add_option("--arg", options.arguments, "argument SPEC, repeatable");
}

void add_rule_options(Command& command, RunOptions& options) {
  command.add_option("--check", options.check, "all, default, none, or RULE,..")
      .capture_default_str();
  command.add_option("--no-check", options.no_check, "RULE,.. that are not checked")
      .one_value_each();
  command.add_option("--suppress", options.suppress, "RULE[:KERNEL[:LINE]], repeatable")
      .one_value_each();
  command.add_option("--suppressions", options.suppressions, "a file with one of these a line");
}

emulator::Options emulator_options(const RunOptions& request) {
  emulator::Options options;
  try {
    options.checks = emulator::RuleSet::parse(request.check);
  } catch (const Error& error) {
    throw UsageError(format_text("--check {}: {}", request.check, error.message));
  }
  for (const std::string& rules : request.no_check) {
    try {
      options.checks.remove(emulator::RuleSet::parse(rules));
    } catch (const Error& error) {
      throw UsageError(format_text("--no-check {}: {}", rules, error.message));
    }
  }
  if (!request.suppressions.empty()) {
    options.suppressions = emulator::parse_suppressions(read_input(request.suppressions),
                                                        input_name(request.suppressions));
  }
  for (const std::string& text : request.suppress) {
    try {
      options.suppressions.push_back(emulator::parse_suppression(text));
    } catch (const Error& error) {
      throw UsageError(format_text("--suppress {}: {}", text, error.message));
    }
  }
  options.max_instructions = request.max_instructions;
  options.max_launch_instructions = request.max_launch_instructions;
  options.parallel = request.parallel;
  return options;
}

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
