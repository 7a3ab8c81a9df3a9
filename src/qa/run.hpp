// src/qa/run.hpp - runs lines and their mutants, and sums up
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qa/fixture.hpp"
#include "qa/line.hpp"

namespace ptxgen::qa {

/// What became of a line under its mutant.
struct MutantResult {
  bool noticed = false;  ///< the line failed
  std::string text;      ///< how it failed; or why it did not
};

struct LineResult {
  const Line* line = nullptr;
  Outcome outcome;
  double seconds = 0;
  std::optional<MutantResult> mutant;  ///< of a line that was decided, with `RunOptions::mutate`
};

struct RunOptions {
  std::vector<Section> sections;  ///< empty: all
  bool mutate = false;
  /// Called before each line, for progress; may be empty.
  std::function<void(const Line&)> begin;
};

/// Points of a part of the lines.
struct Score {
  unsigned points = 0;     ///< all
  unsigned earned = 0;     ///< of lines that passed
  unsigned lost = 0;       ///< of lines that failed
  unsigned gpu = 0;        ///< of lines that wait for a GPU
  unsigned record = 0;     ///< of lines that wait for a record of scripts/test
  unsigned undecided = 0;  ///< of other lines that were skipped: they earn nothing
  unsigned not_applicable = 0;
  std::size_t lines = 0, passed = 0, failed = 0, skipped = 0, inapplicable = 0;
  /// Points that this machine can decide.
  [[nodiscard]] unsigned applicable() const noexcept { return earned + lost + undecided; }
};

struct Report {
  std::string device;
  bool gpu = false;
  bool mutated = false;
  std::vector<LineResult> results;
  double seconds = 0;

  [[nodiscard]] Score score() const;
  [[nodiscard]] Score score(Section section) const;
  [[nodiscard]] Score score(Group group) const;
  /// Lines that were run under a mutant, and those of them that failed as they should.
  [[nodiscard]] std::size_t mutants() const;
  [[nodiscard]] std::size_t noticed() const;
  /// Decided lines without a mutant, which are errors of the suite.
  [[nodiscard]] std::vector<const Line*> without_mutant() const;
  /// Something was decided, nothing failed, and every mutant was noticed.
  [[nodiscard]] bool ok() const;
};

[[nodiscard]] Report run_lines(const Surroundings& shared, const RunOptions& options,
                               std::span<const Line> lines = all_lines());

/// Runs one line, with its mutant's change or without. What it throws is a failure.
[[nodiscard]] Outcome run_line(const Surroundings& shared, const Line& line, bool mutated);

/// The section of that name. Throws `Error` (Stage::Verify, "unknown-section") with the names.
[[nodiscard]] Section section_named(std::string_view name);

/// "minimum viable", "production ready", "excellence": the levels of the checklist, their points,
/// and how many of them are earned and can be decided here.
struct Level {
  std::string_view name;
  unsigned points = 0;
  Score score;
};
[[nodiscard]] std::vector<Level> levels(const Report& report);

}  // namespace ptxgen::qa
