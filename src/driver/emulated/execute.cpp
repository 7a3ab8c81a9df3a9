// src/driver/emulated/execute.cpp - execution of queued operations
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "driver/emulated/graph_memory.hpp"
#include "driver/emulated/mirrors.hpp"
#include "driver/emulated/state.hpp"
#include "emulator/state/address_space.hpp"
#include "ptxgen/driver/table.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

thread_local bool inside_host_function = false;

bool on_device(const emulator::Device& memory, const Place& place) {
  if (place.kind != CU_MEMORYTYPE_UNIFIED) return place.kind == CU_MEMORYTYPE_DEVICE;
  return place.address - emulator::kGlobalBase < memory.space().reserved_bytes();
}

template <class Byte>
Byte* host_pointer(std::uint64_t address) {
  return reinterpret_cast<Byte*>(static_cast<std::uintptr_t>(address));
}

void copy_row(emulator::Device& memory, const Place& to, const Place& from, std::uint64_t bytes) {
  const bool to_device = on_device(memory, to);
  const bool from_device = on_device(memory, from);
  const auto count = static_cast<std::size_t>(bytes);
  if (to_device && from_device) {
    memory.copy(to.address, from.address, bytes);
  } else if (to_device) {
    memory.write(to.address, {host_pointer<const std::byte>(from.address), count});
  } else if (from_device) {
    memory.read(from.address, {host_pointer<std::byte>(to.address), count});
  } else {
    std::memmove(host_pointer<std::byte>(to.address), host_pointer<const std::byte>(from.address),
                 count);
  }
}

/// Whether the host writes to the memory at an address, which the emulator does not see.
bool host_writes(CUctx_st& context, const Place& place) {
  if (!on_device(context.memory, place)) return false;
  const std::lock_guard lock(context.mutex);
  const auto next = context.blocks.upper_bound(place.address);
  if (next == context.blocks.begin()) return false;
  const auto& [start, block] = *std::prev(next);
  return place.address - start < block.bytes && (block.host != nullptr || block.unified);
}

void run(CUctx_st& context, const Copy& copy) {
  emulator::Device& memory = context.memory;
  // Pinned and managed memory stays initialised, whatever is copied to it: the host may change it.
  const bool mark = host_writes(context, copy.to);
  Place from = copy.from;
  if (copy.staged) {
    from = {CU_MEMORYTYPE_HOST, reinterpret_cast<std::uintptr_t>(copy.staged->data())};
  }
  for (std::uint64_t z = 0; z < copy.depth; ++z) {
    for (std::uint64_t y = 0; y < copy.height; ++y) {
      const std::uint64_t to_row = (z * copy.to_height + y) * copy.to_pitch;
      const std::uint64_t from_row = (z * copy.from_height + y) * copy.from_pitch;
      copy_row(memory, {copy.to.kind, copy.to.address + to_row},
               {from.kind, from.address + from_row}, copy.width);
      if (mark) memory.space().mark(copy.to.address + to_row, copy.width);
    }
  }
}

void fill_row(emulator::Device& memory, const Fill& fill, std::uint64_t to) {
  if (fill.element_bytes == 1) {
    memory.fill(to, static_cast<std::byte>(fill.value), fill.width);
    return;
  }
  constexpr std::size_t kChunk = 16384;
  std::array<std::byte, kChunk> pattern;
  const std::uint64_t bytes = fill.width * fill.element_bytes;
  const std::size_t filled = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kChunk));
  for (std::size_t i = 0; i < filled; i += fill.element_bytes) {
    std::memcpy(&pattern[i], &fill.value, fill.element_bytes);  // little-endian: the low bytes
  }
  for (std::uint64_t done = 0; done < bytes; done += filled) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(filled, bytes - done));
    memory.write(to + done, std::span(pattern).first(part));
  }
}

void run(emulator::Device& memory, const Fill& fill) {
  for (std::uint64_t y = 0; y < fill.height; ++y) fill_row(memory, fill, fill.to + y * fill.pitch);
}

void reach(CUevent_st& event) {
  const std::lock_guard lock(event.mutex);
  ++event.done;
  event.when = std::chrono::steady_clock::now();
  event.reached.notify_all();
}

void wait(const WaitEvent& wait) {
  std::unique_lock lock(wait.event->mutex);
  wait.event->reached.wait(lock, [&] { return wait.event->done >= wait.ticket; });
}

