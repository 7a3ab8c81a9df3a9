// src/driver/emulated/graph_any.cpp - nodes of any type by one call (CUgraphNodeParams)
#include <bit>
#include <utility>

#include "driver/emulated/conditions.hpp"
#include "driver/emulated/entries.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

CUDA_KERNEL_NODE_PARAMS kernel_params(const CUgraphNodeParams& params) {
  return std::bit_cast<CUDA_KERNEL_NODE_PARAMS>(params.kernel);
}
CUDA_HOST_NODE_PARAMS host_params(const CUgraphNodeParams& params) {
  return {params.host.fn, params.host.userData};
}
CUDA_MEMSET_NODE_PARAMS fill_params(const CUgraphNodeParams& params) {
  const CUDA_MEMSET_NODE_PARAMS_v2& fill = params.memset;
  return {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
}
/// A null context means the current one.
CUcontext context_or_current(CUcontext context) { return context != nullptr ? context : current(); }

CUresult no_such_node(const char* call, CUgraphNodeType type) {
  return refuse(CUDA_ERROR_NOT_SUPPORTED,
                format_text("{}: a node of type {}, which the emulated driver does not have, or "
                            "whose parameters cannot be set",
                            call, static_cast<int>(type)));
}

/// Makes the graph itself, not a copy, the child of a new node.
CUresult add_moved_child(const NewNode& wanted, CUgraph handle) {
  bool conditional = false;
  const CUresult result = with_graph(handle, [&](CUgraph_st& child) {
    const std::shared_ptr<CUgraph_st> shared = hold(handle);
    conditional = has_conditions(child);
    if (conditional) return CUDA_ERROR_NOT_SUPPORTED;
    if (child.owner != nullptr || child.capturing || handle == wanted.graph ||
        is_instantiated(child)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<CUgraphNode_st> added;
    const CUresult done = add_node(wanted, CU_GRAPH_NODE_TYPE_GRAPH, Empty{}, nullptr, added);
    if (!added) return done;
    added->child = shared;
    child.owner = added.get();
    return done;
  });
  if (!conditional) return result;
  return refuse(result, "cuGraphAddNode: a graph with conditional nodes cannot be a child");
}

CUresult add_by_type(const NewNode& wanted, CUgraphNodeParams& params) {
  const auto [node, graph, after, count, data] = wanted;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(params);
      return entries::graph_add_kernel_node(node, graph, after, count, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return entries::graph_add_memcpy_node(node, graph, after, count, &params.memcpy.copyParams,
                                            context_or_current(params.memcpy.copyCtx));
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = fill_params(params);
      return entries::graph_add_memset_node(node, graph, after, count, &fill,
                                            context_or_current(params.memset.ctx));
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = host_params(params);
      return entries::graph_add_host_node(node, graph, after, count, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (params.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        return add_moved_child(wanted, params.graph.graph);
      }
      return entries::graph_add_child_graph_node(node, graph, after, count, params.graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return entries::graph_add_empty_node(node, graph, after, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return entries::graph_add_event_wait_node(node, graph, after, count, params.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return entries::graph_add_event_record_node(node, graph, after, count,
                                                  params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      auto alloc = std::bit_cast<CUDA_MEM_ALLOC_NODE_PARAMS>(params.alloc);
      const CUresult result = entries::graph_add_mem_alloc_node(node, graph, after, count, &alloc);
      params.alloc.dptr = alloc.dptr;
      return result;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return entries::graph_add_mem_free_node(node, graph, after, count, params.free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return add_conditional_node(wanted, params.conditional);
    default:
      return no_such_node("cuGraphAddNode", params.type);
  }
}

/// Whether the data of the edges to a new node fit.
CUresult check_edges(const NewNode& wanted, CUgraphNodeType type) {
  if (wanted.data == nullptr) return CUDA_SUCCESS;
  return with_graph(wanted.graph, [&](const CUgraph_st&) {
    if (wanted.dependencies == nullptr && wanted.count != 0) return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode_st added;
    added.type = type;
    for (std::size_t i = 0; i < wanted.count; ++i) {
      const std::shared_ptr<CUgraphNode_st> before = hold(wanted.dependencies[i]);
      if (!before || !fits(wanted.data[i], *before, added)) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult add_any(const NewNode& wanted, CUgraphNodeParams* params) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_edges(wanted, params->type)) return result;
    if (const CUresult result = add_by_type(wanted, *params)) return result;
    if (wanted.data == nullptr) return CUDA_SUCCESS;
    return with_node(*wanted.node, [&](CUgraphNode_st& node) {
      for (std::size_t i = 0; i < node.edges.size(); ++i) node.edges[i].data = wanted.data[i];
      return CUDA_SUCCESS;
    });
  });
}

/// Whether the node has the type that the parameters are of.
CUresult check_type(CUgraphNode handle, const CUgraphNodeParams* params) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    return params != nullptr && node.type == params->type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

namespace entries {

CUresult graph_add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        std::size_t num_dependencies, CUgraphNodeParams* node_params) {
  return add_any({node, graph, dependencies, num_dependencies}, node_params);
}
CUresult graph_add_node_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edge_data, std::size_t num_dependencies,
                           CUgraphNodeParams* node_params) {
  return add_any({node, graph, dependencies, num_dependencies, edge_data}, node_params);
}

CUresult graph_node_set_params(CUgraphNode node, CUgraphNodeParams* node_params) {
  if (const CUresult result = check_type(node, node_params)) return result;
  CUgraphNodeParams& params = *node_params;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(params);
      return graph_kernel_node_set_params(node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return graph_memcpy_node_set_params(node, &params.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = fill_params(params);
      return graph_memset_node_set_params(node, &fill);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = host_params(params);
      return graph_host_node_set_params(node, &host);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return graph_event_wait_node_set_event(node, params.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return graph_event_record_node_set_event(node, params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    default:
      return guarded([&] { return no_such_node("cuGraphNodeSetParams", params.type); });
  }
}

CUresult graph_exec_node_set_params(CUgraphExec executable, CUgraphNode node,
                                    CUgraphNodeParams* node_params) {
  if (const CUresult result = check_type(node, node_params)) return result;
  CUgraphNodeParams& params = *node_params;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(params);
      return graph_exec_kernel_node_set_params(executable, node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return graph_exec_memcpy_node_set_params(executable, node, &params.memcpy.copyParams,
                                               context_or_current(params.memcpy.copyCtx));
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS fill = fill_params(params);
      return graph_exec_memset_node_set_params(executable, node, &fill,
                                               context_or_current(params.memset.ctx));
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = host_params(params);
      return graph_exec_host_node_set_params(executable, node, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return graph_exec_child_graph_node_set_params(executable, node, params.graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return graph_exec_event_wait_node_set_event(executable, node, params.eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return graph_exec_event_record_node_set_event(executable, node, params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    default:
      return guarded([&] { return no_such_node("cuGraphExecNodeSetParams", params.type); });
  }
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
