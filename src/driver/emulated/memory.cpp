// src/driver/emulated/memory.cpp - allocations: device, pinned, registered; pointer attributes
#include "driver/emulated/memory.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graph_memory.hpp"
#include "driver/emulated/host_view.hpp"
#include "driver/emulated/managed.hpp"
#include "driver/emulated/mirrors.hpp"
#include "driver/emulated/pools.hpp"
#include "driver/emulated/reservations.hpp"
#include "emulator/state/address_space.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPitchAlignment = 512;
constexpr unsigned kHostAllocFlags =
    kMemHostAllocPortable | kMemHostAllocDeviceMap | kMemHostAllocWriteCombined;
constexpr unsigned kHostRegisterFlags = 0xf;  ///< portable, device map, I/O memory, read-only

std::uintptr_t number(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

/// The entry of a map from starts to things with `bytes` that holds an address, or the end.
template <class Map, class Address>
auto holding(Map& map, Address address) {
  auto found = map.upper_bound(address);
  if (found == map.begin()) return map.end();
  --found;
  return address - found->first < found->second.bytes ? found : map.end();
}

/// Pinned memory at a host address, with the context's mutex held; null if there is none.
const CUctx_st::Block* pinned_at(const CUctx_st& context, std::uintptr_t address,
                                 CUdeviceptr& device_address) {
  auto found = context.pinned.upper_bound(address);
  if (found == context.pinned.begin()) return nullptr;
  --found;
  const CUctx_st::Block& block = context.blocks.at(found->second);
  if (address - found->first >= block.bytes) return nullptr;
  device_address = found->second + (address - found->first);
  return &block;
}

CUresult allocate(CUctx_st& context, CUdeviceptr* address, std::uint64_t bytes,
                  std::shared_ptr<PoolShare> share = nullptr) {
  const std::lock_guard memory_lock(context.memory_mutex);
  const std::lock_guard lock(context.mutex);
  const std::uint64_t id = ++context.blocks_made;
  const std::uint64_t start =
      context.memory.space().allocate(bytes, format_text("allocation {}", id),
                                      emulator::AllocationKind::Buffer, alignment_of(bytes));
  context.blocks[start] = {bytes, nullptr, start, 0, id, std::move(share)};
  *address = start;
  return CUDA_SUCCESS;
}

CUresult allocate_pinned(CUctx_st& context, void** memory, std::uint64_t bytes, unsigned flags) {
  const std::lock_guard memory_lock(context.memory_mutex);
  const std::lock_guard lock(context.mutex);
  const std::uint64_t id = ++context.blocks_made;
  const std::uint64_t padded = bytes + kPage - emulator::kAllocationAlignment;
  if (padded < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  emulator::AddressSpace& space = context.memory.space();
  const std::uint64_t start =
      context.memory.allocate(padded, format_text("pinned allocation {}", id));
  const std::uint64_t skipped = (kPage - number(space.host(start)) % kPage) % kPage;
  // The emulator does not see writes of the host: all of it counts as initialised.
  space.mark(start, padded);
  std::byte* const host = space.host(start) + skipped;
  context.blocks[start + skipped] = {bytes, host,   start, flags | kMemHostAllocDeviceMap,
                                     id,    nullptr};
  context.pinned[number(host)] = start + skipped;
  context.pinned_bytes += padded;
  *memory = host;
  return CUDA_SUCCESS;
}

/// Memory that the host uses at its device address.
CUresult allocate_unified(CUctx_st& context, const char* call, CUdeviceptr* address,
                          std::uint64_t bytes, std::shared_ptr<PoolShare> share,
                          const CUmemLocation* preferred) {
  if (!is_unified(context)) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  no_managed_memory(
                      call, preferred != nullptr ? "managed memory" : "a memory pool of the host"));
  }
  if (const CUresult result = allocate(context, address, bytes, std::move(share))) return result;
  const std::lock_guard memory_lock(context.memory_mutex);
  // The emulator does not see writes of the host: all of it counts as initialised.
  context.memory.space().mark(*address, bytes);
  const std::lock_guard lock(context.mutex);
  CUctx_st::Block& block = context.blocks.at(*address);
  block.unified = true;
  if (preferred != nullptr) {
    block.advice = std::make_shared<ManagedAdvice>(*address, bytes, *preferred);
  }
  return CUDA_SUCCESS;
}

