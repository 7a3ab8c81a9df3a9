// src/driver/recorder/graphs.cpp - graphs of a recorded program, run node by node
#include <algorithm>
#include <bit>

#include "driver/recorder/recorder.hpp"
#include "driver/recorder/repeat.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

constexpr const char* kUnknownGraph =
    "a graph with a node that is not recorded: what it changes is recorded as if the host wrote it";

/// All nodes so that each comes after those it depends on; empty if the driver does not give them.
std::vector<CUgraphNode> sorted_nodes(const Table& base, CUgraph graph) {
  std::size_t count = 0;
  if (base.graph_get_nodes(graph, nullptr, &count) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> nodes(count);
  if (base.graph_get_nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
  std::size_t edges = 0;
  if (base.graph_get_edges(graph, nullptr, nullptr, &edges) != CUDA_SUCCESS) return {};
  std::vector<CUgraphNode> from(edges);
  std::vector<CUgraphNode> to(edges);
  if (edges != 0 && base.graph_get_edges(graph, from.data(), to.data(), &edges) != CUDA_SUCCESS) {
    return {};
  }
  std::map<CUgraphNode, std::size_t> missing;
  for (const CUgraphNode node : to) ++missing[node];
  std::vector<CUgraphNode> sorted;
  while (!nodes.empty()) {
    const auto next =
        std::ranges::find_if(nodes, [&](CUgraphNode node) { return missing[node] == 0; });
    if (next == nodes.end()) return {};
    sorted.push_back(*next);
    for (std::size_t i = 0; i < edges; ++i) {
      if (from[i] == *next) --missing[to[i]];
    }
    nodes.erase(next);
  }
  return sorted;
}

/// Cluster and cooperation, which the parameters lack, are those of `known`.
Work node_work(Recorder& all, const CUDA_KERNEL_NODE_PARAMS& params, const Work& known) {
  KernelWork work;
  if (const auto* before = std::get_if<KernelWork>(&known)) work.step = before->step;
  work.function = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  const RecordedKernel* const kernel = kernel_of(all, work.function);
  if (kernel == nullptr) return {};
  const auto set = [](std::uint32_t(&size)[3], unsigned x, unsigned y, unsigned z) {
    size[0] = x;
    size[1] = y;
    size[2] = z;
  };
  set(work.step.grid, params.gridDimX, params.gridDimY, params.gridDimZ);
  set(work.step.block, params.blockDimX, params.blockDimY, params.blockDimZ);
  work.step.shared_bytes = params.sharedMemBytes;
  work.step.arguments = arguments_of(*kernel, params.kernelParams, params.extra);
  return work;
}

/// What a kernel node does now: its parameters and attributes may have been set after it was built.
Work kernel_work(Recorder& all, CUgraphNode node, const Work& known) {
  CUDA_KERNEL_NODE_PARAMS params{};
  if (all.base.graph_kernel_node_get_params(node, &params) != CUDA_SUCCESS) return {};
  Work work = node_work(all, params, known);
  auto* const kernel = std::get_if<KernelWork>(&work);
  const auto ask = all.base.graph_kernel_node_get_attribute;
  if (kernel == nullptr || ask == nullptr) return work;
  CUlaunchAttributeValue value{};
  if (ask(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS) {
    kernel->step.cooperative = value.cooperative != 0;
  }
  if (ask(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) == CUDA_SUCCESS) {
    kernel->step.cluster[0] = value.clusterDim.x;
    kernel->step.cluster[1] = value.clusterDim.y;
    kernel->step.cluster[2] = value.clusterDim.z;
  }
  return work;
}

void add_nodes(Recorder& all, CUgraph graph, RecordedGraph& recorded) {
  for (const CUgraphNode node : sorted_nodes(all.base, graph)) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (all.base.graph_node_get_type(node, &type) != CUDA_SUCCESS) recorded.known = false;
    if (type == CU_GRAPH_NODE_TYPE_EMPTY) continue;
    const auto found = all.nodes.find(node);
    Work work = found == all.nodes.end() ? Work() : found->second;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) work = kernel_work(all, node, work);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      (void)all.base.graph_child_graph_node_get_graph(node, &child);
      add_nodes(all, child, recorded);
      continue;
    }
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      work = memory_work(all, node, type);
      recorded.allocates = true;
    }
    recorded.known = recorded.known && !std::holds_alternative<std::monostate>(work);
    recorded.nodes.push_back({node, std::move(work)});
  }
}

