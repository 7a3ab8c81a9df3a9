// src/driver/emulated/graph_edges.cpp - edges of graphs: adding, removing, querying
#include <algorithm>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graph_memory.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
constexpr unsigned char kLastPort = 2;
constexpr unsigned char kProgrammatic = 1;  // CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC

bool is_plain(const CUgraphEdgeData& data) noexcept {
  return data.type == 0 && data.from_port == 0 && data.to_port == 0;
}

bool same(const CUgraphEdgeData& one, const CUgraphEdgeData& other) noexcept {
  return one.type == other.type && one.from_port == other.from_port && one.to_port == other.to_port;
}

/// The nodes of an edge that a caller names; false if they are none of the graph.
bool ends_of(const CUgraph_st& graph, CUgraphNode from, CUgraphNode to,
             std::shared_ptr<CUgraphNode_st>& before, std::shared_ptr<CUgraphNode_st>& after) {
  before = hold(from);
  after = hold(to);
  return before && after && before != after && before->graph == &graph && after->graph == &graph;
}

/// A neighbour of a node, or both ends of an edge.
struct FoundEdge {
  CUgraphNode from = nullptr;
  CUgraphNode to = nullptr;
  CUgraphEdgeData data = {};
};
/// Where a query puts them; `from` or `to` may be unwanted, `data` may be null.
struct EdgeQuery {
  CUgraphNode* from;
  CUgraphNode* to;
  CUgraphEdgeData* data;
  std::size_t* count;
};

/// As all queries: only the number without arrays. An edge whose data the caller does not take
/// must have none.
CUresult give_edges(const std::vector<FoundEdge>& found, const EdgeQuery& out) {
  if (out.count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool listed = out.from != nullptr || out.to != nullptr;
  if (!listed) {
    if (out.data != nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out.count = found.size();
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *out.count; ++i) {
    const FoundEdge one = i < found.size() ? found[i] : FoundEdge{};
    if (out.data == nullptr && !is_plain(one.data)) return CUDA_ERROR_LOSSY_QUERY;
    if (out.from != nullptr) out.from[i] = one.from;
    if (out.to != nullptr) out.to[i] = one.to;
    if (out.data != nullptr) out.data[i] = one.data;
  }
  *out.count = std::min(*out.count, found.size());
  return CUDA_SUCCESS;
}

CUresult get_edges(CUgraph handle, const EdgeQuery& out) {
  return with_graph(handle, [&](const CUgraph_st& graph) {
    if ((out.from == nullptr) != (out.to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<FoundEdge> found;
    for (const std::shared_ptr<CUgraphNode_st>& node : graph.nodes) {
      for (const CUgraphNode_st::Edge& edge : node->edges) {
        found.push_back({edge.from, node.get(), edge.data});
      }
    }
    return give_edges(found, out);
  });
}

CUresult get_dependencies(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                          std::size_t* count) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    std::vector<FoundEdge> found;
    for (const CUgraphNode_st::Edge& edge : node.edges) {
      found.push_back({edge.from, handle, edge.data});
    }
    return give_edges(found, {nodes, nullptr, data, count});
  });
}

CUresult get_dependents(CUgraphNode handle, CUgraphNode* nodes, CUgraphEdgeData* data,
                        std::size_t* count) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    std::vector<FoundEdge> found;
    for (const std::shared_ptr<CUgraphNode_st>& other : node.graph->nodes) {
      for (const CUgraphNode_st::Edge& edge : other->edges) {
        if (edge.from == handle) found.push_back({handle, other.get(), edge.data});
      }
    }
    return give_edges(found, {nullptr, nodes, data, count});
  });
}

