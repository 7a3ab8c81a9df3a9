// src/check/shared_race/waits.hpp - where threads have waited at an mbarrier
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "check/shared_race/forms.hpp"

namespace ptxgen::inline v0::gates {

/// Waits at mbarriers, and which of them may be for a bulk copy. Which phase is waited for is not
/// looked at. Refers to its arguments.
class MbarrierWaits {
 public:
  /// `budget`: how many pairs of threads may still be looked at; is used up.
  MbarrierWaits(analysis::Facts& facts, ThreadForms& forms, std::span<const SharedAccess> accesses,
                std::uint64_t& budget)
      : facts_(facts), forms_(forms), accesses_(accesses), budget_(budget) {}

  /// Whether the statement asks, of every thread that comes to it, whether a phase has ended, and
  /// something depends on the answer.
  [[nodiscard]] bool at(std::uint32_t statement) const;
  /// The same where the mbarrier may be that of a bulk copy, by its number among the accesses.
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
