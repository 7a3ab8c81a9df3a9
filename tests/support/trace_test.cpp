// tests/support/trace_test.cpp - spans as Chrome trace, as stage times, as NVTX ranges
#include "ptxgen/support/trace.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ptxgen/support/error.hpp"
#include "ptxgen/support/observe.hpp"
#include "support/process_ids.hpp"
#include "support/temporary_directory.hpp"
#include "support/trace_summary.hpp"

using namespace ptxgen;
using Json = nlohmann::json;

namespace {

/// A trace that neither the environment nor a loaded profiler library can change.
TraceOptions in_memory() {
  TraceOptions options;
  options.nvtx_in_process = false;
  return options;
}

struct Interval {
  std::string name;
  long long begin = 0;  // ns
  long long end = 0;
};

long long nanoseconds(const Json& value) { return std::llround(value.get<double>() * 1000.0); }

/// The spans of each thread; checks every field on the way.
std::map<std::uint64_t, std::vector<Interval>> by_thread(const Json& trace) {
  std::map<std::uint64_t, std::vector<Interval>> threads;
  for (const Json& event : trace.at("traceEvents")) {
    CHECK(event.at("ph") == "X");
    CHECK(event.at("pid") == process_id());
    CHECK(event.at("cat").is_string());
    CHECK(event.at("args").is_object());
    Interval interval;
    interval.name = event.at("name");
    interval.begin = nanoseconds(event.at("ts"));
    interval.end = interval.begin + nanoseconds(event.at("dur"));
    CHECK(interval.begin >= 0);
    CHECK(interval.end >= interval.begin);
    threads[event.at("tid").get<std::uint64_t>()].push_back(interval);
  }
  return threads;
}

/// Any two spans of a thread are disjoint, or one is in the other.
bool nested(const std::vector<Interval>& spans) {
  for (const Interval& a : spans) {
    for (const Interval& b : spans) {
      const bool disjoint = a.end <= b.begin || b.end <= a.begin;
      const bool inside =
          (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
      if (!disjoint && !inside) return false;
    }
  }
  return true;
}

void wait_a_little() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

}  // namespace

TEST_CASE("a trace that is off records nothing and opens nothing", "[trace]") {
  const Trace off;
  CHECK_FALSE(off.on());
  {
    Span span(off, "build");
    CHECK_FALSE(span.recording());
    span.argument("kernel", "k");
  }
  CHECK(off.recorded() == 0);
  const Json json = Json::parse(off.json());
  CHECK(json.at("traceEvents").empty());
  TraceOptions nothing = in_memory();
  nothing.record = false;
  CHECK_FALSE(Trace::start(nothing).on());
}

TEST_CASE("spans come out as complete events that nest", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  REQUIRE(trace.on());
  CHECK_FALSE(trace.profiled());
  {
    Span outer(trace, "load", "runtime");
    CHECK(outer.recording());
    outer.argument("kernel", "gemv \"quoted\"\n");
    outer.argument("bytes", 18446744073709551615u);
    wait_a_little();
    {
      const Span inner(trace, "assemble", "runtime");
      wait_a_little();
    }
    { const Span inner(trace, "copy"); }
  }
  const Json json = Json::parse(trace.json());
  CHECK(json.at("otherData").at("dropped") == 0);
  const Json& events = json.at("traceEvents");
  REQUIRE(events.size() == 3);
  CHECK(events[0].at("name") == "assemble");
  CHECK(events[1].at("name") == "copy");
  CHECK(events[1].at("cat") == "ptxgen");
  CHECK(events[2].at("name") == "load");
  CHECK(events[2].at("cat") == "runtime");
  CHECK(events[2].at("args") ==
        Json{{"kernel", "gemv \"quoted\"\n"}, {"bytes", "18446744073709551615"}});
  const auto threads = by_thread(json);
  REQUIRE(threads.size() == 1);
  CHECK(threads.begin()->first == thread_id());
  const std::vector<Interval>& spans = threads.begin()->second;
  CHECK(nested(spans));
  const Interval& outer = spans[2];
  CHECK((outer.begin <= spans[0].begin && spans[0].end <= outer.end));
  CHECK((spans[0].end <= spans[1].begin && spans[1].end <= outer.end));
  CHECK(spans[0].end - spans[0].begin >= 200'000);
  CHECK(outer.end - outer.begin >= 400'000);
}

TEST_CASE("times keep their fraction of a microsecond", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  for (int i = 0; i < 200; ++i) const Span span(trace, "x");
  bool fraction = false;
  const Json json = Json::parse(trace.json());
  CHECK(json.at("traceEvents").size() == 200);
  for (const Json& event : json.at("traceEvents")) {
    const double ts = event.at("ts");
    fraction = fraction || ts != std::floor(ts);
    CHECK(ts == static_cast<double>(nanoseconds(event.at("ts"))) / 1000.0);
  }
  CHECK(fraction);
}

TEST_CASE("bytes that are not text do not spoil the file", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  {
    Span span(trace, "bad \xff name");
    span.argument("key \xc3", std::string("value \0 \x01 \xe2\x82", 11));
  }
  const Json json = Json::parse(trace.json());
  CHECK(json.at("traceEvents").size() == 1);
}

TEST_CASE("arguments are bounded in number and length", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  {
    Span span(trace, "x");
    for (int i = 0; i < 20; ++i) span.argument("a" + std::to_string(i), std::string(1000, 'x'));
  }
  const Json event = Json::parse(trace.json()).at("traceEvents").at(0);
  CHECK(event.at("args").size() == 8);
  CHECK(event.at("args").at("a7").get<std::string>().size() == 256);
}

TEST_CASE("memory is bounded, what does not fit is counted", "[trace]") {
  TraceOptions options = in_memory();
  options.max_bytes = 20'000;
  const Trace trace = Trace::start(options);
  constexpr std::size_t kSpans = 1000;
  for (std::size_t i = 0; i < kSpans; ++i)
    const Span span(trace, "a name that is not short at all");
  CHECK(trace.recorded() > 20);
  CHECK(trace.recorded() < 200);
  CHECK(trace.recorded() + trace.dropped() == kSpans);
  const Json json = Json::parse(trace.json());
  CHECK(json.at("traceEvents").size() == trace.recorded());
  CHECK(json.at("otherData").at("dropped") == trace.dropped());
  options.max_bytes = 0;
  const Trace none = Trace::start(options);
  { const Span span(none, "x"); }
  CHECK(none.recorded() == 0);
  CHECK(none.dropped() == 1);
}

TEST_CASE("threads record at once, each nested for itself", "[trace]") {
  constexpr int kThreads = 6;
  constexpr int kRounds = 40;
  const Trace trace = Trace::start(in_memory());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&trace, i] {
      const Trace own = trace;
      for (int n = 0; n < kRounds; ++n) {
        Span outer(own, "outer");
        outer.argument("thread", static_cast<std::uint64_t>(i));
        const Span middle(own, "middle");
        const Span inner(own, "inner");
        if (n % 10 == 0) (void)own.json();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto spans = by_thread(Json::parse(trace.json()));
  std::size_t total = 0;
  for (const auto& [id, intervals] : spans) {
    total += intervals.size();
    CHECK(nested(intervals));
  }
  CHECK(total == std::size_t{kThreads} * kRounds * 3);
  CHECK(spans.size() <= kThreads);
}

TEST_CASE("counters are events with numbers, and keep their order among the spans", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  CHECK(trace.recording());
  { const Span span(trace, "load"); }
  const CounterValue values[] = {{"sectors", 18446744073709551615u}, {"executions", 0}};
  trace.add_counters("gemv:12 ld.global.f32", "emulator", values, 0.5);
  const Json json = Json::parse(trace.json());
  const Json& counter = json.at("traceEvents").at(1);
  CHECK(counter.at("ph") == "C");
  CHECK(counter.at("name") == "gemv:12 ld.global.f32");
  CHECK(counter.at("cat") == "emulator");
  CHECK(counter.at("args") == Json{{"sectors", 18446744073709551615u}, {"executions", 0}});
  CHECK_FALSE(counter.contains("dur"));
  CHECK(counter.at("ts").get<double>() >= 0);
  CHECK(trace.recorded() == 2);

  const Trace off;
  CHECK_FALSE(off.recording());
  off.add_counters("x", "y", values);
  off.add_ended("x", "y", 1);
  CHECK(off.recorded() == 0);
  TraceOptions full = in_memory();
  full.max_bytes = 0;
  const Trace none = Trace::start(full);
  none.add_counters("x", "y", values);
  CHECK(none.dropped() == 1);
}

TEST_CASE("a span that is added when it has ended is within the open one", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  {
    const Span outer(trace, "run");
    wait_a_little();
    trace.add_ended("kernel", "emulator", 100.25);
  }
  const auto threads = by_thread(Json::parse(trace.json()));
  REQUIRE(threads.size() == 1);
  const std::vector<Interval>& spans = threads.begin()->second;
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].name == "kernel");
  CHECK(spans[0].end - spans[0].begin == 100'250);
  CHECK(nested(spans));
}

TEST_CASE("a summary has the tree of spans, own times, percentiles and counters", "[trace]") {
  std::string events;
  const auto add = [&](const char* name, double ts, double dur, int thread = 1) {
    const Json event = {{"name", name}, {"cat", "c"}, {"ph", "X"},     {"ts", ts},
                        {"dur", dur},   {"pid", 1},   {"tid", thread}, {"args", Json::object()}};
    events += (events.empty() ? "" : ",") + event.dump();
  };
  for (int i = 0; i < 20; ++i) add("step", 10.0 * i, i == 19 ? 9.0 : 2.0);
  add("step", 500, 1, 2);  // of another thread, with no parent
  add("all", 0, 200.5);
  const std::string counter =
      R"(,{"name":"k:3 ld","cat":"c","ph":"C","ts":1.0,"pid":1,"tid":1,"args":{"sectors":7}})"
      R"(,{"name":"k:3 ld","cat":"c","ph":"C","ts":2.0,"pid":1,"tid":1,"args":{"sectors":9}})";
  const TraceSummary summary =
      summarize_trace("{\"traceEvents\":[" + events + counter + "],\"otherData\":{\"dropped\":4}}");
  CHECK(summary.dropped == 4);
  CHECK(summary.overlapping == 0);
  REQUIRE(summary.spans.size() == 3);
  CHECK(summary.spans[0].path == "all");
  CHECK(summary.spans[0].depth == 0);
  CHECK(summary.spans[0].total == 200.5);
  CHECK(summary.spans[0].self == Approx(200.5 - 19 * 2 - 9));
  const SpanNode* const step = summary.span("all/step");
  REQUIRE(step != nullptr);
  CHECK(step->depth == 1);
  CHECK(step->count == 20);
  CHECK(step->median == 2);
  CHECK(step->p5 == 2);
  CHECK(step->p95 == 2);
  CHECK(step->total == 47);
  CHECK(summary.spans[2].path == "step");
  CHECK(summary.spans[2].thread == 2);
  REQUIRE(summary.track("k:3 ld") != nullptr);
  CHECK(summary.track("k:3 ld")->events == 2);
  CHECK(summary.track("k:3 ld")->value("sectors") == 9);
  CHECK(summary.track("k:3 ld")->value("bytes") == 0);
  CHECK(summary.span("step/all") == nullptr);
}

TEST_CASE("a summary counts spans that overlap, and refuses what is no trace", "[trace]") {
  const auto span = [](const char* name, double ts, double dur) {
    return Json{{"name", name}, {"cat", "c"}, {"ph", "X"}, {"ts", ts}, {"dur", dur}, {"tid", 1}};
  };
  const Json crossed = {{"traceEvents", {span("a", 0, 10), span("b", 5, 10)}},
                        {"otherData", {{"dropped", 0}}}};
  CHECK(summarize_trace(crossed.dump()).overlapping == 1);
  for (const char* const text :
       {"", "[]", "{\"traceEvents\":[{}],\"otherData\":{\"dropped\":0}}"}) {
    INFO(text);
    CHECK_THROWS_WITH(summarize_trace(text), Catch::Contains("it is no trace of ptxgen"));
  }
  CHECK(percentile({}, 0.5) == 0);
  CHECK(percentile({1, 2, 3, 4}, 0.5) == 2);
  CHECK(percentile({1, 2, 3, 4}, 0.95) == 4);
  CHECK(percentile({1, 2, 3, 4}, 0) == 1);
}

TEST_CASE("stage times add up by name and need no trace", "[trace]") {
  StageTimes times;
  for (int round = 0; round < 2; ++round) {
    const Span load(Trace(), "load", "runtime", &times);
    {
      const Span assemble(Trace(), "assemble", "runtime", &times);
      wait_a_little();
    }
  }
  REQUIRE(times.stages.size() == 2);
  CHECK(times.stages[0].stage == "assemble");
  CHECK(times.stages[1].stage == "load");
  CHECK(times.of("assemble") >= 400);
  CHECK(times.of("load") >= times.of("assemble"));
  CHECK(times.of("launch") == 0);

  const Trace trace = Trace::start(in_memory());
  StageTimes both;
  { const Span span(trace, "build", "builder", &both); }
  const Json event = Json::parse(trace.json()).at("traceEvents").at(0);
  CHECK(both.of("build") == event.at("dur").get<double>());
}

TEST_CASE("a span that is ended early is recorded once", "[trace]") {
  const Trace trace = Trace::start(in_memory());
  {
    Span span(trace, "x");
    span.end();
    CHECK(trace.recorded() == 1);
    CHECK_FALSE(span.recording());
    span.argument("too", "late");
    span.end();
  }
  CHECK(trace.recorded() == 1);
}

TEST_CASE("the file is written when the last handle goes", "[trace]") {
  const TemporaryDirectory folder;
  const std::string path = folder.file("trace.json");
  write_file(path,
             "{\"of an earlier run\": \"and longer than what comes\"}" + std::string(5000, ' '));
  Settings settings;
  settings.trace = path;
  settings.search_usual_places = false;
  {
    Trace first = open_trace(settings, Log());
    CHECK(first.file() == path);
    { const Span span(first, "one"); }
    const Trace copy = first;
    first = Trace();
    { const Span span(copy, "two"); }
    const Trace beside = open_trace(settings, Log());
    CHECK(beside.file() == path + ".2");
    { const Span span(beside, "three"); }
  }
  const Json json = Json::parse(read_file(path));
  CHECK(json.at("traceEvents").size() == 2);
  CHECK(json.at("traceEvents")[1].at("name") == "two");
  CHECK(Json::parse(read_file(path + ".2")).at("traceEvents")[0].at("name") == "three");
  // Nothing writes it any more, so it is free again.
  CHECK(open_trace(settings, Log()).file() == path);
}

TEST_CASE("a file that cannot be written is told and stops nothing", "[trace]") {
  const TemporaryDirectory folder;
  std::string told;
  const auto keep = [](void* user, LogLevel level, std::string_view message) {
    *static_cast<std::string*>(user) += std::string(to_string(level)) + ":" + std::string(message);
  };
  const Log log(LogLevel::Warn, {keep, &told, nullptr});
  Settings settings;
  settings.trace = folder.file("missing") + "/trace.json";
  settings.search_usual_places = false;
  const Trace trace = open_trace(settings, log);
  CHECK_FALSE(trace.on());
  CHECK(told ==
        "warn:no trace is written: cannot write " + settings.trace + ": No such file or directory");
  const Trace memory = Trace::start(in_memory());
  try {
    memory.save(settings.trace);
    FAIL("saved into a folder that does not exist");
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Io);
    CHECK(error.code == "write");
  }
}
