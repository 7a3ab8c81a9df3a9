// src/driver/recorder/graph_memory.cpp - memory that graphs of a recorded program allocate
#include <iterator>

#include "driver/recorder/recorder.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

/// Writes the step of a node that the driver has run.
struct WriteNode {
  Recorder& all;

  void operator()(const std::monostate&) const {}
  void operator()(const ChildWork&) const {}
  void operator()(const HostWork&) const {}
  void operator()(const EventWork&) const {}
  void operator()(const CopyWork& work) const { write_in_graph(all, work); }
  void operator()(const FillWork& work) const { write_in_graph(all, work.step); }
  void operator()(const KernelWork& work) const {
    const RecordedKernel* const kernel = kernel_of(all, work.function);
    if (kernel == nullptr) return;  // run_with_memory is not called for it
    LaunchStep step = work.step;
    step.module = kernel->module;
    step.kernel = kernel->name;
    all.sink.write(step);
  }
  void operator()(const MemoryWork& work) const {
    // Kept from the launch before: the executable frees it itself (AUTO_FREE_ON_LAUNCH).
    freed(all, work.address);
    if (work.bytes != 0) allocated_in_graph(all, work.address, work.bytes);
  }
};

}  // namespace

void add_graph_memory(Recorder& all, CUdeviceptr address, std::uint64_t bytes, CUgraph graph) {
  CUcontext now = nullptr;
  if (all.base.ctx_get_current(&now) != CUDA_SUCCESS) return;
  if (all.context != nullptr && now != all.context) return;
  all.begin();
  all.graph_memory[address] = {bytes, graph, nullptr};
  all.sink.write(GraphMemoryStep{address, bytes});
}

void captured_memory(Recorder& all, CUstream stream, CUdeviceptr address, std::uint64_t bytes) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const auto ask = all.base.stream_get_capture_info_v2;
  if (ask == nullptr || ask(stream, &status, nullptr, &graph, nullptr, nullptr) != CUDA_SUCCESS) {
    return;
  }
  add_graph_memory(all, address, bytes, graph);
}

Work memory_work(const Recorder& all, CUgraphNode node, CUgraphNodeType type) {
  const auto of_allocation = all.base.graph_mem_alloc_node_get_params;
  const auto of_free = all.base.graph_mem_free_node_get_params;
  MemoryWork work;
  if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    const bool known = of_free != nullptr && of_free(node, &work.address) == CUDA_SUCCESS;
    return known ? Work(work) : Work();
  }
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  if (of_allocation == nullptr || of_allocation(node, &params) != CUDA_SUCCESS ||
      all.graph_memory.count(params.dptr) == 0) {
    return {};
  }
  work.address = params.dptr;
  work.bytes = params.bytesize;
  return work;
}

void end_graph_memory(Recorder& all, CUgraph graph, CUgraphExec executable) {
  for (auto one = all.graph_memory.begin(); one != all.graph_memory.end();) {
    Recorder::GraphMemory& memory = one->second;
    if (graph != nullptr && memory.graph == graph) memory.graph = nullptr;
    if (executable != nullptr && memory.executable == executable) memory.executable = nullptr;
    const bool used = memory.graph != nullptr || memory.executable != nullptr ||
                      all.allocated.count(one->first) != 0;
    if (!used) all.sink.write(GraphMemoryStep{one->first, 0});
    one = used ? std::next(one) : all.graph_memory.erase(one);
  }
}

void forget_graph_memory(Recorder& all) {
  for (const auto& [address, memory] : all.graph_memory) {
    all.sink.write(GraphMemoryStep{address, 0});
  }
  all.graph_memory.clear();
}

CUresult run_with_memory(const CallScope& scope, const RecordedGraph& graph, const Call& call) {
  Recorder& all = scope.recorder();
  all.catch_up();
  const CUresult result = call();
  if (result != CUDA_SUCCESS) return result;
  const CUresult waited = scope.wait();
  all.sink.write(BeginGraphStep{});
  for (const RecordedGraph::Node& node : graph.nodes) std::visit(WriteNode{all}, node.work);
  EndGraphStep end;
  if (waited == CUDA_SUCCESS) {
    (void)add_outputs(all, end.outputs);
  } else {
    end.failure = result_name(waited);
  }
  all.sink.write(end);
  if (waited != CUDA_SUCCESS) all.lost(waited);
  return result;
}

void replace_graph_memory(Table& table) {
  table.graph_destroy = [](CUgraph graph) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.graph_destroy(graph);
      if (result != CUDA_SUCCESS) return result;
      const std::lock_guard lock(all.mutex);
      end_graph_memory(all, graph, nullptr);
      return result;
    });
  };
  if (table.graph_add_mem_alloc_node == nullptr) return;
  table.graph_add_mem_alloc_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                      std::size_t count,
                                      CUDA_MEM_ALLOC_NODE_PARAMS* params) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.graph_add_mem_alloc_node(node, graph, after, count, params);
      if (result != CUDA_SUCCESS) return result;
      const std::lock_guard lock(all.mutex);
      add_graph_memory(all, params->dptr, params->bytesize, graph);
      return result;
    });
  };
}

}  // namespace ptxgen::inline v0::driver::recorder
