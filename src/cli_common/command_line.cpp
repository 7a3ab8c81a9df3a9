// src/cli_common/command_line.cpp - a command and its options
#include "cli_common/command_line.hpp"

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>

#include "cli_common/nearest.hpp"
#include "cli_common/numbers.hpp"

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

Option& Option::values_each(int count) {
  option_.type_size(count)->expected(1, CLI::detail::expected_max_vector_size);
  option_.allow_extra_args(false);
  return *this;
}

bool Option::in_use() const { return option_.count() != 0; }

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

void Command::add_flag(const std::string& name, std::string& value, const std::string& variable,
                       const std::string& help) {
  app_.add_flag(name, value, help)->envname(variable);
}

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// The first argument that begins with a dash and is no option of that app.
std::string unknown_option(const CLI::App& app) {
  for (const std::string& argument : app.remaining()) {
    if (argument.size() > 1 && argument[0] == '-') return argument.substr(0, argument.find('='));
  }
  return {};
}

}  // namespace

std::string misspelling(const CLI::App& app, int argc, char** argv) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::string option = unknown_option(*command);
    if (option.empty()) continue;
    return app.get_name() + " " + command->get_name() + ": there is no option '" + option + "'" +
           did_you_mean(option, option_names(*command)) + "\nRun " + app.get_name() + " " +
           command->get_name() + " --help for its options.\n";
  }
  if (!app.get_subcommands().empty() || argc < 2) return {};
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  const std::string word = argv[1];
  const bool is_option = word.starts_with('-');
  std::string text = app.get_name() + ": there is no " + (is_option ? "option '" : "command '") +
                     word + "'" + did_you_mean(word, is_option ? option_names(app) : commands);
  if (!is_option) text += "; there are: " + listed(commands);
  return text + "\nRun " + app.get_name() + " --help for more information.\n";
}

void Command::callback(std::function<void()> run) { app_.callback(std::move(run)); }

}  // namespace ptxgen::cli
