// src/runtime/recording/program_memory.cpp - memory and objects of a replayed program
#include <algorithm>

#include "driver/recorder/repeat.hpp"
#include "runtime/recording/program_run.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::replayed {

void ProgramRun::check_new(std::uint64_t recorded, std::uint64_t bytes) const {
  if (bytes != 0 && memory_.count(recorded) == 0) return;
  throw bad(
      format_text("{} at {:#x}, where memory is already", count_text(bytes, "byte"), recorded));
}

void ProgramRun::place(std::uint64_t recorded, const Placed& placed) {
  if (next_buffer_ >= recording_.buffers.size()) {
    throw bad(format_text("memory without a name: it has {}",
                          count_text(recording_.buffers.size(), "buffer")));
  }
  if (placed.address != recorded) ++result_.moved;
  memory_[recorded] = placed;
  Region region;
  region.address = placed.address;
  region.array = placed.array;
  region.name = recording_.buffers[next_buffer_].name;
  buffers_[recorded] = next_buffer_++;
  check(shadow_.add(std::move(region), placed.bytes), "cuMemcpyDtoH");
}

Placed ProgramRun::allocate(const AllocateStep& step) const {
  constexpr unsigned kMapped = 2;  // CU_MEMHOSTALLOC_DEVICEMAP
  if (step.memory == StepMemory::Array) return create_array(step);
  Placed placed{step.bytes, 0, step.memory, nullptr, false, {}};
  if (step.memory == StepMemory::Graph) {
    placed.address = allocate_in_graph(step);
    return placed;
  }
  if (step.memory == StepMemory::Mapped) {
    placed.address = reserved(step.address, step.bytes);
    return placed;
  }
  const auto bytes = static_cast<std::size_t>(step.bytes);
  if (step.memory == StepMemory::Pinned && table_.mem_host_get_device_pointer != nullptr) {
    check(table_.mem_host_alloc(&placed.host, bytes, kMapped), "cuMemHostAlloc");
    check(table_.mem_host_get_device_pointer(&placed.address, placed.host, 0),
          "cuMemHostGetDevicePointer");
    return placed;
  }
  if (step.memory == StepMemory::Managed && table_.mem_alloc_managed != nullptr &&
      table_.mem_alloc_managed(&placed.address, bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
    return placed;
  }
  if (step.memory == StepMemory::Stream && table_.mem_alloc_async != nullptr &&
      table_.mem_alloc_async(&placed.address, bytes, nullptr) == CUDA_SUCCESS) {
    check(table_.stream_synchronize(nullptr), "cuStreamSynchronize");
    return placed;
  }
  placed.memory = StepMemory::Device;
  check(table_.mem_alloc(&placed.address, bytes), "cuMemAlloc");
  return placed;
}

Placed ProgramRun::create_array(const AllocateStep& step) const {
  Placed placed{step.bytes, step.address, step.memory, nullptr, false, {}};
  const StepArray& from = step.array;
  if (!recorder::image_of(from, placed.array) || placed.array.bytes() != step.bytes ||
      step.address < kFirstArrayAddress || step.address + step.bytes < step.address) {
    throw bad(format_text(
        "an array of {} x {} x {} elements of format {} with {}, with {} at {:#x}", from.width,
        from.height, from.depth, from.format, count_text(from.channels, "channel"),
        count_text(step.bytes, "byte"), step.address));
  }
  check(recorder::repeat_array(table_, from, placed.array.handle), "cuArray3DCreate");
  return placed;
}

void ProgramRun::release(const Placed& placed) const noexcept {
  if (placed.variable || placed.memory == StepMemory::Mapped) return;
  if (placed.array.handle != nullptr) {
    (void)table_.array_destroy(placed.array.handle);
    return;
  }
  if (placed.host != nullptr) {
    (void)table_.mem_free_host(placed.host);
  } else if (placed.memory == StepMemory::Stream || placed.memory == StepMemory::Graph) {
    (void)table_.mem_free_async(placed.address, nullptr);
    (void)table_.stream_synchronize(nullptr);
  } else {
    (void)table_.mem_free(placed.address);
  }
}

// Bytes that are no box of the array, as those that changed without a call, are written with all.
void ProgramRun::write_array(const Region& region, const StepRows& to,
                             std::span<const std::byte> packed) {
  CopyPlace from;
  from.rows = to;
  from.rows.pitch = to.width;
  from.rows.slice_height = to.height;
  from.rows.address = reinterpret_cast<std::uintptr_t>(packed.data());
  CopyPlace box;
  if (recorder::place_in(region.array, to.address - region.address, to, box)) {
    const CUDA_MEMCPY3D copy = recorder::copy_between(box, from);
    check(table_.memcpy_3d(&copy), "cuMemcpy3D");
  } else {
    std::vector<std::byte> all(region.seen.size());
    check(recorder::read_image(table_, region.array, all.data()), "cuMemcpy3D");
    std::byte* const first = all.data() + (to.address - region.address);
    for (std::uint64_t i = 0; i < to.height * to.depth; ++i) {
      const std::uint64_t row = i / to.height * to.slice_height + i % to.height;
      std::ranges::copy(packed.subspan(i * to.width, to.width), first + row * to.pitch);
    }
    check(recorder::write_image(table_, region.array, all.data()), "cuMemcpy3D");
  }
  refresh(to, "cuMemcpy3D");
}

void ProgramRun::operator()(const AllocateStep& step) {
  check_new(step.address, step.bytes);
  const Placed placed = allocate(step);
  place(step.address, placed);
  // As it was in the recorded process: an output contains bytes that no kernel wrote.
  std::vector<std::byte> before;
  if (step.content.empty()) {
    before.assign(static_cast<std::size_t>(step.bytes), std::byte{step.fill});
  } else {
    before = content(step.content);
  }
  if (before == shadow_.find(placed.address)->seen) return;
  const StepRows all{placed.address, step.bytes, 1, 1, step.bytes, 1};
  write_rows(all, before);
  check(shadow_.refresh(all), "cuMemcpyDtoH");
}

void ProgramRun::operator()(const FreeStep& step) {
  const auto found = memory_.find(step.address);
  if (found == memory_.end()) throw bad(format_text("{:#x} is not allocated", step.address));
  shadow_.remove(found->second.address);
  release(found->second);
  memory_.erase(found);
}

// Memory of graphs -------------------------------------------------------------------------------

CUdeviceptr ProgramRun::allocate_in_graph(const AllocateStep& step) const {
  const auto found = graph_memory_.find(step.address);
  if (found == graph_memory_.end() || found->second.bytes != step.bytes) {
    throw bad(format_text("{} at {:#x} are of no allocation node", count_text(step.bytes, "byte"),
                          step.address));
  }
  check(table_.graph_launch(found->second.executable, nullptr), "cuGraphLaunch");
  check(table_.stream_synchronize(nullptr), "cuStreamSynchronize");
  return found->second.address;
}

void ProgramRun::operator()(const GraphMemoryStep& step) {
  const auto found = graph_memory_.find(step.address);
  if (step.bytes == 0) {
    if (found == graph_memory_.end()) {
      throw bad(format_text("there is no allocation node of {:#x}", step.address));
    }
    check(table_.graph_exec_destroy(found->second.executable), "cuGraphExecDestroy");
    check(table_.graph_destroy(found->second.graph), "cuGraphDestroy");
    graph_memory_.erase(found);
    return;
  }
  if (found != graph_memory_.end()) {
    throw bad(format_text("there is an allocation node of {:#x} already", step.address));
  }
  if (table_.graph_add_mem_alloc_node == nullptr) {
    check(CUDA_ERROR_NOT_SUPPORTED, "cuGraphAddMemAllocNode");
  }
  GraphMemory& memory = graph_memory_[step.address];
  memory.bytes = step.bytes;
  check(table_.graph_create(&memory.graph, 0), "cuGraphCreate");
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(table_.ctx_get_device(&params.poolProps.location.id), "cuCtxGetDevice");
  params.bytesize = static_cast<std::size_t>(step.bytes);
  CUgraphNode node = nullptr;
  check(table_.graph_add_mem_alloc_node(&node, memory.graph, nullptr, 0, &params),
        "cuGraphAddMemAllocNode");
  memory.address = params.dptr;
  check(table_.graph_instantiate_with_flags(&memory.executable, memory.graph, 0),
        "cuGraphInstantiate");
}

// Virtual memory ---------------------------------------------------------------------------------

// Where bytes of a recorded reservation are now.
CUdeviceptr ProgramRun::reserved(std::uint64_t address, std::uint64_t bytes) const {
  const auto found = entry_at(reservations_, address);
  if (found == reservations_.end() || bytes > found->second.bytes - (address - found->first)) {
    throw bad(format_text("{} at {:#x} are in no reservation", count_text(bytes, "byte"), address));
  }
  return found->second.address + (address - found->first);
}

void ProgramRun::reserve(const VirtualStep& step) {
  if (entry_at(reservations_, step.address) != reservations_.end()) {
    throw bad(format_text("the addresses from {:#x} on are reserved already", step.address));
  }
  Reservation placed{step.bytes, 0};
  check(table_.mem_address_reserve(&placed.address, static_cast<std::size_t>(step.bytes),
                                   static_cast<std::size_t>(step.value), step.address, 0),
        "cuMemAddressReserve");
  reservations_[step.address] = placed;
}

void ProgramRun::create(const VirtualStep& step) {
  if (handles_.count(step.handle) != 0) {
    throw bad(format_text("memory handle {} exists already", step.handle));
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(table_.ctx_get_device(&properties.location.id), "cuCtxGetDevice");
  CUmemGenericAllocationHandle handle = 0;
  check(table_.mem_create(&handle, static_cast<std::size_t>(step.bytes), &properties, 0),
        "cuMemCreate");
  handles_[step.handle] = handle;
}

void ProgramRun::set_access(const VirtualStep& step) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  check(table_.ctx_get_device(&access.location.id), "cuCtxGetDevice");
  access.flags = static_cast<CUmemAccess_flags>(step.value);
  check(table_.mem_set_access(reserved(step.address, step.bytes),
                              static_cast<std::size_t>(step.bytes), &access, 1),
        "cuMemSetAccess");
}

void ProgramRun::operator()(const VirtualStep& step) {
  using Kind = VirtualStep::Kind;
  if (table_.mem_create == nullptr) check(CUDA_ERROR_NOT_SUPPORTED, "cuMemCreate");
  if (step.kind == Kind::Reserve) return reserve(step);
  if (step.kind == Kind::Create) return create(step);
  if (step.kind == Kind::Access) return set_access(step);
  const bool of_handle = step.kind == Kind::Release || step.kind == Kind::Map;
  const auto handle = handles_.find(step.handle);
  if (of_handle && handle == handles_.end()) {
    throw bad(format_text("memory handle {} does not exist", step.handle));
  }
  if (step.kind == Kind::Release) {
    check(table_.mem_release(handle->second), "cuMemRelease");
    handles_.erase(handle);
    return;
  }
  const CUdeviceptr address = reserved(step.address, step.bytes);
  const auto bytes = static_cast<std::size_t>(step.bytes);
  if (step.kind == Kind::Map) {
    check(table_.mem_map(address, bytes, 0, handle->second, 0), "cuMemMap");
    mappings_[address] = bytes;
  } else if (step.kind == Kind::Unmap) {
    check(table_.mem_unmap(address, bytes), "cuMemUnmap");
    mappings_.erase(mappings_.lower_bound(address), mappings_.lower_bound(address + bytes));
  } else {
    check(table_.mem_address_free(address, bytes), "cuMemAddressFree");
    reservations_.erase(step.address);
  }
}

// Objects -----------------------------------------------------------------------------------------

void ProgramRun::operator()(const ObjectStep& step) {
  if (objects_.count({step.surface, step.object}) != 0) {
    throw bad(format_text("object {} exists already", step.object));
  }
  const auto found = find(step.resource.address);
  const bool array = step.resource.kind == StepResource::Kind::Array;
  const bool fits = found != memory_.end() && array == (found->second.array.handle != nullptr) &&
                    (!array || found->first == step.resource.address);
  if (!fits) {
    throw bad(format_text("an object of memory at {:#x}, where there is none of its kind",
                          step.resource.address));
  }
  ObjectStep here = step;
  here.resource.address = found->second.address + (step.resource.address - found->first);
  unsigned long long handle = 0;
  check(recorder::repeat_object(table_, here, found->second.array.handle, handle),
        step.surface ? "cuSurfObjectCreate" : "cuTexObjectCreate");
  objects_[{step.surface, step.object}] = handle;
  if (handle != step.object) ++result_.moved;
}

void ProgramRun::operator()(const DestroyStep& step) {
  const auto found = objects_.find({step.surface, step.object});
  if (found == objects_.end()) throw bad(format_text("object {} does not exist", step.object));
  const auto destroy = step.surface ? table_.surf_object_destroy : table_.tex_object_destroy;
  check(destroy(found->second), step.surface ? "cuSurfObjectDestroy" : "cuTexObjectDestroy");
  objects_.erase(found);
}

}  // namespace ptxgen::inline v0::driver::replayed
