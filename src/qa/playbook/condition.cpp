// src/qa/playbook/condition.cpp - conditions over named quantities
#include "qa/playbook/condition.hpp"

#include <algorithm>
#include <utility>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/join.hpp"
#include "support/numbers.hpp"

namespace ptxgen::qa {

namespace {

// Longer symbols before their beginnings.
constexpr std::pair<std::string_view, Relation> kRelations[] = {
    {"==", Relation::Equal},        {"!=", Relation::NotEqual}, {"<=", Relation::LessEqual},
    {">=", Relation::GreaterEqual}, {"<", Relation::Less},      {">", Relation::Greater}};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class ConditionReader {
 public:
  explicit ConditionReader(std::string_view text) : text_(text), rest_(text) {}

  Condition read() {
    Condition condition;
    skip_spaces();
    condition.text = rest_.substr(0, rest_.find_last_not_of(' ') + 1);
    do {
      condition.all.push_back(comparison());
    } while (skip("&&"));
    skip_spaces();
    if (!rest_.empty()) fail("a relation (==, !=, <, <=, >, >=) or && is expected");
    return condition;
  }

 private:
  Comparison comparison() {
    Comparison result;
    const bool negative = skip("!");
    result.left = name();
    if (result.left.empty()) fail("the name of a quantity is expected");
    result.relation = negative ? Relation::Equal : Relation::NotEqual;
    for (const auto& [symbol, relation] : kRelations) {
      if (!skip(symbol)) continue;
      if (negative) fail("'!' goes with a quantity alone, not with a comparison");
      result.relation = relation;
      result.right = operand();
      break;
    }
    return result;
  }

  Operand operand() {
    Operand result;
    skip_spaces();
    if (const auto number = take_number<std::int64_t>(rest_)) {
      result.number = *number;
      return result;
    }
    result.name = name();
    if (result.name.empty()) fail("an integer or the name of a quantity is expected");
    return result;
  }

  std::string name() {
    skip_spaces();
    if (rest_.empty() || (rest_.front() >= '0' && rest_.front() <= '9')) return {};
    std::size_t length = 0;
    while (length < rest_.size() && is_name_character(rest_[length])) ++length;
    std::string found(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return found;
  }

  bool skip(std::string_view symbol) {
    skip_spaces();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(symbol.size());
    return true;
  }

  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(Stage::Verify, "bad-condition",
                format_text("condition '{}': {} at column {}", text_, what,
                            text_.size() - rest_.size() + 1));
  }

  std::string_view text_;
  std::string_view rest_;
};

bool compare(std::int64_t left, Relation relation, std::int64_t right) {
  switch (relation) {
    case Relation::Equal:
      return left == right;
    case Relation::NotEqual:
      return left != right;
    case Relation::Less:
      return left < right;
    case Relation::LessEqual:
      return left <= right;
    case Relation::Greater:
      return left > right;
    case Relation::GreaterEqual:
      return left >= right;
  }
  return false;
}

}  // namespace

Condition parse_condition(std::string_view text) { return ConditionReader(text).read(); }

bool holds(const Condition& condition, const Quantities& quantities) {
  const bool all = std::ranges::all_of(condition.all, [&](const Comparison& comparison) {
    const Operand& right = comparison.right;
    return compare(quantities(comparison.left), comparison.relation,
                   right.name.empty() ? right.number : quantities(right.name));
  });
  return all != condition.negated;
}

std::string to_text(const Condition& condition) {
  return condition.negated ? "not (" + condition.text + ")" : condition.text;
}

std::vector<std::string> names_of(const Condition& condition) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Comparison& comparison : condition.all) {
    add(comparison.left);
    add(comparison.right.name);
  }
  return names;
}

std::string values_text(const Condition& condition, const Quantities& quantities) {
  return join_text(names_of(condition), ", ", [&](const std::string& name) {
    return format_text("{} = {}", name, quantities(name));
  });
}

}  // namespace ptxgen::qa
