// src/driver/emulated/pools.cpp - memory pools of stream-ordered allocations
#include "driver/emulated/pools.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "driver/emulated/entries.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver {

/// Only counts: contexts own the memory, and freed memory is not kept, so reserved equals used.
struct CUmemPoolHandle_st {
  CUmemPoolHandle_st(CUmemAllocationType of_type, CUmemLocation at, bool default_of_location,
                     std::uint64_t max) noexcept
      : type(of_type), location(at), is_default(default_of_location), max_bytes(max) {}

  const CUmemAllocationType type;  ///< PINNED or MANAGED
  const CUmemLocation location;    ///< as `canonical` returns it
  const bool is_default;
  const std::uint64_t max_bytes;  ///< 0: the memory of the location

  std::mutex mutex;  ///< guards what follows
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::uint64_t reserved_high = 0;
  std::uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};                           ///< events, opportunistic, internal: hints
  std::map<CUdevice, CUmemAccess_flags> access = {};  ///< pools of the host: of devices
};

namespace emulated {
namespace {

/// The pools of one location and allocation type.
struct LocationPools {
  std::shared_ptr<CUmemPoolHandle_st> original;
  std::shared_ptr<CUmemPoolHandle_st> current;
};
struct Pools {
  std::mutex mutex;
  std::map<std::tuple<CUmemAllocationType, CUmemLocationType, int>, LocationPools> of_location;
  LocationPools& at(CUmemAllocationType type, CUmemLocation location) {
    LocationPools& its = of_location[{type, location.type, location.id}];
    if (!its.original) {
      its.original = std::make_shared<CUmemPoolHandle_st>(type, location, true, std::uint64_t{0});
      enroll(its.original);
      its.current = its.original;
    }
    return its;
  }
  LocationPools& at(CUdevice device) {
    return at(CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_DEVICE, device});
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

/// Whether pools may have the location; ids that mean nothing become 0.
CUresult canonical(const char* call, CUmemAllocationType type, CUmemLocation& location) {
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return gpu_of(location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
      location.id = 0;
      return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      if (location.id == 0) return CUDA_SUCCESS;
      return refuse(
          CUDA_ERROR_INVALID_VALUE,
          format_text("{}: NUMA node {}; the emulated host has node 0 only", call, location.id));
    case CU_MEM_LOCATION_TYPE_INVALID:  // NONE, of managed memory: no preferred location
      location.id = 0;
      return type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

template <class Work>
CUresult with_location_pools(const char* call, const CUmemLocation* location,
                             CUmemAllocationType type, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemLocation there = *location;
    if (const CUresult result = canonical(call, type, there)) return result;
    const std::lock_guard lock(pools().mutex);
    return work(pools().at(type, there));
  });
}

bool same_location(const CUmemPoolHandle_st& one, const CUmemPoolHandle_st& other) {
  return one.type == other.type && one.location.type == other.location.type &&
         one.location.id == other.location.id;
}

bool is_of_device(const CUmemPoolHandle_st& pool) {
  return pool.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         pool.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
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

/// One row of cuMemPoolSetAccess. A device always has access to its own pools and never to those of
/// others; the host always to its own.
CUresult check_access(const CUmemPoolHandle_st& pool, const CUmemAccessDesc& wanted) {
  const CUmemAccess_flags flags = wanted.flags;
  if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
      flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (gpu_of(wanted.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (pool.type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  "cuMemPoolSetAccess: every device has access to managed memory");
  }
  if (!is_of_device(pool)) return CUDA_SUCCESS;
  if (wanted.location.id == pool.location.id) {
    return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_DEVICE,
                "cuMemPoolSetAccess: emulated devices cannot access each other's memory");
}

/// With the pool's mutex held.
CUmemAccess_flags access_of(const CUmemPoolHandle_st& pool, const CUmemLocation& location) {
  if (pool.type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const bool own = is_of_device(pool) == (location.type == CU_MEM_LOCATION_TYPE_DEVICE) &&
                   (!is_of_device(pool) || location.id == pool.location.id);
  if (own) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (is_of_device(pool)) return CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const auto found = pool.access.find(location.id);
  return found != pool.access.end() ? found->second : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

}  // namespace

PoolShare::~PoolShare() {
  const std::lock_guard lock(pool->mutex);
  pool->used -= bytes;
}

PoolMemory memory_of(const CUmemPoolHandle_st& pool, CUmemLocation& location) {
  location = pool.location;
  if (pool.type == CU_MEM_ALLOCATION_TYPE_MANAGED) return PoolMemory::Managed;
  return is_of_device(pool) ? PoolMemory::Device : PoolMemory::Host;
}

std::shared_ptr<CUmemPoolHandle_st> current_pool(CUdevice device) {
  const std::lock_guard lock(pools().mutex);
  return pools().at(device).current;
}

CUresult take_share(const std::shared_ptr<CUmemPoolHandle_st>& pool, CUdevice device,
                    std::uint64_t bytes, std::shared_ptr<PoolShare>& share) {
  if (is_of_device(*pool) && pool->location.id != device) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("the memory pool is of device {}, the stream of device {}",
                              pool->location.id, device));
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
  return with_device_pools(device, [&](const LocationPools& its) {
    if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool_out = its.original.get();
    return CUDA_SUCCESS;
  });
}

CUresult device_get_mem_pool(CUmemoryPool* pool, CUdevice device) {
  return with_device_pools(device, [&](const LocationPools& its) {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pool = its.current.get();
    return CUDA_SUCCESS;
  });
}

CUresult device_set_mem_pool(CUdevice device, CUmemoryPool handle) {
  const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
  return with_device_pools(device, [&](LocationPools& its) {
    if (!pool || !same_location(*pool, *its.original)) return CUDA_ERROR_INVALID_VALUE;
    its.current = pool;
    return CUDA_SUCCESS;
  });
}

CUresult mem_get_default_mem_pool(CUmemoryPool* pool_out, CUmemLocation* location,
                                  CUmemAllocationType type) {
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_location_pools("cuMemGetDefaultMemPool", location, type, [&](LocationPools& its) {
    *pool_out = its.original.get();
    return CUDA_SUCCESS;
  });
}

CUresult mem_get_mem_pool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_location_pools("cuMemGetMemPool", location, type, [&](LocationPools& its) {
    *pool = its.current.get();
    return CUDA_SUCCESS;
  });
}

CUresult mem_set_mem_pool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool handle) {
  const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
  return with_location_pools("cuMemSetMemPool", location, type, [&](LocationPools& its) {
    if (!pool || !same_location(*pool, *its.original)) return CUDA_ERROR_INVALID_VALUE;
    its.current = pool;
    return CUDA_SUCCESS;
  });
}

CUresult mem_pool_create(CUmemoryPool* pool, const CUmemPoolProps* pool_props) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (pool == nullptr || pool_props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemLocation location = pool_props->location;
    if (const CUresult result = canonical("cuMemPoolCreate", pool_props->allocType, location)) {
      return result;
    }
    if (pool_props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
      return refuse(
          CUDA_ERROR_NOT_SUPPORTED,
          "cuMemPoolCreate: the emulated driver does not share memory with other processes; "
          "handleTypes must be CU_MEM_HANDLE_TYPE_NONE");
    }
    const auto created = std::make_shared<CUmemPoolHandle_st>(pool_props->allocType, location,
                                                              false, pool_props->maxSize);
    enroll(created);
    *pool = created.get();
    return CUDA_SUCCESS;
  });
}

/// Its allocations stay. If it was its location's current pool, the default pool becomes current.
CUresult mem_pool_destroy(CUmemoryPool handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
    if (!pool || pool->is_default || !gone(handle)) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(pools().mutex);
    LocationPools& its = pools().at(pool->type, pool->location);
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
  return with_pool(handle, [&](CUmemPoolHandle_st& pool) -> CUresult {
    if (map == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (const CUresult result = check_access(pool, map[i])) return result;
    }
    if (is_of_device(pool)) return CUDA_SUCCESS;
    const std::lock_guard lock(pool.mutex);
    for (std::size_t i = 0; i < count; ++i) pool.access[map[i].location.id] = map[i].flags;
    return CUDA_SUCCESS;
  });
}

CUresult mem_pool_get_access(CUmemAccess_flags* flags, CUmemoryPool handle,
                             CUmemLocation* location) {
  return with_pool(handle, [&](CUmemPoolHandle_st& pool) {
    if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool host = location->type == CU_MEM_LOCATION_TYPE_HOST ||
                      location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!host && location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!host && gpu_of(location->id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(pool.mutex);
    *flags = access_of(pool, *location);
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
