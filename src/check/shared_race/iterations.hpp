// src/check/shared_race/iterations.hpp - accesses of a loop by iteration
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "check/shared_race/ranges.hpp"

namespace ptxgen::inline v0::gates {

/// An access in each iteration of a loop.
struct IterationForms {
  std::uint32_t loop = analysis::kNoNode;
  /// Their addresses all have the `rest`: symbols with a range that do not depend on the loop.
  std::vector<AccessForm> iterations;
  std::vector<std::pair<SymbolKey, std::int64_t>> rest;
  /// The addresses repeat after these; otherwise there are no more iterations.
  bool periodic = false;
};

/// Computes accesses for every iteration of a loop with few iterations. Refers to its arguments.
class LoopIterations {
 public:
  LoopIterations(analysis::Facts& facts, const analysis::Affine& affine,
                 std::array<std::uint32_t, 3> shape, SymbolRanges& ranges);

  /// Null if the address depends on a symbol without a range, or if there are too many iterations.
  [[nodiscard]] const IterationForms* of(const SharedAccess& access, const AccessForm& form);

 private:
  /// What the symbols of an address depend on, besides the thread.
  struct Sources {
    std::uint32_t iteration = ptx::kNone;  ///< the Iteration symbol of one loop
    bool periodic = true;                  ///< only on its remainder by `period`
    std::uint64_t period = 1;
  };
  bool look_at(const analysis::AffineForm& form, int depth, Sources& sources,
               std::uint64_t modulus) const;
  bool look_at(std::uint32_t symbol, int depth, Sources& sources, std::uint64_t modulus) const;
  /// Finds the symbol of the innermost loop on which terms of the address depend, and the other
  /// terms; false if one of these has no range.
  bool divide(const ThreadForm& address, Sources& sources, IterationForms& result) const;
  [[nodiscard]] IterationForms computed(const SharedAccess& access, const AccessForm& form);
  /// Removes the threads that leave the loop after this iteration; false if that is not known.
  /// `forms` and `next`: of this iteration and the next.
  bool drop_ended_threads(std::uint32_t loop, ThreadForms& forms, ThreadForms& next,
                          std::vector<bool>& goes_on);

  /// The bound by thread; for a loop that ends there, otherwise the largest that it can be. Unlike
  /// `SymbolRanges`, which gives the last iteration of any thread, this tells which threads are
  /// left in each: those of a copy in whose last iteration only some take part.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> upper_bound(
      const analysis::AffineForm& bound, const analysis::LoopComparison& comparison,
      ThreadForms& forms) const;

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  std::array<std::uint32_t, 3> shape_;
  SymbolRanges& ranges_;
  std::map<std::uint32_t, IterationForms> known_;  ///< by statement
};

}  // namespace ptxgen::inline v0::gates
