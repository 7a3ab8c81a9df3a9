// tests/cli/help.hpp - commands and options in the program's help
#pragma once

#include <catch2/catch.hpp>
#include <regex>
#include <string>
#include <vector>

#include "cli/program.hpp"

namespace ptxgen::test {

/// What the pattern's first group matches, each time.
inline std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

/// Every command that the program's own help names.
inline std::vector<std::string> commands() {
  const std::string help = ptxgen_program({"--help"}).out;
  const auto at = help.find("Subcommands:");
  REQUIRE(at != std::string::npos);
  return matches(help.substr(at), "\n  ([a-z][a-z-]*) ");
}

}  // namespace ptxgen::test
