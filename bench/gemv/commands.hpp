// bench/gemv/commands.hpp - the subcommands of gemv-bench
#pragma once

namespace CLI {
class App;
}

namespace ptxgen::gemv_bench {

/// Each adds one subcommand to `app`; the subcommand sets `exit_code` when it runs.
void add_run(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);
void add_decode(CLI::App& app, int& exit_code);

}  // namespace ptxgen::gemv_bench
