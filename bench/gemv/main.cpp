// bench/gemv/main.cpp - the gemv-bench program: GEMV measured on a device
#include "bench/gemv/commands.hpp"
#include "cli_common/program.hpp"

int main(int argc, char** argv) {
  using namespace ptxgen;
  cli::Program program;
  program.name = "gemv-bench";
  program.description = "Measure GEMV on a device; every result is checked";
  program.footer = "Example: gemv-bench run --shapes grid,llama-2-7b --out results";
  program.add_commands = [](CLI::App& app, int& exit_code) {
    gemv_bench::add_run(app, exit_code);
    gemv_bench::add_tune(app, exit_code);
    gemv_bench::add_decode(app, exit_code);
  };
  return cli::run_main(program, argc, argv);
}
