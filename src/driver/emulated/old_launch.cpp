// src/driver/emulated/old_launch.cpp - launch functions from before CUDA 4.0
#include <cstring>
#include <mutex>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/launch.hpp"
#include "driver/emulated/libraries.hpp"
#include "support/format.hpp"

/// Values of cuFuncSetBlockShape, cuFuncSetSharedSize and cuParamSet apply to all later launches of
/// the function by cuLaunch and its variants.
namespace ptxgen::inline v0::driver::emulated {
namespace {

template <class Work>
CUresult with_function(CUfunction function, Work&& work) {
  return guarded([&]() -> CUresult {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (const CUresult result = find_function(context, function)) return result;
    const std::lock_guard lock(function->old_mutex);
    return work(*function);
  });
}

CUresult put_argument(CUfunction handle, int offset, const void* from, unsigned bytes) {
  return with_function(handle, [&](CUfunc_st& function) -> CUresult {
    if (offset < 0 || (from == nullptr && bytes != 0)) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t end = static_cast<std::size_t>(offset) + bytes;
    const std::size_t limit = function.kernel->parameter_bytes;
    if (end > limit) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    format_text("cuParamSet: bytes {} to {} of the parameters of kernel '{}', "
                                "which has {} bytes of them",
                                offset, end, function.kernel->name, limit));
    }
    function.old_parameters.resize(limit);
    if (bytes != 0) std::memcpy(function.old_parameters.data() + offset, from, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult launch_stored(CUfunction handle, int width, int height, CUstream stream) {
  std::vector<std::byte> parameters;
  emulator::Dim3 block;
  unsigned shared = 0;
  const CUresult read = with_function(handle, [&](const CUfunc_st& function) -> CUresult {
    if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (function.old_block.count() == 0) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    format_text("kernel '{}' is not launched: its block has no shape; call "
                                "cuFuncSetBlockShape before cuLaunch",
                                function.kernel->name));
    }
    parameters = function.old_parameters;
    parameters.resize(function.kernel->parameter_bytes);
    block = function.old_block;
    shared = function.old_shared;
    return CUDA_SUCCESS;
  });
  if (read != CUDA_SUCCESS) return read;
  std::size_t bytes = parameters.size();
  void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), parameters.data(),
                   reinterpret_cast<void*>(kLaunchParamBufferSize), &bytes,
                   reinterpret_cast<void*>(kLaunchParamEnd)};
  return entries::launch_kernel(handle, static_cast<unsigned>(width), static_cast<unsigned>(height),
                                1, block.x, block.y, block.z, shared, stream, nullptr, extra);
}

}  // namespace

namespace entries {

CUresult func_set_block_shape(CUfunction handle, int x, int y, int z) {
  return with_function(handle, [&](CUfunc_st& function) {
    if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
    function.old_block = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                          static_cast<std::uint32_t>(z)};
    return CUDA_SUCCESS;
  });
}

CUresult func_set_shared_size(CUfunction handle, unsigned bytes) {
  return with_function(handle, [&](CUfunc_st& function) {
    function.old_shared = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult param_set_size(CUfunction handle, unsigned bytes) {
  return with_function(handle, [&](const CUfunc_st& function) -> CUresult {
    if (bytes <= function.kernel->parameter_bytes) return CUDA_SUCCESS;
    return refuse(
        CUDA_ERROR_INVALID_VALUE,
        format_text("cuParamSetSize: {} bytes of parameters for kernel '{}', which has {}", bytes,
                    function.kernel->name, function.kernel->parameter_bytes));
  });
}

CUresult param_set_i(CUfunction function, int offset, unsigned value) {
  return put_argument(function, offset, &value, sizeof value);
}

CUresult param_set_f(CUfunction function, int offset, float value) {
  return put_argument(function, offset, &value, sizeof value);
}

CUresult param_set_v(CUfunction function, int offset, void* from, unsigned bytes) {
  return put_argument(function, offset, from, bytes);
}

CUresult launch(CUfunction function) { return launch_stored(function, 1, 1, nullptr); }

CUresult launch_grid(CUfunction function, int grid_width, int grid_height) {
  return launch_stored(function, grid_width, grid_height, nullptr);
}

CUresult launch_grid_async(CUfunction function, int grid_width, int grid_height, CUstream stream) {
  return launch_stored(function, grid_width, grid_height, stream);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
