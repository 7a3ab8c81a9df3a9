// ptxgen/log_spdlog.hpp - the library's messages into the host's spdlog logger
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string_view>
#include <utility>

#include "ptxgen/support/log.hpp"

namespace ptxgen::inline v0 {

/// The level that lets through what `level` of spdlog lets through.
[[nodiscard]] inline LogLevel from_spdlog(spdlog::level::level_enum level) noexcept {
  switch (level) {
    case spdlog::level::trace:
      return LogLevel::Trace;
    case spdlog::level::debug:
      return LogLevel::Debug;
    case spdlog::level::info:
      return LogLevel::Info;
    case spdlog::level::warn:
      return LogLevel::Warn;
    case spdlog::level::err:
    case spdlog::level::critical:
      return LogLevel::Error;
    default:
      return LogLevel::Off;
  }
}

/// A log that writes into `logger` and keeps it alive; null: nothing is logged. The only header of
/// ptxgen that needs spdlog: the host's own, of whatever version, compiled in the host's program.
/// `ptxgen.hpp` does not include it. `logger` must be safe to use from several threads (sinks
/// `..._mt`). Messages above `level` are not even formatted; below it the logger decides.
[[nodiscard]] inline Log log_to(std::shared_ptr<spdlog::logger> logger, LogLevel level) {
  if (logger == nullptr) return {};
  using Owner = std::shared_ptr<spdlog::logger>;
  LogSink sink;
  sink.user = new Owner(std::move(logger));
  sink.release = [](void* user) noexcept { delete static_cast<Owner*>(user); };
  sink.write = [](void* user, LogLevel message_level, std::string_view message) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::off,   spdlog::level::err,
                                                     spdlog::level::warn,  spdlog::level::info,
                                                     spdlog::level::debug, spdlog::level::trace};
    (*static_cast<Owner*>(user))
        ->log(kLevels[static_cast<unsigned>(message_level)],
              spdlog::string_view_t(message.data(), message.size()));
  };
  return Log(level, sink);
}

/// The same with the level that `logger` has now.
[[nodiscard]] inline Log log_to(std::shared_ptr<spdlog::logger> logger) {
  const LogLevel level = logger == nullptr ? LogLevel::Off : from_spdlog(logger->level());
  return log_to(std::move(logger), level);
}

}  // namespace ptxgen::inline v0
