// src/cli/output/run_report.hpp - findings and counters of a run, its progress
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/report/profile.hpp"

namespace ptxgen::cli {

/// As `to_json(Finding)`, with block, thread, the other party and the count.
[[nodiscard]] nlohmann::json to_json(const emulator::RunFinding& finding);
[[nodiscard]] nlohmann::json to_json(const std::vector<emulator::RunFinding>& findings);
/// kFound if there is an error (or, when strict, a warning).
[[nodiscard]] ExitCode verdict(const std::vector<emulator::RunFinding>& findings, bool strict);

/// The names of rules, a list.
[[nodiscard]] nlohmann::json to_json(emulator::RuleSet rules);
/// "; not checked: RULE, RULE", or nothing for none.
[[nodiscard]] std::string not_checked(emulator::RuleSet rules);
/// The `counters` of `run` and `gemv`.
[[nodiscard]] nlohmann::json to_json(const emulator::Counters& counters);
/// The `lines` of `run --profile`.
[[nodiscard]] nlohmann::json lines_json(const emulator::Counters& counters);

/// The `sources` of `run --profile-source`.
[[nodiscard]] nlohmann::json sources_json(std::span<const emulator::SourceCounters> sources);

/// "ok", "findings" or "fault".
[[nodiscard]] std::string_view name_of(emulator::Status status) noexcept;

/// "12 of 4096 blocks after 2 s, about 11 min left".
[[nodiscard]] std::string progress_text(std::uint64_t done, std::uint64_t total,
                                        std::string_view units, double seconds);

/// The progress of long work on standard error: a bar on a terminal; else a line after 2, 4,
/// 8, ... seconds.
class ProgressBar {
 public:
  /// Of a launch.
  explicit ProgressBar(std::string label);
  /// Of work that is counted in `units`; lines end with `hint`. Both are literals.
  ProgressBar(std::string label, std::string_view units, std::string_view hint);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// The callback for a launch; the bar must outlive the launch.
  [[nodiscard]] emulator::Progress sink() noexcept;
  void show(std::uint64_t done, std::uint64_t total);
  /// Removes the bar from the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::string_view units_;
  std::string_view hint_;
  Clock::time_point begin_;
  Clock::time_point next_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace ptxgen::cli