/// The address for kernels of registered memory, which gets a mirror when it is first asked for.
CUresult mirror(CUctx_st& context, std::uintptr_t memory, CUdeviceptr* address) {
  const std::lock_guard mirror_lock(context.mirror_mutex);
  std::uintptr_t start = 0;
  CUctx_st::Registration found;
  {
    const std::lock_guard lock(context.mutex);
    const auto registration = holding(context.registered, memory);
    if (registration == context.registered.end()) return CUDA_ERROR_INVALID_VALUE;
    start = registration->first;
    found = registration->second;
  }
  if (found.device == 0) {
    if (const CUresult result = allocate(context, &found.device, found.bytes)) return result;
    auto* const host = reinterpret_cast<std::byte*>(start);
    {
      const std::lock_guard lock(context.mutex);
      CUctx_st::Block& block = context.blocks.at(found.device);
      block.host = host;
      block.flags = found.flags;
      context.pinned_bytes += found.bytes;
      context.registered.at(start).device = found.device;
    }
    add_mirror(context, host, found.device, found.bytes);
  }
  *address = found.device + (memory - start);
  return CUDA_SUCCESS;
}

/// Removes the block from the API's allocations; false if none begins there.
bool take_out(CUctx_st& context, CUdeviceptr address, bool host, CUctx_st::Block& taken) {
  const std::lock_guard lock(context.mutex);
  const auto found = context.blocks.find(address);
  if (found == context.blocks.end() || (found->second.host != nullptr) != host) return false;
  taken = found->second;
  if (host) context.pinned.erase(number(taken.host));
  context.blocks.erase(found);
  return true;
}

/// After all queued work, which may use the block.
CUresult release(CUctx_st& context, const CUctx_st::Block& block) {
  const CUresult result = wait_for_all(&context);
  const std::lock_guard memory_lock(context.memory_mutex);
  std::uint64_t padded = 0;
  if (block.host != nullptr) padded = context.memory.allocation_of(block.start).bytes;
  context.memory.free(block.start);
  const std::lock_guard lock(context.mutex);
  context.pinned_bytes -= padded;
  return result;
}

