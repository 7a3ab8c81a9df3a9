// src/support/trace_summary.cpp - a recorded trace by span and counter track
#include "support/trace_summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

namespace {

using SpanJson = nlohmann::json;

// Times in nanoseconds, in which the file's microseconds are exact.
struct RecordedSpan {
  const SpanJson* event = nullptr;
  std::uint64_t thread = 0;
  long long begin = 0;
  long long end = 0;
};

// A node while spans are added to it.
struct GrowingNode {
  SpanNode node;
  std::size_t parent = 0;  // index + 1, 0: none
  std::vector<double> durations;
  std::vector<std::size_t> children;
};

class SpanTree {
 public:
  void add(const std::vector<RecordedSpan>& spans) {
    std::vector<std::pair<const RecordedSpan*, std::size_t>> open;
    for (const RecordedSpan& span : spans) {
      while (!open.empty() &&
             (open.back().first->thread != span.thread || open.back().first->end <= span.begin)) {
        open.pop_back();
      }
      if (!open.empty() && span.end > open.back().first->end) ++overlapping_;
      const std::size_t at = node_of(span, open.empty() ? 0 : open.back().second + 1);
      const double microseconds = static_cast<double>(span.end - span.begin) / 1000.0;
      nodes_[at].durations.push_back(microseconds);
      nodes_[at].node.total += microseconds;
      nodes_[at].node.self += microseconds;
      if (!open.empty()) nodes_[open.back().second].node.self -= microseconds;
      open.emplace_back(&span, at);
    }
  }

  void write(TraceSummary& summary) {
    summary.overlapping = overlapping_;
    for (const std::size_t root : roots_) write(summary, root);
  }

 private:
  std::size_t node_of(const RecordedSpan& span, std::size_t parent) {
    const std::string name = span.event->at("name");
    const auto key = std::make_tuple(span.thread, parent, name);
    const auto [found, inserted] = by_key_.try_emplace(key, nodes_.size());
    if (!inserted) return found->second;
    GrowingNode grown;
    grown.parent = parent;
    grown.node.name = name;
    grown.node.category = span.event->at("cat");
    grown.node.thread = span.thread;
    grown.node.path = parent == 0 ? name : nodes_[parent - 1].node.path + "/" + name;
    grown.node.depth = parent == 0 ? 0 : nodes_[parent - 1].node.depth + 1;
    nodes_.push_back(std::move(grown));
    (parent == 0 ? roots_ : nodes_[parent - 1].children).push_back(found->second);
    return found->second;
  }

  // Deep nesting of spans is that of the library's code: recursion is bounded.
  void write(TraceSummary& summary, std::size_t at) {
    GrowingNode& grown = nodes_[at];
    std::ranges::sort(grown.durations);
    grown.node.count = grown.durations.size();
    grown.node.p5 = percentile(grown.durations, 0.05);
    grown.node.median = percentile(grown.durations, 0.5);
    grown.node.p95 = percentile(grown.durations, 0.95);
    summary.spans.push_back(grown.node);
    for (const std::size_t child : grown.children) write(summary, child);
  }

  std::vector<GrowingNode> nodes_;
  std::vector<std::size_t> roots_;
  std::map<std::tuple<std::uint64_t, std::size_t, std::string>, std::size_t> by_key_;
  std::uint64_t overlapping_ = 0;
};

long long nanoseconds_at(const SpanJson& event, const char* key) {
  return std::llround(event.at(key).get<double>() * 1000.0);
}

void add_counter(TraceSummary& summary, std::unordered_map<std::string, std::size_t>& tracks,
                 const SpanJson& event) {
  const std::string name = event.at("name");
  const auto [found, inserted] = tracks.try_emplace(name, summary.counters.size());
  if (inserted) summary.counters.push_back({name, 0, {}});
  CounterTrack& track = summary.counters[found->second];
  ++track.events;
  track.last.clear();
  for (const auto& [series, value] : event.at("args").items()) {
    track.last.emplace_back(series, value.get<std::uint64_t>());
  }
}

TraceSummary summary_of(const SpanJson& trace) {
  TraceSummary summary;
  summary.dropped = trace.at("otherData").at("dropped");
  std::vector<RecordedSpan> spans;
  std::unordered_map<std::string, std::size_t> tracks;
  std::unordered_map<std::uint64_t, long long> thread_begin;
  for (const SpanJson& event : trace.at("traceEvents")) {
    if (event.at("ph") == "C") {
      add_counter(summary, tracks, event);
      continue;
    }
    RecordedSpan span;
    span.event = &event;
    span.thread = event.at("tid");
    span.begin = nanoseconds_at(event, "ts");
    span.end = span.begin + nanoseconds_at(event, "dur");
    const auto [first, inserted] = thread_begin.try_emplace(span.thread, span.begin);
    if (!inserted) first->second = std::min(first->second, span.begin);
    spans.push_back(span);
  }
  // An outer span ends later: of two that begin together it is the longer one, or, if both took no
  // time, the one that was recorded later.
  std::ranges::reverse(spans);
  std::ranges::stable_sort(spans, [&](const RecordedSpan& a, const RecordedSpan& b) {
    if (a.thread != b.thread) {
      return std::pair(thread_begin[a.thread], a.thread) <
             std::pair(thread_begin[b.thread], b.thread);
    }
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  SpanTree tree;
  tree.add(spans);
  tree.write(summary);
  return summary;
}

}  // namespace

std::uint64_t CounterTrack::value(std::string_view series) const noexcept {
  for (const auto& [known, number] : last) {
    if (known == series) return number;
  }
  return 0;
}

const SpanNode* TraceSummary::span(std::string_view path) const noexcept {
  const auto found = std::ranges::find(spans, path, &SpanNode::path);
  return found == spans.end() ? nullptr : &*found;
}

const CounterTrack* TraceSummary::track(std::string_view name) const noexcept {
  const auto found = std::ranges::find(counters, name, &CounterTrack::name);
  return found == counters.end() ? nullptr : &*found;
}

double percentile(const std::vector<double>& sorted, double share) noexcept {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto at = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(at, sorted.size() - 1)];
}

TraceSummary summarize_trace(std::string_view json) {
  try {
    return summary_of(SpanJson::parse(json));
  } catch (const nlohmann::json::exception& error) {
    throw Error(Stage::Io, "bad-trace", std::string("it is no trace of ptxgen: ") + error.what());
  }
}

}  // namespace ptxgen::inline v0
