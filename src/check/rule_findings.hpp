// src/check/rule_findings.hpp - findings about statements of one function
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts.hpp"
#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::gates {

/// Collects the findings of one function and returns them in the order of the text.
class RuleFindings {
 public:
  explicit RuleFindings(analysis::Facts& facts) : facts_(&facts) {}

  [[nodiscard]] analysis::Facts& facts() const noexcept { return *facts_; }
  [[nodiscard]] const ptx::Module& module() const noexcept { return facts_->module(); }
  [[nodiscard]] const ptx::Function& function() const noexcept { return facts_->function(); }
  [[nodiscard]] const ptx::Instruction& at(std::uint32_t statement) const noexcept {
    return function().body[statement];
  }

  /// Adds a finding about a statement, with the construct, its rule and the cure as details. The
  /// reference is valid until the next call.
  Finding& report(Severity severity, std::string_view rule, std::uint32_t statement,
                  std::string message, std::string_view reason, std::string_view cure);
  /// Moves all findings to `out`, ordered by statement, then by time of report.
  void take(std::vector<Finding>& out);

  /// `line 12`, or `statement 7` in code that was built and has no lines.
  [[nodiscard]] std::string place(std::uint32_t statement) const;
  /// The name of a register operand, or of the base of an address.
  [[nodiscard]] std::string name(const ptx::Operand& operand) const;

 private:
  struct Entry {
    std::uint32_t statement = 0;
    Finding finding;
  };
  analysis::Facts* facts_;
  std::vector<Entry> entries_;
};

}  // namespace ptxgen::inline v0::gates
