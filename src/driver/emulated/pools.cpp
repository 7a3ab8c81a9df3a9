// src/driver/emulated/pools.cpp - memory pools of stream-ordered allocations
#include "driver/emulated/pools.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "driver/emulated/entries.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver {

/// Only counts: the context owns the memory, and freed memory is not kept, so reserved equals used.
struct CUmemPoolHandle_st {
  CUmemPoolHandle_st(CUdevice of, bool default_of_device, std::uint64_t max) noexcept
      : device(of), is_default(default_of_device), max_bytes(max) {}

  const CUdevice device;
  const bool is_default;
  const std::uint64_t max_bytes;  ///< 0: the device's memory

  std::mutex mutex;  ///< guards what follows
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};  ///< events, opportunistic, internal: hints
};

namespace emulated {
namespace {

struct DevicePools {
  std::shared_ptr<CUmemPoolHandle_st> original;
  std::shared_ptr<CUmemPoolHandle_st> current;
};
struct Pools {
  std::mutex mutex;
  std::deque<DevicePools> of_device;
  DevicePools& at(CUdevice device) {
    while (of_device.size() <= static_cast<std::size_t>(device)) {
      const auto made = std::make_shared<CUmemPoolHandle_st>(
          static_cast<CUdevice>(of_device.size()), true, std::uint64_t{0});
      enroll(made);
      of_device.push_back({made, made});
    }
    return of_device[static_cast<std::size_t>(device)];
  }
};

/// Never destroyed, as the other tables of the driver.
Pools& pools() {
  static Pools* const the_pools = new Pools;
  return *the_pools;
}

template <class Work>
CUresult with_device_pools(CUdevice device, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (gpu_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(pools().mutex);
    return work(pools().at(device));
  });
}

template <class Work>
CUresult with_pool(CUmemoryPool handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
    return pool ? work(*pool) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult no_such_location(const char* call, const CUmemLocation& location) {
  return refuse(CUDA_ERROR_NOT_SUPPORTED,
                format_text("{}: memory pools of location type {}; the emulated driver supports "
                            "pools of devices (CU_MEM_LOCATION_TYPE_DEVICE) only",
                            call, location.type));
}

/// The device of a location.
CUresult device_of(const char* call, const CUmemLocation* location, CUmemAllocationType type,
                   CUdevice& device) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  std::string(call) + ": the emulated driver does not support managed memory");
  }
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return no_such_location(call, *location);
  device = location->id;
  return CUDA_SUCCESS;
}

