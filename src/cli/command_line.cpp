// src/cli/command_line.cpp - a command and its options
#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <utility>

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

Option& Option::range(std::uint64_t least, std::uint64_t most) {
  option_.check(CLI::Range(least, most));
  return *this;
}

Command::Command(CLI::App& app, const std::string& name, const std::string& description)
    : app_(*app.add_subcommand(name, description)) {}

void Command::footer(const std::string& text) { app_.footer(text); }

Option Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return Option(*app_.add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::uint32_t& value,
                           const std::string& help) {
  return Option(*app_.add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::uint64_t& value,
                           const std::string& help) {
  return Option(*app_.add_option(names, value, help));
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
