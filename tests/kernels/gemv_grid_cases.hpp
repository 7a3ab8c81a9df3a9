// tests/kernels/gemv_grid_cases.hpp - the grid: problems, plans and targets that go together
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::test {

/// A point of the grid. Bases are that many elements after a multiple of 256 bytes, which is what
/// the problem's alignments say, or less.
struct GemvCase {
  GemvPlan plan;
  std::string target;
  std::uint64_t seed = 1;  ///< of the data
  std::uint32_t a_offset = 0;
  std::uint32_t x_offset = 0;
  std::uint32_t y_offset = 0;  ///< of y, bias and residual
  bool residual_is_y = false;
};
/// All of it on one line, for messages.
[[nodiscard]] std::string to_text(const GemvCase& point);

/// Whether `check` admits the plan for the target.
[[nodiscard]] bool admitted(const GemvPlan& plan, std::string_view target);

/// `count` points, the same ones each time: the first 128 have the split counts 1 to 64 in both
/// layouts, the next 36 the blocks of persistent kernels, the others are drawn from every member of
/// problem and plan. Each is drawn until `check` admits it, so that what plans learn joins by
/// itself.
[[nodiscard]] std::vector<GemvCase> gemv_grid(std::size_t count);

/// Plans on aligned matrices whose rows fill all loads, for counters: both layouts, all types, all
/// paths that are admitted.
[[nodiscard]] std::vector<GemvCase> gemv_aligned_cases();

}  // namespace ptxgen::test
