// src/driver/emulated/graph_memory.cpp - memory that graphs allocate
#include "driver/emulated/graph_memory.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "driver/emulated/conditions.hpp"
#include "driver/emulated/entries.hpp"
#include "driver/emulated/memory.hpp"
#include "emulator/state/address_space.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// Memory of all graphs of a device at this time, and the maximum. As a GPU's driver keeps freed
/// memory for later launches, it counts until cuDeviceGraphMemTrim; here it is given back at once.
struct Use {
  std::uint64_t now = 0;    ///< with `freed`
  std::uint64_t freed = 0;  ///< since the last trim, and not allocated again
  std::uint64_t used_high = 0;
  std::uint64_t reserved_high = 0;
};
struct Uses {
  std::mutex mutex;
  std::map<CUdevice, Use> of_device;
};
/// Never destroyed, as the other tables of the driver.
Uses& uses() {
  static Uses* const the_uses = new Uses;
  return *the_uses;
}

void count_allocation(CUdevice device, std::uint64_t bytes) {
  const std::lock_guard lock(uses().mutex);
  Use& use = uses().of_device[device];
  const std::uint64_t again = std::min(use.freed, bytes);
  use.freed -= again;
  use.now += bytes - again;
  use.used_high = std::max(use.used_high, use.now);
  use.reserved_high = std::max(use.reserved_high, use.now);
}

void count_free(CUdevice device, std::uint64_t bytes) {
  const std::lock_guard lock(uses().mutex);
  uses().of_device[device].freed += bytes;
}

emulator::Part memory_part(std::uint64_t bytes, bool live) {
  return {bytes, live, false, "which the graph has not allocated, or has freed",
          "order the access after the allocation node and before the memory is freed"};
}

/// Whether a free node may be added; with graphs_mutex() held.
bool add_free(CUgraph_st& graph, GraphMemory& memory) {
  const auto in_graph = [&](const auto& node) {
    const auto* const allocation = std::get_if<AllocateMemory>(&node->operation);
    return allocation != nullptr && allocation->memory.get() == &memory;
  };
  const auto frees_it = [&](const auto& node) {
    const auto* const free = std::get_if<FreeMemory>(&node->operation);
    return free != nullptr && free->memory.get() == &memory;
  };
  const auto by = std::ranges::any_of(graph.nodes, in_graph) ? GraphMemory::FreedBy::OwnGraph
                                                             : GraphMemory::FreedBy::OtherGraph;
  const bool twice = std::ranges::any_of(graph.nodes, frees_it);
  if (twice || (memory.freed_by != GraphMemory::FreedBy::None && memory.freed_by != by)) {
    return false;
  }
  memory.freed_by = by;
  return true;
}

CUresult refuse_free(const char* call, CUdeviceptr address) {
  return refuse(CUDA_ERROR_INVALID_VALUE,
                format_text("{}: the memory at {:#x} is of no allocation node, or another node "
                            "frees it; a graph frees an allocation once, and if its own graph "
                            "does, no other one",
                            call, address));
}

CUresult check_allocation(const CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  const CUmemPoolProps& pool = params.poolProps;
  const bool managed = pool.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
  if (params.bytesize == 0 || (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED && !managed) ||
      (params.accessDescs == nullptr && params.accessDescCount != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "cuGraphAddMemAllocNode: the emulated driver allocates memory of devices without "
                  "handles to share it (CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE)");
  }
  if (gpu_of(pool.location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  for (std::size_t i = 0; i < params.accessDescCount; ++i) {
    const CUmemAccessDesc& access = params.accessDescs[i];
    if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (access.location.id != pool.location.id && access.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      return refuse(CUDA_ERROR_INVALID_DEVICE,
                    "cuGraphAddMemAllocNode: emulated devices cannot access each other's memory");
    }
  }
  return CUDA_SUCCESS;
}

/// Every operation, also those of children. Bodies hold none that allocates or frees.
template <class Work>
void for_each_step(const Executable& program, Work&& work) {
  for (const Executable::Step& step : program.steps) {
    work(step.operation);
    if (step.child) for_each_step(*step.child, work);
  }
}

template <class Work>
CUresult with_use(CUdevice device, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (gpu_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    // NVIDIA's driver counts the memory of a graph when it is launched, not when it runs.
    for (const std::shared_ptr<CUctx_st>& context : living_contexts()) {
      if (context->device == device) static_cast<void>(wait_for_all(context.get()));
    }
    const std::lock_guard lock(uses().mutex);
    return work(uses().of_device[device]);
  });
}

}  // namespace

