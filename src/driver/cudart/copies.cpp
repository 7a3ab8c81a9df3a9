// src/driver/cudart/copies.cpp - copies and fills of the runtime
#include <algorithm>
#include <vector>

#include "driver/cudart/cudart.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

/// The driver's memory type of an address; 0 if it does not know it.
unsigned known_type(const void* memory, bool& managed) {
  unsigned type = 0;
  int is_managed = 0;
  const CUdeviceptr address = address_of(memory);
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) {
    return 0;
  }
  managed = cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) ==
                CUDA_SUCCESS &&
            is_managed != 0;
  return type;
}

/// Where a copy finds memory that its direction calls the host's or the device's. A GPU's driver
/// refuses device memory that is called the host's; host memory that kernels can reach may be
/// called the device's.
cudaError_t type_of(const char* call, const char* side, const void* memory, bool host,
                    CUmemorytype& type) {
  bool managed = false;
  const unsigned known = known_type(memory, managed);
  if (!host) {
    type = known == CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
    return cudaSuccess;
  }
  type = CU_MEMORYTYPE_HOST;
  if (known != CU_MEMORYTYPE_DEVICE || managed) return cudaSuccess;
  return refuse(cudaErrorInvalidValue,
                format_text("{}: the {} is device memory, and the direction of the copy calls it "
                            "host memory; use the right cudaMemcpyKind, or cudaMemcpyDefault",
                            call, side));
}

/// The memory types that a direction names.
cudaError_t types_of(const char* call, const void* to, const void* from, cudaMemcpyKind kind,
                     CUmemorytype& to_type, CUmemorytype& from_type) {
  to_type = from_type = CU_MEMORYTYPE_UNIFIED;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  const bool to_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  const bool from_host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  if (const cudaError_t error = type_of(call, "destination", to, to_host, to_type)) return error;
  return type_of(call, "source", from, from_host, from_type);
}

/// The memory types of both sides; those of arrays are set.
cudaError_t types_of(const char* call, const cudaMemcpy3DParms& copy, CUmemorytype& to,
                     CUmemorytype& from) {
  const auto clash = [](CUarray array, const cudaPitchedPtr& memory) {
    return (array != nullptr) == (memory.ptr != nullptr);
  };
  if (copy.dstArray == nullptr && copy.srcArray == nullptr) {
    return types_of(call, copy.dstPtr.ptr, copy.srcPtr.ptr, copy.kind, to, from);
  }
  if (clash(copy.dstArray, copy.dstPtr) || clash(copy.srcArray, copy.srcPtr)) {
    return refuse(cudaErrorInvalidValue,
                  format_text("{}: each side is an array or an address, not both", call));
  }
  // An array is device memory, whose side of the direction is the device's.
  CUmemorytype ignored{};
  const void* const to_memory = copy.dstPtr.ptr;
  const void* const from_memory = copy.srcPtr.ptr;
  const bool to_host = copy.kind == cudaMemcpyHostToHost || copy.kind == cudaMemcpyDeviceToHost;
  const bool from_host = copy.kind == cudaMemcpyHostToHost || copy.kind == cudaMemcpyHostToDevice;
  if ((to_host && copy.dstArray != nullptr) || (from_host && copy.srcArray != nullptr)) {
    return refuse(cudaErrorInvalidMemcpyDirection,
                  format_text("{}: the direction of the copy calls an array host memory", call));
  }
  return types_of(call, to_memory, from_memory, copy.kind, copy.dstArray != nullptr ? ignored : to,
                  copy.srcArray != nullptr ? ignored : from);
}

/// Bytes of an array's element; unchanged for null.
cudaError_t element_bytes(CUarray array, std::size_t& bytes) {
  if (array == nullptr) return cudaSuccess;
  cudaChannelFormatDesc desc{};
  if (const cudaError_t error = channels_of(array, desc)) return error;
  bytes = static_cast<std::size_t>(desc.x + desc.y + desc.z + desc.w) / 8;
  return cudaSuccess;
}

cudaMemcpy3DParms rows_of(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                          std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<void*>(from), from_pitch, width, height};
  copy.dstPtr = {to, to_pitch, width, height};
  copy.extent = {width, height, 1};
  copy.kind = kind;
  return copy;
}

cudaError_t copy_rows(const char* call, const cudaMemcpy3DParms& copy, bool now,
                      cudaStream_t stream) {
  if (const cudaError_t error = enter()) return error;
  CUDA_MEMCPY3D converted{};
  if (const cudaError_t error = copy_of(call, copy, converted)) return error;
  return error_of(now ? cuMemcpy3D_v2(&converted) : cuMemcpy3DAsync_v2(&converted, stream));
}

