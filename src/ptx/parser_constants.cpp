// src/ptx/parser_constants.cpp - literals and constant expressions
#include "ptx/parser_constants.hpp"

#include <bit>
#include <charconv>
#include <string>
#include <system_error>

#include "support/format.hpp"

namespace ptxgen::inline v0::ptx::reading {

namespace {

using Kind = Constant::Kind;

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

enum class Operator : std::uint8_t {
  None,
  LogicalOr,
  LogicalAnd,
  Or,
  Xor,
  And,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  ShiftLeft,
  ShiftRight,
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
};

struct OperatorRow {
  std::string_view text;
  Operator op;
  std::uint8_t precedence;
};
// Two characters before one, so that the first match is the longest.
constexpr OperatorRow kOperators[] = {
    {"||", Operator::LogicalOr, 1}, {"&&", Operator::LogicalAnd, 2},
    {"==", Operator::Equal, 6},     {"!=", Operator::NotEqual, 6},
    {"<=", Operator::LessEqual, 7}, {">=", Operator::GreaterEqual, 7},
    {"<<", Operator::ShiftLeft, 8}, {">>", Operator::ShiftRight, 8},
    {"|", Operator::Or, 3},         {"^", Operator::Xor, 4},
    {"&", Operator::And, 5},        {"<", Operator::Less, 7},
    {">", Operator::Greater, 7},    {"+", Operator::Add, 9},
    {"-", Operator::Subtract, 9},   {"*", Operator::Multiply, 10},
    {"/", Operator::Divide, 10},    {"%", Operator::Remainder, 10},
};

std::uint64_t digit_value(char c) {
  if (c <= '9') return static_cast<std::uint64_t>(c - '0');
  return static_cast<std::uint64_t>((c | 0x20) - 'a' + 10);
}

double as_double(const Constant& c) {
  switch (c.kind) {
    case Kind::Signed:
      return static_cast<double>(static_cast<std::int64_t>(c.bits));
    case Kind::Unsigned:
      return static_cast<double>(c.bits);
    case Kind::Float32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(c.bits)));
    case Kind::Float64:
      break;
  }
  return std::bit_cast<double>(c.bits);
}

Constant truth(bool value) { return {Kind::Signed, value ? 1u : 0u}; }
Constant of(double value) { return {Kind::Float64, std::bit_cast<std::uint64_t>(value)}; }

class Reader {
 public:
  explicit Reader(Cursor& cursor) : cursor_(cursor) {}

  Constant expression(std::string_view what) {
    const Constant condition = binary(1, what);
    cursor_.skip();
    if (*cursor_.at != '?') return condition;
    const Deeper deeper(*this);
    require_integer(condition, "before '?'");
    ++cursor_.at;
    const Constant yes = expression("a constant after '?'");
    cursor_.expect(':', "in the constant expression");
    const Constant no = expression("a constant after ':'");
    const Constant& chosen = condition.bits != 0 ? yes : no;
    if (!yes.integer() || !no.integer()) return of(as_double(chosen));
    return {common(yes, no), chosen.bits};
  }

  Constant literal(std::string_view what) {
    cursor_.skip();
    const char* start = cursor_.at;
    const char* p = start;
    if (!is(*p, kDigit) && !(*p == '.' && is(p[1], kDigit))) cursor_.fail_expected(what);
    if (*p == '0') {
      switch (p[1]) {
        case 'x':
        case 'X':
          return based(p + 2, 16, kHexDigit, "hexadecimal digits");
        case 'b':
        case 'B':
          return based(p + 2, 2, kDigit, "binary digits");
        case 'f':
        case 'F':
          return pattern(p + 2, 8, Kind::Float32);
        case 'd':
        case 'D':
          return pattern(p + 2, 16, Kind::Float64);
        default:
          break;
      }
    }
    while (is(*p, kDigit)) ++p;
    if (*p == '.' || *p == 'e' || *p == 'E') return decimal_float(p);
    if (*start == '0' && p != start + 1) return based(start + 1, 8, kDigit, "octal digits");
    return based(start, 10, kDigit, "decimal digits");
  }

