// src/driver/recorder/memory.cpp - memory that a recorded program allocates
#include <algorithm>

#include "driver/recorder/recorder.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

bool is_host_visible(StepMemory memory) {
  return memory == StepMemory::Managed || memory == StepMemory::Pinned ||
         memory == StepMemory::Registered;
}

/// Notes an allocation that succeeded.
CUresult note_allocation(const CallScope& scope, CUresult result, const CUdeviceptr* address,
                         std::uint64_t bytes, StepMemory memory) {
  // What a captured stream allocates exists while its graph runs.
  if (result != CUDA_SUCCESS || scope.captured()) return result;
  // Stream-ordered memory exists when the stream is there.
  if (scope.records()) (void)scope.wait();
  scope.record([&](bool now) { allocated_in(scope.recorder(), now, {*address, bytes, memory}); });
  return result;
}

/// `call` frees it; the last bytes are not looked at.
template <class Free>
CUresult free_memory(CUdeviceptr address, CUstream stream, Free&& call) {
  return entry([&]() -> CUresult {
    const CallScope scope(stream);
    const CUresult result = call();
    if (result != CUDA_SUCCESS || scope.captured() || scope.recorder().sink.ended()) return result;
    std::unique_lock<std::mutex> lock;
    if (!scope.records()) lock = std::unique_lock(scope.recorder().mutex);
    freed(scope.recorder(), address);
    return result;
  });
}

/// The device address of pinned or registered memory, if it has one.
CUdeviceptr device_address_of(const Recorder& recorder, void* memory) {
  CUdeviceptr address = 0;
  const auto ask = recorder.base.mem_host_get_device_pointer;
  return ask != nullptr && ask(&address, memory, 0) == CUDA_SUCCESS ? address : 0;
}

CUresult note_host_allocation(const CallScope& scope, CUresult result, void** memory,
                              std::size_t bytes) {
  if (result != CUDA_SUCCESS || !scope.records()) return result;
  Recorder& recorder = scope.recorder();
  const CUdeviceptr address = device_address_of(recorder, *memory);
  if (address == 0) return result;  // for the host alone
  recorder.host_memory[*memory] = {bytes, false};
  allocated(recorder, address, bytes, StepMemory::Pinned, *memory);
  return result;
}

/// The region at a host address is no more.
void freed_host(const CallScope& scope, const void* memory) {
  Recorder& recorder = scope.recorder();
  const auto found = recorder.host_memory.find(memory);
  if (found == recorder.host_memory.end()) return;
  recorder.host_memory.erase(found);
  if (const CUdeviceptr address = recorder.shadow.device_address(memory)) {
    freed(recorder, address);
  }
}

void replace_device_memory(Table& table) {
  table.mem_alloc = [](CUdeviceptr* address, std::size_t bytes) -> CUresult {
    return entry([&] {
      const CallScope scope;
      return note_allocation(scope, scope.recorder().base.mem_alloc(address, bytes), address, bytes,
                             StepMemory::Device);
    });
  };
  table.mem_free = [](CUdeviceptr address) -> CUresult {
    return free_memory(address, nullptr, [&] { return active()->base.mem_free(address); });
  };
  if (table.mem_alloc_pitch != nullptr) {
    table.mem_alloc_pitch = [](CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                               std::size_t height, unsigned element_bytes) -> CUresult {
      return entry([&] {
        const CallScope scope;
        const CUresult result =
            scope.recorder().base.mem_alloc_pitch(address, pitch, width, height, element_bytes);
        return note_allocation(scope, result, address, result == CUDA_SUCCESS ? *pitch * height : 0,
                               StepMemory::Device);
      });
    };
  }
  if (table.mem_alloc_managed == nullptr) return;
  table.mem_alloc_managed = [](CUdeviceptr* address, std::size_t bytes,
                               unsigned flags) -> CUresult {
    return entry([&] {
      const CallScope scope;
      return note_allocation(scope, scope.recorder().base.mem_alloc_managed(address, bytes, flags),
                             address, bytes, StepMemory::Managed);
    });
  };
}

/// Of a pool of the host or of managed memory, as a replay needs it; else stream-ordered memory.
StepMemory memory_from_pool(const Recorder& recorder, CUdeviceptr address) {
  int managed = 0;
  unsigned type = CU_MEMORYTYPE_DEVICE;
  const auto ask = recorder.base.pointer_get_attribute;
  if (ask == nullptr) return StepMemory::Stream;
  const bool host_visible =
      (ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed != 0) ||
      (ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
       type == CU_MEMORYTYPE_HOST);
  return host_visible ? StepMemory::Managed : StepMemory::Stream;
}

/// In a capture it becomes an allocation node.
CUresult note_stream_allocation(const CallScope& scope, CUstream stream, CUresult result,
                                const CUdeviceptr* address, std::uint64_t bytes) {
  Recorder& all = scope.recorder();
  if (result == CUDA_SUCCESS && scope.captured()) {
    const std::lock_guard lock(all.mutex);
    captured_memory(all, stream, *address, bytes);
    return result;
  }
  const StepMemory memory =
      result == CUDA_SUCCESS ? memory_from_pool(all, *address) : StepMemory::Stream;
  return note_allocation(scope, result, address, bytes, memory);
}

