// src/support/trace.cpp - collecting spans and writing them as Chrome trace
#include "ptxgen/support/trace.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "ptxgen/support/error.hpp"
#include "support/exclusive_file.hpp"
#include "support/numbers.hpp"
#include "support/nvtx.hpp"
#include "support/process_ids.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0 {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxArguments = 8;
constexpr std::size_t kMaxArgumentBytes = 256;

struct Argument {
  std::string name;
  std::string value;
};

enum class Phase : std::uint8_t { Complete, Counter };

struct Event {
  Phase phase = Phase::Complete;
  std::string name;
  std::string category;
  std::vector<Argument> arguments;
  std::uint64_t thread = 0;
  std::int64_t begin_ns = 0;  // since the trace was started
  std::int64_t duration_ns = 0;
};

/// A safe upper estimate: strings are counted with what they may have reserved.
std::size_t bytes_of(const Event& event) {
  std::size_t bytes = sizeof(Event) + event.name.capacity() + event.category.capacity() +
                      event.arguments.capacity() * sizeof(Argument);
  for (const Argument& argument : event.arguments) {
    bytes += argument.name.capacity() + argument.value.capacity();
  }
  return bytes;
}

double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000.0; }

std::int64_t nanoseconds_of(double microseconds) {
  return microseconds > 0 ? static_cast<std::int64_t>(microseconds * 1000.0) : 0;
}

std::string decimal(std::uint64_t value) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string to_json(const Event& event, std::uint64_t process) {
  nlohmann::ordered_json json;
  json["name"] = event.name;
  json["cat"] = event.category;
  const bool counter = event.phase == Phase::Counter;
  json["ph"] = counter ? "C" : "X";
  json["ts"] = microseconds(event.begin_ns);
  if (!counter) json["dur"] = microseconds(event.duration_ns);
  json["pid"] = process;
  json["tid"] = event.thread;
  nlohmann::ordered_json& arguments = json["args"] = nlohmann::ordered_json::object();
  for (const Argument& argument : event.arguments) {
    if (counter) {
      std::string_view rest = argument.value;
      arguments[argument.name] = take_number<std::uint64_t>(rest).value_or(0);
    } else {
      arguments[argument.name] = argument.value;
    }
  }
  // Names come from others: bytes that are not UTF-8 must not spoil the file.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void StageTimes::add(std::string_view stage, double microseconds) {
  for (StageTime& known : stages) {
    if (known.stage == stage) {
      known.microseconds += microseconds;
      return;
    }
  }
  stages.push_back({stage, microseconds});
}

double StageTimes::of(std::string_view stage) const noexcept {
  for (const StageTime& known : stages) {
    if (known.stage == stage) return known.microseconds;
  }
  return 0;
}

struct Trace::State {
  std::atomic<std::size_t> handles{1};
  Clock::time_point started = Clock::now();
  std::size_t max_bytes = 0;
  bool record = false;
  Nvtx nvtx;
  Log log;
  ExclusiveFile file;

  mutable std::mutex mutex;
  std::deque<Event> events;  // grows without copying, so that max_bytes is the peak too
  std::size_t bytes = 0;
  std::size_t dropped = 0;

  [[nodiscard]] std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - started).count();
  }

  void drop() noexcept {
    const std::lock_guard lock(mutex);
    ++dropped;
  }

  void keep(Event&& event) noexcept {
    const std::size_t size = bytes_of(event);
    const std::lock_guard lock(mutex);
    if (size > max_bytes - bytes) {
      ++dropped;
      return;
    }
    try {
      events.push_back(std::move(event));
      bytes += size;
    } catch (...) {
      ++dropped;
    }
  }

  void write_file() noexcept {
    if (!file) return;
    try {
      file.replace(json());
      log.debug([this] {
        return "trace of " + std::to_string(events.size()) + " events written to " + file.path();
      });
    } catch (const std::exception& failure) {
      log.warn([&failure] { return std::string("the trace is lost: ") + failure.what(); });
    } catch (...) {
      log.warn("the trace is lost: out of memory");
    }
  }

  [[nodiscard]] std::string json() const {
    const std::uint64_t process = process_id();
    const std::lock_guard lock(mutex);
    std::string text = "{\"traceEvents\":[";
    for (const Event& event : events) {
      if (&event != &events.front()) text += ",\n";
      text += to_json(event, process);
    }
    text += "],\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"ptxgen\",\"dropped\":" +
            std::to_string(dropped) + "}}\n";
    return text;
  }
};

