// ptxgen/frames/tracker.hpp - values over the frames of a launch
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/frames/checks.hpp"
#include "ptxgen/frames/frame.hpp"

namespace ptxgen::inline v0::frames {

/// Follows named values from step to step. A value that was never recorded fails every check.
class ValueTracker {
 public:
  struct Sample {
    std::uint64_t step = 0;
    double value = 0;
  };

  /// Adds a value; steps do not fall, or throws `Error` (Stage::Emulate, code "tracker").
  void record(std::string_view name, std::uint64_t step, double value);
  /// Adds the known elements of the watches of a frame: "y[3]" for buffers, "b2:%f1[40]" for
  /// register %f1 of thread 40, and "b2:tile[40]" for element 40 of a shared variable, of block
  /// number 2.
  void record(const Frame& frame);

  /// In the order in which they were first recorded.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::vector<Sample>& samples(std::string_view name) const noexcept;

  /// It had two different values. NaN is different from every number, not from NaN.
  [[nodiscard]] FrameCheck changed(std::string_view name) const;
  [[nodiscard]] FrameCheck unchanged(std::string_view name) const;
  enum class Direction { Rising, Falling };
  /// It never went the other way; equal values are allowed, NaN is not.
  [[nodiscard]] FrameCheck monotonic(std::string_view name, Direction direction) const;
  /// low <= value <= high, always.
  [[nodiscard]] FrameCheck within(std::string_view name, double low, double high) const;

 private:
  struct Track {
    std::string name;
    std::vector<Sample> samples;
  };
  [[nodiscard]] const Track* find(std::string_view name) const noexcept;
  std::vector<Track> tracks_;        // in the order of `names`
  std::vector<std::size_t> sorted_;  // indices of `tracks_`, by name
};

}  // namespace ptxgen::inline v0::frames
