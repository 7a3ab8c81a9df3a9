// src/frames/tracker.cpp - values over the frames of a launch
#include "ptxgen/frames/tracker.hpp"

#include <algorithm>
#include <cmath>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::frames {
namespace {

FrameCheck absent(std::string_view name) {
  return {false, format_text("'{}' was never recorded", name)};
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

const ValueTracker::Track* ValueTracker::find(std::string_view name) const noexcept {
  const auto at = std::ranges::lower_bound(
      sorted_, name, {}, [this](std::size_t i) { return std::string_view(tracks_[i].name); });
  return at != sorted_.end() && tracks_[*at].name == name ? &tracks_[*at] : nullptr;
}

void ValueTracker::record(std::string_view name, std::uint64_t step, double value) {
  const auto at = std::ranges::lower_bound(
      sorted_, name, {}, [this](std::size_t i) { return std::string_view(tracks_[i].name); });
  if (at == sorted_.end() || tracks_[*at].name != name) {
    sorted_.insert(at, tracks_.size());
    tracks_.push_back({std::string(name), {{step, value}}});
    return;
  }
  Track& track = tracks_[*at];
  if (step < track.samples.back().step) {
    throw Error(Stage::Emulate, "tracker",
                format_text("'{}' is recorded at step {} after step {}; record the frames of a "
                            "launch in their order, and each launch in a tracker of its own",
                            name, step, track.samples.back().step));
  }
  track.samples.push_back({step, value});
}

void ValueTracker::record(const Frame& frame) {
  for (const WatchedValues& values : frame.watched) {
    const std::string name = values.kind == WatchedValues::Kind::Global
                                 ? values.name
                                 : format_text("b{}:{}", frame.block_number, values.name);
    for (std::size_t i = 0; i < values.bits.size(); ++i) {
      if (!values.known[i]) continue;
      record(format_text("{}[{}]", name, values.first + i), frame.number,
             value_of(values.bits[i], values.type));
    }
  }
}

std::vector<std::string> ValueTracker::names() const {
  std::vector<std::string> all;
  for (const Track& track : tracks_) all.push_back(track.name);
  return all;
}

const std::vector<ValueTracker::Sample>& ValueTracker::samples(
    std::string_view name) const noexcept {
  static const std::vector<Sample> none;
  const Track* const track = find(name);
  return track == nullptr ? none : track->samples;
}

FrameCheck ValueTracker::changed(std::string_view name) const {
  const Track* const track = find(name);
  if (track == nullptr) return absent(name);
  for (const Sample& sample : track->samples) {
    if (!same(sample.value, track->samples.front().value)) return {};
  }
  return {false, format_text("'{}' was {} in all {} samples", name, track->samples.front().value,
                             track->samples.size())};
}

FrameCheck ValueTracker::unchanged(std::string_view name) const {
  const Track* const track = find(name);
  if (track == nullptr) return absent(name);
  const Sample& first = track->samples.front();
  for (const Sample& sample : track->samples) {
    if (same(sample.value, first.value)) continue;
    return {false, format_text("'{}' was {} at step {} and {} at step {}", name, first.value,
                               first.step, sample.value, sample.step)};
  }
  return {};
}

FrameCheck ValueTracker::monotonic(std::string_view name, Direction direction) const {
  const Track* const track = find(name);
  if (track == nullptr) return absent(name);
  const bool rising = direction == Direction::Rising;
  for (std::size_t i = 0; i < track->samples.size(); ++i) {
    const Sample& sample = track->samples[i];
    const Sample& before = track->samples[i == 0 ? 0 : i - 1];
    if (rising ? sample.value >= before.value : sample.value <= before.value) continue;
    return {false, format_text("'{}' does not only {}: {} at step {}, then {} at step {}", name,
                               rising ? "rise" : "fall", before.value, before.step, sample.value,
                               sample.step)};
  }
  return {};
}

FrameCheck ValueTracker::within(std::string_view name, double low, double high) const {
  const Track* const track = find(name);
  if (track == nullptr) return absent(name);
  for (const Sample& sample : track->samples) {
    if (sample.value >= low && sample.value <= high) continue;
    return {false, format_text("'{}' is {} at step {}, not between {} and {}", name, sample.value,
                               sample.step, low, high)};
  }
  return {};
}

}  // namespace ptxgen::inline v0::frames
