// src/driver/emulated/green_contexts.hpp - green contexts: parts of the multiprocessors of a device
#pragma once

#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver {

/// What a green context is created from.
struct CUdevResourceDesc_st {
  CUdevice device = 0;
  CUdevSmResource sm{};
};

/// Its work runs in the primary context of its device, which it retains.
struct CUgreenCtx_st {
  CUdevice device = 0;
  CUdevSmResource sm{};
  CUcontext primary = nullptr;
  std::uint64_t id = 0;
  char as_context = 0;  ///< its address is the handle as a context, another one of the primary's

  [[nodiscard]] CUcontext context_handle() noexcept {
    return reinterpret_cast<CUcontext>(&as_context);
  }
};

namespace emulated {

/// The living green context with that handle as a context, or null.
[[nodiscard]] CUgreenCtx green_of(CUcontext handle);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
