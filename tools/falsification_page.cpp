// tools/falsification_page.cpp - docs/falsification.md from the table of claims
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "ptxgen/runtime/device/device.hpp"
#include "qa/run.hpp"

namespace {

using namespace ptxgen;
using namespace ptxgen::qa;

constexpr std::string_view kIntroduction =
    "# Falsification list\n"
    "\n"
    "Claims that the specification of a code generator makes, each with what could show it wrong. "
    "`ptxgen qa --section\n"
    "claims` decides them, with `--mutate` each against a mutant too. A row is decided by the "
    "program itself, with its figures\n"
    "here; or by tests of the source tree, which a full run of `scripts/test` records for a commit "
    "(`case NAME`: the tests\n"
    "with that text, or that number in a list of numbers, in their name). What needs a GPU, and "
    "what does not apply, says so.\n"
    "\n"
    "<!-- Written by tools/falsification_page. -->\n";

struct Part {
  unsigned first;
  std::string_view title;
};
constexpr Part kParts[] = {{1, "Tile constraints"}, {16, "Fusion"},   {31, "Memory hierarchy"},
                           {51, "Loop splitting"},  {66, "Tokens"},   {81, "Agreement of backends"},
                           {91, "Numerics"},        {101, "Barriers"}};

// A cell of a table in Markdown.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_') result += '\\';
    result += c;
  }
  return result;
}

std::string verdict_of(const LineResult& result) {
  switch (result.outcome.status) {
    case Status::Passed:
      return std::string(to_string(result.outcome.verdict));
    case Status::Failed:
      return "FAILED: " + cell(result.outcome.reason);
    case Status::NotApplicable:
      return "not applicable";
    case Status::Skipped:
      break;
  }
  if (result.line->means == Means::Record) {
    return std::string(to_string(result.line->recorded)) + ", by tests";
  }
  return result.outcome.need == Need::Gpu ? "not tested here: GPU" : "not decided";
}

std::string decided_by(const LineResult& result) {
  const Line& line = *result.line;
  std::string text = cell(line.how);
  if (result.outcome.status == Status::Passed) {
    for (std::size_t i = 0; i + 1 < result.outcome.figures.size(); ++i) {
      text += (i == 0 ? ": " : "; ") + cell(result.outcome.figures[i]);
    }
  }
  std::string_view rest = line.record;
  while (!rest.empty()) {
    const auto end = rest.find(';');
    text += " (`" + std::string(rest.substr(0, end)) + "`)";
    rest = end == rest.npos ? "" : rest.substr(end + 1);
  }
  return text;
}

// Empty if a claim failed: that is no page.
std::string page() {
  Settings settings = Settings::from_environment();
  settings.log = "off";
  const Device device = Device::open("emulator:h200", settings);
  // Without a record: the page does not depend on what was run before.
  Record none;
  none.why_not = "by tests";
  const Surroundings shared{settings, device, collect_facts(device, settings), none, false};
  RunOptions options;
  options.sections = {Section::Claims};
  const Report report = run_lines(shared, options);
  for (const LineResult& result : report.results) {
    if (result.outcome.status != Status::Failed) continue;
    std::cerr << "claim " << result.line->id << " failed: " << result.outcome.reason << "\n";
  }
  if (report.score().failed != 0) return {};
  std::ostringstream out;
  out << kIntroduction;
  std::size_t part = 0;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const LineResult& result = report.results[i];
    if (part < std::size(kParts) && kParts[part].first == i + 1) {
      out << "\n## " << kParts[part].title
          << "\n\n| row | claim | verdict | decided by |\n|---|---|---|---|\n";
      ++part;
    }
    out << "| " << result.line->id << " | " << cell(result.line->claim) << " | "
        << verdict_of(result) << " | " << decided_by(result) << " |\n";
  }
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (!check && (argc != 2 || argv[1][0] == '-')) {
    std::cerr << "usage: falsification_page [--check] FILE\n";
    return 2;
  }
  const char* const path = argv[argc - 1];
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const std::string text = page();
  if (text.empty()) return 1;
  if (file == text) return 0;
  if (check) {
    std::cerr << path << " is not up to date; run: falsification_page " << path << "\n";
    return 1;
  }
  std::ofstream(path, std::ios::binary) << text;
  return 0;
}
