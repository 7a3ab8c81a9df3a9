// src/driver/emulated/graphs.hpp - graphs, executable graphs, captures
#pragma once

#include "driver/emulated/state.hpp"
#include "driver/emulated/user_objects.hpp"

namespace ptxgen::inline v0::driver {

/// A node: an operation, or a graph within the graph.
struct CUgraphNode_st {
  CUgraph graph = nullptr;
  std::uint64_t number = 0;  ///< in its graph, in the order the nodes were added
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  emulated::Operation operation;
  CUcontext context = nullptr;        ///< whose memory the operation works on
  std::shared_ptr<CUgraph_st> child;  ///< its own; a copy has a handle after the first query
  std::vector<std::shared_ptr<CUgraph_st>> bodies;  ///< of a conditional node
  bool enabled = true;                              ///< in an executable graph
  /// In the copy that an executable graph keeps: the node that it was made from.
  CUgraphNode origin = nullptr;

  struct Edge {
    CUgraphNode from = nullptr;
    CUgraphEdgeData data = {};
  };
  std::vector<Edge> edges;  ///< its dependencies, in the order of the calls

  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;  ///< of a kernel, as set
  std::vector<void*> arguments;       ///< what cuGraphKernelNodeGetParams gave out
  std::vector<CUgraph> body_handles;  ///< what cuGraphAddNode gave out
  CUmemAccessDesc access{};           ///< what cuGraphMemAllocNodeGetParams gave out
};

struct CUgraph_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;  ///< by number
  std::uint64_t next_number = 0;
  bool capturing = false;       ///< belongs to a capture in progress
  CUgraphNode owner = nullptr;  ///< the node that it is a body of, or was moved into
  std::vector<std::shared_ptr<emulated::Condition>> conditions;  ///< of all its handles
  emulated::UserObjects user_objects;
};

struct CUgraphExec_st {
  std::uint64_t flags = 0;            ///< of its instantiation
  std::shared_ptr<CUgraph_st> graph;  ///< its own copy, without a handle
  std::shared_ptr<const emulated::Executable> program;
};

namespace emulated {

struct Executable {
  struct Step {
    Operation operation;
    CUcontext context = nullptr;
    std::shared_ptr<const Executable> child;
    std::vector<std::shared_ptr<const Executable>> bodies;
  };
  std::vector<Step> steps;  ///< in an order that the edges allow
  std::vector<std::shared_ptr<CUevent_st>> records;
  UserObjects user_objects;                            ///< kept during a launch
  std::vector<std::shared_ptr<Condition>> conditions;  ///< also of bodies
  // Of allocation nodes: what the graph does not free, and what it frees of other graphs.
  std::vector<std::shared_ptr<GraphMemory>> kept;
  std::vector<std::shared_ptr<GraphMemory>> freed;
};

struct Capture {
  std::uint64_t number = 0;  ///< never 0
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  std::shared_ptr<CUgraph_st> graph;
  std::shared_ptr<CUstream_st> origin;
  bool invalid = false;
  bool own_graph = true;           ///< not the caller's (cuStreamBeginCaptureToGraph)
  std::uint64_t first_number = 0;  ///< of its nodes; earlier ones were in the graph before
  struct Branch {
    std::shared_ptr<CUstream_st> stream;
    std::vector<CUgraphNode> tail;       ///< what the stream's next node comes after
    std::vector<CUgraphEdgeData> edges;  ///< of the first edges to it; of others all 0
  };
  std::map<CUstream, Branch> branches;
};

/// Guards every graph, executable graph and capture, and the captures of streams and events.
[[nodiscard]] std::mutex& graphs_mutex();

/// With the graph and the lock held. A graph that is being captured can be queried and extended.
template <class Work>
CUresult with_graph(CUgraph handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> graph = hold(handle);
    return graph ? work(*graph) : CUDA_ERROR_INVALID_VALUE;
  });
}
template <class Work>
CUresult with_node(CUgraphNode handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraphNode_st> node = hold(handle);
    return node ? work(*node) : CUDA_ERROR_INVALID_VALUE;
  });
}

/// Every node, also those of children and bodies.
template <class Work>
void for_each_node(const CUgraph_st& graph, Work&& work) {
  for (const std::shared_ptr<CUgraphNode_st>& node : graph.nodes) {
    work(*node);
    if (node->child) for_each_node(*node->child, work);
    for (const std::shared_ptr<CUgraph_st>& body : node->bodies) for_each_node(*body, work);
  }
}

/// A node that a caller adds.
struct NewNode {
  CUgraphNode* node;
  CUgraph graph;
  const CUgraphNode* dependencies;
  std::size_t count;
  const CUgraphEdgeData* data = nullptr;  ///< of its edges, set afterwards
};
/// Takes the mutex.
[[nodiscard]] CUresult add_node(const NewNode& wanted, CUgraphNodeType type, Operation operation,
                                CUcontext context);
/// With the mutex held. `added`: the new node.
[[nodiscard]] CUresult add_node(const NewNode& wanted, CUgraphNodeType type, Operation operation,
                                CUcontext context, std::shared_ptr<CUgraphNode_st>& added);

// Parameters of nodes, checked at the call. graph_nodes.cpp; without the mutex, because errors go
// to the log.
[[nodiscard]] CUresult operation_of(const char* call, const CUDA_MEMCPY3D* params,
                                    CUctx_st& context, Copy& copy);
[[nodiscard]] CUresult operation_of(const char* call, const CUDA_MEMSET_NODE_PARAMS* params,
                                    CUctx_st& context, Fill& fill);
[[nodiscard]] CUresult operation_of(const CUDA_HOST_NODE_PARAMS* params, HostCall& call);

// All with the mutex held.

/// Appends a node that depends on `tail`, nodes of the graph.
[[nodiscard]] std::shared_ptr<CUgraphNode_st> append(CUgraph_st& graph, CUgraphNodeType type,
                                                     Operation operation, CUcontext context,
                                                     const std::vector<CUgraphNode>& tail);
/// Nodes keep their numbers; `origin` of each is the node it was copied from.
[[nodiscard]] std::shared_ptr<CUgraph_st> copy_of(const CUgraph_st& graph);
/// The nodes in an order that the edges allow, smaller numbers first; false if there is a cycle.
[[nodiscard]] bool put_in_order(const CUgraph_st& graph, std::vector<CUgraphNode>& order);
/// Whether the graph has a conditional node: it cannot be cloned, be a child, or be instantiated
/// twice at one time.
[[nodiscard]] bool has_conditions(const CUgraph_st& graph) noexcept;
/// Whether ports and type of an edge fit the nodes at its ends (CUgraphEdgeData of cuda.h).
[[nodiscard]] bool fits(const CUgraphEdgeData& data, const CUgraphNode_st& from,
                        const CUgraphNode_st& to) noexcept;
/// Removes the handles of the graph and its nodes.
void remove_handles(CUgraph_st& graph);
/// As capture_operation, for a graph: becomes a child of the capture's. capture.cpp.
[[nodiscard]] CUresult capture_graph(const std::shared_ptr<CUstream_st>& stream,
                                     const CUgraph_st& graph, bool& captured);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
