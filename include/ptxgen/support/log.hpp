// ptxgen/support/log.hpp - where the library's messages go
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace ptxgen::inline v0 {

/// Log levels; a level includes all levels before it. The numbers are stable.
enum class LogLevel : std::uint8_t { Off = 0, Error = 1, Warn = 2, Info = 3, Debug = 4, Trace = 5 };

/// "off", "error", "warn", "info", "debug", "trace".
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

/// Sets `level` to the one of that name and returns true; for any other text returns false.
[[nodiscard]] bool parse_log_level(std::string_view name, LogLevel& level) noexcept;

/// A receiver of messages. `write` may be called from any thread, and from several threads at once.
/// The library holds no lock during the call, hence `write` may call the library. Its exceptions
/// are swallowed. `message` is UTF-8 text without a newline at its end, valid during the call.
struct LogSink {
  void (*write)(void* user, LogLevel level, std::string_view message) = nullptr;
  void* user = nullptr;
  /// Called once, after the last `write`, when the last handle is gone. May be null.
  void (*release)(void* user) noexcept = nullptr;
};

/// A cheap handle to a log: copies share the receiver. One handle is used by one thread at a time;
/// different handles of one log are independent, and so are const members of one handle.
///
/// Inside the library no lock may be held while writing: collect under the lock, deliver after it
/// (`PendingLog`).
class Log {
 public:
  /// No messages.
  Log() noexcept = default;
  /// To standard error, one line per message with time and level, through a logger of spdlog.
  explicit Log(LogLevel level);
  /// To the host application. A sink without `write` is equivalent to `Off`.
  Log(LogLevel level, LogSink sink);

  Log(const Log& other) noexcept;
  Log(Log&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        level_(std::exchange(other.level_, LogLevel::Off)) {}
  Log& operator=(Log other) noexcept {
    std::swap(state_, other.state_);
    std::swap(level_, other.level_);
    return *this;
  }
  ~Log();

  [[nodiscard]] LogLevel level() const noexcept { return level_; }
  [[nodiscard]] bool enabled(LogLevel level) const noexcept {
    return level != LogLevel::Off && level <= level_;
  }

  /// Delivers `message` if `level` is on.
  void write(LogLevel level, std::string_view message) const noexcept {
    if (enabled(level)) deliver(level, message);
  }
  /// The same for a text that is expensive to create: `make()` is called only if `level` is on, and
  /// returns anything convertible to std::string_view. Its exceptions propagate.
  template <class Make>
  requires requires(const Make& make) { std::string_view(make()); }
  void write(LogLevel level, const Make& make) const {
    if (enabled(level)) {
      const auto text = make();
      deliver(level, std::string_view(text));
    }
  }

  void error(const auto& text) const { write(LogLevel::Error, text); }
  void warn(const auto& text) const { write(LogLevel::Warn, text); }
  void info(const auto& text) const { write(LogLevel::Info, text); }
  void debug(const auto& text) const { write(LogLevel::Debug, text); }
  void trace(const auto& text) const { write(LogLevel::Trace, text); }

 private:
  struct State;
  void deliver(LogLevel level, std::string_view message) const noexcept;

  State* state_ = nullptr;
  LogLevel level_ = LogLevel::Off;
};

/// The log of objects without a log of their own: the one of `set_default_log`, else a log of level
/// `otherwise` to standard error. The default log is process-wide; both functions are thread-safe.
[[nodiscard]] Log default_log(LogLevel otherwise = LogLevel::Warn);

/// Makes `log` the default for objects created from now on; `Log()` silences them.
void set_default_log(Log log);

/// Back to standard error.
void reset_default_log();

}  // namespace ptxgen::inline v0
