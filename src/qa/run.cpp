// src/qa/run.cpp - runs lines and their mutants, and sums up
#include "qa/run.hpp"

#include <algorithm>
#include <chrono>

#include "ptxgen/support/error.hpp"
#include "qa/tally.hpp"
#include "support/format.hpp"

namespace ptxgen::qa {

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool decided(const Outcome& outcome) {
  return outcome.status == Status::Passed || outcome.status == Status::Failed;
}

void add(Score& score, const LineResult& result) {
  const unsigned points = result.line->points;
  score.points += points;
  ++score.lines;
  switch (result.outcome.status) {
    case Status::Passed:
      score.earned += points;
      ++score.passed;
      break;
    case Status::Failed:
      score.lost += points;
      ++score.failed;
      break;
    case Status::NotApplicable:
      score.not_applicable += points;
      ++score.inapplicable;
      break;
    case Status::Skipped:
      ++score.skipped;
      (result.outcome.need == Need::Gpu      ? score.gpu
       : result.outcome.need == Need::Record ? score.record
                                             : score.undecided) += points;
      break;
  }
}

template <class Belongs>
Score sum(const Report& report, const Belongs& belongs) {
  Score score;
  for (const LineResult& result : report.results) {
    if (belongs(*result.line)) add(score, result);
  }
  return score;
}

MutantResult run_mutant(const Surroundings& shared, const Line& line) {
  const Outcome outcome = run_line(shared, line, true);
  MutantResult result;
  result.noticed = outcome.status == Status::Failed;
  result.text = result.noticed ? outcome.reason
                               : format_text("the line {} with it", to_string(outcome.status));
  return result;
}

// Whether a level of the checklist has the line (specification, section c).
bool in_minimum(const Line& line) {
  if (line.section <= Section::C) return true;
  for (const char* id : {"D1", "D2", "D3", "D4", "D5", "D6", "E1", "E4", "F1", "F2"}) {
    if (line.id == id) return true;
  }
  return false;
}

bool in_production(const Line& line) {
  if (in_minimum(line)) return true;
  for (const char* id : {"D7", "D8", "D9", "D10", "E2", "E3", "F3", "F4", "F5"}) {
    if (line.id == id) return true;
  }
  return false;
}

bool in_checklist(const Line& line) { return info(line.section).group == Group::Checklist; }

}  // namespace

Score Report::score() const {
  return sum(*this, [](const Line&) { return true; });
}

Score Report::score(Section section) const {
  return sum(*this, [&](const Line& line) { return line.section == section; });
}

Score Report::score(Group group) const {
  return sum(*this, [&](const Line& line) { return info(line.section).group == group; });
}

std::size_t Report::mutants() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results, [](const LineResult& r) { return r.mutant.has_value(); }));
}

std::size_t Report::noticed() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      results, [](const LineResult& r) { return r.mutant && r.mutant->noticed; }));
}

std::vector<const Line*> Report::without_mutant() const {
  std::vector<const Line*> lines;
  for (const LineResult& result : results) {
    if (decided(result.outcome) && !result.line->mutant.exists()) lines.push_back(result.line);
  }
  return lines;
}

bool Report::ok() const {
  const bool some =
      std::ranges::any_of(results, [](const LineResult& r) { return decided(r.outcome); });
  return some && score().failed == 0 && noticed() == mutants() &&
         (!mutated || without_mutant().empty());
}

Outcome run_line(const Surroundings& shared, const Line& line, bool mutated) {
  try {
    Fixture fixture(shared, mutated ? &line.mutant : nullptr);
    return line.decide(fixture, line);
  } catch (const std::exception& error) {
    Outcome outcome;
    outcome.reason = error.what();
    return outcome;
  }
}

Report run_lines(const Surroundings& shared, const RunOptions& options,
                 std::span<const Line> lines) {
  const auto begin = std::chrono::steady_clock::now();
  Report report;
  report.device = shared.device.info().name;
  report.gpu = shared.facts.gpu;
  report.mutated = options.mutate;
  for (const Line& line : lines) {
    if (!options.sections.empty() &&
        std::ranges::find(options.sections, line.section) == options.sections.end()) {
      continue;
    }
    if (options.begin) options.begin(line);
    const auto line_begin = std::chrono::steady_clock::now();
    LineResult result;
    result.line = &line;
    if (line.decide != nullptr) {
      result.outcome = run_line(shared, line, false);
    } else if (line.means == Means::None) {
      result.outcome = not_applicable(std::string(line.how));
    } else {
      result.outcome =
          skipped(line.means == Means::Gpu ? Need::Gpu : Need::Feature, std::string(line.how));
    }
    if (options.mutate && decided(result.outcome) && line.mutant.exists()) {
      result.mutant = run_mutant(shared, line);
    }
    result.seconds = seconds_since(line_begin);
    report.results.push_back(std::move(result));
  }
  report.seconds = seconds_since(begin);
  return report;
}

Section section_named(std::string_view name) {
  std::string names;
  for (const SectionInfo& section : sections()) {
    if (section.name == name) return section.section;
    names += (names.empty() ? "" : ", ") + std::string(section.name);
  }
  Error error(Stage::Verify, "unknown-section",
              format_text("there is no section '{}'; sections: {}", name, names));
  throw error;
}

std::vector<Level> levels(const Report& report) {
  return {{"minimum viable", 62, sum(report, in_minimum)},
          {"production ready", 80, sum(report, in_production)},
          {"excellence", 95, sum(report, in_checklist)}};
}

}  // namespace ptxgen::qa