/// Memory operations that were valid when queued can still fail here, as on hardware.
template <class Work>
CUresult with_memory(CUcontext context, Work&& work) {
  std::string problem, kernel;
  {
    const std::lock_guard lock(context->memory_mutex);
    try {
      work();
      return CUDA_SUCCESS;
    } catch (const Error& error) {
      problem = error.message;
      kernel = error.kernel;
    }
  }
  problem = "a queued operation failed: " + problem;
  log(CU_LOG_LEVEL_ERROR, problem);
  FaultNote note;
  note.code = CUDA_ERROR_ILLEGAL_ADDRESS;
  note.kernel = std::move(kernel);
  note.finding.text = std::move(problem);
  const std::lock_guard lock(context->mutex);
  if (context->fault_note.code == CUDA_SUCCESS) context->fault_note = std::move(note);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

// Throws unless an allocation holds the range.
void must_hold(const emulator::AddressSpace& space, const HostKernel& kernel,
               const HostKernel::Range& range) {
  const emulator::Allocation* const found = space.find(range.address);
  const bool inside = found != nullptr && !found->freed &&
                      found->start + found->bytes - range.address >= range.bytes &&
                      !(range.written && found->read_only);
  if (inside) return;
  Error error(
      Stage::Launch, "out-of-bounds",
      format_text("kernel '{}' on the host {} {} bytes at {:#x}, which no allocation holds",
                  kernel.name(), range.written ? "writes" : "reads", range.bytes, range.address));
  error.kernel = kernel.name();
  throw error;
}

void run(emulator::Device& memory, const HostKernel& kernel) {
  emulator::AddressSpace& space = memory.space();
  for (const HostKernel::Range& range : kernel.memory()) {
    if (range.bytes != 0) must_hold(space, kernel, range);
  }
  const auto base = reinterpret_cast<std::uintptr_t>(space.host(emulator::kGlobalBase));
  kernel.run(base - emulator::kGlobalBase);
  for (const HostKernel::Range& range : kernel.memory()) {
    if (range.written && range.bytes != 0) space.mark(range.address, range.bytes);
  }
}

struct Executing {
  CUcontext context;

  CUresult operator()(const Empty&) const { return CUDA_SUCCESS; }
  CUresult operator()(const KernelLaunch& launch) const { return run_kernel(context, launch); }
  CUresult operator()(const Copy& copy) const {
    return with_memory(context, [&] { run(*context, copy); });
  }
  CUresult operator()(const Fill& fill) const {
    return with_memory(context, [&] { run(context->memory, fill); });
  }
  CUresult operator()(const HostCall& call) const {
    if (call.kernel != nullptr) {
      return with_memory(context, [&] { run(context->memory, *call.kernel); });
    }
    run_host_function(call, CUDA_SUCCESS);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const RecordEvent& record) const {
    reach(*record.event);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const WaitEvent& waiting) const {
    wait(waiting);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const AllocateMemory& allocation) const {
    return with_memory(context, [&] { allocation.memory->allocate(context->memory.space()); });
  }
  CUresult operator()(const FreeMemory& freed) const {
    return with_memory(context, [&] {
      if (freed.memory) {
        freed.memory->free(context->memory.space());
      } else {
        context->memory.free(freed.address);
      }
    });
  }
  CUresult operator()(const RunGraph& graph) const { return execute(context, graph); }
  CUresult operator()(const Choose&) const { return CUDA_SUCCESS; }  // graph_exec.cpp
};

}  // namespace

bool in_host_function() noexcept { return inside_host_function; }

NoCalls::NoCalls() noexcept : before_(std::exchange(inside_host_function, true)) {}
NoCalls::~NoCalls() { inside_host_function = before_; }

bool in_report() noexcept { return inside_host_function; }

void run_host_function(const HostCall& call, CUresult status) {
  const NoCalls none;
  if (call.callback != nullptr) {
    call.callback(call.stream, status, call.user);
  } else if (status == CUDA_SUCCESS && call.work != nullptr) {
    call.work(call.user);
  }
}

CUresult execute(CUcontext context, const Operation& operation) {
  try {
    const bool on_memory = std::holds_alternative<KernelLaunch>(operation) ||
                           std::holds_alternative<Copy>(operation) ||
                           std::holds_alternative<Fill>(operation);
    if (!on_memory) return std::visit(Executing{context}, operation);
    const Mirroring mirroring(*context);
    return std::visit(Executing{context}, operation);
  } catch (...) {
    const CUresult result = result_of_exception();
    return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_ERROR_LAUNCH_FAILED;
  }
}

void pass_over(const Operation& operation, CUresult status) {
  if (const auto* record = std::get_if<RecordEvent>(&operation)) reach(*record->event);
  if (const auto* call = std::get_if<HostCall>(&operation)) run_host_function(*call, status);
  if (const auto* graph = std::get_if<RunGraph>(&operation)) pass_over(*graph->executable, status);
}

}  // namespace ptxgen::inline v0::driver::emulated
