// src/cli/command_line.hpp - a command and its options, without the parser's header
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// CLI11 is one large header whose functions every file that includes it would compile again.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ptxgen::cli {

/// An option that was added; each method returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option& required();
  /// `--help` shows the value that the variable has now.
  Option& capture_default_str();
  /// Each value is announced by the option's name: `-p a -p b`, not `-p a b`.
  Option& one_value_each();
  /// A number from `least` to `most`.
  Option& range(std::uint64_t least, std::uint64_t most);

 private:
  CLI::Option& option_;
};

/// A subcommand of the program while it is set up. Variables must live until the program was run.
class Command {
 public:
  Command(CLI::App& app, const std::string& name, const std::string& description);

  void footer(const std::string& text);
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  Option add_option(const std::string& names, std::uint32_t& value, const std::string& help);
  Option add_option(const std::string& names, std::uint64_t& value, const std::string& help);
  Option add_option(const std::string& names, std::vector<std::string>& values,
                    const std::string& help);
  void add_flag(const std::string& name, bool& value, const std::string& help);
  /// What runs when the program was called with this command.
  void callback(std::function<void()> run);

 private:
  CLI::App& app_;
};

}  // namespace ptxgen::cli
