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
  set(properties.maxTexture1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
  set(properties.maxTexture2D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH);
  set(properties.maxTexture2D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
  set(properties.maxTexture2DLinear[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
  set(properties.maxTexture2DLinear[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
  set(properties.maxTexture2DLinear[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
  set(properties.maxTexture2DGather[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH);
  set(properties.maxTexture2DGather[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT);
  set(properties.maxTexture3D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH);
  set(properties.maxTexture3D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT);
  set(properties.maxTexture3D[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
  set(properties.maxTexture1DLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH);
  set(properties.maxTexture1DLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
  set(properties.maxTexture2DLayered[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH);
  set(properties.maxTexture2DLayered[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT);
  set(properties.maxTexture2DLayered[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
  set(properties.maxSurface1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH);
  set(properties.maxSurface2D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH);
  set(properties.maxSurface2D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT);
  set(properties.maxSurface3D[0], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH);
  set(properties.maxSurface3D[1], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT);
  set(properties.maxSurface3D[2], CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH);
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
