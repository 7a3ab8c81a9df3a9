// src/driver/emulated/reservations.cpp - virtual memory management (cuMemAddressReserve, cuMemMap)
#include "driver/emulated/reservations.hpp"

#include <algorithm>
#include <vector>

#include "driver/emulated/entries.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using Range = Reservations::Range;
using Mapping = Reservations::Mapping;

/// Of handles and mappings, the minimum and the recommended one.
constexpr std::uint64_t kGranularity = emulator::kPageBytes;
constexpr std::uint64_t kReservedUnit = 4096;

/// The entry of a map from starts to things with `bytes` that holds an address, or the end.
template <class Map>
auto entry_at(Map& map, CUdeviceptr address) {
  auto found = map.upper_bound(address);
  if (found == map.begin()) return map.end();
  --found;
  return address - found->first < found->second.bytes ? found : map.end();
}

emulator::Part gap(std::uint64_t bytes) {
  return {bytes, false, false, "where nothing is mapped",
          "map memory there (cuMemMap) and allow the access (cuMemSetAccess)"};
}

emulator::Part mapping_part(const Mapping& mapping) {
  if (mapping.access == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    return {mapping.bytes, false, false, "where memory is mapped without access",
            "allow the access with cuMemSetAccess"};
  }
  return {mapping.bytes, true, mapping.access == CU_MEM_ACCESS_FLAGS_PROT_READ, {}, {}};
}

/// Tells the emulator what a range is now.
void divide_range(CUctx_st& context, CUdeviceptr start, const Range& range) {
  std::vector<emulator::Part> parts;
  CUdeviceptr end = start;
  const auto fill_gap = [&](CUdeviceptr next) {
    if (next != end) parts.push_back(gap(next - end));
  };
  for (const auto& [at, mapping] : range.mappings) {
    fill_gap(at);
    const emulator::Part part = mapping_part(mapping);
    const bool joins = at == end && !parts.empty() && part.live && parts.back().live &&
                       part.read_only == parts.back().read_only;
    if (joins) {
      parts.back().bytes += part.bytes;
    } else {
      parts.push_back(part);
    }
    end = at + mapping.bytes;
  }
  fill_gap(start + range.bytes);
  context.memory.space().divide(start, parts);
}

CUresult check_memory(const CUctx_st& context, const char* call,
                      const CUmemAllocationProp& properties) {
  if (properties.type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  format_text("{}: the emulated driver does not share memory with other processes; "
                              "requestedHandleTypes must be CU_MEM_HANDLE_TYPE_NONE",
                              call));
  }
  if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  format_text("{}: memory of location type {}; the emulated driver has memory of "
                              "devices (CU_MEM_LOCATION_TYPE_DEVICE) only",
                              call, properties.location.type));
  }
  if (gpu_of(properties.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (properties.location.id != context.device) {
    return refuse(CUDA_ERROR_INVALID_DEVICE,
                  format_text("{}: memory of device {} in a context of device {}; emulated devices "
                              "cannot access each other's memory",
                              call, properties.location.id, context.device));
  }
  if (properties.allocFlags.usage != 0) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  format_text("{}: the emulated driver has no memory for sparse arrays or "
                              "decompression; allocFlags.usage must be 0",
                              call));
  }
  return CUDA_SUCCESS;
}

/// A text if sizes and addresses do not fit the granularity.
CUresult check_granularity(const char* call, std::uint64_t address, std::uint64_t bytes) {
  if (bytes != 0 && address % kGranularity == 0 && bytes % kGranularity == 0) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_VALUE,
                format_text("{}: {} at {:#x}; sizes and addresses are multiples of {} "
                            "(cuMemGetAllocationGranularity), and the size is not 0",
                            call, count_text(bytes, "byte"), address, kGranularity));
}

template <class Work>
CUresult with_mapping_context(Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    return work(*context);
  });
}

/// With all locks that a change of mappings needs. A text that `work` returns is logged after they
/// are released, with CUDA_ERROR_INVALID_VALUE.
template <class Work>
CUresult changing_mappings(Work&& work) {
  return with_mapping_context([&](CUctx_st& context) -> CUresult {
    std::string problem;
    {
      const std::lock_guard memory_lock(context.memory_mutex);
      const std::lock_guard lock(context.reservations->mutex);
      problem = work(context, *context.reservations);
    }
    return problem.empty() ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_VALUE, problem);
  });
}

