// tests/ptx/scrambler.cpp - spells PTX text in another way
#include "ptx/scrambler.hpp"

#include <cctype>
#include <charconv>
#include <vector>

#include "ptx/dice.hpp"

namespace ptxgen::test {

namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// A word, a number, a string or one other character.
struct Token {
  std::string text;
  bool space_before = false;
};

std::vector<Token> tokens_of(std::string_view line) {
  std::vector<Token> tokens;
  bool space = false;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      space = true;
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (line[at] == '"') {
      end = line.find('"', at + 1) + 1;
    } else if (is_word(line[at]) || line[at] == '%') {
      // `L2::128B` and `kind::f16` are one word.
      while (end < line.size() && (is_word(line[end]) || line.substr(end, 2) == "::" ||
                                   line.substr(end - 1, 2) == "::")) {
        ++end;
      }
    }
    tokens.push_back({std::string(line.substr(at, end - at)), space});
    space = false;
    at = end;
  }
  return tokens;
}

class Scrambler {
 public:
  Scrambler(std::string_view text, std::uint64_t seed) : text_(text), dice_(seed) {}

  std::string run() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      while (line.starts_with(' ')) line.remove_prefix(1);
      if (line.empty()) continue;
      one_line(line);
    }
    end_registers();
    return std::move(out_);
  }

 private:
  void one_line(std::string_view line) {
    if (line.starts_with(".reg ") && line.ends_with(';')) return registers(line);
    end_registers();
    // Lines without a `;` end where the line ends, for some readers.
    if (line.starts_with(".version") || line.starts_with(".target") || line.starts_with(".file") ||
        line.starts_with(".loc") || line.starts_with(".address_size")) {
      new_line();
      out_ += line;
      out_ += dice_.chance(30) ? " // the rest of a line\n" : "\n";
      return;
    }
    const std::vector<Token> tokens = tokens_of(line);
    const bool numbers_free =
        !tokens[0].text.starts_with('.') || line.find('=') != std::string_view::npos;
    bool after_equals = tokens[0].text != ".";
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string& text = tokens[i].text;
      if (text == "=") after_equals = true;
      const bool after_dot = i > 0 && tokens[i - 1].text == ".";
      // Modifiers stay together, and so do a register or symbol and its component.
      if (tokens[i].space_before) {
        gap(true);
      } else if (i > 0 && !after_dot && text != "." && can_part(tokens[i - 1].text, text)) {
        gap(false);
      }
      if (numbers_free && after_equals && !after_dot) {
        out_ += number(text);
      } else {
        out_ += text;
      }
    }
    if (dice_.chance(60)) {
      new_line();
    } else {
      gap(true);
    }
  }

  // `.reg .b32 %a<3>;` then `.reg .b32 %b;` becomes `.reg .b32 %a<3>, %b;`.
  void registers(std::string_view line) {
    const std::size_t name = line.rfind(' ');
    const std::string_view type = line.substr(0, name);
    const std::string_view declarator = line.substr(name + 1, line.size() - name - 2);
    if (open_type_ == type && dice_.chance(70)) {
      out_ += ',';
      gap(false);
    } else {
      end_registers();
      out_ += type;
      gap(true);
      open_type_ = type;
    }
    out_ += declarator;
  }

  void end_registers() {
    if (open_type_.empty()) return;
    out_ += ";";
    gap(true);
    open_type_ = {};
  }

  static bool can_part(const std::string& left, const std::string& right) {
    // `%r<5>` and `name<3>` keep their shape; `L1:` too, for `::` is a word of its own.
    return left != "<" && right != "<" && right != ">" && left != "%" && right != ":";
  }

  void new_line() {
    if (!out_.empty() && out_.back() != '\n') out_ += '\n';
  }

  void gap(bool needed) {
    const std::uint32_t choice = dice_.below(20);
    if (choice == 0) {
      out_ += "/* , ; { } */";
    } else if (choice == 1) {
      out_ += " // ; } \"\n";
    } else if (choice == 2) {
      out_ += "\n\t";
    } else if (choice == 3) {
      out_ += " \t ";
    } else if (choice == 4) {
      out_ += "\r\n  ";
    } else if (needed) {
      out_ += ' ';
    }
  }

  // Another spelling of the same number; anything else as it is.
  std::string number(const std::string& text) {
    if (text.size() == 10 && text.starts_with("0f")) return float_digits(text, 'F');
    if (text.size() == 18 && text.starts_with("0d")) return float_digits(text, 'D');
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.front() == '0')
      return text;
    switch (dice_.below(6)) {
      case 0:
        return "0x" + digits(value, 16);
      case 1:
        return "0X" + digits(value, 16);
      case 2:
        return "0" + digits(value, 8);
      case 3:
        return "0b" + digits(value, 2);
      default:
        return text;
    }
  }

  std::string float_digits(std::string text, char upper) {
    if (dice_.chance(50)) text[1] = upper;
    if (dice_.chance(50)) {
      for (std::size_t i = 2; i < text.size(); ++i) {
        text[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
      }
    }
    return text;
  }

  static std::string digits(std::uint64_t value, int base) {
    char buffer[65];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, base);
    return error == std::errc{} ? std::string(buffer, end) : std::string();
  }

  std::string_view text_;
  std::string_view open_type_;
  Dice dice_;
  std::string out_;
};

}  // namespace

std::string scrambled(std::string_view text, std::uint64_t seed) {
  return Scrambler(text, seed).run();
}

}  // namespace ptxgen::test
