// src/cli/commands/completion.cpp - ptxgen manual, ptxgen completion
#include <memory>

#include "cli/args/command_tree.hpp"
#include "cli/commands/commands.hpp"
#include "cli_common/nearest.hpp"

namespace ptxgen::cli {

void add_manual(CLI::App& app, int& exit_code) {
  auto output = std::make_shared<std::string>();
  Command command(app, "manual", "Print the manual page, in roff");
  command.footer("Example: ptxgen manual | man -l -");
  command.add_option("-o,--output", *output, "write there instead of standard output");
  command.callback([output, &app, &exit_code] {
    write_output(*output, manual_page(command_tree(app)));
    exit_code = kDone;
  });
}

void add_completion(CLI::App& app, int& exit_code) {
  struct Options {
    std::string shell;
    std::string output;
  };
  auto options = std::make_shared<Options>();
  Command command(app, "completion", "Print the completion script of a shell");
  command.footer(
      "Example: ptxgen completion bash > ~/.local/share/bash-completion/completions/ptxgen");
  command.add_option("shell", options->shell, "bash, zsh or fish").required();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.callback([options, &app, &exit_code] {
    const std::string text = completion(command_tree(app), options->shell);
    if (text.empty()) {
      const std::vector<std::string> names = {"bash", "zsh", "fish"};
      throw UsageError("there is no completion for the shell '" + options->shell +
                       "'; expects bash, zsh or fish" + did_you_mean(options->shell, names));
    }
    write_output(options->output, text);
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
