// src/driver/cudart/state.cpp - the thread's device and last error; starting the driver
#include <atomic>
#include <mutex>
#include <new>
#include <set>

#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

struct Thread {
  int device = 0;
  cudaError_t error = cudaSuccess;
};
thread_local Thread thread;

/// Primary contexts that the runtime has retained; it does so once for each device, and releases
/// none, as other threads may use them until the process ends.
struct Primaries {
  std::mutex mutex;
  std::set<int> retained;
};
Primaries& primaries() {
  static Primaries* const the_primaries = new Primaries;
  return *the_primaries;
}

cudaError_t use_primary(int device) {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(primaries().mutex);
    if (const CUresult result = cuDevicePrimaryCtxRetain(&context, device)) return error_of(result);
    // The first reference stays; others would only have to be given back.
    if (!primaries().retained.insert(device).second) {
      static_cast<void>(cuDevicePrimaryCtxRelease_v2(device));
    }
  }
  return error_of(cuCtxSetCurrent(context));
}

}  // namespace

cudaError_t refuse(cudaError_t error, const std::string& why) {
  ptxgen_driver_log(CU_LOG_LEVEL_ERROR, why.c_str());
  return error;
}

cudaError_t start() { return error_of(cuInit(0)); }

cudaError_t enter() {
  CUcontext context = nullptr;
  CUresult result = cuCtxGetCurrent(&context);
  if (result == CUDA_ERROR_NOT_INITIALIZED) {
    result = cuInit(0);
    if (result == CUDA_SUCCESS) result = cuCtxGetCurrent(&context);
  }
  if (result != CUDA_SUCCESS) return error_of(result);
  return context != nullptr ? cudaSuccess : use_primary(thread.device);
}

int device_of_thread() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr &&
      cuCtxGetDevice(&device) == CUDA_SUCCESS) {
    return device;
  }
  return thread.device;
}

cudaError_t note(cudaError_t error) noexcept {
  // That work is not done yet is no error: cudaGetLastError does not report it (CUDA programming
  // guide, "Error checking"), and CUB fails on an error that it did not cause.
  if (error != cudaSuccess && error != cudaErrorNotReady) thread.error = error;
  return error;
}

cudaError_t last_error(bool take) noexcept {
  const cudaError_t error = thread.error;
  if (take) thread.error = cudaSuccess;
  return error;
}

cudaError_t error_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (...) {
    return cudaErrorUnknown;
  }
}

namespace entries {

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  *device = device_of_thread();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = start()) return error;
  CUdevice handle = 0;
  if (cuDeviceGet(&handle, device) != CUDA_SUCCESS) return cudaErrorInvalidDevice;
  thread.device = device;
  return use_primary(device);
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  // The one flag says that device_flags are meant.
  constexpr unsigned kDeviceFlagsAreValid = 1;
  if ((flags & ~kDeviceFlagsAreValid) != 0) return cudaErrorInvalidValue;
  if (const cudaError_t error = start()) return error;
  CUdevice handle = 0;
  if (cuDeviceGet(&handle, device) != CUDA_SUCCESS) return cudaErrorInvalidDevice;
  if (flags != 0) {
    const CUresult result =
        cuDevicePrimaryCtxSetFlags_v2(device, device_flags & ~kDeviceMapHost & kDeviceMask);
    if (result != CUDA_SUCCESS) return error_of(result);
  }
  CUcontext before = nullptr;
  static_cast<void>(cuCtxGetCurrent(&before));
  const cudaError_t error = use_primary(device);
  static_cast<void>(cuCtxSetCurrent(before));
  return error;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  if ((flags & ~kDeviceMask) != 0) return cudaErrorInvalidValue;
  if (const cudaError_t error = start()) return error;
  // Memory can always be mapped, so the driver has no flag for it any more.
  return error_of(cuDevicePrimaryCtxSetFlags_v2(device_of_thread(), flags & ~kDeviceMapHost));
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = start()) return error;
  int active = 0;
  if (const CUresult result = cuDevicePrimaryCtxGetState(device_of_thread(), flags, &active)) {
    return error_of(result);
  }
  *flags |= kDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  if (const cudaError_t error = start()) return error;
  const int device = device_of_thread();
  const std::lock_guard lock(primaries().mutex);
  primaries().retained.erase(device);
  if (const CUresult result = cuDevicePrimaryCtxReset_v2(device)) return error_of(result);
  thread.device = device;
  return error_of(cuCtxSetCurrent(nullptr));
}

cudaError_t cudaDeviceSynchronize() { return driver_call(cuCtxSynchronize); }

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
