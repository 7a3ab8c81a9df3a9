// src/check/shared_race/waits.hpp - waits at mbarriers
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "check/shared_race/forms.hpp"

namespace ptxgen::inline v0::gates {

/// Waits at mbarriers, and which of them may be for a bulk copy. The phase is not checked. Refers
/// to its arguments.
class MbarrierWaits {
 public:
  /// `budget`: pairs of threads that may still be compared; is used up.
  MbarrierWaits(analysis::Facts& facts, ThreadForms& forms, std::span<const SharedAccess> accesses,
                std::uint64_t& budget)
      : facts_(facts), forms_(forms), accesses_(accesses), budget_(budget) {}

  /// Whether the statement tests in every thread whether a phase has ended, and the result is used.
  [[nodiscard]] bool at(std::uint32_t statement) const;
  /// The same for an mbarrier that may be that of a bulk copy (its number among the accesses).
  [[nodiscard]] bool at(std::uint32_t statement, std::uint32_t copy);

 private:
  const AccessForm& form(std::uint32_t statement, std::uint32_t operand);

  analysis::Facts& facts_;
  ThreadForms& forms_;
  std::span<const SharedAccess> accesses_;
  std::uint64_t& budget_;
  std::map<std::uint32_t, AccessForm> mbarriers_;                       ///< by statement
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> may_be_one_;  ///< wait, copy
};

}  // namespace ptxgen::inline v0::gates
