// src/support/log_format.hpp - formatted messages, evaluated only if enabled
#pragma once

#include <utility>

#include "ptxgen/support/log.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

/// `log_line(log, LogLevel::Debug, "loaded {} in {:.1f} us", name, time)`. A failure to format is
/// dropped with its message.
template <class... Args>
void log_line(const Log& log, LogLevel level, fmt::format_string<Args...> format,
              Args&&... args) noexcept {
  if (!log.enabled(level)) return;
  try {
    log.write(level, std::string_view(format_text(format, std::forward<Args>(args)...)));
  } catch (...) {
    // Out of memory: what the message was about goes on.
  }
}

}  // namespace ptxgen::inline v0
