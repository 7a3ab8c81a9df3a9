// src/cli/args/pass_choice.hpp - passes on the command line and their report
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli_common/command_line.hpp"
#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::cli {

/// `--passes` and the options of passes. Must live as long as the command.
struct PassChoice {
  std::string passes = "default";
  std::string contract = "on";
  std::uint32_t split_threshold = 1;

  void add_to(Command& command);
  /// Throws `UsageError` for a pass that there is not.
  [[nodiscard]] optimize::PassOptions options() const;
};

/// `[{"name","changed","decisions":[..]}]` and counts, times and sizes of each.
[[nodiscard]] nlohmann::json to_json(const optimize::PipelineReport& report);
/// What each pass did; at most three decisions of a pass for each reason, unless `all`.
[[nodiscard]] std::string passes_text(const optimize::PipelineReport& report,
                                      const ptx::Module& module, bool all);

}  // namespace ptxgen::cli
