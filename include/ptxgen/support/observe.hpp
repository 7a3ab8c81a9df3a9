// ptxgen/support/observe.hpp - log and trace as the settings ask
#pragma once

#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/log.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

/// The log of an object that was given none: the host's (`set_default_log`), else standard error at
/// `settings.log`. A level that does not exist is told as a warning, and is `warn`.
[[nodiscard]] Log open_log(const Settings& settings);

/// Spans are written to `settings.trace` and shown to a profiler (`nvtx_injection`, `nvtx_path`);
/// off where nothing of that is there. Two objects with a trace of their own write two files, see
/// `TraceOptions::file`.
[[nodiscard]] Trace open_trace(const Settings& settings, const Log& log);

}  // namespace ptxgen::inline v0
