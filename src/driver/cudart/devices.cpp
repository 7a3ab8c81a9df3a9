// src/driver/cudart/devices.cpp - versions, devices, limits, peers
#include <cstring>

#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

cudaError_t check_device(int device) {
  if (const cudaError_t error = start()) return error;
  CUdevice handle = 0;
  return cuDeviceGet(&handle, device) == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidDevice;
}

/// A hint that changes no result.
template <class Config>
cudaError_t take_hint(Config config, Config highest) {
  if (config < Config{} || config > highest) return cudaErrorInvalidValue;
  return enter();
}

}  // namespace

namespace entries {

cudaError_t cudaDriverGetVersion(int* version) { return error_of(cuDriverGetVersion(version)); }

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = 0;
  if (const cudaError_t error = start()) return error;
  if (const CUresult result = cuDeviceGetCount(count)) return error_of(result);
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

/// A preference among several devices: the first is used where there is no cudaSetDevice.
cudaError_t cudaSetValidDevices(int* devices, int count) {
  if ((devices == nullptr) != (count == 0) || count < 0) return cudaErrorInvalidValue;
  for (int i = 0; i < count; ++i) {
    if (const cudaError_t error = check_device(devices[i])) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, CUdevice_attribute attribute, int device) {
  if (const cudaError_t error = check_device(device)) return error;
  return error_of(cuDeviceGetAttribute(value, attribute, device));
}

cudaError_t cudaDeviceSetLimit(CUlimit limit, std::size_t value) {
  return driver_call(cuCtxSetLimit, limit, value);
}
cudaError_t cudaDeviceGetLimit(std::size_t* value, CUlimit limit) {
  return driver_call(cuCtxGetLimit, value, limit);
}

cudaError_t cudaDeviceGetCacheConfig(CUfunc_cache* config) {
  if (config == nullptr) return cudaErrorInvalidValue;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return enter();
}
cudaError_t cudaDeviceSetCacheConfig(CUfunc_cache config) {
  return take_hint(config, CU_FUNC_CACHE_PREFER_EQUAL);
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  if (config == nullptr) return cudaErrorInvalidValue;
  *config = cudaSharedMemBankSizeFourByte;
  return enter();
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return take_hint(config, cudaSharedMemBankSizeEightByte);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* greatest) {
  return driver_call(cuCtxGetStreamPriorityRange, lowest, greatest);
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* bus_id) {
  if (const cudaError_t error = start()) return error;
  return error_of(cuDeviceGetByPCIBusId(device, bus_id));
}
cudaError_t cudaDeviceGetPCIBusId(char* bus_id, int bytes, int device) {
  if (const cudaError_t error = check_device(device)) return error;
  return error_of(cuDeviceGetPCIBusId(bus_id, bytes, device));
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  if (can_access == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_device(device)) return error;
  if (const cudaError_t error = check_device(peer)) return error;
  return error_of(cuDeviceCanAccessPeer(can_access, device, peer));
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return cudaErrorInvalidValue;
  if (const cudaError_t error = check_device(peer)) return error;
  if (peer == device_of_thread()) return cudaErrorInvalidDevice;
  return refuse(cudaErrorPeerAccessUnsupported,
                "cudaDeviceEnablePeerAccess: emulated devices cannot access each other's memory; "
                "use cudaMemcpyPeer");
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = check_device(peer)) return error;
  return peer == device_of_thread() ? cudaErrorInvalidDevice : cudaErrorPeerAccessNotEnabled;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (const cudaError_t error = check_device(device)) return error;
  return error_of(cuDeviceGetDefaultMemPool(pool, device));
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  if (const cudaError_t error = check_device(device)) return error;
  return error_of(cuDeviceGetMemPool(pool, device));
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (const cudaError_t error = check_device(device)) return error;
  return error_of(cuDeviceSetMemPool(device, pool));
}

cudaError_t cudaProfilerStart() { return enter(); }
cudaError_t cudaProfilerStop() { return enter(); }

}  // namespace entries

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define PTXGEN_CUDART_ERROR(name, value, words) \
  case name:                                    \
    return #name;
#include "driver/cudart/errors.def"
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const char* text = nullptr;
  switch (error) {
#define PTXGEN_CUDART_ERROR(name, value, words) \
  case name:                                    \
    text = words;                               \
    break;
#include "driver/cudart/errors.def"
  }
  if (text != nullptr) return text;
  if (cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS) return text;
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() { return last_error(true); }
cudaError_t cudaPeekAtLastError() { return last_error(false); }

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
}

}  // namespace ptxgen::inline v0::driver::cudart