/// Nodes of a copy of a graph do what those of the original do.
void copy_nodes(Recorder& all, CUgraph original, CUgraph clone) {
  for (const CUgraphNode node : sorted_nodes(all.base, original)) {
    CUgraphNode copied = nullptr;
    if (all.base.graph_node_find_in_clone(&copied, node, clone) != CUDA_SUCCESS) continue;
    const auto found = all.nodes.find(node);
    if (found != all.nodes.end()) all.nodes[copied] = found->second;
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    if (all.base.graph_node_get_type(node, &type) != CUDA_SUCCESS) continue;
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CUgraph child = nullptr;
    CUgraph copied_child = nullptr;
    (void)all.base.graph_child_graph_node_get_graph(node, &child);
    (void)all.base.graph_child_graph_node_get_graph(copied, &copied_child);
    copy_nodes(all, child, copied_child);
  }
}

CopyPlace place_of(const Recorder& all, const Side& side) {
  CopyPlace place;
  place.kind = side.kind;
  place.rows = side.rows;
  const Region* const region =
      side.kind == CU_MEMORYTYPE_DEVICE ? all.shadow.find(side.rows.address) : nullptr;
  if (region != nullptr && region->is_array()) {
    (void)place_in(region->array, side.rows.address - region->address, side.rows, place);
  }
  return place;
}

/// Does the work of one node in the scope's stream, as a step.
struct RunNode {
  const CallScope& scope;
  CUstream stream;

  [[nodiscard]] const Table& base() const { return scope.recorder().base; }

  CUresult operator()(const std::monostate&) const { return CUDA_SUCCESS; }
  CUresult operator()(const ChildWork&) const { return CUDA_SUCCESS; }
  CUresult operator()(const MemoryWork&) const { return CUDA_SUCCESS; }
  CUresult operator()(const KernelWork& work) const {
    return record_launch(scope, work, [&] {
      return repeat_launch(base(), work.function, work.step, work.step.arguments, stream);
    });
  }
  CUresult operator()(const CopyWork& work) const {
    const Recorder& all = scope.recorder();
    const CUDA_MEMCPY3D copy = copy_between(place_of(all, work.to), place_of(all, work.from));
    return record_copy(scope, work, [&] { return base().memcpy_3d_async(&copy, stream); });
  }
  CUresult operator()(const FillWork& work) const {
    return record_fill(scope, work.step, [&] { return repeat_fill(base(), work.step, stream); });
  }
  CUresult operator()(const HostWork& work) const {
    if (const CUresult result = base().launch_host_func(stream, work.function, work.user)) {
      return result;
    }
    return scope.wait();
  }
  CUresult operator()(const EventWork& work) const {
    return work.waits ? base().stream_wait_event(stream, work.event, 0)
                      : base().event_record(work.event, stream);
  }
};

CUresult run(const CallScope& scope, const RecordedGraph& graph, CUstream stream) {
  for (const RecordedGraph::Node& node : graph.nodes) {
    if (const CUresult result = std::visit(RunNode{scope, stream}, node.work)) return result;
    // The context is lost; the next call of the program says so.
    if (scope.recorder().sink.ended()) break;
  }
  return CUDA_SUCCESS;
}

// The entries ------------------------------------------------------------------------------------

void replace_captures(Table& table) {
  table.stream_begin_capture = [](CUstream stream, CUstreamCaptureMode mode) -> CUresult {
    Recorder& all = *active();
    const CUresult result = all.base.stream_begin_capture(stream, mode);
    if (result == CUDA_SUCCESS) ++all.captures;
    return result;
  };
  if (table.stream_begin_capture_to_graph != nullptr) {
    table.stream_begin_capture_to_graph =
        [](CUstream stream, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data,
           std::size_t count, CUstreamCaptureMode mode) -> CUresult {
      Recorder& all = *active();
      const CUresult result =
          all.base.stream_begin_capture_to_graph(stream, graph, after, data, count, mode);
      if (result == CUDA_SUCCESS) ++all.captures;
      return result;
    };
  }
  table.stream_end_capture = [](CUstream stream, CUgraph* graph) -> CUresult {
    Recorder& all = *active();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const bool known = all.base.stream_is_capturing(stream, &status) == CUDA_SUCCESS;
    const CUresult result = all.base.stream_end_capture(stream, graph);
    const bool ended = result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
                       result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (known && status != CU_STREAM_CAPTURE_STATUS_NONE && ended) --all.captures;
    return result;
  };
  if (table.launch_host_func == nullptr) return;
  table.launch_host_func = [](CUstream stream, CUhostFn work, void* user) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.launch_host_func(stream, work, user);
      if (result != CUDA_SUCCESS || all.captures.load() == 0) return result;
      const std::lock_guard lock(all.mutex);
      captured(all, stream, HostWork{work, user});
      return result;
    });
  };
}

