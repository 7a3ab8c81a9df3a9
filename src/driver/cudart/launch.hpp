// src/driver/cudart/launch.hpp - launches of the runtime
#pragma once

#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {

/// The values between `<<<` and `>>>`.
struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

/// Launches a kernel with the current context, which there is (enter), or the stream's.
/// cudaErrorInvalidConfiguration where the driver refuses a grid or block that no kernel can have.
[[nodiscard]] cudaError_t launch(CUkernel kernel, const LaunchConfiguration& configuration,
                                 void** arguments, bool cooperative = false);

}  // namespace ptxgen::inline v0::driver::cudart
