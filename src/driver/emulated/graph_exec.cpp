// src/driver/emulated/graph_exec.cpp - executable graphs: instantiation, launch, update
#include <algorithm>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graph_memory.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// Null if the graph has a cycle.
std::shared_ptr<const Executable> program_of(const CUgraph_st& graph) {
  std::vector<CUgraphNode> order;
  if (!put_in_order(graph, order)) return nullptr;
  auto program = std::make_shared<Executable>();
  program->user_objects.insert(graph.user_objects.begin(), graph.user_objects.end());
  for (const CUgraphNode node : order) {
    Executable::Step step{node->operation, node->context, nullptr};
    if (node->child) {
      step.child = program_of(*node->child);
      if (!step.child) return nullptr;
      program->records.insert(program->records.end(), step.child->records.begin(),
                              step.child->records.end());
    }
    if (const auto* record = std::get_if<RecordEvent>(&step.operation)) {
      program->records.push_back(record->event);
    }
    program->steps.push_back(std::move(step));
  }
  find_memory(*program);
  return program;
}

/// Whether all objects of the graph still exist.
bool is_complete(const CUgraph_st& graph) {
  return std::ranges::all_of(graph.nodes, [](const std::shared_ptr<CUgraphNode_st>& node) {
    if (node->child) return is_complete(*node->child);
    if (node->context != nullptr && !living(node->context)) return false;
    const auto* const launch = std::get_if<KernelLaunch>(&node->operation);
    return launch == nullptr || living(launch->function);
  });
}

constexpr char kIncomplete[] =
    "a graph names a kernel whose module was unloaded, or a context that was destroyed";

/// Runs the operation in the memory of its own context, which may differ from the stream's.
CUresult run_in(CUcontext context, CUcontext own, const Operation& operation) {
  if (own == nullptr || own == context) return emulated::execute(context, operation);
  const std::shared_ptr<CUctx_st> other = hold(own);
  return other ? emulated::execute(other.get(), operation) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult run_step(CUcontext context, const Executable::Step& step,
                  const emulator::Options& options) {
  if (const auto* launch = std::get_if<KernelLaunch>(&step.operation)) {
    KernelLaunch now = *launch;
    now.options = options;
    return run_in(context, step.context, std::move(now));
  }
  if (const auto* wait = std::get_if<WaitEvent>(&step.operation)) {
    // In the same context the queue keeps the order; for others the latest record counts.
    if (wait->event->context == context) return CUDA_SUCCESS;
    WaitEvent waiting = *wait;
    {
      const std::lock_guard lock(waiting.event->mutex);
      waiting.ticket = waiting.event->recorded;
    }
    return emulated::execute(context, waiting);
  }
  return run_in(context, step.context, step.operation);
}

/// Runs the steps. After a fault, or if `status` is one, only the mandatory steps.
CUresult run_steps(CUcontext context, const Executable& graph, const emulator::Options& options,
                   CUresult status) {
  for (const Executable::Step& step : graph.steps) {
    if (step.child) {
      status = run_steps(context, *step.child, options, status);
      continue;
    }
    if (status != CUDA_SUCCESS) {
      pass_over(step.operation, status);
      continue;
    }
    status = run_step(context, step, options);
    if (status == CUDA_SUCCESS) continue;
    // A later wait for the event reports the fault.
    const std::lock_guard lock(context->mutex);
    if (context->fault == CUDA_SUCCESS) context->fault = status;
  }
  return status;
}

/// Difference between a graph and the source of an executable graph.
struct Difference {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  CUgraphNode node = nullptr;
  CUgraphNode from = nullptr;
};

std::size_t index_of(const CUgraph_st& graph, CUgraphNode node) {
  const auto found = std::ranges::find(graph.nodes, node, &std::shared_ptr<CUgraphNode_st>::get);
  return static_cast<std::size_t>(found - graph.nodes.begin());
}

/// Nodes correspond by their order; numbers may differ after nodes were destroyed.
Difference compare(const CUgraph_st& own, const CUgraph_st& graph) {
  const std::size_t common = std::min(own.nodes.size(), graph.nodes.size());
  for (std::size_t i = 0; i < common; ++i) {
    const CUgraphNode_st& before = *own.nodes[i];
    const CUgraphNode after = graph.nodes[i].get();
    if (before.type != after->type) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, after, nullptr};
    }
    if (before.edges.size() != after->edges.size()) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, after, nullptr};
    }
    for (const CUgraphNode_st::Edge& edge : after->edges) {
      const std::size_t from = index_of(graph, edge.from);
      const bool known = std::ranges::any_of(before.edges, [&](const CUgraphNode_st::Edge& one) {
        return index_of(own, one.from) == from;
      });
      if (!known) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, after, edge.from};
    }
    if (before.context != after->context) {
      return {before.type == CU_GRAPH_NODE_TYPE_KERNEL
                  ? CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED
                  : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
              after, nullptr};
    }
    const auto* const old_copy = std::get_if<Copy>(&before.operation);
    const auto* const new_copy = std::get_if<Copy>(&after->operation);
    if (old_copy != nullptr && new_copy != nullptr &&
        (old_copy->to.kind != new_copy->to.kind || old_copy->from.kind != new_copy->from.kind)) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, after, nullptr};
    }
    const auto* const old_memory = std::get_if<AllocateMemory>(&before.operation);
    const auto* const new_memory = std::get_if<AllocateMemory>(&after->operation);
    if (old_memory != nullptr && old_memory->memory != new_memory->memory) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, after, nullptr};
    }
    if (before.child) {
      Difference inside = compare(*before.child, *after->child);
      if (inside.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return {inside.result, after, nullptr};
    }
  }
  if (own.nodes.size() != graph.nodes.size()) {
    CUgraphNode const extra = graph.nodes.size() > common ? graph.nodes[common].get() : nullptr;
    return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, extra, nullptr};
  }
  return {};
}

