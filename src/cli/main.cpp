// src/cli/main.cpp - the ptxgen program
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <new>

#include "cli/args/command_tree.hpp"
#include "cli/commands/commands.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/version.hpp"

namespace {

using namespace ptxgen::cli;

int run(int argc, char** argv) {
  CLI::App app("Build, check, run and study GPU kernels as PTX; no GPU or CUDA toolkit needed");
  app.name("ptxgen");
  app.set_version_flag("--version", std::string(ptxgen::kVersion));
  app.require_subcommand(1);
  app.footer("Example: ptxgen dump gemv_coalesced -p k=4096 -p n=4096 | ptxgen check -");
  int exit_code = kDone;
  add_list(app, exit_code);
  add_dump(app, exit_code);
  add_fmt(app, exit_code);
  add_check(app, exit_code);
  add_opt(app, exit_code);
  add_explain(app, exit_code);
  add_assemble(app, exit_code);
  add_run(app, exit_code);
  add_gemv(app, exit_code);
  add_bench(app, exit_code);
  add_gemv_bench(app, exit_code);
  add_tune(app, exit_code);
  add_plan(app, exit_code);
  add_decode_estimate(app, exit_code);
  add_doctor(app, exit_code);
  add_manual(app, exit_code);
  add_completion(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end here too, with success; CLI11's own codes are above 100.
    const std::string misspelt = error.get_exit_code() == 0 ? "" : misspelling(app, argc, argv);
    if (!misspelt.empty()) {
      std::cerr << misspelt;
      return kUsage;
    }
    return app.exit(error, std::cout, std::cerr) == 0 ? kDone : kUsage;
  } catch (const UsageError& error) {
    std::cerr << "ptxgen: " << error.what() << "\nRun with --help for more information.\n";
    return kUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const ptxgen::Error& error) {
    std::cerr << error.what() << '\n';
    return kUsage;
  } catch (const std::bad_alloc&) {
    std::cerr << "ptxgen: this machine has too little memory for what was asked\n";
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "ptxgen: " << error.what() << '\n';
    return kUsage;
  }
}
