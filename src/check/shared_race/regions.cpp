// src/check/shared_race/regions.cpp - code between two barriers
#include "check/shared_race/regions.hpp"

namespace ptxgen::inline v0::gates {

Region::Region(const Segments& segments, std::span<const std::uint32_t> starts,
               std::vector<std::uint32_t>& marks, std::uint32_t number)
    : segments_(&segments), starts_(starts.begin(), starts.end()), marks_(&marks), number_(number) {
  const auto enter = [&](std::uint32_t segment) {
    if (marks[segment] == number) return;
    marks[segment] = number;
    members_.push_back(segment);
  };
  for (const std::uint32_t start : starts_) enter(start);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    for (const std::uint32_t to : segments.successors(members_[i])) enter(to);
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

Region::Order Region::order(std::uint32_t changing, std::uint32_t first, std::uint32_t second) {
  // Threads that started at different barriers may be in different iterations of a loop.
  if (starts_.size() > 1) return Order::Unknown;
  if (!contains(changing)) return Order::Equal;
  const auto [at, result] = changes_.try_emplace(changing);
  Change& change = at->second;
  if (result) {
    change.reached_without = flood(starts_, changing);
    change.reached_after = flood({&changing, 1}, ptx::kNone);
    change.repeated = flood(segments_->successors(changing), ptx::kNone)[changing];
  }
  if (change.repeated) return Order::Unknown;
  const auto before = [&](std::uint32_t s) {
    return change.reached_without[s] && !change.reached_after[s];
  };
  const auto after = [&](std::uint32_t s) { return !change.reached_without[s]; };
  if (before(first) && before(second)) return Order::Equal;
  if (after(first) && after(second)) return Order::Equal;
  if (before(first) && after(second)) return Order::Before;
  if (after(first) && before(second)) return Order::After;
  return Order::Unknown;
}

}  // namespace ptxgen::inline v0::gates