 private:
  // Counts recursion, which hostile text could otherwise drive through the stack.
  class Deeper {
   public:
    explicit Deeper(Reader& reader) : reader_(reader) {
      if (++reader_.depth_ > kDeepestNesting) {
        reader_.cursor_.fail(
            reader_.cursor_.at,
            format_text("constant expression is nested deeper than {}", kDeepestNesting));
      }
    }
    ~Deeper() { --reader_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Reader& reader_;
  };

  static Kind common(const Constant& a, const Constant& b) {
    return a.kind == Kind::Unsigned || b.kind == Kind::Unsigned ? Kind::Unsigned : Kind::Signed;
  }

  void require_integer(const Constant& c, std::string_view where) {
    if (!c.integer())
      cursor_.fail(cursor_.at, "expected an integer " + std::string(where) + ", found a float");
  }

  const OperatorRow* peek_operator() {
    cursor_.skip();
    const char* p = cursor_.at;
    for (const OperatorRow& row : kOperators) {
      if (*p == row.text[0] && (row.text.size() == 1 || p[1] == row.text[1])) return &row;
    }
    return nullptr;
  }

  Constant binary(unsigned min, std::string_view what) {
    Constant left = unary(what);
    for (;;) {
      cursor_.skip();
      // What usually ends an operand, without asking for each operator.
      if (*cursor_.at == ';' || *cursor_.at == ',' || *cursor_.at == '}' || *cursor_.at == ']')
        return left;
      const OperatorRow* row = peek_operator();
      if (row == nullptr || row->precedence < min) return left;
      const char* place = cursor_.at;
      cursor_.at += row->text.size();
      const Constant right =
          binary(row->precedence + 1u, "a constant after '" + std::string(row->text) + "'");
      left = apply(*row, left, right, place);
    }
  }

  Constant unary(std::string_view what) {
    cursor_.skip();
    const char c = *cursor_.at;
    switch (c) {
      case '+':
      case '-':
      case '!':
      case '~': {
        const Deeper deeper(*this);
        ++cursor_.at;
        cursor_.skip();
        const char* after = cursor_.at;
        const Constant value = unary("a constant after '" + std::string(1, c) + "'");
        return negation(c, value, is(*after, kDigit) && !is_unsigned_literal(cursor_.at));
      }
      case '(':
        return parenthesis();
      case 'W': {
        if (starts_warp_size(cursor_.at)) {
          cursor_.at += 7;
          return {Kind::Signed, 32};
        }
        break;
      }
      default:
        break;
    }
    return literal(what);
  }

  // `at` is after a literal.
  static bool is_unsigned_literal(const char* at) { return at[-1] == 'U' || at[-1] == 'u'; }

  Constant negation(char op, const Constant& value, bool plain_literal) {
    if (op == '!') {
      require_integer(value, "after '!'");
      return truth(value.bits == 0);
    }
    if (op == '~') {
      require_integer(value, "after '~'");
      return {Kind::Unsigned, ~value.bits};
    }
    if (!value.integer()) return op == '-' ? of(-as_double(value)) : value;
    if (op == '+') return value;
    // The lowest .s64 is written as minus a literal that is itself too large for .s64.
    const bool lowest = plain_literal && value.bits == kSignBit;
    return {lowest ? Kind::Signed : value.kind, 0 - value.bits};
  }

  Constant parenthesis() {
    const Deeper deeper(*this);
    ++cursor_.at;
    const std::string_view keyword = cursor_.peek_keyword();
    if (!keyword.empty() && !is(keyword[0], kDigit)) {
      if (keyword != "s64" && keyword != "u64") cursor_.fail_expected("'.s64' or '.u64' in a cast");
      const Kind kind = keyword == "s64" ? Kind::Signed : Kind::Unsigned;
      cursor_.take_keyword(keyword);
      cursor_.expect(')', "after the type of a cast");
      const Constant value = unary("a constant after the cast");
      require_integer(value, "after the cast");
      return {kind, value.bits};
    }
    const Constant value = expression("a constant after '('");
    cursor_.expect(')', "at the end of the constant expression");
    return value;
  }

