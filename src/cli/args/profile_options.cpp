// src/cli/args/profile_options.cpp - options --trace and --flame
#include "cli/args/profile_options.hpp"

#include <iostream>

#include "cli/output/flame_text.hpp"
#include "cli_common/command_line.hpp"
#include "cli_common/files.hpp"
#include "support/trace_summary.hpp"

namespace ptxgen::cli {

void ProfileOptions::add_to(Command& command) {
  command.add_option("--trace", trace,
                     "write a Chrome trace there (as PTXGEN_TRACE), for Perfetto: spans of the "
                     "host, counters of emulated launches by PTX line");
  command.add_flag("--flame", flame, "print the spans and the hottest PTX lines to standard error");
}

Profile::Profile(const ProfileOptions& options) : options_(options) {
  check_writable("--trace", options_.trace);
}

void Profile::apply(Settings& settings) {
  if (!options_.trace.empty()) {
    settings.trace = options_.trace;
  } else if (options_.flame && settings.trace.empty()) {
    folder_.emplace(settings.temp_dir);
    settings.trace = folder_->file("trace.json");
  }
}

Trace Profile::start() {
  TraceOptions trace;
  Settings settings = Settings::from_environment();
  trace.file = options_.trace.empty() ? settings.trace : options_.trace;
  trace.record = options_.flame;
  return Trace::start(trace);
}

void Profile::report(const Trace& trace) const {
  if (options_.flame) std::cerr << flame_text(summarize_trace(trace.json()));
}

}  // namespace ptxgen::cli
