// src/support/subprocess.hpp - running another program
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ptxgen::inline v0 {

struct SubprocessOptions {
  std::string folder;                         ///< working folder; empty: the caller's
  std::chrono::milliseconds timeout{120000};  ///< then the program's process group is killed
};

struct SubprocessResult {
  int exit_code = -1;      ///< -1 when a signal ended the program
  int signal = 0;          ///< that signal, or 0
  bool timed_out = false;  ///< the program was killed because its time was up
  std::string out;         ///< everything it wrote to stdout, never cut
  std::string err;         ///< everything it wrote to stderr, never cut
};

/// Runs `argv[0]` (a path, no search) with the given arguments, no shell between, stdin empty, the
/// caller's environment, and waits for it. An exit status other than 0 is a result, not an error.
/// Throws `Error` (stage io, code "not-found" or "spawn") when the program cannot be started.
/// May be called from several threads.
[[nodiscard]] SubprocessResult run_program(const std::vector<std::string>& argv,
                                           const SubprocessOptions& options = {});

}  // namespace ptxgen::inline v0