/// A copy of adjacent bytes.
cudaError_t copy_bytes(const char* call, void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind, bool now, cudaStream_t stream) {
  if (const cudaError_t error = enter()) return error;
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  CUmemorytype to_type{};
  CUmemorytype from_type{};
  if (const cudaError_t error = types_of(call, to, from, kind, to_type, from_type)) return error;
  const CUdeviceptr to_address = address_of(to);
  const CUdeviceptr from_address = address_of(from);
  if (to_type == CU_MEMORYTYPE_DEVICE && from_type == CU_MEMORYTYPE_HOST) {
    return error_of(now ? cuMemcpyHtoD_v2(to_address, from, bytes)
                        : cuMemcpyHtoDAsync_v2(to_address, from, bytes, stream));
  }
  if (to_type == CU_MEMORYTYPE_HOST && from_type == CU_MEMORYTYPE_DEVICE) {
    return error_of(now ? cuMemcpyDtoH_v2(to, from_address, bytes)
                        : cuMemcpyDtoHAsync_v2(to, from_address, bytes, stream));
  }
  if (to_type == CU_MEMORYTYPE_DEVICE && from_type == CU_MEMORYTYPE_DEVICE) {
    return error_of(now ? cuMemcpyDtoD_v2(to_address, from_address, bytes)
                        : cuMemcpyDtoDAsync_v2(to_address, from_address, bytes, stream));
  }
  return error_of(now ? cuMemcpy(to_address, from_address, bytes)
                      : cuMemcpyAsync(to_address, from_address, bytes, stream));
}

cudaError_t copy_peer_rows(const cudaMemcpy3DPeerParms* copy, bool now, cudaStream_t stream) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  const cudaMemcpy3DParms plain{copy->srcArray, copy->srcPos, copy->srcPtr, copy->dstArray,
                                copy->dstPos,   copy->dstPtr, copy->extent, cudaMemcpyDefault};
  return copy_rows("cudaMemcpy3DPeer", plain, now, stream);
}

