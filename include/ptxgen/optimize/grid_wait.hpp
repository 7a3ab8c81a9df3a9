// ptxgen/optimize/grid_wait.hpp - kernels that may start before the one ahead of them has ended
#pragma once

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::optimize {

/// Prepares the entries of a module for programmatic dependent launch (sm_90 and newer): such a
/// kernel may start while the one ahead of it in the stream still runs.
///
/// `griddepcontrol.wait` becomes the first statement, so that it is on every path and ahead of
/// every access; and `ld.global.nc`, which assumes that nothing writes the memory while the kernel
/// runs, becomes `ld.global`, since the kernel ahead may write it until the wait. An entry that has
/// a wait of its own is unchanged: it knows what it may read before. So is a module for an older
/// target.
void wait_for_previous_grid(ptx::Module& module);

}  // namespace ptxgen::inline v0::optimize
