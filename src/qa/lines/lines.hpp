// src/qa/lines/lines.hpp - the tables of lines, and functions that several share
#pragma once

#include <span>

#include "qa/line.hpp"

namespace ptxgen::qa {

[[nodiscard]] std::span<const Line> environment_lines();
[[nodiscard]] std::span<const Line> kernel_lines();
[[nodiscard]] std::span<const Line> integration_lines();
[[nodiscard]] std::span<const Line> correctness_lines();
[[nodiscard]] std::span<const Line> performance_lines();
[[nodiscard]] std::span<const Line> stability_lines();
[[nodiscard]] std::span<const Line> documentation_lines();
[[nodiscard]] std::span<const Line> hypothesis_lines();
[[nodiscard]] std::span<const Line> static_lines();
[[nodiscard]] std::span<const Line> frame_lines();
[[nodiscard]] std::span<const Line> speed_up_lines();
[[nodiscard]] std::span<const Line> coverage_lines();
[[nodiscard]] std::span<const Line> replay_lines();
[[nodiscard]] std::span<const Line> playbook_lines();
[[nodiscard]] std::span<const Line> profile_lines();
[[nodiscard]] std::span<const Line> gate_lines();
[[nodiscard]] std::span<const Line> claim_lines();

/// Decides a line by the results that `Line::record` names: each piece has some, none failed, and
/// one or more passed.
[[nodiscard]] Outcome by_record(Fixture& fixture, const Line& line);
void fail_every_result(Fixture& fixture);
/// The mutant of such lines; the code's own mutants are those of tests/mutation.
inline constexpr Mutant kFailedResult{"every result of the record is a failure", nullptr,
                                      fail_every_result};

}  // namespace ptxgen::qa
