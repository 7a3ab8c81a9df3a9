// src/check/shared_race/regions.hpp - code between two barriers
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "check/shared_race/accesses.hpp"
#include "check/shared_race/forms.hpp"

namespace ptxgen::inline v0::gates {

/// The code that threads which start together may execute before any of them reaches the next
/// barrier. Of the regions of one function only the newest may be queried.
class Region {
 public:
  /// `marks`: one for each segment, shared by all regions, initially 0; `number`: unique to the
  /// region, not 0.
  Region(const Segments& segments, std::span<const std::uint32_t> starts,
         std::vector<std::uint32_t>& marks, std::uint32_t number);

  [[nodiscard]] std::span<const std::uint32_t> members() const noexcept { return members_; }
  [[nodiscard]] bool contains(std::uint32_t segment) const noexcept {
    return (*marks_)[segment] == number_;
  }
  /// How often threads at two segments have passed a third one since the region began: those at the
  /// first as often as those at the second, once less (Before), or once more (After).
  enum class Order : std::uint8_t { Equal, Before, After, Unknown };
  [[nodiscard]] Order order(std::uint32_t changing, std::uint32_t first, std::uint32_t second);
  /// Whether control may go from the end of one segment to another without leaving the region.
  [[nodiscard]] bool leads(std::uint32_t from, std::uint32_t to) const {
    return flood(segments_->successors(from), ptx::kNone)[to];
  }

 private:
  struct Change {
    bool repeated = false;              ///< control may reach it twice
    std::vector<bool> reached_without;  ///< segments that the region reaches without it
    std::vector<bool> reached_after;    ///< segments that the region reaches from there
  };
  [[nodiscard]] std::vector<bool> flood(std::span<const std::uint32_t> from,
                                        std::uint32_t without) const;
  const Segments* segments_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t>* marks_;
  std::uint32_t number_;
  std::map<std::uint32_t, Change> changes_;
};

}  // namespace ptxgen::inline v0::gates
