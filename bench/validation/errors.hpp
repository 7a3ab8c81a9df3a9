// bench/validation/errors.hpp - predictions compared with timings
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/validation/points.hpp"

namespace ptxgen::validation {

/// One timing and its predictions, in microseconds.
struct Compared {
  const Series* series = nullptr;
  const Point* point = nullptr;
  double predicted_us = 0;
  double left_out_us = 0;  ///< with nothing measured on this GPU, from its datasheet and the others
  [[nodiscard]] double error() const noexcept;  ///< relative: 0.1 is 10 % too slow
  [[nodiscard]] double left_out_error() const noexcept;
};

[[nodiscard]] std::vector<Compared> compare(const std::vector<Series>& all);

/// Relative errors of a group of predictions.
struct Errors {
  std::size_t count = 0;
  double mean = 0;   ///< of the absolute values
  double worst = 0;  ///< the largest by absolute value, with its sign
  double bias = 0;   ///< mean with signs
};

/// Errors by regime and GPU, in the order in which they appear.
struct Group {
  Regime regime = Regime::Reads;
  std::string gpu;
  Errors errors;
  Errors left_out;
};
[[nodiscard]] std::vector<Group> groups_of(const std::vector<Compared>& all);

/// The groups whose errors are outside `error_band`, a line each; empty: none.
[[nodiscard]] std::string outside_bands(const std::vector<Group>& groups);

/// The table of groups, "regime  GPU  points  mean %  worst %  bias %" and the same left out.
[[nodiscard]] std::string to_text(const std::vector<Group>& groups);
/// The same as a table of Markdown.
[[nodiscard]] std::string to_markdown(const std::vector<Group>& groups);
/// One row for each timing.
[[nodiscard]] std::string to_csv(const std::vector<Compared>& all);

}  // namespace ptxgen::validation
