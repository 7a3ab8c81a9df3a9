// tests/check/race_snippets.hpp - what shared_race finds in snippets
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rule_snippets.hpp"

namespace ptxgen::test {

/// What shared_race finds in a kernel with that body, which the verifier must accept.
[[nodiscard]] inline std::vector<Finding> race_findings(
    std::string_view body, std::string_view directives = ".reqntid 64, 1, 1") {
  return gates::shared_race(verified_kernel(body, directives));
}

/// The same as text.
[[nodiscard]] inline std::string races(std::string_view body,
                                       std::string_view directives = ".reqntid 64, 1, 1") {
  return summary(race_findings(body, directives));
}

/// Those of a body that lacks its `ret`.
[[nodiscard]] inline std::string races_in(const std::string& body) {
  return races(body + "  ret;\n");
}

[[nodiscard]] inline bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

}  // namespace ptxgen::test