/// A node was added: it does `work`.
CUresult added(CUresult result, const CUgraphNode* node,
               const std::function<Work(Recorder&)>& work) {
  return entry([&]() -> CUresult {
    if (result != CUDA_SUCCESS) return result;
    Recorder& all = *active();
    const std::lock_guard lock(all.mutex);
    all.nodes[*node] = work(all);
    return result;
  });
}

Work fill_work(const CUDA_MEMSET_NODE_PARAMS& fill) {
  const std::uint64_t width = fill.width * fill.elementSize;
  FillStep step;
  step.to = {fill.dst, width, fill.height, 1, fill.height > 1 ? fill.pitch : width, fill.height};
  step.value = fill.value;
  step.element_bytes = fill.elementSize;
  return FillWork{step};
}

Work host_work(const CUDA_HOST_NODE_PARAMS& host) { return HostWork{host.fn, host.userData}; }

/// What a node of any type does, by its parameters. Kernels are asked for theirs later.
Work any_work(Recorder& all, CUgraphNode node, const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_work(all, params.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& fill = params.memset;
      return fill_work(
          {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height});
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return host_work({params.host.fn, params.host.userData});
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      (void)all.base.graph_child_graph_node_get_graph(node, &child);
      if (child != params.graph.graph) copy_nodes(all, params.graph.graph, child);
      return ChildWork{child};
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return EventWork{params.eventWait.event, true};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return EventWork{params.eventRecord.event, false};
    default:
      return {};
  }
}

/// A node of any type was added.
CUresult added_any(CUresult result, const CUgraphNode* node, CUgraph graph,
                   const CUgraphNodeParams* params) {
  return added(result, node, [&](Recorder& all) {
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      add_graph_memory(all, params->alloc.dptr, params->alloc.bytesize, graph);
    }
    return any_work(all, *node, *params);
  });
}

void replace_any_nodes(Table& table) {
  table.graph_add_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            std::size_t count, CUgraphNodeParams* params) -> CUresult {
    return added_any(active()->base.graph_add_node(node, graph, after, count, params), node, graph,
                     params);
  };
  if (table.graph_add_node_v2 != nullptr) {
    table.graph_add_node_v2 = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 const CUgraphEdgeData* data, std::size_t count,
                                 CUgraphNodeParams* params) -> CUresult {
      return added_any(active()->base.graph_add_node_v2(node, graph, after, data, count, params),
                       node, graph, params);
    };
  }
  if (table.graph_node_set_params == nullptr) return;
  table.graph_node_set_params = [](CUgraphNode node, CUgraphNodeParams* params) -> CUresult {
    return added(active()->base.graph_node_set_params(node, params), &node, [&](Recorder& all) {
      // Kernels keep what their parameters do not say.
      return params->type == CU_GRAPH_NODE_TYPE_KERNEL ? all.nodes[node]
                                                       : any_work(all, node, *params);
    });
  };
}

void replace_memory_nodes(Table& table) {
  table.graph_add_memcpy_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, const CUDA_MEMCPY3D* copy,
                                   CUcontext context) -> CUresult {
    return added(active()->base.graph_add_memcpy_node(node, graph, after, count, copy, context),
                 node, [&](Recorder& all) { return copy_work(all, *copy); });
  };
  table.graph_add_memset_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, const CUDA_MEMSET_NODE_PARAMS* fill,
                                   CUcontext context) -> CUresult {
    return added(active()->base.graph_add_memset_node(node, graph, after, count, fill, context),
                 node, [&](Recorder&) { return fill_work(*fill); });
  };
}

/// The parameters of a node were set: it does `work` from now on, in executables built later.
CUresult set_later(CUresult result, CUgraphNode node, const std::function<Work(Recorder&)>& work) {
  return added(result, &node, work);
}

