// src/driver/emulated/host_view.hpp - device memory of the emulated driver in this process
#pragma once

#include <cstdint>

#include "ptxgen/driver/table.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// The host address of bytes of a context's memory. They count as initialised from now on, since
/// writes of the host are not seen. Null if the context is none of this driver, or if no allocation
/// holds them all. Waits for a kernel that runs.
[[nodiscard]] void* host_view(CUcontext context, CUdeviceptr address, std::uint64_t bytes) noexcept;

}  // namespace ptxgen::inline v0::driver::emulated