/// Replaces the operations of the nodes. The origins stay: handles of the first graph remain valid.
void take_over(CUgraph_st& own, const CUgraph_st& graph) {
  own.user_objects = UserObjects(graph.user_objects);
  for (std::size_t i = 0; i < own.nodes.size(); ++i) {
    own.nodes[i]->operation = graph.nodes[i]->operation;
    if (own.nodes[i]->child) take_over(*own.nodes[i]->child, *graph.nodes[i]->child);
  }
}

/// With the executable graph, and the lock held.
template <class Work>
CUresult with_exec(CUgraphExec handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraphExec_st> executable = hold(handle);
    return executable ? work(*executable) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// Replaces the operation of the node that was made from `node`, if it is one of this kind that
/// `fits`. Queued launches keep the previous one.
template <class Kind, class Fits>
CUresult replace(CUgraphExec executable, CUgraphNode node, Kind operation, Fits&& fits) {
  return with_exec(executable, [&](CUgraphExec_st& exec) {
    const auto found = std::ranges::find_if(exec.graph->nodes,
                                            [&](const auto& one) { return one->origin == node; });
    if (found == exec.graph->nodes.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto* const before = std::get_if<Kind>(&(*found)->operation);
    if (before == nullptr || !fits(*before)) return CUDA_ERROR_INVALID_VALUE;
    (*found)->operation = std::move(operation);
    exec.program = program_of(*exec.graph);
    return CUDA_SUCCESS;
  });
}

CUresult instantiate(CUgraphExec* executable, CUgraph handle, std::uint64_t flags,
                     CUgraphInstantiateResult& why) {
  constexpr std::uint64_t kAll =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  why = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (executable == nullptr || (flags & ~kAll) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "a graph cannot be instantiated for launches by kernels in the emulated driver");
  }
  const auto made = std::make_shared<CUgraphExec_st>();
  made->flags = flags;
  bool whole = false;
  bool another = false;
  {
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    if (graph->capturing) return CUDA_ERROR_ILLEGAL_STATE;
    whole = is_complete(*graph);
    another = is_instantiated(*graph);
    if (whole && !another) {
      made->graph = copy_of(*graph);
      made->program = program_of(*made->graph);
      note_instantiation(*graph, made);
    }
  }
  if (!whole) return refuse(CUDA_ERROR_INVALID_HANDLE, kIncomplete);
  if (another) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "a graph with nodes that allocate memory is instantiated already; destroy that "
                  "executable graph first");
  }
  if (!made->program) {
    why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  "a graph cannot be instantiated: its dependencies form a cycle");
  }
  enroll(made);
  *executable = made.get();
  why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace

const std::vector<std::shared_ptr<CUevent_st>>& records_of(const Executable& graph) {
  return graph.records;
}

CUresult execute(CUcontext context, const RunGraph& graph) {
  return run_steps(context, *graph.executable, *graph.options, CUDA_SUCCESS);
}

void pass_over(const Executable& graph, CUresult status) {
  static_cast<void>(run_steps(nullptr, graph, {}, status));
}

