// tests/optimize/loop_split_kernels.hpp - generated loops of every form
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::test {

/// How a loop of the tests is written.
enum class SplitForm : std::uint8_t {
  Guarded,   ///< tested at its bottom after the step, entered only if the bound allows
  Bottom,    ///< the same, entered in any case
  Before,    ///< tested at its bottom before the step
  Top,       ///< tested at its top, through copies and a negation
  NotEqual,  ///< guarded, goes on while the variable is not the bound
  AtMost,    ///< guarded, goes on while the variable is at most the bound
  Limit,     ///< as the builder writes it: tested before the step, against a limit
};
inline constexpr SplitForm kSplitForms[] = {
    SplitForm::Guarded,  SplitForm::Bottom, SplitForm::Before, SplitForm::Top,
    SplitForm::NotEqual, SplitForm::AtMost, SplitForm::Limit};

struct SplitShape {
  SplitForm form = SplitForm::Guarded;
  bool down = false, is_signed = false, swapped = false;
  bool predicated = false;    ///< guards and selp instead of branches
  bool constant_step = true;  ///< else read at run time (Limit)
  bool clamped = true;        ///< the upper bound keeps the variable from wrapping around
  unsigned bits = 32;
  std::uint64_t step = 1;   ///< its size
  int relation = 0;         ///< lt le gt ge
  std::int64_t offset = 0;  ///< of the value that is compared
};

/// The bits of its variable.
[[nodiscard]] inline std::uint64_t mask(const SplitShape& s) {
  return s.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << s.bits) - 1;
}

/// lower bound, upper bound, value that the variable is compared with, step.
struct SplitCase {
  std::uint64_t lb = 0, ub = 0, s = 0, step = 1;
};

/// A kernel `k(cases, out)` whose block b runs case b and leaves a hash over its turns, in order,
/// and the number of turns in which the condition held.
[[nodiscard]] std::string text_of(const SplitShape& shape);

/// Iterations of the loop by hand, or nothing beyond `max`.
[[nodiscard]] int iterations_of(const SplitShape& shape, const SplitCase& c, int max);

/// Runs every case as a block; two numbers for each.
[[nodiscard]] std::vector<std::uint64_t> run_cases(const ptx::Module& module,
                                                   const std::vector<SplitCase>& cases);

/// Instructions that warps execute for these cases.
[[nodiscard]] std::uint64_t instructions(const ptx::Module& module,
                                         const std::vector<SplitCase>& cases);

}  // namespace ptxgen::test