void replace_parameters(Table& table) {
  table.graph_memcpy_node_set_params = [](CUgraphNode node, const CUDA_MEMCPY3D* copy) -> CUresult {
    return set_later(active()->base.graph_memcpy_node_set_params(node, copy), node,
                     [&](Recorder& all) { return copy_work(all, *copy); });
  };
  table.graph_memset_node_set_params = [](CUgraphNode node,
                                          const CUDA_MEMSET_NODE_PARAMS* fill) -> CUresult {
    return set_later(active()->base.graph_memset_node_set_params(node, fill), node,
                     [&](Recorder&) { return fill_work(*fill); });
  };
  table.graph_host_node_set_params = [](CUgraphNode node,
                                        const CUDA_HOST_NODE_PARAMS* host) -> CUresult {
    return set_later(active()->base.graph_host_node_set_params(node, host), node,
                     [&](Recorder&) { return host_work(*host); });
  };
}

void replace_event_parameters(Table& table) {
  table.graph_event_record_node_set_event = [](CUgraphNode node, CUevent event) -> CUresult {
    return set_later(active()->base.graph_event_record_node_set_event(node, event), node,
                     [&](Recorder&) {
                       return EventWork{event, false};
                     });
  };
  table.graph_event_wait_node_set_event = [](CUgraphNode node, CUevent event) -> CUresult {
    return set_later(active()->base.graph_event_wait_node_set_event(node, event), node,
                     [&](Recorder&) {
                       return EventWork{event, true};
                     });
  };
}

void replace_other_nodes(Table& table) {
  table.graph_add_kernel_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count,
                                   const CUDA_KERNEL_NODE_PARAMS* params) -> CUresult {
    return added(active()->base.graph_add_kernel_node(node, graph, after, count, params), node,
                 [](Recorder&) { return Work(); });
  };
  table.graph_add_host_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                 std::size_t count, const CUDA_HOST_NODE_PARAMS* host) -> CUresult {
    return added(active()->base.graph_add_host_node(node, graph, after, count, host), node,
                 [&](Recorder&) { return host_work(*host); });
  };
  table.graph_add_child_graph_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        std::size_t count, CUgraph child) -> CUresult {
    return added(active()->base.graph_add_child_graph_node(node, graph, after, count, child), node,
                 [&](Recorder& all) {
                   CUgraph clone = nullptr;
                   (void)all.base.graph_child_graph_node_get_graph(*node, &clone);
                   copy_nodes(all, child, clone);
                   return ChildWork{clone};
                 });
  };
  if (table.graph_add_event_record_node == nullptr) return;
  table.graph_add_event_record_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                         std::size_t count, CUevent event) -> CUresult {
    return added(active()->base.graph_add_event_record_node(node, graph, after, count, event), node,
                 [&](Recorder&) {
                   return EventWork{event, false};
                 });
  };
  table.graph_add_event_wait_node = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                       std::size_t count, CUevent event) -> CUresult {
    return added(active()->base.graph_add_event_wait_node(node, graph, after, count, event), node,
                 [&](Recorder&) {
                   return EventWork{event, true};
                 });
  };
}

/// An executable was built from a graph, or has become that graph.
CUresult instantiated(CUresult result, const CUgraphExec* executable, CUgraph graph) {
  return entry([&]() -> CUresult {
    if (result != CUDA_SUCCESS) return result;
    Recorder& all = *active();
    const std::lock_guard lock(all.mutex);
    RecordedGraph recorded;
    add_nodes(all, graph, recorded);
    for (const RecordedGraph::Node& one : recorded.nodes) {
      const auto* const memory = std::get_if<MemoryWork>(&one.work);
      if (memory == nullptr || memory->bytes == 0) continue;
      const auto found = all.graph_memory.find(memory->address);
      if (found != all.graph_memory.end()) found->second.executable = *executable;
    }
    all.graphs[*executable] = std::move(recorded);
    return result;
  });
}

/// The parameters of a node of an executable were set.
CUresult set_in_executable(CUresult result, CUgraphExec executable, CUgraphNode node,
                           const std::function<Work(Recorder&, const Work&)>& work) {
  return entry([&]() -> CUresult {
    // Without the lock: a call from a host function, which is refused, must not wait for it.
    if (result != CUDA_SUCCESS) return result;
    Recorder& all = *active();
    const std::lock_guard lock(all.mutex);
    const auto found = all.graphs.find(executable);
    if (found == all.graphs.end()) return result;
    RecordedGraph& graph = found->second;
    for (RecordedGraph::Node& one : graph.nodes) {
      if (one.node == node) one.work = work(all, one.work);
    }
    graph.known = std::ranges::none_of(graph.nodes, [](const RecordedGraph::Node& one) {
      return std::holds_alternative<std::monostate>(one.work);
    });
    return result;
  });
}