GraphMemory::~GraphMemory() {
  const std::lock_guard lock(owner_->mutex);
  owner_->ended.push_back(start_);
}

void GraphMemory::allocate(emulator::AddressSpace& space) {
  if (live_) return;
  space.claim(bytes_, "the memory of a graph");
  const emulator::Part part = memory_part(bytes_, true);
  space.divide(start_, {&part, 1});
  live_ = true;
  // The emulator does not see writes of the host: all of it counts as initialised.
  if (managed_) space.mark(start_, bytes_);
  count_allocation(device_, bytes_);
}

void GraphMemory::free(emulator::AddressSpace& space) {
  if (!std::exchange(live_, false)) return;
  const emulator::Part part = memory_part(bytes_, false);
  space.divide(start_, {&part, 1});
  space.discard(start_, bytes_);
  space.unclaim(bytes_);
  count_free(device_, bytes_);
}

std::shared_ptr<GraphMemory> make_graph_memory(CUctx_st& context, std::uint64_t bytes,
                                               bool managed) {
  sweep(context);
  const std::lock_guard memory_lock(context.memory_mutex);
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(context.mutex);
    id = ++context.blocks_made;
  }
  const CUdeviceptr start =
      context.memory.space().reserve(bytes, format_text("graph allocation {}", id),
                                     memory_part(bytes, false), alignment_of(bytes));
  auto memory =
      std::make_shared<GraphMemory>(context.graph_memories, context.device, start, bytes, managed);
  const std::lock_guard lock(context.graph_memories->mutex);
  context.graph_memories->ranges[start] = {bytes, memory};
  return memory;
}

void sweep(CUctx_st& context) {
  const std::lock_guard memory_lock(context.memory_mutex);
  const std::lock_guard lock(context.graph_memories->mutex);
  for (const CUdeviceptr start : std::exchange(context.graph_memories->ended, {})) {
    context.graph_memories->ranges.erase(start);
    context.memory.space().end_reservation(start);
  }
  for (const CUdeviceptr cell : std::exchange(context.graph_memories->ended_conditions, {})) {
    context.memory.space().free(cell);
  }
}

std::shared_ptr<GraphMemory> graph_memory_at(CUctx_st& context, CUdeviceptr address) {
  const std::lock_guard lock(context.graph_memories->mutex);
  auto& ranges = context.graph_memories->ranges;
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin()) return nullptr;
  --found;
  return address - found->first < found->second.bytes ? found->second.memory.lock() : nullptr;
}

CUresult free_graph_memory(CUctx_st& context, const char* call, CUdeviceptr address,
                           FreeMemory& operation, bool& found) {
  operation = {address, graph_memory_at(context, address)};
  found = operation.memory != nullptr && operation.memory->start() == address;
  if (!found) return CUDA_SUCCESS;
  {
    const std::lock_guard lock(graphs_mutex());
    if (std::exchange(operation.memory->held, nullptr) != nullptr) return CUDA_SUCCESS;
  }
  return refuse(CUDA_ERROR_INVALID_VALUE,
                format_text("{}: the graph's memory at {:#x} is not allocated: its graph was not "
                            "launched since it was freed, or frees it itself",
                            call, address));
}

CUresult capture_free(const std::shared_ptr<CUstream_st>& stream, const char* call,
                      CUdeviceptr address) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::shared_ptr<GraphMemory> memory = graph_memory_at(*context, address);
  bool added = false;
  if (memory && memory->start() == address) {
    const std::lock_guard lock(graphs_mutex());
    if (!stream->capture || stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    added = add_free(*stream->capture->graph, *memory);
  }
  if (!added) return refuse_free(call, address);
  return submit(stream, FreeMemory{address, memory});
}

