// src/cli/commands/commands.hpp - the subcommands and what they share
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/args/command_line.hpp"
#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::cli {

/// Exit codes of the contract: done; an error finding or wrong result; usage, I/O, unreadable PTX.
enum ExitCode : int { kDone = 0, kFound = 1, kUsage = 2 };

/// A mistake in how the program was called; printed with a pointer to `--help`.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The subcommands. Each adds itself to `app`; when it was called, `exit_code` is set by its run.
void add_list(CLI::App& app, int& exit_code);
void add_dump(CLI::App& app, int& exit_code);
void add_fmt(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_opt(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_assemble(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_gemv(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_gemv_bench(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_decode_estimate(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);

// Files -----------------------------------------------------------------------------------------

/// What a PTX text may have at most.
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;
/// The whole file, or standard input for "-", of at most `max_bytes`. Throws `Error` (stage io), as
/// `read_file`.
[[nodiscard]] std::string read_input(const std::string& path,
                                     std::uint64_t max_bytes = kMaxTextBytes);
/// How messages call that input.
[[nodiscard]] std::string input_name(const std::string& path);
/// Writes to the file, or to standard output if `path` is empty or "-". Throws `Error` (stage io).
void write_output(const std::string& path, std::string_view bytes);
/// Throws `UsageError` that begins with `option` where a file of that name cannot be written: it is
/// a folder or read-only, or its folder is missing or read-only. Nothing is created or changed.
void check_writable(const std::string& option, const std::string& path);
enum class Stream { Out, Err };
/// Whether standard output or error is a terminal.
[[nodiscard]] bool is_terminal(Stream stream) noexcept;

// Findings --------------------------------------------------------------------------------------

[[nodiscard]] nlohmann::json to_json(const Finding& finding);
/// `{"findings":[..]}`
[[nodiscard]] nlohmann::json to_json(const std::vector<Finding>& findings);
/// kFound if there is an error (or, when strict, a warning).
[[nodiscard]] ExitCode verdict(const std::vector<Finding>& findings, bool strict);

/// JSON as the program prints it: two spaces of indentation, invalid UTF-8 replaced.
[[nodiscard]] std::string text_of(const nlohmann::json& json);

}  // namespace ptxgen::cli