/// Frees memory that has neither references nor mappings; with the locks.
void drop_if_unused(CUctx_st& context, std::shared_ptr<MemoryHandle>& memory) {
  if (memory->references == 0 && memory.use_count() == 1) {
    context.memory.space().unclaim(memory->bytes);
  }
  memory = nullptr;
}

/// The mappings that are exactly the bytes from `address` on; none if there are no such.
std::vector<std::pair<CUdeviceptr, Mapping*>> mappings_of(Reservations& reservations,
                                                          CUdeviceptr address,
                                                          std::uint64_t bytes) {
  std::vector<std::pair<CUdeviceptr, Mapping*>> found;
  const auto range = entry_at(reservations.ranges, address);
  if (range == reservations.ranges.end()) return found;
  CUdeviceptr end = address;
  for (auto one = range->second.mappings.find(address);
       one != range->second.mappings.end() && one->first == end && end - address < bytes; ++one) {
    found.emplace_back(one->first, &one->second);
    end += one->second.bytes;
  }
  if (end - address != bytes) found.clear();
  return found;
}

std::string not_mapped(const char* call, CUdeviceptr address, std::uint64_t bytes) {
  return format_text(
      "{}: {} at {:#x} are not exactly mapped; name full mappings of cuMemMap "
      "without a gap",
      call, count_text(bytes, "byte"), address);
}

}  // namespace

emulator::Device::Extent accessible_extent(CUctx_st& context, CUdeviceptr address) {
  const std::lock_guard lock(context.reservations->mutex);
  auto& ranges = context.reservations->ranges;
  const auto range = entry_at(ranges, address);
  if (range == ranges.end()) return {};
  auto& mappings = range->second.mappings;
  const auto inside = entry_at(mappings, address);
  if (inside == mappings.end() || inside->second.access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return {};
  const auto joins = [&](const auto& before, const auto& after) {
    return before->first + before->second.bytes == after->first &&
           before->second.access == after->second.access;
  };
  auto first = inside;
  while (first != mappings.begin() && joins(std::prev(first), first)) --first;
  auto last = inside;
  while (std::next(last) != mappings.end() && joins(last, std::next(last))) ++last;
  return {first->first, last->first + last->second.bytes - first->first};
}

std::string why_inaccessible(CUctx_st& context, CUdeviceptr address) {
  const std::lock_guard lock(context.reservations->mutex);
  const auto range = entry_at(context.reservations->ranges, address);
  if (range == context.reservations->ranges.end()) return {};
  const auto mapping = entry_at(range->second.mappings, address);
  const emulator::Part part =
      mapping != range->second.mappings.end() ? mapping_part(mapping->second) : gap(0);
  if (part.live) return {};
  return format_text("a reservation, {}: {}", part.state, part.remedy);
}

bool find_mapping(CUctx_st& context, CUdeviceptr address, emulator::Device::Extent& extent,
                  CUmemAccess_flags& access) {
  const std::lock_guard lock(context.reservations->mutex);
  const auto range = entry_at(context.reservations->ranges, address);
  if (range == context.reservations->ranges.end()) return false;
  const auto mapping = entry_at(range->second.mappings, address);
  if (mapping == range->second.mappings.end()) return false;
  extent = {mapping->first, mapping->second.bytes};
  access = mapping->second.access;
  return true;
}

namespace entries {

CUresult mem_get_allocation_granularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                        CUmemAllocationGranularity_flags option) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (granularity == nullptr || prop == nullptr ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        gpu_of(prop->location.id) == nullptr) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    *granularity = kGranularity;
    return CUDA_SUCCESS;
  });
}

/// The hint is not followed: addresses are the emulator's.
CUresult mem_address_reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr /*hint*/, unsigned long long flags) {
  return with_mapping_context([&](CUctx_st& context) {
    const bool power = (alignment & (alignment - 1)) == 0;
    if (address == nullptr || bytes == 0 || bytes % kReservedUnit != 0 || !power || flags != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard memory_lock(context.memory_mutex);
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(context.mutex);
      id = ++context.blocks_made;
    }
    *address = context.memory.space().reserve(bytes, format_text("reservation {}", id), gap(bytes),
                                              std::max<std::uint64_t>(alignment, kGranularity));
    const std::lock_guard lock(context.reservations->mutex);
    context.reservations->ranges[*address].bytes = bytes;
    return CUDA_SUCCESS;
  });
}