CUresult capture_allocation(const std::shared_ptr<CUstream_st>& stream, std::uint64_t bytes,
                            CUdeviceptr* address) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::shared_ptr<GraphMemory> memory = make_graph_memory(*context, bytes);
  if (const CUresult result = submit(stream, AllocateMemory{memory})) return result;
  *address = memory->start();
  return CUDA_SUCCESS;
}

void forget_graph_memory_of(CUctx_st& context) {
  std::vector<std::shared_ptr<GraphMemory>> all;
  {
    const std::lock_guard lock(context.graph_memories->mutex);
    for (const auto& [start, range] : context.graph_memories->ranges) {
      all.push_back(range.memory.lock());
    }
  }
  std::erase(all, nullptr);
  {
    const std::lock_guard memory_lock(context.memory_mutex);
    for (const auto& memory : all) memory->free(context.memory.space());
  }
  const std::lock_guard lock(graphs_mutex());
  for (const auto& memory : all) memory->held = nullptr;
}

bool has_memory_nodes(const CUgraph_st& graph) noexcept {
  bool found = false;
  for_each_node(graph, [&](const CUgraphNode_st& node) {
    found = found || node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            node.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  });
  return found;
}

bool is_instantiated(const CUgraph_st& graph) noexcept {
  bool found = false;
  for_each_node(graph, [&](const CUgraphNode_st& node) {
    const auto* const allocation = std::get_if<AllocateMemory>(&node.operation);
    const auto* const choice = std::get_if<Choose>(&node.operation);
    found = found || (allocation != nullptr && !allocation->memory->executable.expired()) ||
            (choice != nullptr && !choice->condition->executable.expired());
  });
  return found;
}

void note_instantiation(const CUgraph_st& graph,
                        const std::shared_ptr<CUgraphExec_st>& executable) {
  for_each_node(graph, [&](const CUgraphNode_st& node) {
    const auto* const allocation = std::get_if<AllocateMemory>(&node.operation);
    const auto* const choice = std::get_if<Choose>(&node.operation);
    if (allocation != nullptr) allocation->memory->executable = executable;
    if (choice != nullptr) choice->condition->executable = executable;
  });
}

void find_memory(Executable& program) {
  std::set<GraphMemory*> freed;
  for_each_step(program, [&](const Operation& operation) {
    if (const auto* const free = std::get_if<FreeMemory>(&operation)) {
      freed.insert(free->memory.get());
    }
  });
  for_each_step(program, [&](const Operation& operation) {
    const auto* const allocation = std::get_if<AllocateMemory>(&operation);
    if (allocation == nullptr) return;
    if (freed.erase(allocation->memory.get()) == 0) program.kept.push_back(allocation->memory);
  });
  for_each_step(program, [&](const Operation& operation) {
    const auto* const free = std::get_if<FreeMemory>(&operation);
    if (free != nullptr && freed.contains(free->memory.get())) {
      program.freed.push_back(free->memory);
    }
  });
}

std::string begin_launch(const Executable& program, bool auto_free,
                         std::vector<std::shared_ptr<GraphMemory>>& free) {
  for (const std::shared_ptr<GraphMemory>& memory : program.kept) {
    if (!memory->held) continue;
    if (!auto_free) {
      return format_text(
          "cuGraphLaunch: the graph's memory at {:#x} was not freed since the previous launch; "
          "free "
          "it, or instantiate with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH",
          memory->start());
    }
    free.push_back(memory);
  }
  for (const std::shared_ptr<GraphMemory>& memory : program.freed) {
    if (memory->held) continue;
    return format_text(
        "cuGraphLaunch: the graph frees the memory at {:#x} of another graph, which is not "
        "allocated; launch that graph before",
        memory->start());
  }
  for (const std::shared_ptr<GraphMemory>& memory : program.kept) memory->held = memory;
  for (const std::shared_ptr<GraphMemory>& memory : program.freed) memory->held = nullptr;
  return {};
}

