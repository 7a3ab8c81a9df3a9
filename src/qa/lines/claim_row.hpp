// src/qa/lines/claim_row.hpp - rows of the table of claims
#pragma once

#include <string_view>

#include "qa/lines/lines.hpp"

namespace ptxgen::qa {

/// Decided by tests of the source tree, named as `Line::record` says.
[[nodiscard]] constexpr Line tested(std::string_view id, std::string_view claim,
                                    std::string_view how, std::string_view tests) {
  Line line;
  line.id = id;
  line.section = Section::Claims;
  line.claim = claim;
  line.how = how;
  line.means = Means::Record;
  line.decide = by_record;
  line.mutant = kFailedResult;
  line.record = tests;
  line.recorded = Verdict::Supported;
  return line;
}
/// The tests show that the claim is false.
[[nodiscard]] constexpr Line tested_false(std::string_view id, std::string_view claim,
                                          std::string_view how, std::string_view tests) {
  Line line = tested(id, claim, how, tests);
  line.recorded = Verdict::Falsified;
  return line;
}

[[nodiscard]] constexpr Line undecided(std::string_view id, std::string_view claim, Means means,
                                       std::string_view reason) {
  Line line;
  line.id = id;
  line.section = Section::Claims;
  line.claim = claim;
  line.how = reason;
  line.means = means;
  return line;
}
/// A time, or a counter of hardware.
[[nodiscard]] constexpr Line on_gpu(std::string_view id, std::string_view claim,
                                    std::string_view how) {
  return undecided(id, claim, Means::Gpu, how);
}
[[nodiscard]] constexpr Line inapplicable(std::string_view id, std::string_view claim,
                                          std::string_view reason) {
  return undecided(id, claim, Means::None, reason);
}
/// Nothing decides it yet.
[[nodiscard]] constexpr Line open_claim(std::string_view id, std::string_view claim,
                                        std::string_view reason) {
  return undecided(id, claim, Means::Unit, reason);
}

/// Decided by a function of this program.
[[nodiscard]] constexpr Line decided_claim(std::string_view id, std::string_view claim,
                                           std::string_view how, Means means,
                                           Outcome (*decide)(Fixture&, const Line&), Mutant mutant,
                                           std::string_view command = {}) {
  Line line;
  line.id = id;
  line.section = Section::Claims;
  line.claim = claim;
  line.how = how;
  line.means = means;
  line.decide = decide;
  line.mutant = mutant;
  line.command = command;
  return line;
}

[[nodiscard]] std::span<const Line> tile_claims();
[[nodiscard]] std::span<const Line> fusion_claims();
[[nodiscard]] std::span<const Line> loop_claims();
[[nodiscard]] std::span<const Line> numeric_claims();
[[nodiscard]] std::span<const Line> recorded_claims();

}  // namespace ptxgen::qa
