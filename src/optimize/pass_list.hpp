// src/optimize/pass_list.hpp - the pass manager with custom passes
#pragma once

#include <span>

#include "ptxgen/optimize/pass.hpp"

namespace ptxgen::inline v0::optimize {

/// `run_passes` with other functions after the known names, so that tests can see what becomes of
/// a pass with a fault. `passes` has a row for each name that `options.passes` leads to. With
/// `check_facts` analyses that a pass has from an earlier one are made again and compared: a pass
/// that changes a function and does not say so is found (std::logic_error).
PipelineReport run_passes(ptx::Module& module, const PassOptions& options,
                          std::span<const PassInfo> passes, bool check_facts = false);

}  // namespace ptxgen::inline v0::optimize