Trace Trace::start(const TraceOptions& options) {
  auto state = std::make_unique<State>();
  state->max_bytes = options.max_bytes;
  state->log = options.log;
  state->record = options.record;
  if (!options.file.empty()) {
    try {
      state->file = ExclusiveFile::open_first_free(options.file);
      state->record = true;
    } catch (const Error& failure) {
      options.log.warn("no trace is written: " + failure.message);
    }
  }
  NvtxSearch search;
  search.injection = options.nvtx_injection;
  search.library = options.nvtx_library;
  search.in_process = options.nvtx_in_process;
  search.log = options.log;
  state->nvtx = Nvtx::connect(search);
  Trace trace;
  if (state->record || state->nvtx) trace.state_ = state.release();
  return trace;
}

Trace::Trace(const Trace& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, std::memory_order_relaxed);
}

Trace::~Trace() {
  if (state_ != nullptr && state_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    state_->write_file();
    delete state_;
  }
}

bool Trace::profiled() const noexcept { return state_ != nullptr && bool(state_->nvtx); }

bool Trace::recording() const noexcept { return state_ != nullptr && state_->record; }

void Trace::add_ended(std::string_view name, std::string_view category,
                      double microseconds) const noexcept {
  if (!recording()) return;
  try {
    Event event;
    event.name = name;
    event.category = category;
    event.thread = thread_id();
    event.duration_ns = nanoseconds_of(microseconds);
    event.begin_ns = state_->now_ns() - event.duration_ns;
    state_->keep(std::move(event));
  } catch (...) {
    state_->drop();
  }
}

void Trace::add_counters(std::string_view track, std::string_view category,
                         std::span<const CounterValue> values,
                         double microseconds_ago) const noexcept {
  if (!recording()) return;
  try {
    Event event;
    event.phase = Phase::Counter;
    event.name = track;
    event.category = category;
    event.thread = thread_id();
    event.begin_ns = state_->now_ns() - nanoseconds_of(microseconds_ago);
    event.arguments.reserve(values.size());
    for (const CounterValue& value : values) {
      event.arguments.push_back({std::string(value.series), decimal(value.value)});
    }
    state_->keep(std::move(event));
  } catch (...) {
    state_->drop();
  }
}

std::size_t Trace::recorded() const noexcept {
  if (state_ == nullptr) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->events.size();
}

std::size_t Trace::dropped() const noexcept {
  if (state_ == nullptr) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

std::string Trace::file() const { return state_ == nullptr ? std::string{} : state_->file.path(); }

std::string Trace::json() const { return state_ == nullptr ? State{}.json() : state_->json(); }

void Trace::save(const std::string& path) const { ptxgen::write_file(path, json()); }

struct Span::Open {
  Trace trace;
  StageTimes* times = nullptr;
  std::string_view name;  // the caller's, for `times`
  bool pushed = false;
  Event event;
  Clock::time_point begin;
};

void Span::begin(const Trace& trace, std::string_view name, std::string_view category,
                 StageTimes* times) noexcept {
  try {
    open_ = Hidden<Open>::make();
    open_->trace = trace;
    open_->times = times;
    open_->name = name;
    open_->event.name = name;
    open_->event.category = category;
  } catch (...) {
    open_ = {};
    return;
  }
  if (trace.profiled()) {
    trace.state_->nvtx.push(open_->event.name.c_str());
    open_->pushed = true;
  }
  // Last, so that the span does not contain its own preparation.
  open_->begin = Clock::now();
}

bool Span::recording() const noexcept {
  return open_ && open_->trace.on() && open_->trace.state_->record;
}

void Span::add(std::string_view name, std::string_view value) noexcept {
  if (!recording() || open_->event.arguments.size() == kMaxArguments) return;
  try {
    open_->event.arguments.push_back({std::string(name.substr(0, kMaxArgumentBytes)),
                                      std::string(value.substr(0, kMaxArgumentBytes))});
  } catch (...) {
    // The span is worth having without it.
  }
}

void Span::add(std::string_view name, std::uint64_t value) noexcept {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  add(name, std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

void Span::close() noexcept {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  const Clock::time_point now = Clock::now();
  const Hidden<Open> open = std::move(open_);
  Trace::State* const state = open->trace.state_;
  if (open->pushed) state->nvtx.pop();
  const std::int64_t duration = duration_cast<nanoseconds>(now - open->begin).count();
  if (open->times != nullptr) {
    try {
      open->times->add(open->name, microseconds(duration));
    } catch (...) {
      // A time is lost, not the operation.
    }
  }
  if (state == nullptr || !state->record) return;
  Event& event = open->event;
  event.begin_ns = duration_cast<nanoseconds>(open->begin - state->started).count();
  event.duration_ns = duration;
  event.thread = thread_id();
  state->keep(std::move(event));
}

}  // namespace ptxgen::inline v0
