// src/driver/recorder/virtual_memory.cpp - virtual memory of a recorded program
#include <iterator>

#include "driver/recorder/recorder.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

constexpr const char* kUnknownMapping =
    "virtual memory (cuMemMap) of a handle or at addresses that no recorded call created is not "
    "recorded";

using Kind = VirtualStep::Kind;

/// After a call of virtual memory management that succeeded: `work(all, now)` writes its
/// steps.
template <class Work>
CUresult record_virtual(const Call& call, Work&& work) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    const CUresult result = call();
    if (result != CUDA_SUCCESS) return result;
    scope.record([&](bool now) {
      scope.recorder().begin();
      work(scope.recorder(), now);
    });
    return result;
  });
}

void note_unknown(Recorder& all) {
  all.note(kUnknownMapping);
  all.suspect = true;
}

/// The memory of a handle is gone when neither a reference nor a mapping has it. A program may get
/// the handle of a mapping again until then.
void release_if_unused(Recorder& all, CUmemGenericAllocationHandle handle) {
  const auto found = all.handles.find(handle);
  if (found == all.handles.end()) return;
  if (found->second.references != 0 || found->second.mappings != 0) return;
  all.sink.write(VirtualStep{Kind::Release, 0, 0, found->second.number, 0});
  all.handles.erase(found);
}

void mapped(Recorder& all, CUdeviceptr address, std::uint64_t bytes,
            CUmemGenericAllocationHandle handle) {
  const auto found = all.handles.find(handle);
  auto range = all.reservations.upper_bound(address);
  const bool reserved = range != all.reservations.begin() &&
                        address - std::prev(range)->first < std::prev(range)->second;
  if (found == all.handles.end() || !reserved) return note_unknown(all);
  ++found->second.mappings;
  all.mappings[address] = {bytes, handle, false};
  all.sink.write(VirtualStep{Kind::Map, address, bytes, found->second.number, 0});
}

/// Calls `work` with each mapping in a range, and says whether there is one.
template <class Work>
bool for_mappings(Recorder& all, CUdeviceptr address, std::uint64_t bytes, Work&& work) {
  auto one = all.mappings.lower_bound(address);
  const bool any = one != all.mappings.end() && one->first - address < bytes;
  for (; one != all.mappings.end() && one->first - address < bytes; ++one) {
    work(one->first, one->second);
  }
  return any;
}

void unmapped(Recorder& all, CUdeviceptr address, std::uint64_t bytes) {
  std::vector<CUmemGenericAllocationHandle> handles;
  const bool any =
      for_mappings(all, address, bytes, [&](CUdeviceptr at, const Recorder::Mapping& mapping) {
        if (mapping.accessible) freed(all, at);
        handles.push_back(mapping.handle);
      });
  if (!any) return;
  all.mappings.erase(all.mappings.lower_bound(address), all.mappings.lower_bound(address + bytes));
  all.sink.write(VirtualStep{Kind::Unmap, address, bytes, 0, 0});
  for (const CUmemGenericAllocationHandle handle : handles) {
    const auto found = all.handles.find(handle);
    if (found != all.handles.end()) --found->second.mappings;
    release_if_unused(all, handle);
  }
}

/// What a device may do with mappings that it could not access before is memory of the program from
/// now on.
void set_access(Recorder& all, bool now, CUdeviceptr address, std::uint64_t bytes,
                CUmemAccess_flags flags) {
  const bool accessible = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const auto change = [&](bool from, auto&& work) {
    return for_mappings(all, address, bytes, [&](CUdeviceptr at, Recorder::Mapping& mapping) {
      if (mapping.accessible == from && from != accessible) work(at, mapping);
    });
  };
  const bool any = change(true, [&](CUdeviceptr at, Recorder::Mapping& mapping) {
    mapping.accessible = false;
    freed(all, at);
  });
  if (!any) return note_unknown(all);
  all.sink.write(VirtualStep{Kind::Access, address, bytes, 0, static_cast<std::uint64_t>(flags)});
  (void)change(false, [&](CUdeviceptr at, Recorder::Mapping& mapping) {
    mapping.accessible = true;
    allocated_in(all, now, {at, mapping.bytes, StepMemory::Mapped});
  });
}