std::string at(CUdeviceptr address) {
  char text[2 + 16 + 1];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

std::uint64_t alignment_of(std::uint64_t bytes) {
  constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;
  constexpr std::uint64_t kTexture = 512;  ///< CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT
  return bytes >= kLargePage ? kLargePage : kTexture;
}

bool is_device_address(const CUctx_st& context, std::uint64_t address) {
  return address - emulator::kGlobalBase < context.memory.space().reserved_bytes();
}

bool is_unified(const CUctx_st& context) {
  return number(context.memory.space().host(emulator::kGlobalBase)) == emulator::kGlobalBase;
}

std::string no_managed_memory(const char* call, const char* what) {
  return format_text(
      "{}: {} needs one address for the host and for kernels, and this context has "
      "two, because the range of addresses is taken (by another context or a sanitizer); use "
      "cuMemHostAlloc and cuMemHostGetDevicePointer",
      call, what);
}

bool is_pinned(CUctx_st& context, std::uint64_t address) {
  const std::lock_guard lock(context.mutex);
  CUdeviceptr other = 0;
  const auto block = holding(context.blocks, address);
  return pinned_at(context, address, other) != nullptr ||
         (block != context.blocks.end() && block->second.unified) ||
         holding(context.registered, static_cast<std::uintptr_t>(address)) !=
             context.registered.end();
}

emulator::Device::Extent extent_of(CUctx_st& context, CUdeviceptr address) {
  {
    const std::lock_guard lock(context.mutex);
    const auto found = holding(context.blocks, address);
    if (found != context.blocks.end()) return {found->first, found->second.bytes};
  }
  if (const emulator::Device::Extent mapped = accessible_extent(context, address);
      mapped.bytes != 0) {
    return mapped;
  }
  if (const auto memory = graph_memory_at(context, address)) {
    return {memory->start(), memory->bytes()};
  }
  // Variables of modules. Waits for a kernel that runs, as the blocks above do not.
  const std::lock_guard lock(context.memory_mutex);
  const emulator::Allocation* const found = context.memory.space().find(address);
  const bool variable = found != nullptr && !found->freed &&
                        (found->kind == emulator::AllocationKind::Variable ||
                         found->kind == emulator::AllocationKind::Constant);
  if (!variable) return {};
  return {found->start, found->bytes};
}

CUresult check_range(CUctx_st& context, const char* call, CUdeviceptr address,
                     std::uint64_t bytes) {
  if (bytes == 0) return CUDA_SUCCESS;
  const emulator::Device::Extent extent = extent_of(context, address);
  const std::string what =
      format_text("{}: {} at {}", call, count_text(bytes, "byte"), at(address));
  if (extent.bytes == 0) {
    const std::string why = why_inaccessible(context, address);
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  why.empty() ? what + " are in no allocation of the current context"
                              : what + " are in " + why);
  }
  const std::uint64_t left = extent.bytes - (address - extent.start);
  if (bytes > left) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("{} go {} past the end of the allocation at {} of {}", what,
                              count_text(bytes - left, "byte"), at(extent.start),
                              count_text(extent.bytes, "byte")));
  }
  return CUDA_SUCCESS;
}

void* host_view(CUcontext handle, CUdeviceptr address, std::uint64_t bytes) noexcept {
  try {
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context || bytes == 0) return nullptr;
    const std::lock_guard lock(context->memory_mutex);
    emulator::AddressSpace& space = context->memory.space();
    const emulator::Allocation* const found = space.find(address);
    if (found == nullptr || found->freed || bytes > found->bytes - (address - found->start)) {
      return nullptr;
    }
    space.mark(address, bytes);
    return space.host(address);
  } catch (...) {
    return nullptr;  // no memory for a lookup
  }
}

namespace entries {
namespace {

/// With the current context, for calls that no capture allows.
template <class Work>
CUresult with_context(Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    return work(*context);
  });
}

template <class Work>
CUresult changing_memory(Work&& work) {
  return with_context([&](CUctx_st& context) -> CUresult {
    if (const CUresult result = unsafe_during_capture(); result != CUDA_SUCCESS) return result;
    return work(context);
  });
}

template <class Value>
void put_attribute(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
}

/// An attribute of cuPointerGetAttribute.
struct Pointer {
  CUcontext context = nullptr;
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  CUdeviceptr device = 0;
  std::uint64_t host = 0;
  std::uint64_t id = 0;
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<PoolShare> share;
  bool managed = false;
  bool sync_memops = false;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
};

/// False if the address is unknown to the driver.
bool find_pointer(CUctx_st& context, CUdeviceptr address, Pointer& found) {
  found.context = &context;
  if (is_device_address(context, address)) {
    emulator::Device::Extent extent;
    if (!find_mapping(context, address, extent, found.access)) extent = extent_of(context, address);
    if (extent.bytes == 0) return false;
    const std::lock_guard lock(context.mutex);
    const auto block = context.blocks.find(extent.start);
    found.type = CU_MEMORYTYPE_DEVICE;
    found.device = address;
    found.start = extent.start;
    found.bytes = extent.bytes;
    if (block == context.blocks.end()) return true;
    found.id = block->second.id;
    found.share = block->second.share;
    found.sync_memops = block->second.sync_memops;
    found.managed = block->second.advice != nullptr;
    if (block->second.unified) found.host = address;
    if (block->second.unified && !found.managed) found.type = CU_MEMORYTYPE_HOST;
    if (block->second.host == nullptr) return true;
    found.type = CU_MEMORYTYPE_HOST;
    found.host = number(block->second.host) + (address - extent.start);
    return true;
  }
  const std::lock_guard lock(context.mutex);
  found.host = address;
  if (const auto* block = pinned_at(context, address, found.device); block != nullptr) {
    found.id = block->id;
    found.start = number(block->host);
    found.bytes = block->bytes;
    return true;
  }
  const auto registration = holding(context.registered, static_cast<std::uintptr_t>(address));
  if (registration == context.registered.end()) return false;
  found.start = registration->first;
  found.bytes = registration->second.bytes;
  if (registration->second.device != 0) {
    found.device = registration->second.device + (address - found.start);
  }
  return true;
}

