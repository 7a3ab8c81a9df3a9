// src/support/observe.cpp - log and trace from the settings
#include "ptxgen/support/observe.hpp"

namespace ptxgen::inline v0 {

Log open_log(const Settings& settings) {
  LogLevel level = LogLevel::Warn;
  const bool known = parse_log_level(settings.log, level);
  Log log = default_log(level);
  if (!known) {
    log.warn([&] {
      return "PTXGEN_LOG=" + settings.log +
             ": no such level, warn is used; the levels are off, error, warn, info, debug, trace";
    });
  }
  return log;
}

Trace open_trace(const Settings& settings, const Log& log) {
  TraceOptions options;
  options.record = false;
  options.file = settings.trace;
  options.nvtx_injection = settings.nvtx_injection;
  options.nvtx_library = settings.nvtx_path;
  options.nvtx_in_process = settings.search_usual_places;
  options.log = log;
  return Trace::start(options);
}

}  // namespace ptxgen::inline v0
