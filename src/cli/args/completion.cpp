// src/cli/args/completion.cpp - completions for shells, made of the command tree
#include "cli/args/command_tree.hpp"

#include "support/join.hpp"

namespace ptxgen::cli {

namespace {

// In single quotes.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> option_names(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> command_names(const std::vector<CommandEntry>& tree) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < tree.size(); ++i) names.push_back(tree[i].name);
  return names;
}

std::string for_bash(const std::vector<CommandEntry>& tree) {
  std::string text =
      "# bash completion for ptxgen\n"
      "_ptxgen() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    words=" +
      quoted(join_text(command_names(tree), " ") + " " +
             join_text(option_names(tree.front()), " ")) +
      "\n  else\n    case \"${COMP_WORDS[1]}\" in\n";
  for (std::size_t i = 1; i < tree.size(); ++i) {
    text += "      " + tree[i].name + ") words=" + quoted(join_text(option_names(tree[i]), " ")) +
            " ;;\n";
  }
  text +=
      "    esac\n"
      "  fi\n"
      "  case \"$COMP_CWORD:$word\" in\n"
      "    1:* | *:-*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _ptxgen ptxgen\n";
  return text;
}

// `_arguments` splits a specification at colons and closes the help at a bracket.
std::string zsh_help(const std::string& help) {
  std::string result;
  for (const char c : help) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string for_zsh(const std::vector<CommandEntry>& tree) {
  std::string text = "#compdef ptxgen\n_ptxgen() {\n  local -a commands\n  commands=(\n";
  for (std::size_t i = 1; i < tree.size(); ++i) {
    text += "    " + quoted(tree[i].name + ":" + zsh_help(tree[i].help)) + "\n";
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (std::size_t i = 1; i < tree.size(); ++i) {
    text += "    " + tree[i].name + ")\n      _arguments";
    for (const OptionEntry& option : tree[i].options) {
      if (option.positional) continue;
      for (const std::string& name : option.names) {
        text += " \\\n        " + quoted("*" + name + "[" + zsh_help(option.help) + "]" +
                                         (option.value.empty() ? "" : ":value:_files"));
      }
    }
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_ptxgen \"$@\"\n";
}

std::string for_fish(const std::vector<CommandEntry>& tree) {
  std::string text = "# fish completion for ptxgen\n";
  for (std::size_t i = 1; i < tree.size(); ++i) {
    const std::string& name = tree[i].name;
    text += "complete -c ptxgen -n __fish_use_subcommand -a " + name + " -d " +
            quoted(tree[i].help) + "\n";
    for (const OptionEntry& option : tree[i].options) {
      if (option.positional) continue;
      text += "complete -c ptxgen -n '__fish_seen_subcommand_from " + name + "'";
      for (const std::string& option_name : option.names) {
        const bool is_long = option_name.starts_with("--");
        text += (is_long ? " -l " : " -s ") + option_name.substr(is_long ? 2 : 1);
      }
      text +=
          (option.value.empty() ? "" : " -r") + std::string(" -d ") + quoted(option.help) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string completion(const std::vector<CommandEntry>& tree, const std::string& shell) {
  if (shell == "bash") return for_bash(tree);
  if (shell == "zsh") return for_zsh(tree);
  if (shell == "fish") return for_fish(tree);
  return {};
}

}  // namespace ptxgen::cli
