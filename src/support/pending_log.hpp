// src/support/pending_log.hpp - messages collected under a lock, delivered after it
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ptxgen/support/log.hpp"

namespace ptxgen::inline v0 {

/// Collects messages while a lock is held, and delivers them on destruction or on request. Declared
/// before the lock, it is destroyed after it:
///     PendingLog pending(log_);
///     const std::lock_guard lock(mutex_);
///     pending.add(LogLevel::Warn, [&] { return "dropped " + name; });
/// One thread at a time.
class PendingLog {
 public:
  explicit PendingLog(const Log& log) noexcept : log_(log) {}
  PendingLog(const PendingLog&) = delete;
  PendingLog& operator=(const PendingLog&) = delete;
  ~PendingLog() { deliver(); }

  /// `text` is a string or, for texts that cost something, a callable that makes one.
  void add(LogLevel level, const auto& text) {
    if (!log_.enabled(level)) return;
    if constexpr (requires { text(); }) {
      messages_.emplace_back(level, text());
    } else {
      messages_.emplace_back(level, text);
    }
  }

  /// To be called without a lock.
  void deliver() noexcept {
    for (const auto& [level, text] : messages_) log_.write(level, std::string_view(text));
    messages_.clear();
  }

 private:
  Log log_;
  std::vector<std::pair<LogLevel, std::string>> messages_;
};

}  // namespace ptxgen::inline v0
