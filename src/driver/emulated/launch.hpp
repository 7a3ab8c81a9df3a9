// src/driver/emulated/launch.hpp - from launch calls to queued launches
#pragma once

#include <string>

#include "driver/emulated/modules.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Arguments of a launch call or a kernel node.
struct LaunchRequest {
  CUfunction function = nullptr;
  emulator::Dim3 grid;
  emulator::Dim3 block;
  emulator::Dim3 cluster{0, 0, 0};  ///< {0,0,0}: not given
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  void** kernel_params = nullptr;
  void** extra = nullptr;
};

/// Checks everything that a driver checks at the call and copies the arguments. `context` is that
/// of the stream (or graph node). Reasons for a failure go to the driver's log.
///
/// CUDA_ERROR_INVALID_HANDLE: no living function, or of another context. INVALID_VALUE: sizes of
/// grid, block or dynamic shared memory beyond the device or the kernel's attributes; arguments
/// missing or given twice. COOPERATIVE_LAUNCH_TOO_LARGE. INVALID_CLUSTER_SIZE, NOT_SUPPORTED for
/// clusters of more than one block before sm_90. Never LAUNCH_OUT_OF_RESOURCES: the registers of a
/// kernel are not known without a compiler.
[[nodiscard]] CUresult prepare_launch(CUcontext context, const LaunchRequest& request,
                                      KernelLaunch& launch);

/// "(x,y,z)"
[[nodiscard]] std::string dims_text(const emulator::Dim3& size);

/// Whether the device runs clusters of more than one block.
[[nodiscard]] bool has_clusters(const ptx::Gpu& gpu) noexcept;

/// Resident blocks of the function on the device (occupancy.cpp).
[[nodiscard]] std::uint64_t resident_blocks(const CUfunc_st& function, std::uint64_t block_threads,
                                            std::uint64_t dynamic_shared_bytes);

}  // namespace ptxgen::inline v0::driver::emulated
