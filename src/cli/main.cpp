// src/cli/main.cpp - the ptxgen program
#include "cli/args/command_tree.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/gemv_bench.hpp"
#include "cli_common/program.hpp"

int main(int argc, char** argv) {
  using namespace ptxgen::cli;
  if (const auto forwarded = gemv_bench_call({argv, argv + argc})) {
    return run_gemv_bench(*forwarded);
  }
  Program program;
  program.name = "ptxgen";
  program.description =
      "Build, check, run and study GPU kernels as PTX; no GPU or CUDA toolkit needed";
  program.footer =
      "Example: ptxgen dump gemv_coalesced -p k=4096 -p n=4096 | ptxgen check -\n"
      "GEMV is measured by the program gemv-bench beside this one: run, tune, decode.";
  program.add_commands = [](CLI::App& app, int& exit_code) {
    for (const auto add : {add_list,
                           add_dump,
                           add_fmt,
                           add_diff,
                           add_check,
                           add_opt,
                           add_explain,
                           add_assemble,
                           add_run,
                           add_step,
                           add_record,
                           add_replay,
                           add_gemv,
                           add_verify,
                           add_parity,
                           add_bench,
                           add_plan,
                           add_predict,
                           add_decode_estimate,
                           add_gguf,
                           add_tokenize,
                           add_generate,
                           add_perplexity,
                           add_coverage,
                           add_qa,
                           add_playbook,
                           add_doctor,
                           add_manual,
                           add_completion}) {
      add(app, exit_code);
    }
  };
  return run_main(program, argc, argv);
}