CUresult check_properties(const CUmemPoolProps& properties) {
  if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return refuse(
        CUDA_ERROR_NOT_SUPPORTED,
        "cuMemPoolCreate: the emulated driver does not share memory with other processes; "
        "handleTypes must be CU_MEM_HANDLE_TYPE_NONE");
  }
  if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return no_such_location("cuMemPoolCreate", properties.location);
  }
  return gpu_of(properties.location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

template <class Value>
CUresult give(void* to, Value value) {
  std::memcpy(to, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult get(const CUmemPoolHandle_st& pool, CUmemPool_attribute attribute, void* value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return give(value, pool.reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES]);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return give(value, pool.release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return give(value, pool.used);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return give(value, pool.reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return give(value, pool.used_high);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

template <class Value>
Value taken(const void* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

CUresult set(CUmemPoolHandle_st& pool, CUmemPool_attribute attribute, const void* value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
          taken<int>(value) != 0 ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.release_threshold = taken<std::uint64_t>(value);
      return CUDA_SUCCESS;
    // Writing zero resets a high-water mark to the current use.
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (taken<std::uint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool.reserved_high = pool.used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (taken<std::uint64_t>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool.used_high = pool.used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// One row of cuMemPoolSetAccess: a device always has access to its own pools and never to others.
CUresult check_access(const CUmemPoolHandle_st& pool, const CUmemAccessDesc& wanted) {
  if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (gpu_of(wanted.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (wanted.location.id == pool.device) {
    const bool kept = wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return kept ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_DEVICE,
                "cuMemPoolSetAccess: emulated devices cannot access each other's memory");
}

}  // namespace

PoolShare::~PoolShare() {
  const std::lock_guard lock(pool->mutex);
  pool->used -= bytes;
}

std::shared_ptr<CUmemPoolHandle_st> current_pool(CUdevice device) {
  const std::lock_guard lock(pools().mutex);
  return pools().at(device).current;
}

CUresult take_share(const std::shared_ptr<CUmemPoolHandle_st>& pool, CUdevice device,
                    std::uint64_t bytes, std::shared_ptr<PoolShare>& share) {
  if (pool->device != device) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("the memory pool is of device {}, the stream of device {}",
                              pool->device, device));
  }
  const std::lock_guard lock(pool->mutex);
  if (pool->max_bytes != 0 && bytes > pool->max_bytes - pool->used) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  share = std::make_shared<PoolShare>(pool, bytes);
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->used);
  return CUDA_SUCCESS;
}

namespace entries {

CUresult device_get_default_mem_pool(CUmemoryPool* pool_out, CUdevice device) {
  return with_device_pools(device, [&](const DevicePools& its) {
    if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool_out = its.original.get();
    return CUDA_SUCCESS;
  });
}

CUresult device_get_mem_pool(CUmemoryPool* pool, CUdevice device) {
  return with_device_pools(device, [&](const DevicePools& its) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = its.current.get();
    return CUDA_SUCCESS;
  });
}

CUresult device_set_mem_pool(CUdevice device, CUmemoryPool handle) {
  const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
  return with_device_pools(device, [&](DevicePools& its) {
    if (!pool || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
    its.current = pool;
    return CUDA_SUCCESS;
  });
}

CUresult mem_get_default_mem_pool(CUmemoryPool* pool_out, CUmemLocation* location,
                                  CUmemAllocationType type) {
  return guarded([&] {
    CUdevice device = 0;
    if (const CUresult result = device_of("cuMemGetDefaultMemPool", location, type, device)) {
      return result;
    }
    return device_get_default_mem_pool(pool_out, device);
  });
}

CUresult mem_get_mem_pool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return guarded([&] {
    CUdevice device = 0;
    if (const CUresult result = device_of("cuMemGetMemPool", location, type, device)) {
      return result;
    }
    return device_get_mem_pool(pool, device);
  });
}

CUresult mem_set_mem_pool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return guarded([&] {
    CUdevice device = 0;
    if (const CUresult result = device_of("cuMemSetMemPool", location, type, device)) {
      return result;
    }
    return device_set_mem_pool(device, pool);
  });
}

CUresult mem_pool_create(CUmemoryPool* pool, const CUmemPoolProps* pool_props) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (pool == nullptr || pool_props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_properties(*pool_props)) return result;
    const auto made =
        std::make_shared<CUmemPoolHandle_st>(pool_props->location.id, false, pool_props->maxSize);
    enroll(made);
    *pool = made.get();
    return CUDA_SUCCESS;
  });
}

/// Its allocations stay. If it was the device's current pool, the default pool becomes current.
CUresult mem_pool_destroy(CUmemoryPool handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
    if (!pool || pool->is_default || !gone(handle)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pools().mutex);
    DevicePools& its = pools().at(pool->device);
    if (its.current == pool) its.current = its.original;
    return CUDA_SUCCESS;
  });
}

CUresult mem_pool_trim_to(CUmemoryPool pool, std::size_t) {
  return with_pool(pool, [](const CUmemPoolHandle_st&) { return CUDA_SUCCESS; });
}

CUresult mem_pool_set_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, [&](CUmemPoolHandle_st& pool) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pool.mutex);
    return set(pool, attribute, value);
  });
}

CUresult mem_pool_get_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, [&](CUmemPoolHandle_st& pool) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pool.mutex);
    return get(pool, attribute, value);
  });
}

CUresult mem_pool_set_access(CUmemoryPool handle, const CUmemAccessDesc* map, std::size_t count) {
  return with_pool(handle, [&](const CUmemPoolHandle_st& pool) -> CUresult {
    if (map == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (const CUresult result = check_access(pool, map[i])) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult mem_pool_get_access(CUmemAccess_flags* flags, CUmemoryPool handle,
                             CUmemLocation* location) {
  return with_pool(handle, [&](const CUmemPoolHandle_st& pool) {
    if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (gpu_of(location->id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *flags = location->id == pool.device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                         : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
