// src/cli/output/repro.hpp - what failed, recorded in a file
#pragma once

#include <functional>
#include <string>

#include "ptxgen/runtime/recording/recording.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::cli {

/// Records a launch that failed into the folder of `settings.repro` (PTXGEN_REPRO), under a name
/// that is free and begins with `name`, and says on standard error how to replay it; or why it
/// could not be recorded, which changes nothing else. Does nothing if the setting is empty.
void write_repro(const Settings& settings, const std::string& name,
                 const std::function<Recording()>& record_it);

}  // namespace ptxgen::cli
