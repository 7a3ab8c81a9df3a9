// src/cli/args/command_tree.cpp - the program's commands and options, as data
#include "cli/args/command_tree.hpp"

#include <CLI/CLI.hpp>

namespace ptxgen::cli {

namespace {

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  entry.positional = option.get_positional();
  if (entry.positional) entry.names = {option.get_name(true)};
  const bool flag = option.get_items_expected_max() == 0;
  entry.value = flag ? "" : option.get_type_name();
  entry.help = option.get_description();
  entry.default_text = option.get_default_str();
  entry.required = option.get_required();
  return entry;
}

CommandEntry command_of(const CLI::App& app, const std::string& name) {
  CommandEntry entry{name, app.get_description(), app.get_footer(), {}};
  for (const CLI::Option* option : app.get_options()) entry.options.push_back(entry_of(*option));
  return entry;
}

}  // namespace

std::vector<CommandEntry> command_tree(const CLI::App& app) {
  std::vector<CommandEntry> tree = {command_of(app, "")};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    tree.push_back(command_of(*command, command->get_name()));
  }
  return tree;
}

}  // namespace ptxgen::cli
