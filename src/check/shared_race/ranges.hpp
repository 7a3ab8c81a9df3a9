// src/check/shared_race/ranges.hpp - ranges of the symbols of addresses
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "check/shared_race/forms.hpp"
#include "ptxgen/analysis/induction.hpp"

namespace ptxgen::inline v0::gates {

/// Ranges of forms in blocks of one shape, with the numbers of iterations that the tests of loops
/// allow. Refers to its arguments.
class SymbolRanges {
 public:
  SymbolRanges(analysis::Facts& facts, const analysis::Affine& affine,
               std::array<std::uint32_t, 3> shape);

  [[nodiscard]] analysis::AffineRange of(const SymbolKey& key);
  /// Of a sum of coefficient * key.
  [[nodiscard]] analysis::AffineRange of(std::span<const std::pair<SymbolKey, std::int64_t>> terms);
  /// Of a number: unknown unless its form is, without wrap-around, a number of its width.
  [[nodiscard]] analysis::AffineRange of_number(const analysis::AffineForm& form, bool is_signed);
  [[nodiscard]] bool assumptions_hold(const analysis::AffineForm& form);
  /// Whether a condition's sum is the difference of the numbers that it compares, without
  /// wrap-around.
  [[nodiscard]] bool is_exact(const ThreadCondition& condition);
  /// Whether a condition is one of integers: neither number that it compares wraps around. A symbol
  /// without a range, times its coefficient, is taken for a number on which threads agree, below
  /// 2^31.
  [[nodiscard]] bool is_integer(const ThreadCondition& condition);
  /// Removes the threads from `may` for which a condition fails whatever its symbol is.
  void drop_impossible(AccessForm& form);

 private:
  [[nodiscard]] analysis::AffineRange above_minimum(const analysis::AffineForm& form);
  /// A compared number: `rest` + coefficient * key; `rest` is unknown if it may wrap around.
  struct Compared {
    analysis::AffineRange rest;
    std::int64_t coefficient = 0;
  };
  [[nodiscard]] Compared compared(const analysis::AffineForm& form, const SymbolKey& key,
                                  bool is_signed);
  void bound_loops();
  [[nodiscard]] analysis::AffineRange iterations(std::uint32_t loop);
  [[nodiscard]] std::optional<std::int64_t> last_iteration(std::uint32_t loop,
                                                           const analysis::LoopComparison& test);
  [[nodiscard]] analysis::AffineRange range(const analysis::AffineForm& form);

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  analysis::BlockBounds block_;
  bool loops_known_ = false;
  analysis::AffineRanges known_;
};

}  // namespace ptxgen::inline v0::gates
