// src/cli/commands/commands.hpp - the subcommands and what they share
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cli_common/command_line.hpp"
#include "cli_common/files.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::cli {

/// The subcommands. Each adds itself to `app`; when it was called, `exit_code` is set by its run.
void add_list(CLI::App& app, int& exit_code);
void add_dump(CLI::App& app, int& exit_code);
void add_fmt(CLI::App& app, int& exit_code);
void add_diff(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_opt(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_assemble(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_step(CLI::App& app, int& exit_code);
void add_gemv(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_predict(CLI::App& app, int& exit_code);
void add_record(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_decode_estimate(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_gguf(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_parity(CLI::App& app, int& exit_code);
void add_playbook(CLI::App& app, int& exit_code);
void add_coverage(CLI::App& app, int& exit_code);
void add_qa(CLI::App& app, int& exit_code);
void add_perplexity(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);

// Findings --------------------------------------------------------------------------------------

[[nodiscard]] nlohmann::json to_json(const Finding& finding);
/// `{"findings":[..]}`
[[nodiscard]] nlohmann::json to_json(const std::vector<Finding>& findings);
/// kFound if there is an error (or, when strict, a warning).
[[nodiscard]] ExitCode verdict(const std::vector<Finding>& findings, bool strict);

}  // namespace ptxgen::cli
