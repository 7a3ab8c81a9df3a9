// src/optimize/race_regions.hpp - what threads may run between two barriers
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "optimize/race_accesses.hpp"
#include "optimize/race_forms.hpp"

namespace ptxgen::inline v0::optimize {

/// What threads that began together may run before any of them comes to the next barrier.
class Region {
 public:
  Region(const Segments& segments, std::span<const std::uint32_t> starts);

  [[nodiscard]] std::span<const std::uint32_t> members() const noexcept { return members_; }
  [[nodiscard]] bool contains(std::uint32_t segment) const noexcept { return inside_[segment]; }
  /// Whether threads in the region find the same value of something that changes whenever control
  /// comes to the segment: at both of two segments in which they use it.
  [[nodiscard]] bool settled(std::uint32_t changing, std::uint32_t a, std::uint32_t b);

 private:
  struct Change {
    bool repeated = false;           ///< control may come to it twice
    std::vector<bool> reached_past;  ///< what the region reaches without it
  };
  [[nodiscard]] std::vector<bool> flood(std::span<const std::uint32_t> from,
                                        std::uint32_t without) const;
  const Segments* segments_;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> members_;
  std::vector<bool> inside_;
  std::map<std::uint32_t, Change> changes_;
};

}  // namespace ptxgen::inline v0::optimize
