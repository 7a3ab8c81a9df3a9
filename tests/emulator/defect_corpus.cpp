// tests/emulator/defect_corpus.cpp - reading the corpus of defects
#include "emulator/defect_corpus.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ptxgen::test {
namespace {

using emulator::Rule;

[[noreturn]] void wrong(const std::string& name, const std::string& what) {
  throw std::runtime_error(name + ": " + what);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

Rule rule_named(const DefectCase& test, std::string_view name) {
  Rule rule{};
  if (!emulator::find_rule(name, rule)) wrong(test.name, "no rule '" + std::string(name) + "'");
  return rule;
}

std::uint64_t number(const DefectCase& test, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) {
    wrong(test.name, "'" + std::string(text) + "' is no number");
  }
  return value;
}

emulator::Dim3 extent(const DefectCase& test, std::string_view text) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.empty() || parts.size() > 3) wrong(test.name, "a size has one to three numbers");
  emulator::Dim3 size;
  size.x = static_cast<std::uint32_t>(number(test, parts[0]));
  if (parts.size() > 1) size.y = static_cast<std::uint32_t>(number(test, parts[1]));
  if (parts.size() > 2) size.z = static_cast<std::uint32_t>(number(test, parts[2]));
  return size;
}

void read_run(DefectCase& test, std::string_view rest) {
  while (!rest.empty()) {
    if (rest.front() == ' ') {
      rest.remove_prefix(1);
      continue;
    }
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos) wrong(test.name, "expected KEY=VALUE in // run:");
    const std::string_view key = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    const bool quoted = rest.starts_with('"');
    if (quoted) rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find(quoted ? '"' : ' '), rest.size());
    const std::string_view value = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (key == "grid") {
      test.grid = extent(test, value);
    } else if (key == "block") {
      test.block = extent(test, value);
    } else if (key == "smem") {
      test.shared_bytes = static_cast<std::uint32_t>(number(test, value));
    } else if (key == "args") {
      test.arguments = split(value, ' ');
    } else if (key == "checks") {
      test.checks = emulator::RuleSet::parse(value);
    } else if (key == "max-instructions") {
      test.max_instructions = number(test, value);
    } else if (key == "outputs" && value == "any") {
      test.outputs_may_differ = true;
    } else {
      wrong(test.name, "'" + std::string(key) + "' is nothing that // run: knows");
    }
  }
}

void read_expectation(DefectCase& test, std::string_view rest) {
  constexpr std::string_view kClean = "clean ";
  test.clean = rest.starts_with(kClean);
  if (test.clean) {
    test.about = rule_named(test, rest.substr(kClean.size()));
    return;
  }
  for (const std::string& name : split(rest, '|')) {
    test.expected.push_back(rule_named(test, name));
  }
  if (test.expected.empty()) wrong(test.name, "nothing is expected");
  test.about = test.expected.front();
}

// `// <- RULE` and `// <~ RULE` at the end of a line.
void read_mark(DefectCase& test, std::string_view line, std::uint32_t number) {
  const bool must = line.find("// <- ") != std::string_view::npos;
  const std::size_t at = line.find(must ? "// <- " : "// <~ ");
  if (at == std::string_view::npos) return;
  const Rule rule = rule_named(test, line.substr(at + 6));
  if (std::ranges::find(test.expected, rule) == test.expected.end()) {
    wrong(test.name, "line " + std::to_string(number) + " is marked with a rule not expected");
  }
  (must ? test.must : test.may).insert(number);
}

}  // namespace

DefectCase read_case(std::string name, std::string text) {
  DefectCase test;
  test.name = std::move(name);
  test.text = std::move(text);
  test.checks = emulator::RuleSet::defaults();
  bool has_run = false;
  bool has_expectation = false;
  std::uint32_t number = 0;
  std::string_view rest = test.text;
  while (!rest.empty()) {
    ++number;
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with("// run: ")) {
      read_run(test, line.substr(8));
      has_run = true;
    } else if (line.starts_with("// expect: ")) {
      read_expectation(test, line.substr(11));
      has_expectation = true;
    } else if (line.starts_with("// allow: ")) {
      for (const std::string& rule : split(line.substr(10), ',')) {
        test.allowed.insert(rule_named(test, rule));
      }
    } else {
      read_mark(test, line, number);
    }
  }
  if (!has_run || !has_expectation) wrong(test.name, "lacks // run: or // expect:");
  // Which bytes come out is no place in the text.
  if (!test.clean && test.about != Rule::Nondeterminism && test.must.empty() && test.may.empty()) {
    wrong(test.name, "no line is marked");
  }
  return test;
}

std::vector<DefectCase> read_cases(const std::string& folder, std::string_view extension) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<DefectCase> cases;
  for (const auto& path : files) {
    std::ifstream in(path, std::ios::binary);
    cases.push_back(read_case(path.stem().string(), {std::istreambuf_iterator<char>(in), {}}));
  }
  return cases;
}

}  // namespace ptxgen::test