  Constant apply(const OperatorRow& row, const Constant& a, const Constant& b, const char* place) {
    if (!a.integer() || !b.integer()) return apply_floats(row, as_double(a), as_double(b), place);
    const auto sa = static_cast<std::int64_t>(a.bits);
    const auto sb = static_cast<std::int64_t>(b.bits);
    const Kind kind = common(a, b);
    const bool is_signed = kind == Kind::Signed;
    switch (row.op) {
      case Operator::None:
        break;
      case Operator::LogicalOr:
        return truth(a.bits != 0 || b.bits != 0);
      case Operator::LogicalAnd:
        return truth(a.bits != 0 && b.bits != 0);
      case Operator::Or:
        return {Kind::Unsigned, a.bits | b.bits};
      case Operator::Xor:
        return {Kind::Unsigned, a.bits ^ b.bits};
      case Operator::And:
        return {Kind::Unsigned, a.bits & b.bits};
      case Operator::Equal:
        return truth(a.bits == b.bits);
      case Operator::NotEqual:
        return truth(a.bits != b.bits);
      case Operator::Less:
        return truth(is_signed ? sa < sb : a.bits < b.bits);
      case Operator::LessEqual:
        return truth(is_signed ? sa <= sb : a.bits <= b.bits);
      case Operator::Greater:
        return truth(is_signed ? sa > sb : a.bits > b.bits);
      case Operator::GreaterEqual:
        return truth(is_signed ? sa >= sb : a.bits >= b.bits);
      case Operator::ShiftLeft:
        return {a.kind, b.bits > 63 ? 0 : a.bits << b.bits};
      case Operator::ShiftRight: {
        if (a.kind == Kind::Unsigned) return {a.kind, b.bits > 63 ? 0 : a.bits >> b.bits};
        return {a.kind, static_cast<std::uint64_t>(sa >> (b.bits > 63 ? 63 : b.bits))};
      }
      case Operator::Add:
        return {kind, a.bits + b.bits};
      case Operator::Subtract:
        return {kind, a.bits - b.bits};
      case Operator::Multiply:
        return {kind, a.bits * b.bits};
      case Operator::Divide:
        if (b.bits == 0) cursor_.fail(place, "division by zero in a constant expression");
        if (!is_signed) return {kind, a.bits / b.bits};
        // The lowest .s64 by -1 wraps instead of trapping.
        return {kind, sb == -1 ? 0 - a.bits : static_cast<std::uint64_t>(sa / sb)};
      case Operator::Remainder:
        if (b.bits == 0)
          cursor_.fail(place, "remainder of a division by zero in a constant expression");
        return {Kind::Signed, a.bits % b.bits};
    }
    return a;
  }

  Constant apply_floats(const OperatorRow& row, double a, double b, const char* place) {
    switch (row.op) {
      case Operator::Add:
        return of(a + b);
      case Operator::Subtract:
        return of(a - b);
      case Operator::Multiply:
        return of(a * b);
      case Operator::Divide:
        if (b == 0) cursor_.fail(place, "division by zero in a constant expression");
        return of(a / b);
      case Operator::Equal:
        return truth(a == b);
      case Operator::NotEqual:
        return truth(a != b);
      case Operator::Less:
        return truth(a < b);
      case Operator::LessEqual:
        return truth(a <= b);
      case Operator::Greater:
        return truth(a > b);
      case Operator::GreaterEqual:
        return truth(a >= b);
      default:
        break;
    }
    cursor_.fail(place, "expected integers around '" + std::string(row.text) + "', found a float");
  }

