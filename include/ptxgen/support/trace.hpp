// ptxgen/support/trace.hpp - named spans of time: Chrome traces, NVTX ranges, stage times
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/support/hidden.hpp"
#include "ptxgen/support/log.hpp"

namespace ptxgen::inline v0 {

/// The duration of one stage of an operation.
struct StageTime {
  std::string_view stage;   ///< "build", "assemble", ...: a string literal
  double microseconds = 0;  ///< all spans of that name together
};

/// The stages of one operation in the order in which they first ended. One thread at a time.
struct StageTimes {
  std::vector<StageTime> stages;

  /// Adds to the stage of that name, or appends one. `stage` must outlive this.
  void add(std::string_view stage, double microseconds);
  /// Microseconds of the stage of that name, 0 if there is none.
  [[nodiscard]] double of(std::string_view stage) const noexcept;
};

/// The value of one series of a counter track.
struct CounterValue {
  std::string_view series;  ///< "sectors"
  std::uint64_t value = 0;
};

/// What a trace is to do.
struct TraceOptions {
  /// Spans are kept in memory for `Trace::json`.
  bool record = true;
  /// Chrome trace JSON (chrome://tracing, Perfetto) is written here when the last handle goes;
  /// empty: only by `Trace::save`. The file is opened at once. While another trace, of this process
  /// or of another, is being written there, FILE.2, FILE.3, ... is taken instead; an idle file is
  /// replaced.
  std::string file;
  /// Memory limit of recorded events in bytes. Later events are counted and dropped.
  std::size_t max_bytes = std::size_t{64} << 20;
  /// A library with `InitializeInjectionNvtx2`, which profilers name in NVTX_INJECTION64_PATH.
  std::string nvtx_injection;
  /// The library libnvToolsExt.so.1, or its folder.
  std::string nvtx_library;
  /// Whether a libnvToolsExt.so.1 that the process has loaded already is used.
  bool nvtx_in_process = true;
  /// Receives a message if the file cannot be written or a profiler cannot be attached.
  Log log;
};

/// A cheap handle to a collection of spans: copies share it. Off by default, and then a `Span`
/// costs one comparison. Handles follow the rules of `Log`; spans may be opened in any thread.
///
/// When a profiler is attached (see `TraceOptions`), every span is a range of the NVTX domain
/// "ptxgen" too. The connection to a profiler is one for the process: the first that succeeds
/// stays.
class Trace {
 public:
  /// Off.
  Trace() noexcept = default;
  /// On, unless there is nothing to do: neither `record`, nor `file`, nor a profiler. A file that
  /// cannot be written or a profiler that cannot be attached is logged to `options.log` and is not
  /// an error.
  [[nodiscard]] static Trace start(const TraceOptions& options);

  Trace(const Trace& other) noexcept;
  Trace(Trace&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Trace& operator=(Trace other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Trace();

  [[nodiscard]] bool on() const noexcept { return state_ != nullptr; }
  /// Whether a profiler receives the spans.
  [[nodiscard]] bool profiled() const noexcept;
  /// Whether spans and counters are kept: with `record` or a file.
  [[nodiscard]] bool recording() const noexcept;
  /// Adds a span of the calling thread that ends now and has taken `microseconds`. It must not
  /// overlap another span of the thread partly. Never throws; profilers do not receive it.
  void add_ended(std::string_view name, std::string_view category,
                 double microseconds) const noexcept;
  /// The values that a counter track has from `microseconds_ago` on until its next ones. A track is
  /// identified by its name, and the process has one of that name. Never throws.
  void add_counters(std::string_view track, std::string_view category,
                    std::span<const CounterValue> values,
                    double microseconds_ago = 0) const noexcept;
  /// Spans and counters kept, and those dropped because `max_bytes` was used up.
  [[nodiscard]] std::size_t recorded() const noexcept;
  [[nodiscard]] std::size_t dropped() const noexcept;
  /// Where the trace will be written; empty: nowhere.
  [[nodiscard]] std::string file() const;

  /// The spans that have ended, in the order of their ends, and the counters between them:
  ///     {"traceEvents":[{"name","cat","ph":"X","ts","dur","pid","tid","args":{..}},..],
  ///      "displayTimeUnit":"ns","otherData":{"producer","dropped"}}
  /// `ts` and `dur` are microseconds with three decimals, `ts` since the trace was started. Spans
  /// of one thread are nested or disjoint. Counters have "ph":"C", no "dur", and their series as
  /// numbers in "args". Without a trace: no events.
  [[nodiscard]] std::string json() const;
  /// Writes `json()` to a file. Throws `Error` (stage io, "write").
  void save(const std::string& path) const;

 private:
  friend class Span;
  struct State;
  State* state_ = nullptr;
};

/// A span from its construction to its end, in one thread. Never throws: a span that does not fit
/// into memory is dropped. Spans of a thread end in the reverse order of their begin.
///
///     Span span(trace, "assemble", "runtime", &times);
///     span.argument("kernel", name);
class Span {
 public:
  /// `name` and `category` must outlive the span, as string literals do. `times`, if not null,
  /// receives the time even where the trace is off, and must outlive the span; `name` must then
  /// outlive `times`.
  Span(const Trace& trace, std::string_view name, std::string_view category = "ptxgen",
       StageTimes* times = nullptr) noexcept {
    if (trace.on() || times != nullptr) begin(trace, name, category, times);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() { end(); }

  /// Whether arguments are kept: for those that cost something to make.
  [[nodiscard]] bool recording() const noexcept;
  /// A string shown with the span. The first 8 are kept, the first 256 bytes of each.
  void argument(std::string_view name, std::string_view value) noexcept {
    if (open_) add(name, value);
  }
  void argument(std::string_view name, std::uint64_t value) noexcept {
    if (open_) add(name, value);
  }

  /// Ends it before its destructor does; more than once is harmless.
  void end() noexcept {
    if (open_) close();
  }

 private:
  struct Open;
  void begin(const Trace& trace, std::string_view name, std::string_view category,
             StageTimes* times) noexcept;
  void add(std::string_view name, std::string_view value) noexcept;
  void add(std::string_view name, std::uint64_t value) noexcept;
  void close() noexcept;

  Hidden<Open> open_;
};

}  // namespace ptxgen::inline v0