CUresult mem_address_free(CUdeviceptr address, std::size_t bytes) {
  return changing_mappings([&](CUctx_st& context, Reservations& reservations) -> std::string {
    const auto found = reservations.ranges.find(address);
    if (found == reservations.ranges.end() || found->second.bytes != bytes) {
      return format_text("cuMemAddressFree: no reservation of {} begins at {:#x}",
                         count_text(bytes, "byte"), address);
    }
    if (!found->second.mappings.empty()) {
      return format_text("cuMemAddressFree: memory is mapped at {:#x}; unmap it first (cuMemUnmap)",
                         found->second.mappings.begin()->first);
    }
    reservations.ranges.erase(found);
    context.memory.space().end_reservation(address);
    return {};
  });
}

CUresult mem_create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                    const CUmemAllocationProp* prop, unsigned long long flags) {
  return with_mapping_context([&](CUctx_st& context) -> CUresult {
    if (handle == nullptr || prop == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_memory(context, "cuMemCreate", *prop)) return result;
    if (const CUresult result = check_granularity("cuMemCreate", 0, bytes)) return result;
    const auto memory = std::make_shared<MemoryHandle>();
    memory->bytes = bytes;
    memory->properties = *prop;
    // Hints that the emulated devices do not follow.
    memory->properties.allocFlags = {};
    memory->pages = emulator::AddressSpace::make_pages(bytes);
    if (!memory->pages.data) {
      return refuse(CUDA_ERROR_NOT_SUPPORTED,
                    "cuMemCreate: this system provides no memory that can be mapped at several "
                    "addresses (memfd_create of Linux)");
    }
    const std::lock_guard memory_lock(context.memory_mutex);
    context.memory.space().claim(bytes, "memory of cuMemCreate");
    const std::lock_guard lock(context.reservations->mutex);
    *handle = reinterpret_cast<std::uintptr_t>(memory.get());
    context.reservations->handles[*handle] = memory;
    return CUDA_SUCCESS;
  });
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  return changing_mappings([&](CUctx_st& context, Reservations& reservations) -> std::string {
    const auto found = reservations.handles.find(handle);
    if (found == reservations.handles.end()) {
      return format_text("cuMemRelease: the current context has no memory handle {:#x}", handle);
    }
    if (--found->second->references != 0) return {};
    std::shared_ptr<MemoryHandle> memory = std::move(found->second);
    reservations.handles.erase(found);
    drop_if_unused(context, memory);
    return {};
  });
}

CUresult mem_map(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0) {
    return guarded([&] {
      return refuse(CUDA_ERROR_INVALID_VALUE, "cuMemMap: the offset must be 0 (CUDA 13.0)");
    });
  }
  if (const CUresult result =
          guarded([&] { return check_granularity("cuMemMap", address, bytes); })) {
    return result;
  }
  return changing_mappings([&](CUctx_st& context, Reservations& reservations) -> std::string {
    const auto memory = reservations.handles.find(handle);
    if (memory == reservations.handles.end()) {
      return format_text("cuMemMap: the current context has no memory handle {:#x}", handle);
    }
    if (bytes > memory->second->bytes) {
      return format_text("cuMemMap: {} of a handle of {}", count_text(bytes, "byte"),
                         count_text(memory->second->bytes, "byte"));
    }
    const auto range = entry_at(reservations.ranges, address);
    if (range == reservations.ranges.end() ||
        bytes > range->second.bytes - (address - range->first)) {
      return format_text("cuMemMap: {} at {:#x} are not within a reservation (cuMemAddressReserve)",
                         count_text(bytes, "byte"), address);
    }
    auto& mappings = range->second.mappings;
    const auto next = mappings.lower_bound(address);
    if (entry_at(mappings, address) != mappings.end() ||
        (next != mappings.end() && next->first - address < bytes)) {
      return format_text("cuMemMap: memory is mapped already in the {} at {:#x}",
                         count_text(bytes, "byte"), address);
    }
    if (!context.memory.space().show(address, bytes, memory->second->pages)) {
      return format_text("cuMemMap: the system does not map {} (vm.max_map_count)",
                         count_text(bytes, "byte"));
    }
    mappings[address] = {bytes, handle, memory->second, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    divide_range(context, range->first, range->second);
    return {};
  });
}