CUresult get_attribute(const Pointer& pointer, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put_attribute(data, pointer.context);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put_attribute(data, static_cast<unsigned>(pointer.type));
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (pointer.device == 0) return CUDA_ERROR_INVALID_VALUE;
      put_attribute(data, pointer.device);
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (pointer.host == 0) return CUDA_ERROR_INVALID_VALUE;
      put_attribute(data, pointer.host);
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      put_attribute(data, int{pointer.sync_memops});
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      put_attribute(data, pointer.id);
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put_attribute(data, int{pointer.managed});
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put_attribute(data, pointer.context->device);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      put_attribute(data, pointer.start);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      put_attribute(data, static_cast<std::size_t>(pointer.bytes));
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put_attribute(data, int{1});
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      put_attribute(data, int{0});
      break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put_attribute(data, std::uint64_t{0});
      break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      put_attribute(data, static_cast<int>(pointer.access));
      break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      // Null for what was not allocated from a pool.
      put_attribute(data, pointer.share ? pointer.share->pool.get() : nullptr);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/// An attribute of cuPointerGetAttributes for an unknown address.
CUresult null_attribute(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put_attribute(data, std::uint64_t{0});
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put_attribute(data, kDeviceInvalid);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put_attribute(data, int{0});
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/// Stream-ordered memory of a pool; null: of the device's current one.
/// `work(pointer)` with what is known of an address; null if nothing is. Needs no current context,
/// as NVIDIA's driver does not: cuda.core's tests expect it.
template <class Work>
CUresult with_pointer(CUdeviceptr address, Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> current;
    const CUresult entered = enter(current);
    if (entered != CUDA_SUCCESS && entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
    Pointer pointer;
    if (current && find_pointer(*current, address, pointer)) return work(&pointer);
    for (const std::shared_ptr<CUctx_st>& context : living_contexts()) {
      if (context != current && find_pointer(*context, address, pointer)) return work(&pointer);
    }
    return work(static_cast<const Pointer*>(nullptr));
  });
}

CUresult allocate_from(std::shared_ptr<CUmemPoolHandle_st> pool, CUdeviceptr* address,
                       std::size_t bytes, CUstream handle) {
  return with_context([&](CUctx_st&) -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream); result != CUDA_SUCCESS) return result;
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
      *address = 0;
      return CUDA_SUCCESS;
    }
    CUmemLocation location{};
    const PoolMemory memory = pool ? memory_of(*pool, location) : PoolMemory::Device;
    if (stream->capturing.load(std::memory_order_acquire)) {
      if (memory == PoolMemory::Device) return capture_allocation(stream, bytes, address);
      return refuse(CUDA_ERROR_NOT_SUPPORTED,
                    "cuMemAllocFromPoolAsync: a captured stream allocates from pools of devices, "
                    "not of the host or of managed memory");
    }
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!pool) pool = current_pool(context->device);
    std::shared_ptr<PoolShare> share;
    if (const CUresult result = take_share(pool, context->device, bytes, share)) return result;
    if (memory == PoolMemory::Device) return allocate(*context, address, bytes, std::move(share));
    return allocate_unified(*context, "cuMemAllocFromPoolAsync", address, bytes, std::move(share),
                            memory == PoolMemory::Managed ? &location : nullptr);
  });
}