/// An executable was changed in a way that is not followed: its launches are noted.
CUresult changed_unseen(CUresult result, CUgraphExec executable) {
  return entry([&]() -> CUresult {
    if (result != CUDA_SUCCESS) return result;
    Recorder& all = *active();
    const std::lock_guard lock(all.mutex);
    const auto found = all.graphs.find(executable);
    if (found != all.graphs.end()) found->second.changed = true;
    return result;
  });
}

void replace_executable_parts(Table& table) {
  if (table.graph_exec_child_graph_node_set_params != nullptr) {
    table.graph_exec_child_graph_node_set_params = [](CUgraphExec executable, CUgraphNode node,
                                                      CUgraph child) -> CUresult {
      return changed_unseen(
          active()->base.graph_exec_child_graph_node_set_params(executable, node, child),
          executable);
    };
  }
  if (table.graph_exec_event_record_node_set_event != nullptr) {
    table.graph_exec_event_record_node_set_event = [](CUgraphExec executable, CUgraphNode node,
                                                      CUevent event) -> CUresult {
      return set_in_executable(
          active()->base.graph_exec_event_record_node_set_event(executable, node, event),
          executable, node, [&](Recorder&, const Work&) {
            return EventWork{event, false};
          });
    };
    table.graph_exec_event_wait_node_set_event = [](CUgraphExec executable, CUgraphNode node,
                                                    CUevent event) -> CUresult {
      return set_in_executable(
          active()->base.graph_exec_event_wait_node_set_event(executable, node, event), executable,
          node, [&](Recorder&, const Work&) {
            return EventWork{event, true};
          });
    };
  }
  if (table.graph_node_set_enabled != nullptr) {
    table.graph_node_set_enabled = [](CUgraphExec executable, CUgraphNode node,
                                      unsigned enabled) -> CUresult {
      return changed_unseen(active()->base.graph_node_set_enabled(executable, node, enabled),
                            executable);
    };
  }
  if (table.graph_exec_node_set_params == nullptr) return;
  table.graph_exec_node_set_params = [](CUgraphExec executable, CUgraphNode node,
                                        CUgraphNodeParams* params) -> CUresult {
    const CUresult result = active()->base.graph_exec_node_set_params(executable, node, params);
    if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
      return changed_unseen(result, executable);
    }
    return set_in_executable(result, executable, node, [&](Recorder& all, const Work& known) {
      return params->type == CU_GRAPH_NODE_TYPE_KERNEL
                 ? node_work(all, std::bit_cast<CUDA_KERNEL_NODE_PARAMS>(params->kernel), known)
                 : any_work(all, node, *params);
    });
  };
}

