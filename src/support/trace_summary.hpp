// src/support/trace_summary.hpp - a recorded trace by span and counter track
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxgen::inline v0 {

/// All spans of one name below the same parents, in one thread. Times in microseconds.
struct SpanNode {
  std::string path;  ///< "bench/launch"
  std::string name;  ///< "launch"
  std::string category;
  unsigned depth = 0;  ///< 0: not within another span
  std::uint64_t thread = 0;
  std::uint64_t count = 0;
  double total = 0;
  double self = 0;  ///< without the spans within it
  double p5 = 0;
  double median = 0;
  double p95 = 0;
};

/// A counter track with its last values.
struct CounterTrack {
  std::string name;
  std::uint64_t events = 0;
  std::vector<std::pair<std::string, std::uint64_t>> last;
  /// Of that series; 0 if the track has none of that name.
  [[nodiscard]] std::uint64_t value(std::string_view series) const noexcept;
};

struct TraceSummary {
  /// Threads in the order of their first span; a span comes before those within it.
  std::vector<SpanNode> spans;
  std::vector<CounterTrack> counters;  ///< in the order of their first event
  std::uint64_t dropped = 0;
  /// Spans that overlap another one of their thread partly. A trace has none.
  std::uint64_t overlapping = 0;
  /// The first node of that path, or null.
  [[nodiscard]] const SpanNode* span(std::string_view path) const noexcept;
  [[nodiscard]] const CounterTrack* track(std::string_view name) const noexcept;
};

/// The value below which that share (0 to 1) of the sorted values is, nearest rank; 0 without
/// values.
[[nodiscard]] double percentile(const std::vector<double>& sorted, double share) noexcept;

/// Reads what `Trace::json` returns. Throws `Error` (Stage::Io, "bad-trace") for other text.
[[nodiscard]] TraceSummary summarize_trace(std::string_view json);

}  // namespace ptxgen::inline v0
