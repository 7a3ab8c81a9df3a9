// src/cli/command_line.cpp - a command and its options
#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>

#include "cli/numbers.hpp"

namespace ptxgen::cli {

Option& Option::required() {
  option_.required();
  return *this;
}

Option& Option::capture_default_str() {
  option_.capture_default_str();
  return *this;
}

Option& Option::one_value_each() {
  option_.allow_extra_args(false);
  return *this;
}

Option& Option::range(std::uint64_t min, std::uint64_t max) {
  *range_ = {min, max};
  return *this;
}

Command::Command(CLI::App& app, const std::string& name, const std::string& description)
    : app_(*app.add_subcommand(name, description)) {}

void Command::footer(const std::string& text) { app_.footer(text); }

Option Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return Option(*app_.add_option(names, value, help));
}

// CLI11's own conversion takes "-1" for the largest number, so the text is read here.
template <class T>
Option Command::add_number(const std::string& names, T& value, const std::string& help) {
  auto range = std::make_shared<Option::Range>();
  range->max = std::numeric_limits<T>::max();
  const std::string name = names.substr(names.rfind(',') + 1);
  CLI::Option* const option = app_.add_option(
      names,
      [range, name, &value](const CLI::results_t& results) {
        value = static_cast<T>(whole_number(name, results.back(), range->min, range->max));
        return true;
      },
      help, false, [&value] { return std::to_string(value); });
  option->type_name("UINT");
  return {*option, std::move(range)};
}

Option Command::add_option(const std::string& names, std::uint32_t& value,
                           const std::string& help) {
  return add_number(names, value, help);
}

Option Command::add_option(const std::string& names, std::uint64_t& value,
                           const std::string& help) {
  return add_number(names, value, help);
}

Option Command::add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help) {
  return Option(*app_.add_option(names, values, help));
}

void Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  app_.add_flag(name, value, help);
}

void Command::callback(std::function<void()> run) { app_.callback(std::move(run)); }

}  // namespace ptxgen::cli
