// src/driver/emulated/memory_before.hpp - memory that a launch can reach, before it runs
#pragma once

#include <vector>

#include "driver/emulated/notes.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Copies the allocations that a launch's arguments point into, each once, by address. With
/// `memory_mutex` held. Addresses in memory are not followed.
[[nodiscard]] std::vector<MemoryBefore> memory_before(const emulator::AddressSpace& space,
                                                      const KernelLaunch& launch);

}  // namespace ptxgen::inline v0::driver::emulated