cudaError_t fill_rows(const cudaPitchedPtr& memory, int value, const cudaExtent& extent, bool now,
                      cudaStream_t stream) {
  if (const cudaError_t error = enter()) return error;
  const auto byte = static_cast<unsigned char>(value);
  const CUdeviceptr start = address_of(memory.ptr);
  const auto fill = [&](CUdeviceptr to, std::size_t rows) {
    return now ? cuMemsetD2D8_v2(to, memory.pitch, byte, extent.width, rows)
               : cuMemsetD2D8Async(to, memory.pitch, byte, extent.width, rows, stream);
  };
  // Slices without a gap are one range of rows.
  if (memory.ysize == extent.height) return error_of(fill(start, extent.height * extent.depth));
  for (std::size_t z = 0; z < extent.depth; ++z) {
    const CUresult result = fill(start + z * memory.pitch * memory.ysize, extent.height);
    if (result != CUDA_SUCCESS) return error_of(result);
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t copy_of(const char* call, const cudaMemcpy3DParms& copy, CUDA_MEMCPY3D& converted) {
  CUmemorytype to = CU_MEMORYTYPE_ARRAY;
  CUmemorytype from = CU_MEMORYTYPE_ARRAY;
  if (const cudaError_t error = types_of(call, copy, to, from)) return error;
  // An extent is in elements, and positions in an array are; those at an address are in bytes.
  std::size_t to_element = 1;
  std::size_t from_element = 1;
  if (const cudaError_t error = element_bytes(copy.dstArray, to_element)) return error;
  if (const cudaError_t error = element_bytes(copy.srcArray, from_element)) return error;
  if (copy.dstArray != nullptr && copy.srcArray != nullptr && to_element != from_element) {
    return refuse(cudaErrorInvalidValue,
                  format_text("{}: the elements of the arrays have {} and {} bytes", call,
                              from_element, to_element));
  }
  const std::size_t width = copy.extent.width * std::max(to_element, from_element);
  const bool several = copy.extent.height > 1 || copy.extent.depth > 1;
  if (several && ((copy.dstArray == nullptr && copy.dstPtr.pitch < width) ||
                  (copy.srcArray == nullptr && copy.srcPtr.pitch < width))) {
    return cudaErrorInvalidPitchValue;
  }
  converted = {};
  converted.srcMemoryType = from;
  converted.srcHost = copy.srcPtr.ptr;
  converted.srcDevice = address_of(copy.srcPtr.ptr);
  converted.srcArray = copy.srcArray;
  converted.srcXInBytes = copy.srcPos.x * from_element;
  converted.srcY = copy.srcPos.y;
  converted.srcZ = copy.srcPos.z;
  converted.srcPitch = copy.srcPtr.pitch;
  converted.srcHeight = copy.srcPtr.ysize;
  converted.dstMemoryType = to;
  converted.dstHost = copy.dstPtr.ptr;
  converted.dstDevice = address_of(copy.dstPtr.ptr);
  converted.dstArray = copy.dstArray;
  converted.dstXInBytes = copy.dstPos.x * to_element;
  converted.dstY = copy.dstPos.y;
  converted.dstZ = copy.dstPos.z;
  converted.dstPitch = copy.dstPtr.pitch;
  converted.dstHeight = copy.dstPtr.ysize;
  converted.WidthInBytes = width;
  converted.Height = copy.extent.height;
  converted.Depth = copy.extent.depth;
  return cudaSuccess;
}

cudaError_t copy_of(const char* call, void* to, const void* from, std::size_t bytes,
                    cudaMemcpyKind kind, CUDA_MEMCPY3D& converted) {
  return copy_of(call, rows_of(to, bytes, from, bytes, bytes, 1, kind), converted);
}

cudaError_t copy_batch(void* const* to, const void* const* from, const std::size_t* sizes,
                       std::size_t count, cudaMemcpyAttributes* attributes,
                       std::size_t* first_copies, std::size_t num_attributes, cudaStream_t stream) {
  if (to == nullptr || from == nullptr || sizes == nullptr) return cudaErrorInvalidValue;
  const auto addresses = [&](auto* memory) {
    std::vector<CUdeviceptr> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(address_of(memory[i]));
    return all;
  };
  std::vector<CUdeviceptr> to_addresses = addresses(to);
  std::vector<CUdeviceptr> from_addresses = addresses(from);
  std::vector<std::size_t> own_sizes(sizes, sizes + count);
  return driver_call(cuMemcpyBatchAsync_v2, to_addresses.data(), from_addresses.data(),
                     own_sizes.data(), count, attributes, first_copies, num_attributes, stream);
}

namespace entries {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy_bytes("cudaMemcpy", to, from, bytes, kind, true, nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy_bytes("cudaMemcpyAsync", to, from, bytes, kind, false, stream);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return copy_bytes("cudaMemcpyPeer", to, from, bytes, cudaMemcpyDefault, true, nullptr);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return copy_bytes("cudaMemcpyPeerAsync", to, from, bytes, cudaMemcpyDefault, false, stream);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return copy_rows("cudaMemcpy2D", rows_of(to, to_pitch, from, from_pitch, width, height, kind),
                   true, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_rows("cudaMemcpy2DAsync",
                   rows_of(to, to_pitch, from, from_pitch, width, height, kind), false, stream);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  return copy_rows("cudaMemcpy3D", *copy, true, nullptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  return copy_rows("cudaMemcpy3DAsync", *copy, false, stream);
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy) {
  return copy_peer_rows(copy, true, nullptr);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  return copy_peer_rows(copy, false, stream);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                               std::size_t offset, cudaMemcpyKind kind) {
  void* to = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, to)) return error;
  return copy_bytes("cudaMemcpyToSymbol", to, from, bytes, kind, true, nullptr);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                                    std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  void* to = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, to)) return error;
  return copy_bytes("cudaMemcpyToSymbolAsync", to, from, bytes, kind, false, stream);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes,
                                 std::size_t offset, cudaMemcpyKind kind) {
  void* from = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, from)) return error;
  return copy_bytes("cudaMemcpyFromSymbol", to, from, bytes, kind, true, nullptr);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                      std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  void* from = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, from)) return error;
  return copy_bytes("cudaMemcpyFromSymbolAsync", to, from, bytes, kind, false, stream);
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return driver_call(cuMemsetD8_v2, address_of(memory), static_cast<unsigned char>(value), bytes);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return driver_call(cuMemsetD8Async, address_of(memory), static_cast<unsigned char>(value), bytes,
                     stream);
}
cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return fill_rows({memory, pitch, width, height}, value, {width, height, 1}, true, nullptr);
}
cudaError_t cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return fill_rows({memory, pitch, width, height}, value, {width, height, 1}, false, stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return fill_rows(memory, value, extent, true, nullptr);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return fill_rows(memory, value, extent, false, stream);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
