// src/tile/tokens.cpp - rules of token-ordered memory operations
#include "ptxgen/tile/tokens.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::tile {

namespace {

constexpr std::string_view kOrders[] = {"weak", "relaxed", "acquire", "release", "acq_rel"};
constexpr std::string_view kScopes[] = {"", "block", "cluster", "device", "system"};
constexpr std::string_view kAccesses[] = {"load", "store", "rmw", "cas", "reduce"};

/// Bit i: TokenOrder i is legal.
constexpr std::array<unsigned, 5> kLegal = {0b00111, 0b01011, 0b11110, 0b11110, 0b00010};

template <std::size_t kCount>
std::optional<std::size_t> index_of_name(const std::string_view (&words)[kCount],
                                         std::string_view name) {
  const auto* const at = std::find(std::begin(words), std::end(words), name);
  if (at == std::end(words) || name.empty()) return std::nullopt;
  return static_cast<std::size_t>(at - words);
}

std::string legal_orders(TokenAccess access) {
  std::string text;
  for (std::size_t i = 0; i < std::size(kOrders); ++i) {
    if ((kLegal[static_cast<std::size_t>(access)] >> i & 1u) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(kOrders[i]);
  }
  return text;
}

/// "ptr<f32>[64]" as its parts.
struct Type {
  std::string element;  ///< "token", "i1", "f32"
  std::string shape;    ///< "[64]"
  bool pointer = false;
  [[nodiscard]] std::string text() const {
    return (pointer ? "ptr<" + element + ">" : element) + shape;
  }
};

Type type_of(std::string_view text) {
  Type type;
  const std::size_t bracket = std::min(text.find('['), text.size());
  type.shape = std::string(text.substr(bracket));
  std::string_view name = text.substr(0, bracket);
  if (name.starts_with("ptr<") && name.ends_with('>')) {
    type.pointer = true;
    name = name.substr(4, name.size() - 5);
  }
  type.element = std::string(name);
  return type;
}

std::vector<std::string_view> split_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = line.find_first_not_of(" ,\t");
    if (first == line.npos) return words;
    line.remove_prefix(first);
    const std::size_t end = std::min(line.find_first_of(" ,\t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

class Verifier {
 public:
  std::vector<Finding> run(std::string_view program) {
    read(program);
    for (const Line& line : lines_) check(line);
    check_cycles();
    return std::move(findings_);
  }

 private:
  struct Line {
    std::uint32_t number = 0;
    std::vector<std::string_view> results;
    std::string_view op;
    std::vector<std::string_view> words;  ///< after the op
  };
  struct Parts {  ///< of a memory operation
    std::vector<std::string_view> operands, extra;
    std::string_view after, mask, padding;
  };

  void read(std::string_view program) {
    std::uint32_t number = 0;
    while (!program.empty()) {
      const std::size_t end = std::min(program.find('\n'), program.size());
      const std::vector<std::string_view> words = split_line(program.substr(0, end));
      program.remove_prefix(std::min(end + 1, program.size()));
      ++number;
      if (words.empty()) continue;
      if (words.size() == 3 && words[1] == ":") {
        define(number, words[0], type_of(words[2]));
        continue;
      }
      const auto equals = std::find(words.begin(), words.end(), "=");
      if (equals == words.end() || equals + 1 == words.end()) {
        report(number, "a line without operation", "a line is `%name : type` or `results = op ...`",
               "write it so");
        continue;
      }
      Line line{number, {words.begin(), equals}, *(equals + 1), {equals + 2, words.end()}};
      for (const std::string_view result : line.results) definition_[result] = lines_.size();
      lines_.push_back(std::move(line));
    }
    // Types of results, so that a use before its definition is a cycle and not an unknown name.
    for (const Line& line : lines_) define_results(line);
  }

  void define(std::uint32_t number, std::string_view name, Type type) {
    if (!types_.emplace(name, std::move(type)).second) {
      report(number, format_text("'{}' is defined again", name), "a value is defined once",
             "use another name");
    }
  }

  void define_results(const Line& line) {
    for (std::size_t i = 0; i < line.results.size(); ++i) {
      Type type{"token", "", false};
      if (i + 1 < line.results.size()) {
        const auto pointer = std::find_if(line.words.begin(), line.words.end(),
                                          [](std::string_view w) { return w.starts_with('%'); });
        if (pointer != line.words.end() && types_.count(*pointer) != 0) type = types_[*pointer];
        type.pointer = false;
      }
      define(line.number, line.results[i], std::move(type));
    }
  }

  const Type* type(const Line& line, std::string_view name) {
    const auto at = types_.find(name);
    if (at != types_.end()) return &at->second;
    report(line.number, format_text("'{}' is not defined", name),
           "an operand is a value of the program", "define it before its use");
    return nullptr;
  }

  void check_token(const Line& line, std::string_view name) {
    const Type* const is = type(line, name);
    if (is == nullptr || (is->element == "token" && !is->pointer)) return;
    report(line.number, format_text("'{}' is {}, and orders '{}'", name, is->text(), line.op),
           "only tokens order operations", "pass the token that an operation or make_token gives");
  }

  void check(const Line& line) {
    if (line.op == "make_token") {
      if (!line.words.empty()) {
        report(line.number,
               format_text("make_token of {}", count_text(line.words.size(), "operand")),
               "make_token has no operand", "leave it out");
      }
      return;
    }
    if (line.op == "join_tokens") {
      if (line.words.size() < 2) {
        report(line.number,
               format_text("join_tokens of {}", count_text(line.words.size(), "token")),
               "a join has two tokens or more", "use the token itself, or make_token");
      }
      for (const std::string_view name : line.words) check_token(line, name);
      return;
    }
    const auto access = index_of_name(kAccesses, line.op);
    if (!access) {
      report(line.number, format_text("unknown operation '{}'", line.op),
             "operations are make_token, join_tokens, load, store, rmw, cas, reduce",
             "use one of these");
      return;
    }
    check_access(line, static_cast<TokenAccess>(*access));
  }

  void check_access(const Line& line, TokenAccess access) {
    const Parts parts = parts_of(line, access);
    check_order(line, access, parts.extra);
    if (!parts.after.empty()) check_token(line, parts.after);
    const bool gives = access != TokenAccess::Store && access != TokenAccess::Reduce;
    if (line.results.size() != (gives ? 2u : 1u)) {
      report(line.number,
             format_text("'{}' with {}", line.op, count_text(line.results.size(), "result")),
             gives ? "it gives a value and a token" : "it gives a token", "name each result");
    }
    const std::size_t wanted = access == TokenAccess::Load ? 1 : access == TokenAccess::Cas ? 3 : 2;
    if (parts.operands.size() != wanted) {
      report(line.number,
             format_text("'{}' of {}", line.op, count_text(parts.operands.size(), "operand")),
             format_text("it has {}", count_text(wanted, "operand")),
             "give the pointer and each value");
      return;
    }
    const Type* const pointer = type(line, parts.operands[0]);
    if (pointer == nullptr) return;
    if (!pointer->pointer) {
      report(line.number,
             format_text("'{}' through '{}', which is {}", line.op, parts.operands[0],
                         pointer->text()),
             "memory is accessed through a pointer", "pass a value of type ptr<...>");
      return;
    }
    for (std::size_t i = 1; i < parts.operands.size(); ++i) {
      check_value(line, "value", parts.operands[i], pointer->element, pointer->shape);
    }
    if (!parts.mask.empty()) check_value(line, "mask", parts.mask, "i1", pointer->shape);
    if (!parts.padding.empty())
      check_value(line, "padding", parts.padding, pointer->element, pointer->shape);
    if (!parts.padding.empty() && (access != TokenAccess::Load || parts.mask.empty())) {
      report(
          line.number,
          format_text("'{}' with a padding{}", line.op, parts.mask.empty() ? " and no mask" : ""),
          "a padding is what lanes of a load get that are masked off", "give it to a masked load");
    }
  }

  Parts parts_of(const Line& line, TokenAccess access) {
    Parts parts;
    const auto& words = line.words;
    const std::size_t first = access == TokenAccess::Rmw || access == TokenAccess::Reduce ? 1 : 0;
    for (std::size_t i = first; i < words.size(); ++i) {
      const bool last = i + 1 == words.size();
      if (words[i] == "after" && !last) {
        parts.after = words[++i];
      } else if (words[i] == "mask" && !last) {
        parts.mask = words[++i];
      } else if (words[i] == "padding" && !last) {
        parts.padding = words[++i];
      } else {
        (words[i].starts_with('%') ? parts.operands : parts.extra).push_back(words[i]);
      }
    }
    return parts;
  }

  void check_order(const Line& line, TokenAccess access,
                   const std::vector<std::string_view>& words) {
    if (words.empty()) {
      report(line.number, format_text("'{}' without an order", line.op),
             format_text("its orders are {}", legal_orders(access)), "name one");
      return;
    }
    const auto order = index_of_name(kOrders, words[0]);
    const auto scope =
        words.size() > 1 ? index_of_name(kScopes, words[1]) : std::optional<std::size_t>(0);
    if (!order) {
      report(line.number, format_text("unknown order '{}'", words[0]),
             "orders are weak, relaxed, acquire, release, acq_rel", "use one of these");
    } else if (!scope || words.size() > 2) {
      report(line.number, format_text("unknown scope '{}'", words[scope ? 2 : 1]),
             "scopes are block, cluster, device, system", "use one of these");
    } else if (std::string mistake = order_mistake(access, static_cast<TokenOrder>(*order),
                                                   static_cast<TokenScope>(*scope));
               !mistake.empty()) {
      report_text(line.number, std::move(mistake));
    }
  }

  void check_value(const Line& line, std::string_view role, std::string_view name,
                   std::string_view element, std::string_view shape) {
    const Type* const is = type(line, name);
    if (is == nullptr) return;
    if (is->element == element && is->shape == shape && !is->pointer) return;
    report(line.number,
           format_text("the {} '{}' of '{}' is {}, and {}{} is expected", role, name, line.op,
                       is->text(), element, shape),
           role == "mask" ? "a mask is i1 and has the pointer's shape"
                          : "values have the type and the shape of what the pointer points to",
           "convert it");
  }

  /// Depth first along operands; a line that is met again on the path closes a cycle.
  void check_cycles() {
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> state(lines_.size(), kNew);
    for (std::size_t root = 0; root < lines_.size(); ++root) {
      if (state[root] != kNew) continue;
      std::vector<std::pair<std::size_t, std::size_t>> path{{root, 0}};
      state[root] = kOpen;
      while (!path.empty()) {
        auto& [at, next] = path.back();
        if (next == lines_[at].words.size()) {
          state[at] = kDone;
          path.pop_back();
          continue;
        }
        const auto to = definition_.find(lines_[at].words[next++]);
        if (to == definition_.end()) continue;
        if (state[to->second] == kOpen) {
          report_cycle(path, to->second);
        } else if (state[to->second] == kNew) {
          state[to->second] = kOpen;
          path.emplace_back(to->second, 0);
        }
      }
    }
  }

  void report_cycle(const std::vector<std::pair<std::size_t, std::size_t>>& path,
                    std::size_t start) {
    std::string text;
    bool inside = false;
    for (const auto& [line, next] : path) {
      inside = inside || line == start;
      if (inside)
        text +=
            format_text("{} (line {}) after ", lines_[line].results.back(), lines_[line].number);
    }
    text += lines_[start].results.back();
    report(lines_[start].number, format_text("tokens in a cycle: {}", text),
           "an operation comes after those whose tokens it takes",
           "carry a token through a loop as a value of the loop");
  }

  void report(std::uint32_t line, const std::string& what, std::string_view rule,
              std::string_view cure) {
    report_text(line, format_text("{}; rule: {}; cure: {}", what, rule, cure));
  }
  void report_text(std::uint32_t line, std::string text) {
    Finding finding;
    finding.severity = Severity::Error;
    finding.rule = "tokens";
    finding.line = line;
    finding.message = std::move(text);
    findings_.push_back(std::move(finding));
  }

  std::vector<Line> lines_;
  std::map<std::string_view, Type> types_;
  std::map<std::string_view, std::size_t> definition_;  ///< the line of a result
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view to_string(TokenOrder order) noexcept {
  return kOrders[static_cast<std::size_t>(order)];
}
std::string_view to_string(TokenScope scope) noexcept {
  return kScopes[static_cast<std::size_t>(scope)];
}
std::string_view to_string(TokenAccess access) noexcept {
  return kAccesses[static_cast<std::size_t>(access)];
}

std::string order_mistake(TokenAccess access, TokenOrder order, TokenScope scope) {
  const unsigned legal = kLegal[static_cast<std::size_t>(access)];
  if ((legal >> static_cast<unsigned>(order) & 1u) == 0) {
    return format_text("a {} that is {}; rule: the orders of a {} are {}; cure: use one of these",
                       to_string(access), to_string(order), to_string(access),
                       legal_orders(access));
  }
  if (order == TokenOrder::Weak && scope != TokenScope::None) {
    return format_text(
        "a weak {} of scope {}; rule: a weak operation has no scope; cure: leave the "
        "scope out, or use relaxed",
        to_string(access), to_string(scope));
  }
  if (order != TokenOrder::Weak && scope == TokenScope::None) {
    return format_text(
        "a {} {} without a scope; rule: every order but weak has one; cure: name "
        "block, cluster, device or system",
        to_string(order), to_string(access));
  }
  return {};
}

std::vector<Finding> verify_tokens(std::string_view program) { return Verifier().run(program); }

}  // namespace ptxgen::inline v0::tile
