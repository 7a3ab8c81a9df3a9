// src/runtime/launch/dependence.hpp - whether outputs depend on the inputs that they should
#pragma once

#include "runtime/launch/checked_call.hpp"

namespace ptxgen::inline v0 {

/// Changes parts of each input of floats, launches again, and compares which outputs change with
/// those of the reference: findings "lost-dependence" (an output does not, though its reference
/// does by more than errors allow) and "false-dependence" (an output does, its reference does not).
/// Also runs `gates::sizes` on the code. `call` was launched and compared. Of a kernel that reads
/// what it writes only the latter.
void check_dependence(const Launcher& launcher, const Context& context,
                      const KernelDescription& kernel, CheckedCall& call, std::uint64_t seed,
                      Verification& result);

}  // namespace ptxgen::inline v0
