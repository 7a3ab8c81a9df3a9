// src/cli/args/manual_page.cpp - the manual page, made of the command tree
#include "cli/args/command_tree.hpp"
#include "ptxgen/support/settings.hpp"
#include "ptxgen/version.hpp"

namespace ptxgen::cli {

namespace {

// Text of a roff paragraph: no line may begin with a control character.
std::string roff(const std::string& text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string synopsis(const CommandEntry& command) {
  std::string text = "\\fBptxgen " + roff(command.name) + "\\fR";
  for (const OptionEntry& option : command.options) {
    if (option.positional) {
      text += option.required ? " \\fI" + roff(option.names[0]) + "\\fR"
                              : " [\\fI" + roff(option.names[0]) + "\\fR]";
    } else if (option.required) {
      text += " \\fB" + roff(option.names.back()) + "\\fR \\fI" + roff(option.value) + "\\fR";
    }
  }
  return text + " [\\fIoptions\\fR]";
}

std::string option_text(const OptionEntry& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + std::string(option.positional ? "\\fI" : "\\fB") +
             roff(name) + "\\fR";
  }
  if (!option.value.empty() && !option.positional) names += " \\fI" + roff(option.value) + "\\fR";
  std::string help = roff(option.help);
  if (!option.default_text.empty() && !option.positional) {
    help += " (default: " + roff(option.default_text) + ")";
  }
  return ".TP\n" + names + "\n" + help + "\n";
}

std::string command_text(const CommandEntry& command) {
  std::string text = ".SS " + roff(command.name) + "\n" + synopsis(command) + "\n.PP\n" +
                     roff(command.help) + ".\n";
  for (const OptionEntry& option : command.options) text += option_text(option);
  if (!command.footer.empty()) text += ".PP\n.nf\n" + roff(command.footer) + "\n.fi\n";
  return text;
}

}  // namespace

std::string manual_page(const std::vector<CommandEntry>& tree) {
  std::string text = ".TH PTXGEN 1 \"\" \"ptxgen " + std::string(kVersion) + "\"\n";
  text += ".SH NAME\nptxgen \\- build, check, run and study GPU kernels as PTX\n";
  text += ".SH SYNOPSIS\n\\fBptxgen\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n";
  text += ".SH DESCRIPTION\n" + roff(tree.front().help) + ".\n";
  for (const OptionEntry& option : tree.front().options) text += option_text(option);
  text += ".SH COMMANDS\n";
  for (std::size_t i = 1; i < tree.size(); ++i) text += command_text(tree[i]);
  text +=
      ".SH EXIT STATUS\n"
      ".TP\n0\nDone, no finding of severity error.\n"
      ".TP\n1\nAn error finding, a wrong result, or a fault on the device.\n"
      ".TP\n2\nThe call, a file or a tool was at fault.\n";
  text += ".SH ENVIRONMENT\n";
  for (const SettingField& field : setting_fields()) {
    if (!field.variable.starts_with("PTXGEN_")) continue;
    text += ".TP\n\\fB" + roff(std::string(field.variable)) + "\\fR\n" +
            roff(std::string(field.doc)) + "\n";
  }
  return text;
}

}  // namespace ptxgen::cli
