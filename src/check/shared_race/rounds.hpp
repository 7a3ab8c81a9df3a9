// src/check/shared_race/rounds.hpp - accesses of a loop, round by round
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "check/shared_race/forms.hpp"
#include "ptxgen/analysis/induction.hpp"

namespace ptxgen::inline v0::gates {

/// An access that threads make in each round of a loop, where the number of the round and that of
/// the thread decide the address.
struct RoundForms {
  std::uint32_t loop = analysis::kNoNode;
  std::vector<AccessForm> rounds;  ///< without anything else that is not known
  /// After these the addresses repeat; otherwise there are no more rounds.
  bool periodic = false;
};

/// Works accesses out for every round of a loop, where these are few. Refers to its arguments.
class Rounds {
 public:
  Rounds(analysis::Facts& facts, const analysis::Affine& affine,
         std::array<std::uint32_t, 3> shape);

  /// Nothing if the address depends on more than one loop, on anything else, or if there are too
  /// many rounds.
  [[nodiscard]] const RoundForms* of(const SharedAccess& access, const AccessForm& form);

 private:
  /// What the rest of an address hangs on, beside the number of the thread.
  struct Sources {
    std::uint32_t iteration = ptx::kNone;  ///< the Iteration symbol of one loop
    bool periodic = true;                  ///< and of that only the remainder by `period`
    std::uint64_t period = 1;
  };
  bool look_at(const analysis::AffineForm& form, int depth, Sources& sources,
               std::uint64_t modulus) const;
  bool look_at(std::uint32_t symbol, int depth, Sources& sources, std::uint64_t modulus) const;
  [[nodiscard]] RoundForms worked_out(const SharedAccess& access, const AccessForm& form);
  /// Takes out the threads that leave the loop after this round; false if that is not known.
  /// `forms` and `next`: of this round and the one after it.
  bool leave_out_ended(std::uint32_t loop, ThreadForms& forms, ThreadForms& next,
                       std::vector<bool>& goes_on);

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  std::array<std::uint32_t, 3> shape_;
  std::optional<analysis::Inductions> inductions_;
  std::map<std::uint32_t, RoundForms> known_;  ///< by statement
};

}  // namespace ptxgen::inline v0::gates
