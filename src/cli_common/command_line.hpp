// src/cli_common/command_line.hpp - a command and its options, without the parser's header
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  /// `count` values after the option's name, each time: `--a x y --a z w`. They are appended.
  Option& values_each(int count);
  /// A number from `min` to `max`, for options with a number.
  Option& range(std::uint64_t min, std::uint64_t max);

  /// After parsing: whether the call has it.
  [[nodiscard]] bool in_use() const;

 private:
  friend class Command;
  struct Range {
    std::uint64_t min = 0;
    std::uint64_t max = ~std::uint64_t{0};
  };
  Option(CLI::Option& option, std::shared_ptr<Range> range)
      : option_(option), range_(std::move(range)) {}

  CLI::Option& option_;
  std::shared_ptr<Range> range_;  // the parser of a number reads it; null for other options
};

/// A subcommand of the program while it is set up. Variables must live until the program has run.
class Command {
 public:
  Command(CLI::App& app, const std::string& name, const std::string& description);

  void footer(const std::string& text);
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  /// Integers, parsed by `whole_number`: a value out of range is a `UsageError`.
  Option add_option(const std::string& names, std::uint32_t& value, const std::string& help);
  Option add_option(const std::string& names, std::uint64_t& value, const std::string& help);
  Option add_option(const std::string& names, std::vector<std::string>& values,
                    const std::string& help);
  void add_flag(const std::string& name, bool& value, const std::string& help);
  /// A flag that a variable of the environment sets as well, to any text: `value` is that text,
  /// "true" for the flag, empty for neither.
  void add_flag(const std::string& name, std::string& value, const std::string& variable,
                const std::string& help);
  /// The function that runs the command.
  void callback(std::function<void()> run);

 private:
  template <class T>
  Option add_number(const std::string& names, T& value, const std::string& help);

  CLI::App& app_;
};

/// The message for a misspelt command or option, with the nearest name. Empty where the parser's
/// own message is better.
[[nodiscard]] std::string misspelling(const CLI::App& app, int argc, char** argv);

}  // namespace ptxgen::cli
