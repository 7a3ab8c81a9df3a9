// src/driver/copy_2d.hpp - a 2D copy as the 3D copy that it is
#pragma once

#include "ptxgen/driver/api.hpp"

namespace ptxgen::inline v0::driver {

/// The copy with a depth of 1.
[[nodiscard]] inline CUDA_MEMCPY3D in_3d(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D result = {};
  result.srcXInBytes = copy.srcXInBytes;
  result.srcY = copy.srcY;
  result.srcMemoryType = copy.srcMemoryType;
  result.srcHost = copy.srcHost;
  result.srcDevice = copy.srcDevice;
  result.srcArray = copy.srcArray;
  result.srcPitch = copy.srcPitch;
  result.dstXInBytes = copy.dstXInBytes;
  result.dstY = copy.dstY;
  result.dstMemoryType = copy.dstMemoryType;
  result.dstHost = copy.dstHost;
  result.dstDevice = copy.dstDevice;
  result.dstArray = copy.dstArray;
  result.dstPitch = copy.dstPitch;
  result.WidthInBytes = copy.WidthInBytes;
  result.Height = copy.Height;
  result.Depth = 1;
  return result;
}

}  // namespace ptxgen::inline v0::driver