void replace_stream_memory(Table& table) {
  if (table.mem_alloc_async == nullptr) return;
  table.mem_alloc_async = [](CUdeviceptr* address, std::size_t bytes, CUstream stream) -> CUresult {
    return entry([&] {
      const CallScope scope(stream);
      return note_stream_allocation(scope, stream,
                                    scope.recorder().base.mem_alloc_async(address, bytes, stream),
                                    address, bytes);
    });
  };
  table.mem_alloc_from_pool_async = [](CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                       CUstream stream) -> CUresult {
    return entry([&] {
      const CallScope scope(stream);
      return note_stream_allocation(
          scope, stream,
          scope.recorder().base.mem_alloc_from_pool_async(address, bytes, pool, stream), address,
          bytes);
    });
  };
  table.mem_free_async = [](CUdeviceptr address, CUstream stream) -> CUresult {
    return free_memory(address, stream,
                       [&] { return active()->base.mem_free_async(address, stream); });
  };
}

void replace_pinned_memory(Table& table) {
  table.mem_host_alloc = [](void** memory, std::size_t bytes, unsigned flags) -> CUresult {
    return entry([&] {
      const CallScope scope;
      return note_host_allocation(scope, scope.recorder().base.mem_host_alloc(memory, bytes, flags),
                                  memory, bytes);
    });
  };
  if (table.mem_alloc_host != nullptr) {
    table.mem_alloc_host = [](void** memory, std::size_t bytes) -> CUresult {
      return entry([&] {
        const CallScope scope;
        return note_host_allocation(scope, scope.recorder().base.mem_alloc_host(memory, bytes),
                                    memory, bytes);
      });
    };
  }
  table.mem_free_host = [](void* memory) -> CUresult {
    return entry([&] {
      const CallScope scope;
      const CUresult result = scope.recorder().base.mem_free_host(memory);
      if (result == CUDA_SUCCESS && scope.records()) freed_host(scope, memory);
      return result;
    });
  };
}

// Registered memory gets a device address when the program asks for it.
void replace_registered_memory(Table& table) {
  if (table.mem_host_register == nullptr || table.mem_host_get_device_pointer == nullptr) return;
  table.mem_host_register = [](void* memory, std::size_t bytes, unsigned flags) -> CUresult {
    return entry([&] {
      const CallScope scope;
      const CUresult result = scope.recorder().base.mem_host_register(memory, bytes, flags);
      if (result == CUDA_SUCCESS && scope.records()) {
        scope.recorder().host_memory[memory] = {bytes, true};
      }
      return result;
    });
  };
  table.mem_host_unregister = [](void* memory) -> CUresult {
    return entry([&] {
      const CallScope scope;
      const CUresult result = scope.recorder().base.mem_host_unregister(memory);
      if (result == CUDA_SUCCESS && scope.records()) freed_host(scope, memory);
      return result;
    });
  };
  table.mem_host_get_device_pointer = [](CUdeviceptr* address, void* memory,
                                         unsigned flags) -> CUresult {
    return entry([&] {
      const CallScope scope;
      Recorder& all = scope.recorder();
      const CUresult result = all.base.mem_host_get_device_pointer(address, memory, flags);
      if (result != CUDA_SUCCESS || !scope.records()) return result;
      const auto found = all.host_memory.find(memory);
      const bool is_new = found != all.host_memory.end() && found->second.registered &&
                          all.shadow.device_address(memory) == 0;
      if (is_new) {
        allocated(all, *address, found->second.bytes, StepMemory::Registered, memory);
      }
      return result;
    });
  };
}

}  // namespace

void allocated(Recorder& recorder, CUdeviceptr address, std::uint64_t bytes, StepMemory memory,
               const void* host) {
  Region region;
  region.address = address;
  const Recorder::Array* const array = array_at(recorder, address);
  region.name = format_text("{}{}", array != nullptr ? "array" : "memory", recorder.allocations++);
  region.host_visible = is_host_visible(memory);
  if (array != nullptr) region.array = array->image;
  region.host = static_cast<const std::byte*>(host);
  if (recorder.shadow.add(std::move(region), bytes) != CUDA_SUCCESS) {
    recorder.note(
        format_text("{} bytes at {:#x} cannot be read and are not recorded", bytes, address));
    return;
  }
  recorder.allocated.insert(address);
  const std::vector<std::byte>& seen = recorder.shadow.find(address)->seen;
  AllocateStep step{address, bytes, memory, 0, {}, {}};
  if (array != nullptr) step.array = array->step;
  const std::byte first = seen.empty() ? std::byte{0} : seen.front();
  step.fill = std::to_integer<std::uint8_t>(first);
  const bool constant = std::ranges::all_of(seen, [&](std::byte one) { return one == first; });
  if (!constant) step.content = recorder.sink.keep(seen);
  recorder.sink.write(step);
}

void allocated_in(Recorder& recorder, bool now, const Recorder::Pending& memory) {
  if (now) {
    allocated(recorder, memory.address, memory.bytes, memory.memory);
  } else {
    recorder.pending.push_back(memory);
  }
}

void allocated_in_graph(Recorder& recorder, CUdeviceptr address, std::uint64_t bytes) {
  Region region;
  region.address = address;
  region.name = format_text("memory{}", recorder.allocations++);
  region.seen.resize(static_cast<std::size_t>(bytes));
  recorder.shadow.add_seen(std::move(region));
  recorder.allocated.insert(address);
  recorder.sink.write(AllocateStep{address, bytes, StepMemory::Graph, 0, {}, {}});
}

void freed(Recorder& recorder, CUdeviceptr address) {
  std::erase_if(recorder.pending, [&](const auto& one) { return one.address == address; });
  if (recorder.allocated.erase(address) == 0) return;
  recorder.shadow.remove(address);
  recorder.sink.write(FreeStep{address});
  end_graph_memory(recorder, nullptr, nullptr);
}

void replace_memory(Table& table) {
  replace_device_memory(table);
  replace_stream_memory(table);
  replace_pinned_memory(table);
  replace_registered_memory(table);
}

}  // namespace ptxgen::inline v0::driver::recorder
