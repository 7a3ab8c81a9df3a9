// tests/check/rule_snippets.hpp - kernels around a few lines of PTX, findings as text
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

namespace ptxgen::test {

/// The text of a kernel `k` with that body and registers %p %r %rd %f %fd; parameters n (u32), a
/// and b (u64); shared memory `tile` (256 words) and `other` (64 words). Its first statement is in
/// line 16.
[[nodiscard]] inline std::string kernel_text(std::string_view body,
                                             std::string_view directives = {}) {
  std::string text =
      ".version 8.7\n"
      ".target sm_90\n"
      ".address_size 64\n"
      ".visible .entry k(.param .u32 n, .param .u64 a, .param .u64 b)\n";
  text += directives;
  text +=
      "\n{\n"
      "  .reg .pred %p<20>;\n"
      "  .reg .b16 %h<20>;\n"
      "  .reg .b32 %r<40>;\n"
      "  .reg .b64 %rd<40>;\n"
      "  .reg .f32 %f<20>;\n"
      "  .reg .f64 %fd<20>;\n"
      "  .shared .align 16 .b32 tile[256];\n"
      "  .shared .align 16 .b32 other[64];\n"
      "  // the body:\n";
  text += body;
  text += "}\n";
  return text;
}

[[nodiscard]] inline ptx::Module kernel(std::string_view body, std::string_view directives = {}) {
  return ptx::parse(kernel_text(body, directives));
}

/// The same, which the verifier must accept.
[[nodiscard]] inline ptx::Module verified_kernel(std::string_view body,
                                                 std::string_view directives = {}) {
  ptx::Module module = kernel(body, directives);
  for (const Finding& finding : ptx::verify(module)) {
    if (finding.severity == Severity::Error) FAIL(to_text(finding));
  }
  return module;
}

/// Findings of one rule (all if empty), each as `line: severity: message [rule]`, a line each.
[[nodiscard]] inline std::string summary(const std::vector<Finding>& findings,
                                         std::string_view rule = {}) {
  std::string text;
  for (const Finding& finding : findings) {
    if (!rule.empty() && finding.rule != rule) continue;
    text += std::to_string(finding.line);
    if (finding.other_line != 0) text += "/" + std::to_string(finding.other_line);
    text += ": " + std::string(to_string(finding.severity)) + ": " + finding.message + "\n";
  }
  return text;
}

/// What a rule of gates::analyze finds in a kernel with that body.
[[nodiscard]] inline std::string found(std::string_view body, std::string_view rule,
                                       std::string_view directives = {}) {
  return summary(gates::analyze(verified_kernel(body, directives)), rule);
}

}  // namespace ptxgen::test
