// src/cli/commands/gemv_bench.cpp - calls that belong to the program gemv-bench
#include "cli/commands/gemv_bench.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "support/format.hpp"

#ifndef _WIN32
#include <unistd.h>
#endif

#include "cli_common/program.hpp"

namespace ptxgen::cli {

namespace {

// Replaces this process; returns why it could not.
std::string execute(const std::string& program, const std::vector<std::string>& arguments) {
#ifdef _WIN32
  (void)program, (void)arguments;
  return "this system cannot replace a process";
#else
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  return std::generic_category().message(errno);
#endif
}

}  // namespace

std::optional<std::vector<std::string>> gemv_bench_call(const std::vector<std::string>& call) {
  if (call.size() < 2) return {};
  std::vector<std::string> arguments(call.begin() + 1, call.end());
  if (arguments[0] == "tune") return arguments;
  if (arguments[0] == "gemv-bench") {
    arguments[0] = "run";
    return arguments;
  }
  if (arguments[0] == "decode-estimate" && std::erase(arguments, "--measure") > 0) {
    arguments[0] = "decode";
    return arguments;
  }
  return {};
}

int run_gemv_bench(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / "gemv-bench").string();
  const std::string why = error ? error.message() : execute(program, arguments);
  std::cerr << format_text(
      "ptxgen: GEMV is measured by the program gemv-bench, which was not started from the folder "
      "of ptxgen ({}: {}); run gemv-bench {}\n",
      program, why, arguments.front());
  return kUsage;
}

}  // namespace ptxgen::cli
