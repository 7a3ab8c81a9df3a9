// ptxgen/emulator/report/rules.hpp - the rules of a run, sets of them, suppressions
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/finding.hpp"

namespace ptxgen::inline v0::emulator {

enum class Rule : std::uint8_t {
#define PTXGEN_RULE(id, name, severity, on, doc) id,
#include "ptxgen/emulator/report/rules.def"
};

/// A row of rules.def.
struct RuleInfo {
  std::string_view name;  ///< in messages, `--check` and suppressions
  Severity severity;
  bool on_by_default;
  std::string_view doc;
};
[[nodiscard]] std::span<const RuleInfo> rules() noexcept;
[[nodiscard]] const RuleInfo& info(Rule rule) noexcept;
/// False if no rule has that name.
[[nodiscard]] bool find_rule(std::string_view name, Rule& out) noexcept;

/// The rules that a run checks.
class RuleSet {
 public:
  constexpr RuleSet() = default;  ///< none
  [[nodiscard]] static RuleSet none() noexcept { return {}; }
  [[nodiscard]] static RuleSet all() noexcept;
  /// The rules that are on by default: all.
  [[nodiscard]] static RuleSet defaults() noexcept;
  /// `all`, `default`, `none`, or names separated by commas. Throws `Error` (Stage::Emulate, code
  /// "unknown-rule") that lists the names.
  [[nodiscard]] static RuleSet parse(std::string_view text);

  [[nodiscard]] constexpr bool has(Rule rule) const noexcept {
    return (bits_ >> static_cast<unsigned>(rule) & 1u) != 0;
  }
  constexpr RuleSet& add(Rule rule) noexcept {
    bits_ |= 1u << static_cast<unsigned>(rule);
    return *this;
  }
  constexpr RuleSet& remove(Rule rule) noexcept {
    bits_ &= ~(1u << static_cast<unsigned>(rule));
    return *this;
  }
  constexpr RuleSet& remove(RuleSet other) noexcept {
    bits_ &= ~other.bits_;
    return *this;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
  friend constexpr bool operator==(RuleSet, RuleSet) = default;

 private:
  std::uint32_t bits_ = 0;
};

/// The names of the rules of a set, in the order of rules.def, separated by ", ".
[[nodiscard]] std::string to_text(RuleSet set);

/// `RULE[:KERNEL[:LINE]]`: findings of that rule are not reported there. An empty kernel means
/// every kernel, line 0 every line.
struct Suppression {
  Rule rule{};
  std::string kernel;
  std::uint32_t line = 0;
  friend bool operator==(const Suppression&, const Suppression&) = default;
};

/// Throws `Error` (Stage::Emulate, code "bad-suppression").
[[nodiscard]] Suppression parse_suppression(std::string_view text);
/// One suppression a line; empty lines and lines that begin with `#` are ignored. Throws as
/// `parse_suppression`, with `file` and the line.
[[nodiscard]] std::vector<Suppression> parse_suppressions(std::string_view text,
                                                          std::string_view file);

}  // namespace ptxgen::inline v0::emulator
