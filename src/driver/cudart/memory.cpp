// src/driver/cudart/memory.cpp - allocations, pools, symbols and attributes of pointers
#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

/// An allocation of the driver. Of 0 bytes the runtime has a null pointer and no error.
template <class Allocate>
cudaError_t allocate(void** memory, std::size_t bytes, Allocate&& driver) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  if (const CUresult result = driver(&address)) return error_of(result);
  *memory = pointer_to(address);
  return cudaSuccess;
}

/// Rows of `width` bytes; the element size is one that every width allows.
cudaError_t allocate_rows(void** memory, std::size_t* pitch, std::size_t width,
                          std::size_t height) {
  if (pitch == nullptr) return cudaErrorInvalidValue;
  *pitch = 0;
  constexpr unsigned kElementBytes = 4;
  return allocate(memory, width == 0 || height == 0 ? 0 : 1, [&](CUdeviceptr* address) {
    return cuMemAllocPitch_v2(address, pitch, width, height, kElementBytes);
  });
}

}  // namespace

cudaError_t part_of(const void* symbol, std::size_t bytes, std::size_t offset, void*& memory) {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  if (const cudaError_t error = find_variable(symbol, address, size)) return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  memory = pointer_to(address + offset);
  return cudaSuccess;
}

cudaError_t pointer_attributes(cudaPointerAttributes& attributes, const void* memory) {
  if (const cudaError_t error = enter()) return error;
  const CUdeviceptr address = address_of(memory);
  const auto get = [&](CUpointer_attribute attribute, auto fallback) {
    auto value = fallback;
    return cuPointerGetAttribute(&value, attribute, address) == CUDA_SUCCESS ? value : fallback;
  };
  const unsigned type = get(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0u);
  attributes = {};
  attributes.device = get(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, kInvalidDeviceId);
  attributes.devicePointer = pointer_to(get(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CUdeviceptr{0}));
  attributes.hostPointer = get(CU_POINTER_ATTRIBUTE_HOST_POINTER, static_cast<void*>(nullptr));
  attributes.type = type == CU_MEMORYTYPE_HOST     ? cudaMemoryTypeHost
                    : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                   : cudaMemoryTypeUnregistered;
  if (get(CU_POINTER_ATTRIBUTE_IS_MANAGED, 0) != 0) attributes.type = cudaMemoryTypeManaged;
  // Memory that the driver does not know can only be the host's.
  if (type == 0) attributes.hostPointer = const_cast<void*>(memory);
  return cudaSuccess;
}

namespace entries {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes,
                  [&](CUdeviceptr* address) { return cuMemAlloc_v2(address, bytes); });
}

cudaError_t cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  return allocate_rows(memory, pitch, width, height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  std::size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
  memory->xsize = extent.width;
  memory->ysize = extent.height;
  return allocate_rows(&memory->ptr, &memory->pitch, extent.width, rows);
}

cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned flags) {
  if (bytes == 0) return cudaErrorInvalidValue;
  return allocate(memory, bytes,
                  [&](CUdeviceptr* address) { return cuMemAllocManaged(address, bytes, flags); });
}

cudaError_t cudaFree(void* memory) {
  // cudaFree(nullptr) is how programs start the runtime.
  if (const cudaError_t error = enter()) return error;
  return memory == nullptr ? cudaSuccess : error_of(cuMemFree_v2(address_of(memory)));
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (const cudaError_t error = enter()) return error;
  return bytes == 0 ? cudaSuccess : error_of(cuMemHostAlloc(memory, bytes, flags));
}
cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t error = enter()) return error;
  return memory == nullptr ? cudaSuccess : error_of(cuMemFreeHost(memory));
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags) {
  return driver_call(cuMemHostRegister_v2, memory, bytes, flags);
}
cudaError_t cudaHostUnregister(void* memory) { return driver_call(cuMemHostUnregister, memory); }
cudaError_t cudaHostGetDevicePointer(void** device_memory, void* memory, unsigned flags) {
  if (device_memory == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  const cudaError_t error = driver_call(cuMemHostGetDevicePointer_v2, &address, memory, flags);
  if (error == cudaSuccess) *device_memory = pointer_to(address);
  return error;
}
cudaError_t cudaHostGetFlags(unsigned* flags, void* memory) {
  return driver_call(cuMemHostGetFlags, flags, memory);
}
cudaError_t cudaMemRangeGetAttribute(void* data, std::size_t data_bytes,
                                     CUmem_range_attribute attribute, const void* memory,
                                     std::size_t bytes) {
  return driver_call(cuMemRangeGetAttribute, data, data_bytes, attribute, address_of(memory),
                     bytes);
}
cudaError_t cudaMemRangeGetAttributes(void** data, std::size_t* data_bytes,
                                      CUmem_range_attribute* attributes, std::size_t count,
                                      const void* memory, std::size_t bytes) {
  return driver_call(cuMemRangeGetAttributes, data, data_bytes, attributes, count,
                     address_of(memory), bytes);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return driver_call(cuMemGetInfo_v2, free, total);
}

cudaError_t cudaGetSymbolAddress(void** memory, const void* symbol) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  return part_of(symbol, 0, 0, *memory);
}
cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  return find_variable(symbol, address, *bytes);
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return allocate(memory, bytes,
                  [&](CUdeviceptr* address) { return cuMemAllocAsync(address, bytes, stream); });
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return allocate(memory, bytes, [&](CUdeviceptr* address) {
    return cuMemAllocFromPoolAsync(address, bytes, pool, stream);
  });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  if (const cudaError_t error = enter()) return error;
  return memory == nullptr ? cudaSuccess : error_of(cuMemFreeAsync(address_of(memory), stream));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return driver_call(cuMemPoolCreate, pool, properties);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return driver_call(cuMemPoolDestroy, pool); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes_to_keep) {
  return driver_call(cuMemPoolTrimTo, pool, bytes_to_keep);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, CUmemPool_attribute attribute,
                                    void* value) {
  return driver_call(cuMemPoolSetAttribute, pool, attribute, value);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, CUmemPool_attribute attribute,
                                    void* value) {
  return driver_call(cuMemPoolGetAttribute, pool, attribute, value);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list,
                                 std::size_t count) {
  return driver_call(cuMemPoolSetAccess, pool, list, count);
}
cudaError_t cudaMemPoolGetAccess(CUmemAccess_flags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return driver_call(cuMemPoolGetAccess, flags, pool, location);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