CUresult mem_unmap(CUdeviceptr address, std::size_t bytes) {
  return with_mapping_context([&](CUctx_st& current) -> CUresult {
    // Queued work may use the memory.
    const CUresult fault = wait_for_all(&current);
    const CUresult result =
        changing_mappings([&](CUctx_st& context, Reservations& reservations) -> std::string {
          const auto found = mappings_of(reservations, address, bytes);
          if (found.empty()) return not_mapped("cuMemUnmap", address, bytes);
          if (!context.memory.space().hide(address, bytes)) {
            return format_text("cuMemUnmap: the system does not unmap {} (vm.max_map_count)",
                               count_text(bytes, "byte"));
          }
          const auto range = entry_at(reservations.ranges, address);
          for (const auto& [start, mapping] : found) {
            std::shared_ptr<MemoryHandle> memory = std::move(mapping->memory);
            range->second.mappings.erase(start);
            drop_if_unused(context, memory);
          }
          divide_range(context, range->first, range->second);
          return {};
        });
    return result != CUDA_SUCCESS ? result : fault;
  });
}

CUresult mem_set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* desc,
                        std::size_t count) {
  return with_mapping_context([&](CUctx_st& current) -> CUresult {
    if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      const CUmemAccess_flags flags = desc[i].flags;
      if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
          flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      const bool own = desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                       desc[i].location.id == current.device;
      if (!own && flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        return refuse(CUDA_ERROR_INVALID_DEVICE,
                      "cuMemSetAccess: mapped memory can be accessed by the device of the current "
                      "context only, not by other devices or the host");
      }
    }
    const CUresult fault = wait_for_all(&current);
    const CUresult result =
        changing_mappings([&](CUctx_st& context, Reservations& reservations) -> std::string {
          const auto found = mappings_of(reservations, address, bytes);
          if (found.empty()) return not_mapped("cuMemSetAccess", address, bytes);
          for (std::size_t i = 0; i < count; ++i) {
            if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
                desc[i].location.id != context.device) {
              continue;
            }
            for (const auto& [start, mapping] : found) mapping->access = desc[i].flags;
          }
          const auto range = entry_at(reservations.ranges, address);
          divide_range(context, range->first, range->second);
          return {};
        });
    return result != CUDA_SUCCESS ? result : fault;
  });
}

CUresult mem_get_access(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  return with_mapping_context([&](CUctx_st& context) {
    emulator::Device::Extent extent;
    CUmemAccess_flags access{};
    if (flags == nullptr || location == nullptr ||
        !find_mapping(context, address, extent, access)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const bool own =
        location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == context.device;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && gpu_of(location->id) == nullptr) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    *flags = static_cast<unsigned long long>(own ? access : CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return CUDA_SUCCESS;
  });
}

CUresult mem_get_allocation_properties_from_handle(CUmemAllocationProp* prop,
                                                   CUmemGenericAllocationHandle handle) {
  return with_mapping_context([&](CUctx_st& context) {
    const std::lock_guard lock(context.reservations->mutex);
    const auto found = context.reservations->handles.find(handle);
    if (prop == nullptr || found == context.reservations->handles.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *prop = found->second->properties;
    return CUDA_SUCCESS;
  });
}

/// The handle of a mapping, even if it was released meanwhile.
CUresult mem_retain_allocation_handle(CUmemGenericAllocationHandle* handle, void* address) {
  return with_mapping_context([&](CUctx_st& context) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(context.reservations->mutex);
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    const auto range = entry_at(context.reservations->ranges, place);
    if (range == context.reservations->ranges.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto mapping = entry_at(range->second.mappings, place);
    if (mapping == range->second.mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<MemoryHandle>& memory = mapping->second.memory;
    ++memory->references;
    *handle = mapping->second.handle;
    context.reservations->handles[*handle] = memory;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