namespace entries {

CUresult graph_add_mem_alloc_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  std::size_t num_dependencies,
                                  CUDA_MEM_ALLOC_NODE_PARAMS* node_params) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_allocation(*node_params)) return result;
    const std::shared_ptr<CUctx_st> context = context_on(node_params->poolProps.location.id);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    const bool managed = node_params->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    if (managed && !is_unified(*context)) {
      return refuse(CUDA_ERROR_NOT_SUPPORTED, no_managed_memory("cuGraphAddMemAllocNode"));
    }
    const std::shared_ptr<GraphMemory> memory =
        make_graph_memory(*context, node_params->bytesize, managed);
    if (const CUresult result =
            add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                     AllocateMemory{memory}, context.get())) {
      return result;
    }
    node_params->dptr = memory->start();
    return CUDA_SUCCESS;
  });
}

CUresult graph_mem_alloc_node_get_params(CUgraphNode handle,
                                         CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  return with_node(handle, [&](CUgraphNode_st& node) {
    const auto* const allocation = std::get_if<AllocateMemory>(&node.operation);
    if (params_out == nullptr || allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const GraphMemory& memory = *allocation->memory;
    const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, memory.device()};
    node.access = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    *params_out = {};
    params_out->poolProps.allocType =
        memory.managed() ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
    params_out->poolProps.location = here;
    params_out->accessDescs = &node.access;
    params_out->accessDescCount = 1;
    params_out->bytesize = static_cast<std::size_t>(memory.bytes());
    params_out->dptr = memory.start();
    return CUDA_SUCCESS;
  });
}

CUresult graph_add_mem_free_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 std::size_t num_dependencies, CUdeviceptr address) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    const std::shared_ptr<GraphMemory> memory = graph_memory_at(*context, address);
    bool added = false;
    auto before = GraphMemory::FreedBy::None;
    if (memory && memory->start() == address) {
      const std::lock_guard lock(graphs_mutex());
      const std::shared_ptr<CUgraph_st> owner = hold(graph);
      if (!owner) return CUDA_ERROR_INVALID_VALUE;
      before = memory->freed_by;
      added = add_free(*owner, *memory);
    }
    if (!added) return refuse_free("cuGraphAddMemFreeNode", address);
    const CUresult result =
        add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_MEM_FREE,
                 FreeMemory{address, memory}, context.get());
    if (result != CUDA_SUCCESS) {
      const std::lock_guard lock(graphs_mutex());
      memory->freed_by = before;
    }
    return result;
  });
}

CUresult graph_mem_free_node_get_params(CUgraphNode handle, CUdeviceptr* address_out) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    const auto* const free = std::get_if<FreeMemory>(&node.operation);
    if (address_out == nullptr || free == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *address_out = free->address;
    return CUDA_SUCCESS;
  });
}

CUresult device_graph_mem_trim(CUdevice device) {
  return with_use(device, [](Use& use) {
    use.now -= std::exchange(use.freed, 0);
    return CUDA_SUCCESS;
  });
}

CUresult device_get_graph_mem_attribute(CUdevice device, CUgraphMem_attribute attribute,
                                        void* value) {
  return with_use(device, [&](const Use& use) {
    std::uint64_t found = use.now;
    if (value == nullptr || attribute < CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ||
        attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) found = use.used_high;
    if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) found = use.reserved_high;
    std::memcpy(value, &found, sizeof found);
    return CUDA_SUCCESS;
  });
}

/// Writing zero resets a high-water mark to the current use.
CUresult device_set_graph_mem_attribute(CUdevice device, CUgraphMem_attribute attribute,
                                        void* value) {
  return with_use(device, [&](Use& use) {
    std::uint64_t wanted = 0;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(&wanted, value, sizeof wanted);
    if (wanted != 0) return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
      use.used_high = use.now;
    } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
      use.reserved_high = use.now;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
