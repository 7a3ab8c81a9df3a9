// src/driver/cudart/properties.hpp - cudaDeviceProp of both versions
#pragma once

#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {

[[nodiscard]] inline int attribute_of(int device, CUdevice_attribute attribute) {
  int value = 0;
  static_cast<void>(cuDeviceGetAttribute(&value, attribute, device));
  return value;
}

/// What both layouts have.
template <class Properties>
cudaError_t fill_properties(Properties& properties, int device) {
  properties = {};
  if (const CUresult result = cuDeviceGetName(properties.name, sizeof properties.name, device)) {
    return error_of(result);
  }
  static_cast<void>(cuDeviceGetUuid_v2(&properties.uuid, device));
  static_cast<void>(cuDeviceTotalMem_v2(&properties.totalGlobalMem, device));
#define PTXGEN_PROPERTY(member, attribute)                      \
  properties.member = static_cast<decltype(properties.member)>( \
      attribute_of(device, CU_DEVICE_ATTRIBUTE_##attribute));
#include "driver/cudart/properties.def"
  const auto set = [&](int& member, CUdevice_attribute attribute) {
    member = attribute_of(device, attribute);
  };
  set(properties.maxThreadsDim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  set(properties.maxThreadsDim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  set(properties.maxThreadsDim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  set(properties.maxGridSize[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  set(properties.maxGridSize[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  set(properties.maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  return cudaSuccess;
}

/// The device whose properties come closest to those asked for: one that has at least the memory
/// and the compute capability, else device 0.
template <class Properties>
cudaError_t choose_device(int* device, const Properties* wanted,
                          cudaError_t (*get)(Properties*, int)) {
  if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
  int count = 0;
  if (const cudaError_t error = entries::cudaGetDeviceCount(&count)) return error;
  *device = 0;
  for (int i = 0; i < count; ++i) {
    Properties found{};
    if (const cudaError_t error = get(&found, i)) return error;
    if (found.totalGlobalMem >= wanted->totalGlobalMem &&
        (found.major > wanted->major ||
         (found.major == wanted->major && found.minor >= wanted->minor))) {
      *device = i;
      break;
    }
  }
  return cudaSuccess;
}

}  // namespace ptxgen::inline v0::driver::cudart