void replace_executables(Table& table) {
  table.graph_instantiate_with_flags = [](CUgraphExec* executable, CUgraph graph,
                                          unsigned long long flags) -> CUresult {
    return instantiated(active()->base.graph_instantiate_with_flags(executable, graph, flags),
                        executable, graph);
  };
  if (table.graph_instantiate_with_params != nullptr) {
    table.graph_instantiate_with_params = [](CUgraphExec* executable, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS* params) -> CUresult {
      return instantiated(active()->base.graph_instantiate_with_params(executable, graph, params),
                          executable, graph);
    };
  }
  table.graph_exec_update = [](CUgraphExec executable, CUgraph graph,
                               CUgraphExecUpdateResultInfo* info) -> CUresult {
    return instantiated(active()->base.graph_exec_update(executable, graph, info), &executable,
                        graph);
  };
  table.graph_exec_destroy = [](CUgraphExec executable) -> CUresult {
    return entry([&] {
      Recorder& all = *active();
      const CUresult result = all.base.graph_exec_destroy(executable);
      if (result != CUDA_SUCCESS) return result;
      const std::lock_guard lock(all.mutex);
      all.graphs.erase(executable);
      end_graph_memory(all, nullptr, executable);
      return result;
    });
  };
  table.graph_exec_kernel_node_set_params = [](CUgraphExec executable, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS* params) -> CUresult {
    return set_in_executable(
        active()->base.graph_exec_kernel_node_set_params(executable, node, params), executable,
        node, [&](Recorder& all, const Work& known) { return node_work(all, *params, known); });
  };
  if (table.graph_exec_memcpy_node_set_params == nullptr) return;
  table.graph_exec_memcpy_node_set_params = [](CUgraphExec executable, CUgraphNode node,
                                               const CUDA_MEMCPY3D* copy,
                                               CUcontext context) -> CUresult {
    return set_in_executable(
        active()->base.graph_exec_memcpy_node_set_params(executable, node, copy, context),
        executable, node, [&](Recorder& all, const Work&) { return copy_work(all, *copy); });
  };
  table.graph_exec_memset_node_set_params = [](CUgraphExec executable, CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS* fill,
                                               CUcontext context) -> CUresult {
    return set_in_executable(
        active()->base.graph_exec_memset_node_set_params(executable, node, fill, context),
        executable, node, [&](Recorder&, const Work&) { return fill_work(*fill); });
  };
  table.graph_exec_host_node_set_params = [](CUgraphExec executable, CUgraphNode node,
                                             const CUDA_HOST_NODE_PARAMS* host) -> CUresult {
    return set_in_executable(active()->base.graph_exec_host_node_set_params(executable, node, host),
                             executable, node,
                             [&](Recorder&, const Work&) { return host_work(*host); });
  };
}

CUresult launch_graph(CUgraphExec executable, CUstream stream) {
  const CallScope scope(stream);
  Recorder& all = scope.recorder();
  if (scope.captured()) {
    const CUresult result = all.base.graph_launch(executable, stream);
    const std::lock_guard lock(all.mutex);
    if (result == CUDA_SUCCESS) captured(all, stream, Work());
    return result;
  }
  if (!scope.records()) {
    scope.pass_on();
    return all.base.graph_launch(executable, stream);
  }
  const auto found = all.graphs.find(executable);
  if (found != all.graphs.end() && found->second.known && !found->second.changed) {
    const RecordedGraph& graph = found->second;
    if (!graph.allocates) return run(scope, graph, stream);
    // Before the launch: modules that a library loads now, and their variables.
    const bool known = std::ranges::all_of(graph.nodes, [&](const RecordedGraph::Node& node) {
      const auto* const kernel = std::get_if<KernelWork>(&node.work);
      return kernel == nullptr || kernel_of(all, kernel->function) != nullptr;
    });
    const auto call = [&] { return all.base.graph_launch(executable, stream); };
    if (known) return run_with_memory(scope, graph, call);
  }
  all.catch_up();
  all.note(kUnknownGraph);
  all.suspect = true;
  return all.base.graph_launch(executable, stream);
}

}  // namespace

void captured(Recorder& all, CUstream stream, Work work) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  const auto ask = all.base.stream_get_capture_info_v2;
  if (ask == nullptr || ask(stream, &status, nullptr, nullptr, &last, &count) != CUDA_SUCCESS ||
      count != 1) {
    return;
  }
  all.nodes[*last] = std::move(work);
}

void replace_graphs(Table& table) {
  replace_captures(table);
  if (table.graph_add_memcpy_node != nullptr) replace_memory_nodes(table);
  if (table.graph_memcpy_node_set_params != nullptr) replace_parameters(table);
  if (table.graph_add_host_node != nullptr) replace_other_nodes(table);
  if (table.graph_event_record_node_set_event != nullptr) replace_event_parameters(table);
  if (table.graph_add_node != nullptr) replace_any_nodes(table);
  if (table.graph_get_edges != nullptr) {
    replace_executables(table);
    replace_executable_parts(table);
  }
  if (table.graph_clone != nullptr) {
    table.graph_clone = [](CUgraph* clone, CUgraph original) -> CUresult {
      return entry([&]() -> CUresult {
        Recorder& all = *active();
        const CUresult result = all.base.graph_clone(clone, original);
        if (result != CUDA_SUCCESS) return result;
        const std::lock_guard lock(all.mutex);
        copy_nodes(all, original, *clone);
        return result;
      });
    };
  }
  table.graph_launch = [](CUgraphExec executable, CUstream stream) -> CUresult {
    return entry([&] { return launch_graph(executable, stream); });
  };
}

}  // namespace ptxgen::inline v0::driver::recorder
