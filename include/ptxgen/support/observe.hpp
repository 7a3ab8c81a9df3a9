// ptxgen/support/observe.hpp - log and trace from the settings
#pragma once

#include "ptxgen/support/log.hpp"
#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

/// The log of an object without a log of its own: the host's (`set_default_log`), else standard
/// error at `settings.log`. An invalid level logs a warning and counts as `warn`.
[[nodiscard]] Log open_log(const Settings& settings);

/// Spans are written to `settings.trace` and shown to a profiler (`nvtx_injection`, `nvtx_path`);
/// off if none of these is set. Two objects with a trace of their own write two files, see
/// `TraceOptions::file`.
[[nodiscard]] Trace open_trace(const Settings& settings, const Log& log);

}  // namespace ptxgen::inline v0
