// src/driver/emulated/graph_exec.cpp - executable graphs: instantiation, launch, update
#include <algorithm>
#include <utility>

#include "driver/emulated/conditions.hpp"
#include "driver/emulated/entries.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// Null if the graph has a cycle.
std::shared_ptr<const Executable> program_of(const CUgraph_st& graph) {
  std::vector<CUgraphNode> order;
  if (!put_in_order(graph, order)) return nullptr;
  auto program = std::make_shared<Executable>();
  program->user_objects.insert(graph.user_objects.begin(), graph.user_objects.end());
  for (const CUgraphNode node : order) {
    Executable::Step step{node->enabled ? node->operation : Empty{}, node->context, nullptr, {}};
    if (node->child) {
      step.child = program_of(*node->child);
      if (!step.child) return nullptr;
      program->records.insert(program->records.end(), step.child->records.begin(),
                              step.child->records.end());
    }
    for (const std::shared_ptr<CUgraph_st>& body : node->bodies) {
      step.bodies.push_back(program_of(*body));
      if (!step.bodies.back()) return nullptr;
      program->conditions.insert(program->conditions.end(), step.bodies.back()->conditions.begin(),
                                 step.bodies.back()->conditions.end());
    }
    if (const auto* choice = std::get_if<Choose>(&step.operation)) {
      program->conditions.push_back(choice->condition);
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
    const auto complete = [](const std::shared_ptr<CUgraph_st>& body) {
      return is_complete(*body);
    };
    if (!std::ranges::all_of(node->bodies, complete)) return false;
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

CUresult run_steps(CUcontext context, const Executable& graph, const emulator::Options& options,
                   CUresult status);

/// Runs what a condition selects. A body that never ends is only stopped by the end of the context,
/// as on a GPU.
CUresult run_bodies(CUcontext context, const Executable::Step& step, const Choose& choice,
                    const emulator::Options& options) {
  const auto ends = [&] {
    const std::lock_guard lock(context->mutex);
    return context->stop;
  };
  CUresult status = CUDA_SUCCESS;
  if (choice.type == CU_GRAPH_COND_TYPE_WHILE) {
    while (status == CUDA_SUCCESS && value_of(*choice.condition) != 0 && !ends()) {
      status = run_steps(context, *step.bodies[0], options, status);
    }
    return status;
  }
  const unsigned value = value_of(*choice.condition);
  const std::size_t index = choice.type == CU_GRAPH_COND_TYPE_SWITCH ? value : value != 0 ? 0 : 1;
  if (index >= step.bodies.size()) return status;
  return run_steps(context, *step.bodies[index], options, status);
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
    const auto* const choice = std::get_if<Choose>(&step.operation);
    status = choice != nullptr ? run_bodies(context, step, *choice, options)
                               : run_step(context, step, options);
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

Difference compare(const CUgraph_st& own, const CUgraph_st& graph);

/// The same for the graphs that nodes of one type hold.
Difference compare_inside(const CUgraphNode_st& before, const CUgraphNode_st& after) {
  const auto* const old_choice = std::get_if<Choose>(&before.operation);
  const auto* const new_choice = std::get_if<Choose>(&after.operation);
  if (old_choice != nullptr && new_choice != nullptr &&
      (old_choice->type != new_choice->type || before.bodies.size() != after.bodies.size())) {
    return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, nullptr, nullptr};
  }
  Difference found;
  if (before.child) found = compare(*before.child, *after.child);
  for (std::size_t i = 0; i < before.bodies.size(); ++i) {
    if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return found;
    found = compare(*before.bodies[i], *after.bodies[i]);
  }
  return found;
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
    Difference inside = compare_inside(before, *after);
    if (inside.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return {inside.result, after, nullptr};
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
  own.conditions = graph.conditions;
  for (std::size_t i = 0; i < own.nodes.size(); ++i) {
    CUgraphNode_st& node = *own.nodes[i];
    const CUgraphNode_st& from = *graph.nodes[i];
    node.operation = from.operation;
    if (node.child) take_over(*node.child, *from.child);
    for (std::size_t j = 0; j < node.bodies.size(); ++j) {
      take_over(*node.bodies[j], *from.bodies[j]);
    }
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

/// The node of the executable graph that was copied from `node`, also one inside a node; or null.
CUgraphNode made_from(const CUgraph_st& graph, CUgraphNode node) {
  CUgraphNode found = nullptr;
  for_each_node(graph, [&](CUgraphNode_st& one) {
    if (one.origin == node) found = &one;
  });
  return found;
}

/// Replaces the operation of the node that was made from `node`, if it is one of this kind that
/// `fits`. Queued launches keep the previous one.
template <class Kind, class Fits>
CUresult replace(CUgraphExec executable, CUgraphNode node, Kind operation, Fits&& fits) {
  return with_exec(executable, [&](CUgraphExec_st& exec) {
    CUgraphNode const found = made_from(*exec.graph, node);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* const before = std::get_if<Kind>(&found->operation);
    if (before == nullptr || !fits(*before)) return CUDA_ERROR_INVALID_VALUE;
    found->operation = std::move(operation);
    exec.program = program_of(*exec.graph);
    return CUDA_SUCCESS;
  });
}

template <class Kind>
CUresult replace_event(CUgraphExec executable, CUgraphNode node, Kind operation) {
  if (!operation.event) return CUDA_ERROR_INVALID_HANDLE;
  CUcontext const context = operation.event->context;
  const CUresult result =
      replace(executable, node, std::move(operation), [](const Kind&) { return true; });
  if (result != CUDA_SUCCESS) return result;
  return with_exec(executable, [&](CUgraphExec_st& exec) {
    if (CUgraphNode const found = made_from(*exec.graph, node)) found->context = context;
    exec.program = program_of(*exec.graph);
    return CUDA_SUCCESS;
  });
}

/// A node of the kinds that can be disabled, in an executable graph.
template <class Work>
CUresult with_switchable(CUgraphExec executable, CUgraphNode node, Work&& work) {
  return with_exec(executable, [&](CUgraphExec_st& exec) -> CUresult {
    CUgraphNode const found = made_from(*exec.graph, node);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool can_be = found->type == CU_GRAPH_NODE_TYPE_KERNEL ||
                        found->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                        found->type == CU_GRAPH_NODE_TYPE_MEMSET;
    return can_be ? work(exec, *found) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// With what was wrong. Without the lock, because errors go to the log.
struct Instantiation {
  CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_ERROR;
  CUgraphNode node = nullptr;
};

CUresult refuse_graph(const CUgraphExec_st& built, bool complete, bool another,
                      const Unfit& problem, Instantiation& outcome) {
  if (!complete) return refuse(CUDA_ERROR_INVALID_HANDLE, kIncomplete);
  if (another) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "a graph with nodes that allocate memory, or with conditional nodes, is "
                  "instantiated already; destroy that executable graph first");
  }
  outcome.why = problem.why;
  outcome.node = problem.node;
  if (problem.why != CUDA_GRAPH_INSTANTIATE_SUCCESS) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  std::string("a graph cannot be instantiated: ") + problem.text);
  }
  if (built.program) return CUDA_SUCCESS;
  outcome.why = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return refuse(CUDA_ERROR_INVALID_VALUE,
                "a graph cannot be instantiated: its dependencies form a cycle");
}

CUresult instantiate(CUgraphExec* executable, CUgraph handle, std::uint64_t flags,
                     Instantiation& outcome) {
  constexpr std::uint64_t kAll =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (executable == nullptr || (flags & ~kAll) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "a graph cannot be instantiated for launches by kernels in the emulated driver");
  }
  const auto built = std::make_shared<CUgraphExec_st>();
  built->flags = flags;
  bool complete = false;
  bool another = false;
  Unfit problem;
  {
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    if (!graph || graph->owner != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (graph->capturing) return CUDA_ERROR_ILLEGAL_STATE;
    complete = is_complete(*graph);
    another = is_instantiated(*graph);
    problem = unfit(*graph);
    if (complete && !another && problem.why == CUDA_GRAPH_INSTANTIATE_SUCCESS) {
      built->graph = copy_of(*graph);
      built->program = program_of(*built->graph);
      if (built->program) note_instantiation(*graph, built);
    }
  }
  if (const CUresult result = refuse_graph(*built, complete, another, problem, outcome))
    return result;
  enroll(built);
  *executable = built.get();
  return CUDA_SUCCESS;
}

}  // namespace

const std::vector<std::shared_ptr<CUevent_st>>& records_of(const Executable& graph) {
  return graph.records;
}

CUresult execute(CUcontext context, const RunGraph& graph) {
  for (const std::shared_ptr<Condition>& condition : graph.executable->conditions) {
    reset(*condition);
  }
  return run_steps(context, *graph.executable, *graph.options, CUDA_SUCCESS);
}

void pass_over(const Executable& graph, CUresult status) {
  static_cast<void>(run_steps(nullptr, graph, {}, status));
}

namespace entries {

CUresult graph_instantiate_with_flags(CUgraphExec* executable, CUgraph graph,
                                      unsigned long long flags) {
  return guarded([&] {
    Instantiation outcome;
    return instantiate(executable, graph, flags, outcome);
  });
}

CUresult graph_instantiate_with_params(CUgraphExec* executable, CUgraph graph,
                                       CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params) {
  return guarded([&] {
    if (instantiate_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Instantiation outcome;
    const CUresult result = instantiate(executable, graph, instantiate_params->flags, outcome);
    instantiate_params->hErrNode_out = outcome.node;
    instantiate_params->result_out = outcome.why;
    return result;
  });
}

CUresult graph_exec_destroy(CUgraphExec executable) {
  const CUresult result = with_exec(executable, [&](CUgraphExec_st&) {
    gone(executable);
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return result;
  return guarded([] {
    sweep_conditions();
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
      const bool conditional = has_conditions(*executable->graph);
      if (complete && stream->capture && !conditional && !has_memory_nodes(*executable->graph)) {
        bool captured = false;
        return capture_graph(stream, *executable->graph, captured);
      }
      run.executable = executable->program;
      if (stream->capture) {
        problem = conditional
                      ? "cuGraphLaunch: a graph with conditional nodes cannot be captured"
                      : "cuGraphLaunch: a graph with nodes that allocate or free memory cannot be "
                        "captured";
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
    // Clusters and cooperation stay.
    (void)with_exec(executable, [&](const CUgraphExec_st& exec) {
      CUgraphNode const found = made_from(*exec.graph, node);
      if (found == nullptr) return CUDA_SUCCESS;
      if (const auto* now = std::get_if<KernelLaunch>(&found->operation)) launch = *now;
      return CUDA_SUCCESS;
    });
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

CUresult graph_exec_event_record_node_set_event(CUgraphExec executable, CUgraphNode node,
                                                CUevent event) {
  return guarded([&] { return replace_event(executable, node, RecordEvent{hold(event)}); });
}
CUresult graph_exec_event_wait_node_set_event(CUgraphExec executable, CUgraphNode node,
                                              CUevent event) {
  return guarded([&] { return replace_event(executable, node, WaitEvent{hold(event), 0}); });
}

CUresult graph_exec_child_graph_node_set_params(CUgraphExec executable, CUgraphNode node,
                                                CUgraph child_graph) {
  return with_exec(executable, [&](CUgraphExec_st& exec) {
    CUgraphNode const found = made_from(*exec.graph, node);
    const std::shared_ptr<CUgraph_st> graph = hold(child_graph);
    if (found == nullptr || !found->child || !graph || graph->capturing) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (compare(*found->child, *graph).result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    take_over(*found->child, *graph);
    exec.program = program_of(*exec.graph);
    return CUDA_SUCCESS;
  });
}

CUresult graph_node_set_enabled(CUgraphExec executable, CUgraphNode node, unsigned is_enabled) {
  return with_switchable(executable, node, [&](CUgraphExec_st& exec, CUgraphNode_st& found) {
    found.enabled = is_enabled != 0;
    exec.program = program_of(*exec.graph);
    return CUDA_SUCCESS;
  });
}
CUresult graph_node_get_enabled(CUgraphExec executable, CUgraphNode node, unsigned* is_enabled) {
  return with_switchable(executable, node, [&](const CUgraphExec_st&, const CUgraphNode_st& found) {
    if (is_enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *is_enabled = found.enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult graph_exec_get_flags(CUgraphExec executable, std::uint64_t* flags) {
  return with_exec(executable, [&](const CUgraphExec_st& exec) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec.flags;
    return CUDA_SUCCESS;
  });
}

CUresult graph_exec_update(CUgraphExec executable, CUgraph handle,
                           CUgraphExecUpdateResultInfo* info) {
  return with_exec(executable, [&](CUgraphExec_st& exec) {
    if (info != nullptr) *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    if (!graph || graph->capturing || graph->owner != nullptr) return CUDA_ERROR_INVALID_VALUE;
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