void replace_addresses(Table& table) {
  table.mem_address_reserve = [](CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                                 CUdeviceptr hint, unsigned long long flags) -> CUresult {
    return record_virtual(
        [=] { return active()->base.mem_address_reserve(address, bytes, alignment, hint, flags); },
        [=](Recorder& all, bool) {
          all.reservations[*address] = bytes;
          all.sink.write(VirtualStep{Kind::Reserve, *address, bytes, 0, alignment});
        });
  };
  table.mem_address_free = [](CUdeviceptr address, std::size_t bytes) -> CUresult {
    return record_virtual([=] { return active()->base.mem_address_free(address, bytes); },
                          [=](Recorder& all, bool) {
                            if (all.reservations.erase(address) == 0) return;
                            all.sink.write(VirtualStep{Kind::Unreserve, address, bytes, 0, 0});
                          });
  };
}

void replace_handles(Table& table) {
  table.mem_create = [](CUmemGenericAllocationHandle* handle, std::size_t bytes,
                        const CUmemAllocationProp* prop, unsigned long long flags) -> CUresult {
    return record_virtual([=] { return active()->base.mem_create(handle, bytes, prop, flags); },
                          [=](Recorder& all, bool) {
                            if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
                            const std::uint64_t number = all.next_handle++;
                            all.handles[*handle] = {number, 1, 0};
                            all.sink.write(VirtualStep{Kind::Create, 0, bytes, number, 0});
                          });
  };
  table.mem_release = [](CUmemGenericAllocationHandle handle) -> CUresult {
    return record_virtual([=] { return active()->base.mem_release(handle); },
                          [=](Recorder& all, bool) {
                            const auto found = all.handles.find(handle);
                            if (found == all.handles.end()) return;
                            if (found->second.references != 0) --found->second.references;
                            release_if_unused(all, handle);
                          });
  };
  if (table.mem_retain_allocation_handle == nullptr) return;
  table.mem_retain_allocation_handle = [](CUmemGenericAllocationHandle* handle,
                                          void* address) -> CUresult {
    return record_virtual(
        [=] { return active()->base.mem_retain_allocation_handle(handle, address); },
        [=](Recorder& all, bool) {
          const auto found = all.handles.find(*handle);
          if (found != all.handles.end()) ++found->second.references;
        });
  };
}

void replace_mappings(Table& table) {
  table.mem_map = [](CUdeviceptr address, std::size_t bytes, std::size_t offset,
                     CUmemGenericAllocationHandle handle, unsigned long long flags) -> CUresult {
    return record_virtual(
        [=] { return active()->base.mem_map(address, bytes, offset, handle, flags); },
        [=](Recorder& all, bool) { mapped(all, address, bytes, handle); });
  };
  table.mem_unmap = [](CUdeviceptr address, std::size_t bytes) -> CUresult {
    return record_virtual([=] { return active()->base.mem_unmap(address, bytes); },
                          [=](Recorder& all, bool) { unmapped(all, address, bytes); });
  };
  table.mem_set_access = [](CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                            std::size_t count) -> CUresult {
    return record_virtual(
        [=] { return active()->base.mem_set_access(address, bytes, access, count); },
        [=](Recorder& all, bool now) {
          CUdevice device = 0;
          (void)all.base.ctx_get_device(&device);
          for (std::size_t i = 0; i < count; ++i) {
            const bool own = access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                             access[i].location.id == device;
            if (own) set_access(all, now, address, bytes, access[i].flags);
          }
        });
  };
}

}  // namespace

void forget_virtual_memory(Recorder& all) {
  for (const auto& [address, mapping] : all.mappings) {
    all.sink.write(VirtualStep{Kind::Unmap, address, mapping.bytes, 0, 0});
  }
  std::set<std::uint64_t> numbers;  // in their order
  for (const auto& [handle, one] : all.handles) numbers.insert(one.number);
  for (const std::uint64_t number : numbers) {
    all.sink.write(VirtualStep{Kind::Release, 0, 0, number, 0});
  }
  for (const auto& [address, bytes] : all.reservations) {
    all.sink.write(VirtualStep{Kind::Unreserve, address, bytes, 0, 0});
  }
  all.mappings.clear();
  all.handles.clear();
  all.reservations.clear();
}

void replace_virtual_memory(Table& table) {
  const bool all = table.mem_address_reserve != nullptr && table.mem_address_free != nullptr &&
                   table.mem_create != nullptr && table.mem_release != nullptr &&
                   table.mem_map != nullptr && table.mem_unmap != nullptr &&
                   table.mem_set_access != nullptr;
  if (!all) return;
  replace_addresses(table);
  replace_handles(table);
  replace_mappings(table);
}

}  // namespace ptxgen::inline v0::driver::recorder
