// tests/optimize/fusion_reference.cpp - a program with chosen pairs fused by hand
#include "fusion_reference.hpp"

#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "ptxgen/ptx/parser.hpp"

namespace ptxgen::test {

namespace {

/// `@guard opcode a, b, c;` in its parts.
struct Parts {
  std::string guard;  ///< with a space after, or empty
  std::string opcode;
  std::vector<std::string> operands;
};

Parts split(std::string line) {
  Parts parts;
  line.erase(0, line.find_first_not_of(" \t"));
  if (line[0] == '@') {
    const std::size_t space = line.find(' ');
    parts.guard = line.substr(0, space + 1);
    line.erase(0, space + 1);
    line.erase(0, line.find_first_not_of(" \t"));
  }
  const std::size_t space = line.find_first_of(" \t");
  parts.opcode = line.substr(0, space);
  if (space == std::string::npos) return parts;
  std::string operand;
  for (const char c : line.substr(space)) {
    if (c == ',' || c == ';') {
      parts.operands.push_back(operand);
      operand.clear();
      if (c == ';') break;
    } else if (c != ' ' && c != '\t') {
      operand += c;
    }
  }
  return parts;
}

std::string operation(const Parts& parts) { return parts.opcode.substr(0, parts.opcode.find('.')); }

[[noreturn]] void fail(const std::string& what, const std::string& first,
                       const std::string& second) {
  throw std::runtime_error(what + ": '" + first + "' and '" + second + "'");
}

/// How registers of the type are declared and copied.
std::string storage(const std::string& type) {
  if (type == "f16" || type == "bf16") return "b16";
  if (type == "f16x2" || type == "bf16x2") return "b32";
  return type;
}

class Hand {
 public:
  explicit Hand(std::string_view text) : module_(ptx::parse(text, "before.ptx")) {
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) lines_.push_back(line);
  }

  void fuse(const optimize::Decision& decision) {
    const ptx::Function* function = module_.find_function(decision.kernel);
    if (function == nullptr || decision.statement >= function->body.size() ||
        decision.other >= function->body.size()) {
      throw std::runtime_error("a decision names no pair of statements in " + decision.kernel);
    }
    const std::uint32_t sum_line = function->body[decision.statement].line;
    const std::uint32_t product_line = function->body[decision.other].line;
    const std::string sum_text = lines_[sum_line - 1], product_text = lines_[product_line - 1];
    const Parts sum = split(sum_text), product = split(product_text);
    if (operation(product) != "mul" || sum.operands.size() != 3 ||
        (operation(sum) != "add" && operation(sum) != "sub")) {
      fail("no product and sum", product_text, sum_text);
    }
    const std::string& result = product.operands[0];
    // Which operand of the sum is the product, and whether a neg is between.
    bool first = sum.operands[1] == result;
    bool negated = false;
    if (!first && sum.operands[2] != result) {
      negated = true;
      first = is_negative_of(*function, sum.operands[1], result);
      if (!first && !is_negative_of(*function, sum.operands[2], result)) {
        fail("the sum does not take the product", product_text, sum_text);
      }
    }
    const std::string type = product.opcode.substr(product.opcode.rfind('.') + 1);
    const std::string n = std::to_string(pairs_++);
    const std::string a = "%byhand_a" + n, b = "%byhand_b" + n, c = "%byhand_c" + n;
    declared_[function->line] += "  .reg ." + storage(type) + " " + a + ", " + b + ", " + c + ";\n";
    const std::string copy = product.guard + "mov." + storage(type) + " ";
    before_[product_line] += copy + a + ", " + product.operands[1] + ";\n" + copy + b + ", " +
                             product.operands[2] + ";\n";
    const bool minus = operation(sum) == "sub";
    const bool flips_product = negated != (minus && !first);
    const bool flips_addend = minus && first;
    std::string& text = before_[sum_line];
    text +=
        sum.guard + "mov." + storage(type) + " " + c + ", " + sum.operands[first ? 2 : 1] + ";\n";
    const std::string negate = sum.guard + "neg." + type + " ";
    if (flips_addend) text += negate + c + ", " + c + ";\n";
    if (flips_product) text += negate + a + ", " + a + ";\n";
    std::string words = sum.opcode.substr(3);
    if (words.rfind(".r", 0) != 0) words = ".rn" + words;
    lines_[sum_line - 1] =
        sum.guard + "fma" + words + " " + sum.operands[0] + ", " + a + ", " + b + ", " + c + ";";
  }

  [[nodiscard]] std::string text() const {
    std::string all;
    bool head = false;
    std::uint32_t declare = 0;
    for (std::uint32_t i = 0; i < lines_.size(); ++i) {
      if (const auto found = before_.find(i + 1); found != before_.end()) all += found->second;
      all += lines_[i] + "\n";
      if (declared_.count(i + 1) != 0) {
        head = true;
        declare = i + 1;
      }
      if (head && lines_[i] == "{") {
        all += declared_.at(declare);
        head = false;
      }
    }
    return all;
  }

 private:
  [[nodiscard]] bool is_negative_of(const ptx::Function& function, const std::string& negative,
                                    const std::string& of) const {
    for (const ptx::Instruction& statement : function.body) {
      if (statement.kind != ptx::StatementKind::Instruction || statement.line == 0) continue;
      const Parts parts = split(lines_[statement.line - 1]);
      if (operation(parts) == "neg" && parts.operands.size() == 2 &&
          parts.operands[0] == negative && parts.operands[1] == of) {
        return true;
      }
    }
    return false;
  }

  ptx::Module module_;
  std::vector<std::string> lines_;
  std::map<std::uint32_t, std::string> before_;    // by line: what to put in front
  std::map<std::uint32_t, std::string> declared_;  // by line of a function's head
  unsigned pairs_ = 0;
};

}  // namespace

std::string fuse_by_hand(std::string_view text, std::span<const optimize::Decision> decisions) {
  Hand hand(text);
  for (const optimize::Decision& decision : decisions) {
    if (decision.fired) hand.fuse(decision);
  }
  return hand.text();
}

}  // namespace ptxgen::test
