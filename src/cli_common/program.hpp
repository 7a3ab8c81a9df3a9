// src/cli_common/program.hpp - the main function that the programs share
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace ptxgen::cli {

/// Exit codes of the contract: done; an error finding or wrong result; usage, I/O, unreadable PTX.
enum ExitCode : int { kDone = 0, kFound = 1, kUsage = 2 };

/// A mistake in the call of a program; printed with a pointer to `--help`.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A program whose first argument names a subcommand.
struct Program {
  std::string name;  ///< as users call it; messages begin with it
  std::string description;
  std::string footer;  ///< of `--help`
  /// Adds the subcommands. Each sets `exit_code` when it runs.
  std::function<void(CLI::App& app, int& exit_code)> add_commands;
};

/// Parses the call and runs its subcommand; the exit code. Exceptions become messages on standard
/// error and exit code 2.
[[nodiscard]] int run_main(const Program& program, int argc, char** argv);

}  // namespace ptxgen::cli