CUresult host_alloc(void** memory, std::size_t bytes, unsigned flags) {
  return changing_memory([&](CUctx_st& context) -> CUresult {
    if (memory == nullptr || bytes == 0 || (flags & ~kHostAllocFlags) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate_pinned(context, memory, bytes, flags);
  });
}

}  // namespace

CUresult mem_get_info(std::size_t* free, std::size_t* total) {
  return with_context([&](CUctx_st& context) {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context.mutex);
    const emulator::AddressSpace& space = context.memory.space();
    const std::uint64_t memory = space.gpu().memory_bytes;
    const std::uint64_t used = space.used_bytes();
    *total = memory;
    *free = memory - (used - std::min(used, context.pinned_bytes));
    return CUDA_SUCCESS;
  });
}

CUresult mem_alloc(CUdeviceptr* address, std::size_t bytes) {
  return changing_memory([&](CUctx_st& context) {
    if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return allocate(context, address, bytes);
  });
}

CUresult mem_alloc_pitch(CUdeviceptr* address, std::size_t* pitch, std::size_t width_in_bytes,
                         std::size_t height, unsigned element_size_bytes) {
  return changing_memory([&](CUctx_st& context) {
    const bool element =
        element_size_bytes == 4 || element_size_bytes == 8 || element_size_bytes == 16;
    if (address == nullptr || pitch == nullptr || width_in_bytes == 0 || height == 0 || !element) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::uint64_t row =
        (width_in_bytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (row < width_in_bytes || row > UINT64_MAX / height) return CUDA_ERROR_OUT_OF_MEMORY;
    *pitch = row;
    return allocate(context, address, row * height);
  });
}

CUresult mem_free(CUdeviceptr address) {
  return changing_memory([&](CUctx_st& context) -> CUresult {
    FreeMemory of_graph;
    bool found = false;
    if (const CUresult result = free_graph_memory(context, "cuMemFree", address, of_graph, found)) {
      return result;
    }
    if (found) return perform(context.legacy, std::move(of_graph));
    CUctx_st::Block block;
    if (!take_out(context, address, false, block)) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    "cuMemFree: no allocation of the current context begins at " + at(address));
    }
    return release(context, block);
  });
}

CUresult mem_host_alloc(void** memory, std::size_t bytes, unsigned flags) {
  return host_alloc(memory, bytes, flags);
}

CUresult mem_alloc_host(void** memory, std::size_t bytes) { return host_alloc(memory, bytes, 0); }

CUresult mem_free_host(void* memory) {
  return changing_memory([&](CUctx_st& context) {
    CUdeviceptr address = 0;
    {
      const std::lock_guard lock(context.mutex);
      const auto found = context.pinned.find(number(memory));
      if (found == context.pinned.end()) return CUDA_ERROR_INVALID_VALUE;
      address = found->second;
    }
    CUctx_st::Block block;
    if (!take_out(context, address, true, block)) return CUDA_ERROR_INVALID_VALUE;
    return release(context, block);
  });
}