  // Digits from `p` on in base `base`; the literal begins at the cursor.
  Constant based(const char* p, std::uint64_t base, unsigned digit_class, std::string_view digits) {
    const char* start = cursor_.at;
    const char* first = p;
    std::uint64_t value = 0;
    bool overflow = false;
    for (; is(*p, digit_class) && digit_value(*p) < base; ++p) {
      overflow = overflow || value > (~std::uint64_t{0} - digit_value(*p)) / base;
      value = value * base + digit_value(*p);
    }
    const bool marked_unsigned = p != first && (*p == 'U' || *p == 'u');
    if (p == first || is(p[marked_unsigned ? 1 : 0], kNamePart)) {
      cursor_.fail(start, "expected " + std::string(digits) + " in a number, found " +
                              cursor_.describe(start));
    }
    if (overflow) {
      cursor_.fail(start,
                   "expected an integer of at most 64 bits, found " + cursor_.describe(start));
    }
    cursor_.at = p + (marked_unsigned ? 1 : 0);
    return {marked_unsigned || (value & kSignBit) != 0 ? Kind::Unsigned : Kind::Signed, value};
  }

  Constant pattern(const char* p, unsigned digits, Kind kind) {
    const char* start = cursor_.at;
    const char* first = p;
    std::uint64_t value = 0;
    for (; is(*p, kHexDigit) && p - first <= 16; ++p) value = value << 4 | digit_value(*p);
    if (p - first != static_cast<std::ptrdiff_t>(digits) || is(*p, kNamePart)) {
      cursor_.fail(start, format_text("expected {} hexadecimal digits after '{}', found {}", digits,
                                      std::string_view(start, 2), cursor_.describe(start)));
    }
    cursor_.at = p;
    return {kind, value};
  }

  // The cursor is at the start, `p` at the `.` or exponent.
  Constant decimal_float(const char* p) {
    const char* start = cursor_.at;
    if (*p == '.') ++p;
    while (is(*p, kDigit)) ++p;
    if (*p == 'e' || *p == 'E') {
      ++p;
      if (*p == '+' || *p == '-') ++p;
      if (!is(*p, kDigit))
        cursor_.fail(start,
                     "expected digits in the exponent of a float, found " + cursor_.describe(p));
      while (is(*p, kDigit)) ++p;
    }
    if (is(*p, kNamePart))
      cursor_.fail(p, "expected the end of the float, found " + cursor_.describe(p));
    double value = 0;
    const auto [stop, status] = std::from_chars(start, p, value);
    if (status != std::errc{} || stop != p)
      cursor_.fail(start, "expected a float within the range of .f64");
    cursor_.at = p;
    return of(value);
  }

  Cursor& cursor_;
  unsigned depth_ = 0;
};

}  // namespace

Constant read_constant(Cursor& cursor, std::string_view what) {
  cursor.skip();
  const char* p = cursor.at;
  // Most constants are a short decimal number with a separator after it.
  if (is(*p, kDigit) && *p != '0') {
    std::uint64_t value = 0;
    const char* stop = p + 18;
    while (is(*p, kDigit) && p != stop) value = value * 10 + static_cast<std::uint64_t>(*p++ - '0');
    if (*p == ';' || *p == ',' || *p == ']' || *p == '}') {
      cursor.at = p;
      return {Kind::Signed, value};
    }
  }
  return Reader(cursor).expression(what);
}

Constant read_literal(Cursor& cursor, std::string_view what) {
  return Reader(cursor).literal(what);
}

std::uint64_t read_number(Cursor& cursor, std::string_view what, std::uint64_t max) {
  cursor.skip();
  const char* start = cursor.at;
  const Constant value = read_constant(cursor, what);
  const bool negative = value.kind == Kind::Signed && (value.bits & kSignBit) != 0;
  if (!value.integer() || negative || value.bits > max) {
    cursor.fail(start, format_text("expected {} from 0 to {}, found {}", what, max,
                                   negative ? "a negative number" : cursor.describe(start)));
  }
  return value.bits;
}

}  // namespace ptxgen::inline v0::ptx::reading
