// src/optimize/pass_list.hpp - the pass manager with passes of the caller's
#pragma once

#include <span>

#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::inline v0::optimize {

/// `run_passes` with other functions behind the known names, so that tests can see what becomes of
/// a pass with a fault. `passes` has a row for each name that `options.passes` leads to.
PipelineReport run_passes(ptx::Module& module, const PassOptions& options,
                          std::span<const PassInfo> passes);

}  // namespace ptxgen::inline v0::optimize
