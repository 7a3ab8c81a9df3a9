// src/support/log.cpp - log handles for spdlog or a sink of the host
#include "ptxgen/support/log.hpp"

#define FMT_HEADER_ONLY 1
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace ptxgen::inline v0 {

namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"off",  "error", "warn",
                                                         "info", "debug", "trace"};

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::Error:
      return spdlog::level::err;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Trace:
      return spdlog::level::trace;
    case LogLevel::Off:
      break;
  }
  return spdlog::level::off;
}

/// A logger of our own, in no registry, so that a host's use of spdlog is undisturbed.
std::unique_ptr<spdlog::logger> make_logger(LogLevel level) {
  auto logger =
      std::make_unique<spdlog::logger>("ptxgen", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(to_spdlog(level));
  logger->set_pattern("[%H:%M:%S.%e] [%n] [%l] %v");
  return logger;
}

/// What set_default_log said; nothing: standard error.
struct DefaultLog {
  std::mutex mutex;
  std::optional<Log> log;
};

DefaultLog& the_default() {
  // Never destroyed: a device that is closed during static destruction still logs.
  static auto* const holder = new DefaultLog;
  return *holder;
}

}  // namespace

struct Log::State {
  std::atomic<std::size_t> handles{1};
  LogSink sink;
  std::unique_ptr<spdlog::logger> logger;

  ~State() {
    if (sink.release != nullptr) sink.release(sink.user);
  }
};

std::string_view to_string(LogLevel level) noexcept {
  const auto index = static_cast<std::size_t>(level);
  return index < kLevelNames.size() ? kLevelNames[index] : "unknown";
}

bool parse_log_level(std::string_view name, LogLevel& level) noexcept {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) {
      level = static_cast<LogLevel>(i);
      return true;
    }
  }
  return false;
}

Log::Log(LogLevel level) {
  if (level == LogLevel::Off) return;
  auto state = std::make_unique<State>();
  state->logger = make_logger(level);
  state_ = state.release();
  level_ = level;
}

Log::Log(LogLevel level, LogSink sink) {
  // The sink is ours from the first moment on, so a failed allocation must release it too.
  try {
    state_ = new State;
  } catch (...) {
    if (sink.release != nullptr) sink.release(sink.user);
    throw;
  }
  state_->sink = sink;
  level_ = sink.write == nullptr ? LogLevel::Off : level;
}

Log::Log(const Log& other) noexcept : state_(other.state_), level_(other.level_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, std::memory_order_relaxed);
}

Log::~Log() {
  if (state_ != nullptr && state_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete state_;
  }
}

void Log::deliver(LogLevel level, std::string_view message) const noexcept {
  try {
    if (state_->logger) {
      state_->logger->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
    } else {
      state_->sink.write(state_->sink.user, level, message);
    }
  } catch (...) {
    // A message that cannot be delivered must not stop what it is about.
  }
}

Log default_log(LogLevel otherwise) {
  {
    DefaultLog& holder = the_default();
    const std::lock_guard lock(holder.mutex);
    if (holder.log) return *holder.log;
  }
  return Log(otherwise);
}

void set_default_log(Log log) {
  std::optional<Log> replaced(std::move(log));
  DefaultLog& holder = the_default();
  {
    const std::lock_guard lock(holder.mutex);
    holder.log.swap(replaced);
  }
  // The old log goes here, outside the lock: its `release` is the host's code.
}

void reset_default_log() {
  std::optional<Log> replaced;
  DefaultLog& holder = the_default();
  {
    const std::lock_guard lock(holder.mutex);
    holder.log.swap(replaced);
  }
}

}  // namespace ptxgen::inline v0