namespace entries {

CUresult graph_instantiate_with_flags(CUgraphExec* executable, CUgraph graph,
                                      unsigned long long flags) {
  return guarded([&] {
    CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return instantiate(executable, graph, flags, why);
  });
}

CUresult graph_instantiate_with_params(CUgraphExec* executable, CUgraph graph,
                                       CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params) {
  return guarded([&] {
    if (instantiate_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    instantiate_params->hErrNode_out = nullptr;
    return instantiate(executable, graph, instantiate_params->flags,
                       instantiate_params->result_out);
  });
}

CUresult graph_exec_destroy(CUgraphExec executable) {
  return with_exec(executable, [&](CUgraphExec_st&) {
    gone(executable);
    return CUDA_SUCCESS;
  });
}

CUresult graph_launch(CUgraphExec handle, CUstream stream_handle) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(stream_handle, stream); result != CUDA_SUCCESS) {
      return result;
    }
    RunGraph run;
    bool complete = false;
    std::string problem;
    std::vector<std::shared_ptr<GraphMemory>> free;
    {
      const std::lock_guard lock(graphs_mutex());
      const std::shared_ptr<CUgraphExec_st> executable = hold(handle);
      if (!executable) return CUDA_ERROR_INVALID_VALUE;
      complete = is_complete(*executable->graph);
      if (complete && stream->capture && !has_memory_nodes(*executable->graph)) {
        bool captured = false;
        return capture_graph(stream, *executable->graph, captured);
      }
      run.executable = executable->program;
      if (stream->capture) {
        problem =
            "cuGraphLaunch: a graph with nodes that allocate or free memory cannot be captured";
      } else if (complete) {
        const bool auto_free =
            (executable->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
        problem = begin_launch(*run.executable, auto_free, free);
      }
    }
    if (!complete) return refuse(CUDA_ERROR_INVALID_HANDLE, kIncomplete);
    if (!problem.empty()) return refuse(CUDA_ERROR_INVALID_VALUE, problem);
    for (std::shared_ptr<GraphMemory>& memory : free) {
      const CUdeviceptr address = memory->start();
      if (const CUresult result = submit(stream, FreeMemory{address, std::move(memory)})) {
        return result;
      }
    }
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    {
      const std::lock_guard lock(context->mutex);
      run.options = std::make_shared<const emulator::Options>(context->options);
    }
    return submit(stream, std::move(run));
  });
}

CUresult graph_upload(CUgraphExec handle, CUstream stream_handle) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(stream_handle, stream); result != CUDA_SUCCESS) {
      return result;
    }
    if (const CUresult result = not_in_capture(stream); result != CUDA_SUCCESS) return result;
    return living(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult graph_exec_kernel_node_set_params(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* node_params) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (node_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    KernelLaunch launch;
    if (const CUresult result = make_launch(*node_params, launch); result != CUDA_SUCCESS) {
      return result;
    }
    return replace(executable, node, std::move(launch), [](const auto&) { return true; });
  });
}

CUresult graph_exec_memcpy_node_set_params(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_MEMCPY3D* copy_params, CUcontext handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    Copy copy;
    if (const CUresult result =
            operation_of("cuGraphExecMemcpyNodeSetParams", copy_params, *context, copy)) {
      return result;
    }
    if (copy.width == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto is_linear = [](const Copy& one) { return one.height == 1 && one.depth == 1; };
    return replace(executable, node, copy, [&](const Copy& before) {
      return is_linear(before) && is_linear(copy) && before.to.kind == copy.to.kind &&
             before.from.kind == copy.from.kind;
    });
  });
}

CUresult graph_exec_memset_node_set_params(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_MEMSET_NODE_PARAMS* memset_params,
                                           CUcontext handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    Fill fill;
    if (const CUresult result =
            operation_of("cuGraphExecMemsetNodeSetParams", memset_params, *context, fill)) {
      return result;
    }
    return replace(executable, node, fill, [&](const Fill& before) {
      const bool same_rows = before.width == fill.width && before.pitch == fill.pitch &&
                             before.element_bytes == fill.element_bytes;
      return before.height == fill.height && (fill.height == 1 || same_rows);
    });
  });
}

CUresult graph_exec_host_node_set_params(CUgraphExec executable, CUgraphNode node,
                                         const CUDA_HOST_NODE_PARAMS* host_params) {
  return guarded([&]() -> CUresult {
    HostCall call;
    if (const CUresult result = operation_of(host_params, call)) return result;
    return replace(executable, node, std::move(call),
                   [](const HostCall& before) { return before.kernel == nullptr; });
  });
}

CUresult graph_exec_update(CUgraphExec executable, CUgraph handle,
                           CUgraphExecUpdateResultInfo* info) {
  return with_exec(executable, [&](CUgraphExec_st& exec) {
    if (info != nullptr) *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    if (!graph || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
    const Difference difference = compare(*exec.graph, *graph);
    if (info != nullptr) *info = {difference.result, difference.node, difference.from};
    if (difference.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    take_over(*exec.graph, *graph);
    exec.program = program_of(*exec.graph);
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
