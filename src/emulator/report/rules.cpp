// src/emulator/report/rules.cpp - the rules of a run, sets of them, suppressions
#include "ptxgen/emulator/report/rules.hpp"

#include <algorithm>
#include <array>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::array kRules = {
#define PTXGEN_RULE(id, name, severity, on, doc) RuleInfo{name, Severity::severity, on, doc},
#include "ptxgen/emulator/report/rules.def"
};
static_assert(kRules.size() <= 32, "RuleSet holds 32 rules");

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

[[noreturn]] void unknown_rule(std::string_view name) {
  throw Error(
      Stage::Emulate, "unknown-rule",
      format_text("there is no rule '{}'; the rules are {}", name, to_text(RuleSet::all())));
}

}  // namespace

std::span<const RuleInfo> rules() noexcept { return kRules; }

const RuleInfo& info(Rule rule) noexcept { return kRules[static_cast<std::size_t>(rule)]; }

bool find_rule(std::string_view name, Rule& out) noexcept {
  const auto found = std::ranges::find(kRules, name, &RuleInfo::name);
  if (found == kRules.end()) return false;
  out = static_cast<Rule>(found - kRules.begin());
  return true;
}

RuleSet RuleSet::all() noexcept {
  RuleSet set;
  for (std::size_t i = 0; i < kRules.size(); ++i) set.add(static_cast<Rule>(i));
  return set;
}

RuleSet RuleSet::defaults() noexcept {
  RuleSet set;
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i].on_by_default) set.add(static_cast<Rule>(i));
  }
  return set;
}

RuleSet RuleSet::parse(std::string_view text) {
  RuleSet set;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view name = trimmed(text.substr(0, comma));
    Rule rule{};
    if (name == "all") {
      set = all();
    } else if (name == "default") {
      for (std::size_t i = 0; i < kRules.size(); ++i) {
        if (kRules[i].on_by_default) set.add(static_cast<Rule>(i));
      }
    } else if (name == "none") {
      set = none();
    } else if (find_rule(name, rule)) {
      set.add(rule);
    } else {
      unknown_rule(name);
    }
    if (comma == std::string_view::npos) return set;
    text.remove_prefix(comma + 1);
  }
}

std::string to_text(RuleSet set) {
  std::string text;
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (!set.has(static_cast<Rule>(i))) continue;
    if (!text.empty()) text += ", ";
    text += kRules[i].name;
  }
  return text;
}

Suppression parse_suppression(std::string_view text) {
  Suppression result;
  const std::size_t first = text.find(':');
  const std::string_view name = trimmed(text.substr(0, first));
  if (!find_rule(name, result.rule)) unknown_rule(name);
  if (first == std::string_view::npos) return result;
  std::string_view rest = text.substr(first + 1);
  const std::size_t second = rest.find(':');
  result.kernel = std::string(trimmed(rest.substr(0, second)));
  if (second == std::string_view::npos) return result;
  const std::string_view line = trimmed(rest.substr(second + 1));
  result.line = parse_number<std::uint32_t>(line).value_or(0);
  if (result.line == 0) {
    throw Error(Stage::Emulate, "bad-suppression",
                format_text("'{}' in the suppression '{}' is not a line number; write "
                            "RULE[:KERNEL[:LINE]]",
                            line, text));
  }
  return result;
}

std::vector<Suppression> parse_suppressions(std::string_view text, std::string_view file) {
  std::vector<Suppression> all;
  std::uint32_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    try {
      all.push_back(parse_suppression(line));
    } catch (Error& error) {
      error.file = std::string(file);
      error.line = number;
      throw error.refresh();
    }
  }
  return all;
}

}  // namespace ptxgen::inline v0::emulator
