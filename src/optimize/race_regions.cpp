// src/optimize/race_regions.cpp - what threads may run between two barriers
#include "optimize/race_regions.hpp"

namespace ptxgen::inline v0::optimize {

Region::Region(const Segments& segments, std::span<const std::uint32_t> starts)
    : segments_(&segments), starts_(starts.begin(), starts.end()), inside_(segments.count()) {
  for (const std::uint32_t start : starts_) {
    if (inside_[start]) continue;
    inside_[start] = true;
    members_.push_back(start);
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    for (const std::uint32_t to : segments.successors(members_[i])) {
      if (inside_[to]) continue;
      inside_[to] = true;
      members_.push_back(to);
    }
  }
}

std::vector<bool> Region::flood(std::span<const std::uint32_t> from, std::uint32_t without) const {
  std::vector<bool> reached(segments_->count());
  std::vector<std::uint32_t> open;
  for (const std::uint32_t segment : from) {
    if (segment == without || reached[segment]) continue;
    reached[segment] = true;
    open.push_back(segment);
  }
  while (!open.empty()) {
    const std::uint32_t segment = open.back();
    open.pop_back();
    for (const std::uint32_t to : segments_->successors(segment)) {
      if (to == without || reached[to]) continue;
      reached[to] = true;
      open.push_back(to);
    }
  }
  return reached;
}

bool Region::settled(std::uint32_t changing, std::uint32_t a, std::uint32_t b) {
  if (!contains(changing)) return true;
  // Threads that began at different barriers need not be in the same round of a loop.
  if (starts_.size() > 1) return false;
  const auto known = changes_.find(changing);
  Change* change = known == changes_.end() ? nullptr : &known->second;
  if (change == nullptr) {
    change = &changes_[changing];
    change->reached_past = flood(starts_, changing);
    change->repeated = flood(segments_->successors(changing), ptx::kNone)[changing];
  }
  return !change->repeated && !change->reached_past[a] && !change->reached_past[b];
}

}  // namespace ptxgen::inline v0::optimize