CUresult add_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                   const CUgraphEdgeData* data, std::size_t count) {
  return with_graph(handle, [&](CUgraph_st& graph) {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    // All or none.
    for (const bool really : {false, true}) {
      for (std::size_t i = 0; i < count; ++i) {
        std::shared_ptr<CUgraphNode_st> before, after;
        const CUgraphEdgeData own = data != nullptr ? data[i] : CUgraphEdgeData{};
        if (!ends_of(graph, from[i], to[i], before, after) || !fits(own, *before, *after)) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        const bool known = std::ranges::find(after->edges, before.get(),
                                             &CUgraphNode_st::Edge::from) != after->edges.end();
        if (known) {
          // A duplicate in one call: the first is kept.
          if (!really) return CUDA_ERROR_INVALID_VALUE;
          continue;
        }
        if (really) after->edges.push_back({before.get(), own});
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult remove_edges(const char* call, CUgraph handle, const CUgraphNode* from,
                      const CUgraphNode* to, const CUgraphEdgeData* data, std::size_t count) {
  const CUresult result = with_graph(handle, [&](CUgraph_st& graph) {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (graph.capturing) return CUDA_ERROR_ILLEGAL_STATE;
    if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    // All or none.
    for (const bool really : {false, true}) {
      for (std::size_t i = 0; i < count; ++i) {
        std::shared_ptr<CUgraphNode_st> before, after;
        if (!ends_of(graph, from[i], to[i], before, after)) return CUDA_ERROR_INVALID_VALUE;
        const auto found =
            std::ranges::find(after->edges, before.get(), &CUgraphNode_st::Edge::from);
        // A duplicate in one call: its edge is gone.
        if (really && found == after->edges.end()) continue;
        if (found == after->edges.end() ||
            !same(found->data, data != nullptr ? data[i] : CUgraphEdgeData{})) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        if (really) after->edges.erase(found);
      }
    }
    return CUDA_SUCCESS;
  });
  if (result != CUDA_ERROR_NOT_SUPPORTED) return result;
  return refuse(result, std::string(call) +
                            ": dependencies cannot be removed from a graph with nodes that "
                            "allocate or free memory");
}

}  // namespace

bool fits(const CUgraphEdgeData& data, const CUgraphNode_st& from,
          const CUgraphNode_st& to) noexcept {
  const auto is_zero = [](unsigned char byte) { return byte == 0; };
  if (data.to_port != 0 || data.from_port > kLastPort || data.type > kProgrammatic ||
      !std::ranges::all_of(data.reserved, is_zero)) {
    return false;
  }
  const bool from_kernel = from.type == CU_GRAPH_NODE_TYPE_KERNEL;
  if (data.from_port != 0 && !from_kernel) return false;
  if (data.type != kProgrammatic) return true;
  return data.from_port != 0 && to.type == CU_GRAPH_NODE_TYPE_KERNEL;
}

namespace entries {

CUresult graph_add_dependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                std::size_t num_dependencies) {
  return add_edges(graph, from, to, nullptr, num_dependencies);
}
CUresult graph_add_dependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edge_data, std::size_t num_dependencies) {
  return add_edges(graph, from, to, edge_data, num_dependencies);
}

CUresult graph_remove_dependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   std::size_t num_dependencies) {
  return remove_edges("cuGraphRemoveDependencies", graph, from, to, nullptr, num_dependencies);
}
CUresult graph_remove_dependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edge_data,
                                      std::size_t num_dependencies) {
  return remove_edges("cuGraphRemoveDependencies", graph, from, to, edge_data, num_dependencies);
}

CUresult graph_get_edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                         std::size_t* num_edges) {
  return get_edges(graph, {from, to, nullptr, num_edges});
}
CUresult graph_get_edges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edge_data, std::size_t* num_edges) {
  return get_edges(graph, {from, to, edge_data, num_edges});
}

CUresult graph_node_get_dependencies(CUgraphNode node, CUgraphNode* dependencies,
                                     std::size_t* num_dependencies) {
  return get_dependencies(node, dependencies, nullptr, num_dependencies);
}
CUresult graph_node_get_dependencies_v2(CUgraphNode node, CUgraphNode* dependencies,
                                        CUgraphEdgeData* edge_data, std::size_t* num_dependencies) {
  return get_dependencies(node, dependencies, edge_data, num_dependencies);
}

CUresult graph_node_get_dependent_nodes(CUgraphNode node, CUgraphNode* dependent_nodes,
                                        std::size_t* num_dependent_nodes) {
  return get_dependents(node, dependent_nodes, nullptr, num_dependent_nodes);
}
CUresult graph_node_get_dependent_nodes_v2(CUgraphNode node, CUgraphNode* dependent_nodes,
                                           CUgraphEdgeData* edge_data,
                                           std::size_t* num_dependent_nodes) {
  return get_dependents(node, dependent_nodes, edge_data, num_dependent_nodes);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
