// src/qa/playbook/condition.hpp - conditions over named quantities
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::qa {

enum class Relation : std::uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };

/// One side of a comparison: a quantity, or a number if `name` is empty.
struct Operand {
  std::string name;
  std::int64_t number = 0;
};

struct Comparison {
  std::string left;  ///< a quantity
  Relation relation = Relation::NotEqual;
  Operand right;
};

/// `launches_pending > 0 && !device_errors`: comparisons of a quantity with a quantity or an
/// integer, all of which must hold. `name` is `name != 0`, `!name` is `name == 0`.
struct Condition {
  std::string text;  ///< as it was written
  std::vector<Comparison> all;
  bool negated = false;  ///< holds where not all of them do
};

/// The value of a quantity.
using Quantities = std::function<std::int64_t(std::string_view name)>;

/// Throws `Error` (Stage::Verify, "bad-condition") that shows the text and what is expected.
[[nodiscard]] Condition parse_condition(std::string_view text);
[[nodiscard]] bool holds(const Condition& condition, const Quantities& quantities);
[[nodiscard]] std::string to_text(const Condition& condition);
/// "output_length = 59, n = 60": what the condition was compared with.
[[nodiscard]] std::string values_text(const Condition& condition, const Quantities& quantities);
/// The names of the quantities, each once.
[[nodiscard]] std::vector<std::string> names_of(const Condition& condition);

}  // namespace ptxgen::qa
