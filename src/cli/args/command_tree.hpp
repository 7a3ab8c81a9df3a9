// src/cli/args/command_tree.hpp - the program's commands and options, as data
#pragma once

#include <string>
#include <vector>

#include "cli_common/command_line.hpp"

namespace ptxgen::cli {

/// One option or positional argument, as the command line parser knows it.
struct OptionEntry {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional its one name
  std::string value;               ///< "UINT", "TEXT"; empty for a flag
  std::string help;
  std::string default_text;  ///< as `--help` shows it, or empty
  bool positional = false;
  bool required = false;
};

struct CommandEntry {
  std::string name;
  std::string help;
  std::string footer;
  std::vector<OptionEntry> options;
};

/// All commands of the program in the order of `--help`; the first entry, without a name, is the
/// program itself. Manual and completions are generated from it.
[[nodiscard]] std::vector<CommandEntry> command_tree(const CLI::App& app);

/// The manual page in roff, section 1.
[[nodiscard]] std::string manual_page(const std::vector<CommandEntry>& tree);
/// The completion of a shell: "bash", "zsh" or "fish"; empty for any other.
[[nodiscard]] std::string completion(const std::vector<CommandEntry>& tree,
                                     const std::string& shell);

/// Subcommands, as those of commands.hpp: `manual`, `completion`.
void add_manual(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);

}  // namespace ptxgen::cli
