// src/cli_common/program.cpp - the main function that the programs share
#include "cli_common/program.hpp"

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <new>

#include "cli_common/command_line.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/version.hpp"

namespace ptxgen::cli {

namespace {

int run(const Program& program, int argc, char** argv) {
  CLI::App app(program.description);
  app.name(program.name);
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  app.footer(program.footer);
  int exit_code = kDone;
  program.add_commands(app, exit_code);
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
    std::cerr << program.name << ": " << error.what()
              << "\nRun with --help for more information.\n";
    return kUsage;
  }
  return exit_code;
}

}  // namespace

int run_main(const Program& program, int argc, char** argv) {
  try {
    return run(program, argc, argv);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << program.name << ": the host has too little memory for this call\n";
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << '\n';
  }
  return kUsage;
}

}  // namespace ptxgen::cli
