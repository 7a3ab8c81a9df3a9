// src/qa/lines/profiles.cpp - traces: nested, consistent, with exact counts
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "ptxgen/support/trace.hpp"
#include "qa/edits.hpp"
#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"
#include "support/temporary_directory.hpp"
#include "support/trace_summary.hpp"

namespace ptxgen::qa {

namespace profiling {
namespace {

constexpr std::uint64_t kIterations = 40;
constexpr std::uint32_t kRows = 300;
constexpr std::uint32_t kColumns = 200;

// Launches with a span each, in a span of all.
struct Profiled {
  std::string json;
  TraceSummary summary;
  double seconds = 0;  // of the loop, by another clock than the spans'
};

Profiled profile(Fixture& fixture, std::uint64_t spans) {
  const TemporaryDirectory folder(fixture.settings().temp_dir);
  Settings settings = fixture.settings();
  settings.trace = folder.file("trace.json");
  const DeviceInfo& info = fixture.device().info();
  const Device device = Device::open(fixture.device().table(), info.ordinal, info.kind, settings);
  const Context context(device);
  LauncherOptions options;
  options.settings = settings;
  options.gemv = GemvChoice::Coalesced;
  options.cache.mode = CacheMode::MemoryOnly;
  const Launcher launcher(context, options);
  const Stream stream(context);
  const Problem problem = random_problem(kRows, kColumns, 61);
  const Buffer<f32> a(context, problem.a);
  const Buffer<f32> x(context, problem.x);
  Buffer<f32> y(context, problem.n);
  const auto iterate = [&] {
    launcher.gemv(y, a, x, problem.k, problem.n, stream);
    stream.synchronize();
  };
  iterate();  // loads the kernel
  Profiled result;
  const auto begin = std::chrono::system_clock::now();
  {
    const Span all(device.trace(), "profile", "qa");
    for (std::uint64_t i = 0; i < kIterations; ++i) {
      if (i < spans) {
        const Span one(device.trace(), "iteration", "qa");
        iterate();
      } else {
        iterate();
      }
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::system_clock::now() - begin).count();
  result.json = device.trace().json();
  result.summary = summarize_trace(result.json);
  return result;
}

// Whether a time of the file has a part of a microsecond.
bool has_fraction(const nlohmann::json& trace) {
  return std::ranges::any_of(trace.at("traceEvents"), [](const nlohmann::json& event) {
    const double time = event.at("ts");
    return time != std::floor(time);
  });
}

Outcome nested_spans(Fixture& fixture, const Line&) {
  Tally tally;
  const Profiled run = profile(fixture, fixture.changed() ? kIterations - 1 : kIterations);
  const nlohmann::json trace = nlohmann::json::parse(run.json);
  std::size_t own = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    own += event.at("cat") == "qa";
    for (const char* const key : {"name", "cat", "ph", "ts", "pid", "tid", "args"}) {
      tally.check(event.contains(key), "an event has no '{}': {}", key, event.dump());
    }
    tally.check((event.at("ph") == "X") == event.contains("dur"), "'dur' of {}", event.dump());
  }
  tally.check(has_fraction(trace), "no time has a part of a microsecond");
  tally.check(own == kIterations + 1, "{} spans of {} iterations", own, kIterations);
  const TraceSummary& summary = run.summary;
  tally.check(summary.overlapping == 0, "{} spans overlap", summary.overlapping);
  tally.check(summary.dropped == 0, "{} events are lost", summary.dropped);
  const SpanNode* const all = summary.span("profile");
  const SpanNode* const one = summary.span("profile/iteration");
  if (!tally.check(all != nullptr && one != nullptr, "the spans are not nested")) {
    return tally.outcome();
  }
  tally.check(one->total <= all->total, "the iterations take {} us, all together {} us", one->total,
              all->total);
  tally.check(summary.span("profile/iteration/launch") != nullptr &&
                  summary.span("profile/iteration/wait") != nullptr,
              "the library's spans are not within the iterations");
  if (!fixture.facts.gpu) {
    const CounterTrack* const track = summary.track("gemv_coalesced");
    tally.check(track != nullptr && track->value("warp_instructions") != 0,
                "there is no counter track of the kernel");
  }
  tally.figure("{} events, {} counter tracks; {} iterations take {:.1f} % of their parent",
               trace.at("traceEvents").size(), summary.counters.size(), one->count,
               100 * one->total / all->total);
  return tally.outcome();
}

// Iterations per second by the host's clock, against the latencies of the spans.
Outcome consistent_rates(Fixture& fixture, const Line&) {
  Tally tally;
  const Profiled run = profile(fixture, kIterations);
  const SpanNode* const one = run.summary.span("profile/iteration");
  if (!tally.check(one != nullptr && one->count == kIterations, "an iteration has no span")) {
    return tally.outcome();
  }
  const std::uint64_t counted = fixture.changed() ? 3 * kIterations : kIterations;
  const double throughput = static_cast<double>(counted) / run.seconds;
  const double mean = one->total / static_cast<double>(one->count) * 1e-6;
  tally.check(0 < one->p5 && one->p5 <= one->median && one->median <= one->p95,
              "p5 {} us, median {} us, p95 {} us", one->p5, one->median, one->p95);
  const double product = mean * throughput;
  // The loop adds little to its iterations; the host may stop it between them.
  tally.check(0.4 < product && product <= 1.05, "mean latency times throughput is {:.3f}, not 1",
              product);
  tally.figure("latency: median {:.1f} us, p5 {:.1f} us, p95 {:.1f} us; {:.0f} launches/s{}",
               one->median, one->p5, one->p95, throughput,
               fixture.facts.gpu ? "" : ", of the emulator: no result of performance");
  return tally.outcome();
}

// Of gemv_coalesced, 256 x 256, sm_90. A change of the kernel changes them, on purpose or not.
struct StoredCounts {
  std::uint64_t warp_instructions = 0;
  std::uint64_t load_sectors = 0;
  std::uint64_t store_sectors = 0;
  std::uint64_t bank_conflicts = 0;
};
constexpr StoredCounts kStored{13712, 8224, 32, 0};

Outcome stored_counts(Fixture& fixture, const Line&) {
  Tally tally;
  if (fixture.facts.gpu) {
    const Launcher launcher = fixture.launcher();
    const KernelDescription& gemv = kernel_named("gemv");
    std::vector<std::uint64_t> values = gemv.default_values();
    const Benchmark timed = benchmark(launcher, fixture.context(), gemv, values, {});
    tally.check(timed.verification.ok(), "{}", timed.verification.error_text());
    const double limit = fixture.changed() ? 0 : 1000;
    tally.check(timed.median() < limit, "{} us, the limit is {} us", timed.median(), limit);
    tally.figure("gemv: {:.2f} us", timed.median());
    return tally.outcome();
  }
  constexpr std::uint32_t kSize = 256;
  const Problem problem = random_problem(kSize, kSize, 62);
  const GemvCoalesced spec{kSize, kSize};
  Emulation emulation(*ptx::find_gpu("h200"));
  const emulator::Result result =
      emulation.launch(fixture.build(spec, ptx::target("sm_90")), spec.geometry(),
                       {emulation.allocate(4 * std::uint64_t{kSize}), emulation.upload(problem.a),
                        emulation.upload(problem.x), kSize, kSize});
  const emulator::Counters& counts = result.counters;
  const auto same = [&](std::string_view name, std::uint64_t found, std::uint64_t stored) {
    tally.check(found == stored, "{} {}, stored are {}", found, name, stored);
  };
  same("warp instructions", counts.warp_instructions, kStored.warp_instructions);
  same("sectors loaded", counts.global_load.sectors, kStored.load_sectors);
  same("sectors stored", counts.global_store.sectors, kStored.store_sectors);
  same("bank conflicts", counts.shared_load.bank_conflicts + counts.shared_store.bank_conflicts,
       kStored.bank_conflicts);
  // What a trace has is what the emulator counted.
  const Profiled run = profile(fixture, kIterations);
  const CounterTrack* const track = run.summary.track("gemv_coalesced");
  tally.check(track != nullptr && track->events == 1,
              "equal launches have one event of the kernel's track");
  tally.figure("{} warp instructions, {} + {} sectors, {} bank conflicts", counts.warp_instructions,
               counts.global_load.sectors, counts.global_store.sectors,
               counts.shared_load.bank_conflicts + counts.shared_store.bank_conflicts);
  return tally.outcome();
}

constexpr Line kLines[] = {
    {"6.R1",
     Section::Profiles,
     4,
     "the trace is nested and complete",
     "JSON of 40 launches read again: every field, spans nested, iterations + 1 spans, the sum of "
     "children at most the parent",
     Means::Emulator,
     nested_spans,
     {"the last iteration has no span"},
     "ptxgen bench gemv --trace trace.json"},
    {"6.R2",
     Section::Profiles,
     3,
     "latency and throughput agree",
     "p5 <= median <= p95 of the spans; their mean times the launches per second by another clock "
     "is 1",
     Means::Emulator,
     consistent_rates,
     {"the throughput counts launches three times"},
     "ptxgen bench gemv --flame"},
    {"6.R3",
     Section::Profiles,
     3,
     "counts are those that were stored",
     "gemv_coalesced of 256 x 256: instructions, sectors, bank conflicts, exact; on a GPU below "
     "1 ms",
     Means::Emulator,
     stored_counts,
     {"the first barrier is removed", [](ptx::Module& m) { remove_barrier(m, 0); }, nullptr},
     "ptxgen gemv -p k=256 -p n=256 --impl coalesced --json"},
};

}  // namespace
}  // namespace profiling

std::span<const Line> profile_lines() { return profiling::kLines; }

}  // namespace ptxgen::qa
