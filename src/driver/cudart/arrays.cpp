// src/driver/cudart/arrays.cpp - CUDA arrays, texture and surface objects of the runtime
#include <cstring>

#include "driver/cudart/cudart.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

struct Format {
  cudaChannelFormatKind kind;
  int bits;
  CUarray_format format;
};
constexpr Format kFormats[] = {
    {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
    {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
    {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
    {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
    {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
    {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
    {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
    {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
};

/// The driver's format of channels, all of one size.
cudaError_t format_of(const char* call, const cudaChannelFormatDesc& desc, CUarray_format& format,
                      unsigned& channels) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  channels = 0;
  while (channels < 4 && bits[channels] != 0) ++channels;
  bool alike = channels != 0 && channels != 3;
  for (unsigned i = 0; i < 4; ++i) alike &= bits[i] == (i < channels ? desc.x : 0);
  for (const Format& known : kFormats) {
    if (!alike || known.kind != desc.f || known.bits != desc.x) continue;
    format = known.format;
    return cudaSuccess;
  }
  return refuse(cudaErrorInvalidChannelDescriptor,
                format_text("{}: channels of {}, {}, {} and {} bits; use 1, 2 or 4 equal channels, "
                            "integers of 8, 16 or 32 bits or floats of 16 or 32",
                            call, desc.x, desc.y, desc.z, desc.w));
}

cudaChannelFormatDesc desc_of(CUarray_format format, unsigned channels) {
  for (const Format& known : kFormats) {
    if (known.format != format) continue;
    const auto channel = [&](unsigned i) { return i < channels ? known.bits : 0; };
    return {channel(0), channel(1), channel(2), channel(3), known.kind};
  }
  return {0, 0, 0, 0, cudaChannelFormatKindNone};
}

cudaError_t descriptor_of(CUarray array, CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  if (const cudaError_t error = enter()) return error;
  return error_of(cuArray3DGetDescriptor_v2(&descriptor, array));
}

cudaError_t make_array(const char* call, CUarray* array, const cudaChannelFormatDesc* desc,
                       const cudaExtent& extent, unsigned flags) {
  if (array == nullptr || desc == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (const cudaError_t error = format_of(call, *desc, descriptor.Format, descriptor.NumChannels)) {
    return error;
  }
  descriptor.Width = extent.width;
  descriptor.Height = extent.height;
  descriptor.Depth = extent.depth;
  descriptor.Flags = flags;
  return error_of(cuArray3DCreate_v2(array, &descriptor));
}

CUarray changeable(const CUarray_st* array) { return const_cast<CUarray>(array); }

/// Rows between an array and an address, or of two arrays. Positions and width are in bytes.
cudaError_t copy_array_rows(const char* call, cudaMemcpy3DParms copy, bool now,
                            cudaStream_t stream) {
  if (const cudaError_t error = enter()) return error;
  // The runtime's structure has them in elements.
  const std::size_t width = copy.extent.width;
  const std::size_t to_x = copy.dstPos.x;
  const std::size_t from_x = copy.srcPos.x;
  copy.extent.width = 0;
  copy.dstPos.x = copy.srcPos.x = 0;
  CUDA_MEMCPY3D converted{};
  if (const cudaError_t error = copy_of(call, copy, converted)) return error;
  if (copy.extent.height > 1 && ((copy.dstArray == nullptr && converted.dstPitch < width) ||
                                 (copy.srcArray == nullptr && converted.srcPitch < width))) {
    return cudaErrorInvalidPitchValue;
  }
  converted.WidthInBytes = width;
  converted.dstXInBytes = to_x;
  converted.srcXInBytes = from_x;
  return error_of(now ? cuMemcpy3D_v2(&converted) : cuMemcpy3DAsync_v2(&converted, stream));
}

cudaError_t to_array(const char* call, CUarray to, cudaPos at, const cudaPitchedPtr& from,
                     std::size_t height, cudaMemcpyKind kind, bool now, cudaStream_t stream) {
  if (to == nullptr || from.ptr == nullptr) return cudaErrorInvalidValue;
  cudaMemcpy3DParms copy{};
  copy.dstArray = to;
  copy.dstPos = at;
  copy.srcPtr = from;
  copy.extent = {from.xsize, height, 1};
  copy.kind = kind;
  return copy_array_rows(call, copy, now, stream);
}

cudaError_t from_array(const char* call, const cudaPitchedPtr& to, const CUarray_st* from,
                       cudaPos at, std::size_t height, cudaMemcpyKind kind, bool now,
                       cudaStream_t stream) {
  if (from == nullptr || to.ptr == nullptr) return cudaErrorInvalidValue;
  cudaMemcpy3DParms copy{};
  copy.srcArray = changeable(from);
  copy.srcPos = at;
  copy.dstPtr = to;
  copy.extent = {to.xsize, height, 1};
  copy.kind = kind;
  return copy_array_rows(call, copy, now, stream);
}

cudaError_t row_bytes(const CUarray_st* array, std::size_t& row) {
  if (array == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  cudaChannelFormatDesc desc{};
  if (const cudaError_t error = descriptor_of(changeable(array), descriptor)) return error;
  if (const cudaError_t error = channels_of(changeable(array), desc)) return error;
  row = descriptor.Width * static_cast<std::size_t>(desc.x + desc.y + desc.z + desc.w) / 8;
  return row != 0 ? cudaSuccess : cudaErrorInvalidValue;
}

/// Adjacent bytes of an array: the rest of a row, then rows. `copy(row, done, bytes, rows)` copies
/// some of them, `done` bytes after the first.
template <class CopyRows>
cudaError_t copy_adjacent(const CUarray_st* array, std::size_t x, std::size_t y, std::size_t bytes,
                          CopyRows&& copy) {
  std::size_t row = 0;
  if (const cudaError_t error = row_bytes(array, row)) return error;
  if (x > row) return cudaErrorInvalidValue;
  std::size_t done = 0;
  while (done < bytes) {
    const std::size_t left = bytes - done;
    const bool full = x == 0 && left >= row;
    const std::size_t width = full ? row : left < row - x ? left : row - x;
    const std::size_t rows = full ? left / row : 1;
    if (const cudaError_t error = copy(cudaPos{x, y, 0}, done, width, rows)) return error;
    done += width * rows;
    y += rows;
    x = 0;
  }
  return cudaSuccess;
}

void* moved(const void* memory, std::size_t bytes) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory) + bytes);
}

cudaError_t adjacent_to_array(const char* call, CUarray to, std::size_t x, std::size_t y,
                              const void* from, std::size_t bytes, cudaMemcpyKind kind, bool now,
                              cudaStream_t stream) {
  return copy_adjacent(to, x, y, bytes,
                       [&](cudaPos at, std::size_t done, std::size_t width, std::size_t rows) {
                         return to_array(call, to, at, {moved(from, done), width, width, rows},
                                         rows, kind, now, stream);
                       });
}

cudaError_t adjacent_from_array(const char* call, void* to, const CUarray_st* from, std::size_t x,
                                std::size_t y, std::size_t bytes, cudaMemcpyKind kind, bool now,
                                cudaStream_t stream) {
  return copy_adjacent(from, x, y, bytes,
                       [&](cudaPos at, std::size_t done, std::size_t width, std::size_t rows) {
                         return from_array(call, {moved(to, done), width, width, rows}, from, at,
                                           rows, kind, now, stream);
                       });
}

cudaError_t resource_of(const char* call, const cudaResourceDesc& from, CUDA_RESOURCE_DESC& to) {
  to = {};
  to.resType = static_cast<CUresourcetype>(from.resType);
  switch (from.resType) {
    case cudaResourceTypeArray:
      to.res.array.hArray = from.res.array.array;
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      to.res.mipmap.hMipmappedArray = from.res.mipmap.mipmap;
      return cudaSuccess;
    case cudaResourceTypeLinear: {
      const auto& linear = from.res.linear;
      to.res.linear.devPtr = address_of(linear.devPtr);
      to.res.linear.sizeInBytes = linear.sizeInBytes;
      return format_of(call, linear.desc, to.res.linear.format, to.res.linear.numChannels);
    }
    case cudaResourceTypePitch2D: {
      const auto& rows = from.res.pitch2D;
      to.res.pitch2D.devPtr = address_of(rows.devPtr);
      to.res.pitch2D.width = rows.width;
      to.res.pitch2D.height = rows.height;
      to.res.pitch2D.pitchInBytes = rows.pitchInBytes;
      return format_of(call, rows.desc, to.res.pitch2D.format, to.res.pitch2D.numChannels);
    }
  }
  return cudaErrorInvalidValue;
}

/// Writes only what CUDA 12 has too.
void give_resource(const CUDA_RESOURCE_DESC& from, cudaResourceDesc* to) {
  cudaResourceDesc filled{};
  filled.resType = static_cast<cudaResourceType>(from.resType);
  if (from.resType == CU_RESOURCE_TYPE_ARRAY) filled.res.array.array = from.res.array.hArray;
  if (from.resType == CU_RESOURCE_TYPE_LINEAR) {
    const auto& linear = from.res.linear;
    filled.res.linear.devPtr = pointer_to(linear.devPtr);
    filled.res.linear.desc = desc_of(linear.format, linear.numChannels);
    filled.res.linear.sizeInBytes = linear.sizeInBytes;
  }
  if (from.resType == CU_RESOURCE_TYPE_PITCH2D) {
    const auto& rows = from.res.pitch2D;
    filled.res.pitch2D.devPtr = pointer_to(rows.devPtr);
    filled.res.pitch2D.desc = desc_of(rows.format, rows.numChannels);
    filled.res.pitch2D.width = rows.width;
    filled.res.pitch2D.height = rows.height;
    filled.res.pitch2D.pitchInBytes = rows.pitchInBytes;
  }
  std::memcpy(static_cast<void*>(to), &filled, kResourceBytes12);
}

CUDA_TEXTURE_DESC texture_of(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to{};
  for (std::size_t i = 0; i < 3; ++i) {
    to.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
  }
  to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  if (from.readMode == cudaReadModeElementType) to.flags |= kTextureAsInteger;
  if (from.normalizedCoords != 0) to.flags |= kTextureNormalized;
  if (from.sRGB != 0) to.flags |= kTextureSrgb;
  if (from.disableTrilinearOptimization != 0) to.flags |= kTextureNoTrilinear;
  if (from.seamlessCubemap != 0) to.flags |= kTextureSeamless;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  return to;
}

cudaTextureDesc texture_of(const CUDA_TEXTURE_DESC& from) {
  cudaTextureDesc to{};
  for (std::size_t i = 0; i < 3; ++i) {
    to.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
  }
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  const bool as_integer = (from.flags & kTextureAsInteger) != 0;
  to.readMode = as_integer ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  to.normalizedCoords = (from.flags & kTextureNormalized) != 0 ? 1 : 0;
  to.sRGB = (from.flags & kTextureSrgb) != 0 ? 1 : 0;
  to.disableTrilinearOptimization = (from.flags & kTextureNoTrilinear) != 0 ? 1 : 0;
  to.seamlessCubemap = (from.flags & kTextureSeamless) != 0 ? 1 : 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  return to;
}

}  // namespace

cudaError_t channels_of(CUarray array, cudaChannelFormatDesc& desc) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (const cudaError_t error = descriptor_of(array, descriptor)) return error;
  desc = desc_of(descriptor.Format, descriptor.NumChannels);
  return cudaSuccess;
}

namespace entries {

cudaError_t cudaMallocArray(CUarray* array, const cudaChannelFormatDesc* desc, std::size_t width,
                            std::size_t height, unsigned flags) {
  return make_array("cudaMallocArray", array, desc, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(CUarray* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                              unsigned flags) {
  return make_array("cudaMalloc3DArray", array, desc, extent, flags);
}
cudaError_t cudaFreeArray(CUarray array) {
  if (array == nullptr) return cudaSuccess;
  return driver_call(cuArrayDestroy, array);
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned* flags,
                             CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  if (const cudaError_t error = descriptor_of(array, descriptor)) return error;
  if (desc != nullptr) *desc = desc_of(descriptor.Format, descriptor.NumChannels);
  if (extent != nullptr) *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
  if (flags != nullptr) *flags = descriptor.Flags;
  return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, const CUarray_st* array) {
  if (desc == nullptr) return cudaErrorInvalidValue;
  return channels_of(changeable(array), *desc);
}

cudaError_t cudaMemcpy2DToArray(CUarray to, std::size_t x, std::size_t y, const void* from,
                                std::size_t pitch, std::size_t width, std::size_t height,
                                cudaMemcpyKind kind) {
  return to_array("cudaMemcpy2DToArray", to, {x, y, 0}, {moved(from, 0), pitch, width, height},
                  height, kind, true, nullptr);
}
cudaError_t cudaMemcpy2DToArrayAsync(CUarray to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return to_array("cudaMemcpy2DToArrayAsync", to, {x, y, 0}, {moved(from, 0), pitch, width, height},
                  height, kind, false, stream);
}
cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, const CUarray_st* from,
                                  std::size_t x, std::size_t y, std::size_t width,
                                  std::size_t height, cudaMemcpyKind kind) {
  return from_array("cudaMemcpy2DFromArray", {to, pitch, width, height}, from, {x, y, 0}, height,
                    kind, true, nullptr);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, std::size_t pitch, const CUarray_st* from,
                                       std::size_t x, std::size_t y, std::size_t width,
                                       std::size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return from_array("cudaMemcpy2DFromArrayAsync", {to, pitch, width, height}, from, {x, y, 0},
                    height, kind, false, stream);
}
cudaError_t cudaMemcpy2DArrayToArray(CUarray to, std::size_t to_x, std::size_t to_y,
                                     const CUarray_st* from, std::size_t from_x, std::size_t from_y,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  cudaMemcpy3DParms copy{};
  copy.srcArray = changeable(from);
  copy.srcPos = {from_x, from_y, 0};
  copy.dstArray = to;
  copy.dstPos = {to_x, to_y, 0};
  copy.extent = {width, height, 1};
  copy.kind = kind;
  return copy_array_rows("cudaMemcpy2DArrayToArray", copy, true, nullptr);
}
cudaError_t cudaMemcpyArrayToArray(CUarray to, std::size_t to_x, std::size_t to_y,
                                   const CUarray_st* from, std::size_t from_x, std::size_t from_y,
                                   std::size_t bytes, cudaMemcpyKind kind) {
  std::size_t row = 0;
  if (const cudaError_t error = row_bytes(to, row)) return error;
  if (to_x > row) return cudaErrorInvalidValue;
  // Rows of the two arrays may differ: each row of one side in pieces of the other's rows.
  const auto copy_row = [&](cudaPos at, std::size_t done, std::size_t width) {
    const std::size_t begin = to_x + done;
    return copy_adjacent(
        to, begin % row, to_y + begin / row, width,
        [&](cudaPos target, std::size_t skipped, std::size_t bytes_of_row, std::size_t rows) {
          cudaError_t error = cudaSuccess;
          for (std::size_t i = 0; i < rows && error == cudaSuccess; ++i) {
            error = cudaMemcpy2DArrayToArray(to, target.x, target.y + i, from,
                                             at.x + skipped + i * bytes_of_row, at.y, bytes_of_row,
                                             1, kind);
          }
          return error;
        });
  };
  return copy_adjacent(from, from_x, from_y, bytes,
                       [&](cudaPos at, std::size_t done, std::size_t width, std::size_t rows) {
                         cudaError_t error = cudaSuccess;
                         for (std::size_t i = 0; i < rows && error == cudaSuccess; ++i) {
                           error = copy_row({at.x, at.y + i, 0}, done + i * width, width);
                         }
                         return error;
                       });
}
cudaError_t cudaMemcpyToArray(CUarray to, std::size_t x, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind kind) {
  return adjacent_to_array("cudaMemcpyToArray", to, x, y, from, bytes, kind, true, nullptr);
}
cudaError_t cudaMemcpyToArrayAsync(CUarray to, std::size_t x, std::size_t y, const void* from,
                                   std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return adjacent_to_array("cudaMemcpyToArrayAsync", to, x, y, from, bytes, kind, false, stream);
}
cudaError_t cudaMemcpyFromArray(void* to, const CUarray_st* from, std::size_t x, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind kind) {
  return adjacent_from_array("cudaMemcpyFromArray", to, from, x, y, bytes, kind, true, nullptr);
}
cudaError_t cudaMemcpyFromArrayAsync(void* to, const CUarray_st* from, std::size_t x, std::size_t y,
                                     std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return adjacent_from_array("cudaMemcpyFromArrayAsync", to, from, x, y, bytes, kind, false,
                             stream);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture,
                                    const cudaResourceViewDesc* view) {
  if (object == nullptr || resource == nullptr || texture == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC from{};
  if (const cudaError_t error = enter()) return error;
  if (const cudaError_t error = resource_of("cudaCreateTextureObject", *resource, from)) {
    return error;
  }
  const CUDA_TEXTURE_DESC how = texture_of(*texture);
  CUDA_RESOURCE_VIEW_DESC seen{};
  if (view != nullptr) std::memcpy(&seen, view, kResourceViewBytes12);
  return error_of(cuTexObjectCreate(object, &from, &how, view != nullptr ? &seen : nullptr));
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return driver_call(cuTexObjectDestroy, object);
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaTextureObject_t object) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC from{};
  if (const cudaError_t error = driver_call(cuTexObjectGetResourceDesc, &from, object)) {
    return error;
  }
  give_resource(from, resource);
  return cudaSuccess;
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
  if (texture == nullptr) return cudaErrorInvalidValue;
  CUDA_TEXTURE_DESC from{};
  if (const cudaError_t error = driver_call(cuTexObjectGetTextureDesc, &from, object)) {
    return error;
  }
  *texture = texture_of(from);
  return cudaSuccess;
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  if (object == nullptr || resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC from{};
  if (const cudaError_t error = enter()) return error;
  if (const cudaError_t error = resource_of("cudaCreateSurfaceObject", *resource, from)) {
    return error;
  }
  return error_of(cuSurfObjectCreate(object, &from));
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return driver_call(cuSurfObjectDestroy, object);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaSurfaceObject_t object) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC from{};
  if (const cudaError_t error = driver_call(cuSurfObjectGetResourceDesc, &from, object)) {
    return error;
  }
  give_resource(from, resource);
  return cudaSuccess;
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