CUresult mem_host_get_device_pointer(CUdeviceptr* address, void* memory, unsigned flags) {
  return with_context([&](CUctx_st& context) -> CUresult {
    if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    {
      const std::lock_guard lock(context.mutex);
      if (pinned_at(context, number(memory), *address) != nullptr) return CUDA_SUCCESS;
      if (holding(context.registered, number(memory)) == context.registered.end()) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    return mirror(context, number(memory), address);
  });
}

CUresult mem_host_get_flags(unsigned* flags, void* memory) {
  return with_context([&](CUctx_st& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context.mutex);
    CUdeviceptr address = 0;
    const CUctx_st::Block* const block = pinned_at(context, number(memory), address);
    if (block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = block->flags;
    return CUDA_SUCCESS;
  });
}

CUresult mem_host_register(void* memory, std::size_t bytes, unsigned flags) {
  return with_context([&](CUctx_st& context) {
    const std::uintptr_t start = number(memory);
    if (memory == nullptr || bytes == 0 || (flags & ~kHostRegisterFlags) != 0 ||
        start + bytes < start) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(context.mutex);
    const auto next = context.registered.lower_bound(start);
    if (holding(context.registered, start) != context.registered.end() ||
        (next != context.registered.end() && next->first < start + bytes)) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    context.registered[start] = {bytes, flags};
    return CUDA_SUCCESS;
  });
}

CUresult mem_host_unregister(void* memory) {
  return with_context([&](CUctx_st& context) {
    if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr device = 0;
    {
      const std::lock_guard mirror_lock(context.mirror_mutex);
      const std::lock_guard lock(context.mutex);
      const auto found = context.registered.find(number(memory));
      if (found == context.registered.end()) {
        const bool inside = holding(context.registered, number(memory)) != context.registered.end();
        return inside ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
      }
      device = found->second.device;
      context.registered.erase(found);
    }
    const CUresult result = wait_for_all(&context);
    CUctx_st::Block block;
    if (!remove_mirror(context, static_cast<std::byte*>(memory)) ||
        !take_out(context, device, true, block)) {
      return result;
    }
    return release(context, block);
  });
}

CUresult mem_alloc_managed(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  return changing_memory([&](CUctx_st& context) -> CUresult {
    if (address == nullptr || bytes == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    constexpr CUmemLocation kNone{};
    return allocate_unified(context, "cuMemAllocManaged", address, bytes, nullptr, &kNone);
  });
}

CUresult mem_get_address_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  return with_context([&](CUctx_st& context) {
    emulator::Device::Extent extent;
    CUmemAccess_flags access{};
    if (!find_mapping(context, address, extent, access)) extent = extent_of(context, address);
    if (extent.bytes == 0) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = extent.start;
    if (bytes != nullptr) *bytes = extent.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult pointer_get_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return with_pointer(ptr, [&](const Pointer* pointer) {
    if (data == nullptr || pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return get_attribute(*pointer, attribute, data);
  });
}

/// Synchronous operations wait for their end in any case.
CUresult pointer_set_attribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  return with_context([&](CUctx_st& context) {
    Pointer pointer;
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
        !find_pointer(context, address, pointer)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned on = 0;
    std::memcpy(&on, value, sizeof on);
    const std::lock_guard lock(context.mutex);
    const auto block = context.blocks.find(pointer.start);
    if (block != context.blocks.end()) block->second.sync_memops = on != 0;
    return CUDA_SUCCESS;
  });
}

CUresult pointer_get_attributes(unsigned num_attributes, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr ptr) {
  return with_pointer(ptr, [&](const Pointer* pointer) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < num_attributes; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      CUresult result = pointer != nullptr ? get_attribute(*pointer, attributes[i], data[i])
                                           : CUDA_ERROR_INVALID_VALUE;
      if (result != CUDA_SUCCESS) result = null_attribute(attributes[i], data[i]);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult mem_alloc_async(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return allocate_from(nullptr, address, bytes, stream);
}

CUresult mem_alloc_from_pool_async(CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                                   CUstream stream) {
  const std::shared_ptr<CUmemPoolHandle_st> pool = hold(handle);
  if (!pool) return started() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
  return allocate_from(pool, address, bytes, stream);
}

CUresult mem_free_async(CUdeviceptr address, CUstream handle) {
  return with_context([&](CUctx_st&) -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream); result != CUDA_SUCCESS) return result;
    if (address == 0) return CUDA_SUCCESS;
    if (stream->capturing.load(std::memory_order_acquire)) {
      return capture_free(stream, "cuMemFreeAsync", address);
    }
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    FreeMemory of_graph;
    bool found = false;
    if (context) {
      const CUresult result =
          free_graph_memory(*context, "cuMemFreeAsync", address, of_graph, found);
      if (found) return result != CUDA_SUCCESS ? result : submit(stream, std::move(of_graph));
    }
    CUctx_st::Block block;
    if (!context || !take_out(*context, address, false, block)) {
      return refuse(
          CUDA_ERROR_INVALID_VALUE,
          "cuMemFreeAsync: no allocation of the stream's context begins at " + at(address));
    }
    return submit(stream, FreeMemory{block.start});
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
