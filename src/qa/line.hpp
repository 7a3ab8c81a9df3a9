// src/qa/line.hpp - a line of the checklist, and what decides it
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::qa {

class Fixture;

/// Sections, in the order of reports: the checklist, the six test modes, hypotheses, quality gates,
/// falsifiable claims.
enum class Section : std::uint8_t {
  A,
  B,
  C,
  D,
  E,
  F,
  G,
  H,
  Static,
  Frames,
  Playbooks,
  Coverage,
  Replay,
  Profiles,
  Hypotheses,
  Gates,
  Claims,
  Model,  ///< gates of a model file, in the program
};

/// Sections whose points are summed.
enum class Group : std::uint8_t { Checklist, Modes, Unscored };

struct SectionInfo {
  Section section;
  std::string_view name;  ///< of `--section`: "A", "1", "claims"
  std::string_view title;
  Group group = Group::Checklist;
  unsigned points = 0;  ///< that the specification gives; the lines have as many
};
[[nodiscard]] std::span<const SectionInfo> sections() noexcept;
[[nodiscard]] const SectionInfo& info(Section section) noexcept;

/// What decides a line.
enum class Means : std::uint8_t {
  Unit,      ///< the library on any host
  Emulator,  ///< exact on the emulator; on a GPU where there is one
  Gpu,       ///< a GPU alone
  Record,    ///< the record of `scripts/test` for this commit
  None,      ///< not a property of a PTX library
};
[[nodiscard]] std::string_view to_string(Means means) noexcept;

enum class Status : std::uint8_t { Passed, Failed, Skipped, NotApplicable };
/// "passed", "failed", "skipped", "not-applicable"
[[nodiscard]] std::string_view to_string(Status status) noexcept;

/// What a skipped line waits for.
enum class Need : std::uint8_t {
  None,
  Gpu,
  Record,   ///< of `scripts/test --full` for this commit
  Tool,     ///< a program or library that this machine lacks
  Feature,  ///< a part of the program that does not exist yet
};
[[nodiscard]] std::string_view to_string(Need need) noexcept;

/// The verdict on a claim that may turn out to be false.
enum class Verdict : std::uint8_t { None, Supported, Falsified };
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

struct Outcome {
  Status status = Status::Failed;
  Need need = Need::None;           ///< of Skipped
  Verdict verdict = Verdict::None;  ///< of a decided claim or hypothesis
  std::string reason;               ///< of every status but Passed
  std::vector<std::string> figures;
};

/// The change that a line must notice. Exactly one of an edit of the code, an edit of the fixture,
/// and an input that the line's function reads by `Fixture::changed`.
struct Mutant {
  std::string_view what{};               ///< "the second barrier is removed"
  void (*edit)(ptx::Module&) = nullptr;  ///< of every module that the fixture builds
  void (*arm)(Fixture&) = nullptr;       ///< of facts, catalog, record
  [[nodiscard]] bool exists() const noexcept { return !what.empty(); }
};

struct Line {
  std::string_view id;  ///< "A1", "P3", "52"
  Section section{};
  unsigned points = 0;
  std::string_view claim;
  std::string_view how;  ///< how it is decided, with the threshold
  Means means = Means::Unit;
  /// Null: the line waits for a feature, or does not apply; `how` then gives the reason.
  Outcome (*decide)(Fixture&, const Line&) = nullptr;
  Mutant mutant{};
  std::string_view command{};  ///< shows the same by hand, or empty
  /// Of Means::Record: tests, steps or labels of the record, separated by semicolons.
  std::string_view record{};
  /// Of Means::Record: what passed tests say of the claim.
  Verdict recorded = Verdict::None;
};

/// All lines, in the order of sections.
[[nodiscard]] std::span<const Line> all_lines();

}  // namespace ptxgen::qa
