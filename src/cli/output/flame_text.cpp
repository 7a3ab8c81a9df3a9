// src/cli/output/flame_text.cpp - a trace as a tree of spans, for people
#include "cli/output/flame_text.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::size_t kHottest = 12;
constexpr double kBarColumns = 20;

std::string span_line(const SpanNode& span, double longest) {
  const auto bar =
      static_cast<std::size_t>(longest > 0 ? std::lround(kBarColumns * span.total / longest) : 0);
  return format_text("{:>12.3f} {:>12.3f} {:>8} {:>11.3f} {:>11.3f}  {:<20}  {}{}\n",
                     span.total / 1e3, span.self / 1e3, span.count, span.median / 1e3,
                     span.p95 / 1e3, std::string(std::min<std::size_t>(bar, 20), '#'),
                     std::string(2 * std::size_t{span.depth}, ' '), span.name);
}

std::string series_text(const CounterTrack& track) {
  std::string text;
  for (const auto& [series, value] : track.last) {
    if (series == "executions") continue;
    text += format_text("{}{} {}", text.empty() ? "  " : ", ", series, value);
  }
  return text;
}

std::string hottest_lines(const TraceSummary& summary) {
  std::vector<const CounterTrack*> lines;
  for (const CounterTrack& track : summary.counters) {
    if (track.value("executions") != 0) lines.push_back(&track);
  }
  if (lines.empty()) return {};
  // Of lines that are executed as often, those that access memory first.
  const auto weight = [](const CounterTrack* line) {
    return std::pair(line->value("executions"), line->value("sectors") + line->value("wavefronts"));
  };
  std::ranges::stable_sort(lines, std::greater<>(), weight);
  std::string text =
      format_text("\n  executions  PTX line, of {} with counters; the last launch\n", lines.size());
  for (std::size_t i = 0; i < std::min(lines.size(), kHottest); ++i) {
    text += format_text("{:>12}  {}{}\n", lines[i]->value("executions"), lines[i]->name,
                        series_text(*lines[i]));
  }
  return text;
}

}  // namespace

std::string flame_text(const TraceSummary& summary) {
  double longest = 0;
  for (const SpanNode& span : summary.spans) longest = std::max(longest, span.total);
  std::string text =
      "    total ms      self ms    count   median ms      p95 ms                        span\n";
  const SpanNode* last = nullptr;
  for (const SpanNode& span : summary.spans) {
    if (last != nullptr && last->thread != span.thread) text += '\n';
    last = &span;
    text += span_line(span, longest);
  }
  text += hottest_lines(summary);
  if (summary.dropped != 0) {
    text += format_text("\n{} did not fit into the trace's memory\n",
                        count_text(summary.dropped, "event"));
  }
  return text;
}

}  // namespace ptxgen::cli
