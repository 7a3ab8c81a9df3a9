// src/driver/emulated/told.hpp - findings of a launch in the caller's terms
#pragma once

#include <string>
#include <vector>

#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// "\n    in a launch of kernel 'NAME', grid (x,y,z), block (x,y,z)".
[[nodiscard]] std::string place_of(const KernelLaunch& launch);

/// The findings of a launch with C++ calls, lines of the caller's file and statements.
[[nodiscard]] std::vector<ToldFinding> told_of(const KernelLaunch& launch,
                                               const emulator::Result& result);

}  // namespace ptxgen::inline v0::driver::emulated
