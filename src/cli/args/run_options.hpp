// src/cli/args/run_options.hpp - how ptxgen run was called
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/args/profile_options.hpp"
#include "cli_common/device_choice.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/host/arguments.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::cli {

struct RunOptions {
  std::string file;
  std::string entry;
  std::string grid;
  std::string block;
  std::string cluster;
  std::uint32_t shared_bytes = 0;
  std::vector<std::string> arguments;
  std::uint64_t seed = 0;
  std::uint64_t schedules = 1;
  std::uint64_t max_instructions = emulator::Options{}.max_instructions;
  std::uint64_t max_launch_instructions = emulator::Options{}.max_launch_instructions;
  bool cooperative = false;
  bool parallel = false;
  bool profile = false;
  bool profile_source = false;
  bool all = false;
  std::string check = "default";
  std::vector<std::string> no_check;
  std::vector<std::string> suppress;
  std::string suppressions;
  DeviceOptions device;
  ProfileOptions profiling;
  std::string output;
  bool no_gates = false;
  bool json = false;
  bool strict = false;
};

/// File, kernel, sizes and arguments of a launch.
void add_launch_options(Command& command, RunOptions& options);
/// The rules that are checked, and findings that are suppressed.
void add_rule_options(Command& command, RunOptions& options);
/// The forms of an argument SPEC, and an example: the end of --help.
[[nodiscard]] std::string argument_help(const std::string& example);
/// Checks, suppressions and budgets. Throws `UsageError`, and `Error` for the file of suppressions.
[[nodiscard]] emulator::Options emulator_options(const RunOptions& options);

/// `X[,Y[,Z]]` of an option. Throws `UsageError`.
[[nodiscard]] emulator::Dim3 size_of_option(const std::string& option, const std::string& text);

/// The first option in use that only the emulator supports, as in messages, or empty.
[[nodiscard]] std::string_view emulator_only(const RunOptions& options) noexcept;

/// The kernel that is meant. Throws `UsageError`.
[[nodiscard]] const emulator::Program::Kernel& chosen_kernel(
    std::span<const emulator::Program::Kernel> kernels, const RunOptions& options);
/// The short name of a parameter: `param_0` for the compilers' `KERNEL_param_0`.
[[nodiscard]] std::string parameter_name(const emulator::Program::Kernel& kernel,
                                         std::size_t index);
/// Throws `UsageError` for an output file that cannot be written, or is written twice.
void check_outputs(const RunOptions& options, std::span<const emulator::ArgumentSpec> specs);
/// The launch without its arguments. Throws `UsageError`.
[[nodiscard]] emulator::Launch launch_of(const RunOptions& options,
                                         const emulator::Program::Kernel& kernel);
/// The same for the runtime.
[[nodiscard]] LaunchGeometry geometry_of(const emulator::Launch& launch);

}  // namespace ptxgen::cli
