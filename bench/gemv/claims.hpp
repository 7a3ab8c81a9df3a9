// bench/gemv/claims.hpp - claims as data, and the verdict of a run
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gemv/results.hpp"

namespace ptxgen::gemv_bench {

/// A measured quantity and its bounds. docs/bench.md describes the fields.
struct ClaimTerm {
  std::string quantity;
  std::uint32_t size = 0;  ///< k = n of an f32 matrix in layout T
  std::string model;
  std::vector<Metric> metrics;
  std::string arm;  ///< numerator of a ratio
  std::string over;
  std::string take;             ///< "max", "min" or "median" over the shapes
  std::uint64_t min_bytes = 0;  ///< of a shape's matrix
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  double factor = 1;
  double plus_us = 0;
  bool either_way = false;
  std::optional<double> below, above, at_least, at_most;
  std::string show;  ///< fmt pattern with the names of `Figure`
  std::string missing = "not measured";
};

struct Claim {
  std::string id;       ///< "E1", "H4", "P2"
  std::string text;     ///< with its bound
  std::string only_on;  ///< part of the GPU's name, or empty
  std::vector<ClaimTerm> terms;
  std::string missing;  ///< of a claim without terms: where it is measured
};

/// The text of claims.json.
[[nodiscard]] std::string_view built_in_claims() noexcept;
/// Throws `cli::UsageError` that begins with `name` if the text is no valid list of claims.
[[nodiscard]] std::vector<Claim> read_claims(std::string_view json, const std::string& name);

/// What a run measured for one term.
struct Figure {
  double value = 0;   ///< is compared with the bounds; shown as value, percent, or excess over 1
  std::string where;  ///< shape, or whatever the value belongs to
  double us = 0;
  double base = 0;         ///< what the value is relative to
  bool from_clock = true;  ///< false for counts, which hold on the emulator too
};
/// Nothing if the run has no such figure.
[[nodiscard]] std::optional<Figure> figure_of(const BenchRun& run, const ClaimTerm& term);
/// Whether `figure_of` knows a quantity of that name.
[[nodiscard]] bool is_quantity(std::string_view name) noexcept;

/// One verdict for each claim, in their order. The emulator's times confirm and refute nothing:
/// there a claim about times is not applicable.
[[nodiscard]] std::vector<Verdict> verdicts_of(const BenchRun& run,
                                               const std::vector<Claim>& claims);

}  // namespace ptxgen::gemv_bench
