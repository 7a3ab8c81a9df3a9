// src/driver/emulated/graphs.cpp - building and querying graphs
#include "driver/emulated/graphs.hpp"

#include <algorithm>
#include <cstdio>
#include <queue>
#include <utility>

#include "driver/emulated/conditions.hpp"
#include "driver/emulated/entries.hpp"
#include "driver/emulated/graph_memory.hpp"
#include "driver/emulated/launch.hpp"
#include "driver/emulated/memory.hpp"
#include "driver/emulated/modules.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {

std::mutex& graphs_mutex() {
  static std::mutex* const the_mutex = new std::mutex;
  return *the_mutex;
}

std::shared_ptr<CUgraphNode_st> append(CUgraph_st& graph, CUgraphNodeType type, Operation operation,
                                       CUcontext context, const std::vector<CUgraphNode>& tail) {
  auto node = std::make_shared<CUgraphNode_st>();
  node->graph = &graph;
  node->number = graph.next_number++;
  node->type = type;
  node->operation = std::move(operation);
  node->context = context;
  for (const CUgraphNode before : tail) node->edges.push_back({before, {}});
  graph.nodes.push_back(node);
  return node;
}

std::shared_ptr<CUgraph_st> copy_of(const CUgraph_st& graph) {
  auto copy = std::make_shared<CUgraph_st>();
  copy->next_number = graph.next_number;
  copy->user_objects.insert(graph.user_objects.begin(), graph.user_objects.end());
  copy->conditions = graph.conditions;
  std::unordered_map<CUgraphNode, CUgraphNode> twin;
  for (const std::shared_ptr<CUgraphNode_st>& node : graph.nodes) {
    auto copied = std::make_shared<CUgraphNode_st>(*node);
    copied->graph = copy.get();
    copied->origin = node.get();
    copied->arguments.clear();
    copied->body_handles.clear();
    if (node->child) copied->child = copy_of(*node->child);
    for (std::shared_ptr<CUgraph_st>& body : copied->bodies) {
      body = copy_of(*body);
      body->owner = copied.get();
    }
    twin[node.get()] = copied.get();
    copy->nodes.push_back(std::move(copied));
  }
  for (const std::shared_ptr<CUgraphNode_st>& node : copy->nodes) {
    for (CUgraphNode_st::Edge& edge : node->edges) edge.from = twin.at(edge.from);
  }
  return copy;
}

bool put_in_order(const CUgraph_st& graph, std::vector<CUgraphNode>& order) {
  const auto later = [](CUgraphNode a, CUgraphNode b) { return a->number > b->number; };
  std::priority_queue<CUgraphNode, std::vector<CUgraphNode>, decltype(later)> ready(later);
  std::unordered_map<CUgraphNode, std::vector<CUgraphNode>> after;
  std::unordered_map<CUgraphNode, std::size_t> missing;
  for (const std::shared_ptr<CUgraphNode_st>& node : graph.nodes) {
    missing[node.get()] = node->edges.size();
    if (node->edges.empty()) ready.push(node.get());
    for (const CUgraphNode_st::Edge& edge : node->edges) after[edge.from].push_back(node.get());
  }
  order.clear();
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const CUgraphNode next : after[order.back()]) {
      if (--missing[next] == 0) ready.push(next);
    }
  }
  return order.size() == graph.nodes.size();
}

void remove_handles(CUgraph_st& graph) {
  for (const std::shared_ptr<CUgraphNode_st>& node : graph.nodes) {
    gone(node.get());
    if (node->child) remove_handles(*node->child);
    for (const std::shared_ptr<CUgraph_st>& body : node->bodies) remove_handles(*body);
  }
  gone(&graph);
}

bool has_conditions(const CUgraph_st& graph) noexcept {
  bool found = false;
  for_each_node(graph, [&](const CUgraphNode_st& node) {
    found = found || node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
  });
  return found;
}

CUresult add_node(const NewNode& wanted, CUgraphNodeType type, Operation operation,
                  CUcontext context, std::shared_ptr<CUgraphNode_st>& added) {
  const std::shared_ptr<CUgraph_st> graph = hold(wanted.graph);
  if (!graph || wanted.node == nullptr || (wanted.dependencies == nullptr && wanted.count != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<CUgraphNode> tail;
  for (std::size_t i = 0; i < wanted.count; ++i) {
    const std::shared_ptr<CUgraphNode_st> before = hold(wanted.dependencies[i]);
    if (!before || before->graph != graph.get() ||
        std::ranges::find(tail, before.get()) != tail.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    tail.push_back(before.get());
  }
  added = append(*graph, type, std::move(operation), context, tail);
  enroll(added);
  *wanted.node = added.get();
  return CUDA_SUCCESS;
}

CUresult add_node(const NewNode& wanted, CUgraphNodeType type, Operation operation,
                  CUcontext context) {
  const std::lock_guard lock(graphs_mutex());
  std::shared_ptr<CUgraphNode_st> added;
  return add_node(wanted, type, std::move(operation), context, added);
}

namespace entries {
namespace {

/// A kernel node's launch. Without the lock, because errors go to the log.
CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS* params, KernelLaunch& launch,
                   CUcontext& context) {
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = make_launch(*params, launch); result != CUDA_SUCCESS) return result;
  context = launch.function->owner->context;
  return CUDA_SUCCESS;
}

CUresult add_event_node(const NewNode& wanted, CUevent handle, bool record) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUevent_st> event = hold(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (record) {
      return add_node(wanted, CU_GRAPH_NODE_TYPE_EVENT_RECORD, RecordEvent{event}, event->context);
    }
    return add_node(wanted, CU_GRAPH_NODE_TYPE_WAIT_EVENT, WaitEvent{event, 0}, event->context);
  });
}

/// Copies a list to the caller as all graph queries do: only its length if `out` is null.
CUresult give_nodes(const std::vector<CUgraphNode>& nodes, CUgraphNode* out, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = nodes.size();
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? nodes[i] : nullptr;
  *count = std::min(*count, nodes.size());
  return CUDA_SUCCESS;
}

/// Logs why a call is not supported: a text cannot be logged while graphs are locked.
CUresult without_memory_nodes(const char* call, CUresult result, bool conditional = false) {
  if (result != CUDA_ERROR_NOT_SUPPORTED) return result;
  if (conditional) {
    return refuse(result, format_text("{}: a graph with conditional nodes cannot be cloned or be a "
                                      "child; add its nodes to the other graph",
                                      call));
  }
  return refuse(result, format_text("{}: a graph with nodes that allocate or free memory cannot be "
                                    "cloned or be a child, and its nodes cannot be destroyed",
                                    call));
}

/// Description of a node for cuGraphDebugDotPrint.
struct Describe {
  std::string operator()(const KernelLaunch& launch) const {
    const std::string name = living(launch.function) ? launch.function->kernel->name : "(unloaded)";
    return format_text("kernel {} grid {} block {}", name, dims_text(launch.grid),
                       dims_text(launch.block));
  }
  std::string operator()(const Copy& copy) const {
    return format_text("copy {}x{}x{}", copy.width, copy.height, count_text(copy.depth, "byte"));
  }
  std::string operator()(const Fill& fill) const {
    return format_text("fill {}x{} of {} with {}", fill.width, fill.height,
                       count_text(fill.element_bytes, "byte"), fill.value);
  }
  std::string operator()(const HostCall& call) const {
    return call.kernel == nullptr ? "host function"
                                  : format_text("kernel {} on the host", call.kernel->name());
  }
  std::string operator()(const RecordEvent&) const { return "record event"; }
  std::string operator()(const WaitEvent&) const { return "wait for event"; }
  std::string operator()(const AllocateMemory& allocation) const {
    return format_text("allocate {}", count_text(allocation.memory->bytes(), "byte"));
  }
  std::string operator()(const FreeMemory&) const { return "free"; }
  std::string operator()(const RunGraph&) const { return "graph"; }
  std::string operator()(const Choose& choice) const {
    return choice.type == CU_GRAPH_COND_TYPE_IF      ? "if"
           : choice.type == CU_GRAPH_COND_TYPE_WHILE ? "while"
                                                     : "switch";
  }
  std::string operator()(const Empty&) const { return "empty"; }
};

void print_dot(const CUgraph_st& graph, const std::string& prefix, std::string& text) {
  for (const std::shared_ptr<CUgraphNode_st>& node : graph.nodes) {
    const std::string name = prefix + std::to_string(node->number);
    const std::string words = node->child ? "graph" : std::visit(Describe{}, node->operation);
    text += format_text("  {} [label=\"{}: {}\"];\n", name, node->number, words);
    for (const CUgraphNode_st::Edge& edge : node->edges) {
      text += format_text("  {}{} -> {};\n", prefix, edge.from->number, name);
    }
    std::vector<std::shared_ptr<CUgraph_st>> inside = node->bodies;
    if (node->child) inside.push_back(node->child);
    for (std::size_t i = 0; i < inside.size(); ++i) {
      const std::string part = node->child ? name : format_text("{}_body{}", name, i);
      text += format_text("  subgraph cluster_{} {{\n", part);
      print_dot(*inside[i], part + "_", text);
      text += "  }\n";
    }
  }
}

}  // namespace

CUresult graph_create(CUgraph* graph, unsigned flags) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto result = std::make_shared<CUgraph_st>();
    enroll(result);
    *graph = result.get();
    return CUDA_SUCCESS;
  });
}

CUresult graph_destroy(CUgraph handle) {
  const CUresult result = with_graph(handle, [](CUgraph_st& graph) {
    if (graph.capturing) return CUDA_ERROR_ILLEGAL_STATE;
    if (graph.owner != nullptr) return CUDA_ERROR_INVALID_VALUE;  // goes with its node
    remove_handles(graph);
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return result;
  return guarded([] {
    sweep_conditions();
    return CUDA_SUCCESS;
  });
}

CUresult graph_clone(CUgraph* clone, CUgraph original_graph) {
  bool conditional = false;
  const CUresult result = with_graph(original_graph, [&](const CUgraph_st& graph) {
    if (clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    conditional = has_conditions(graph);
    if (conditional || has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    const std::shared_ptr<CUgraph_st> created = copy_of(graph);
    for (const std::shared_ptr<CUgraphNode_st>& node : created->nodes) enroll(node);
    enroll(created);
    *clone = created.get();
    return CUDA_SUCCESS;
  });
  return without_memory_nodes("cuGraphClone", result, conditional);
}

CUresult graph_add_kernel_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t num_dependencies,
                               const CUDA_KERNEL_NODE_PARAMS* node_params) {
  return guarded([&] {
    KernelLaunch launch;
    CUcontext context = nullptr;
    if (const CUresult result = kernel_of(node_params, launch, context); result != CUDA_SUCCESS) {
      return result;
    }
    return add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_KERNEL,
                    std::move(launch), context);
  });
}

CUresult graph_add_memcpy_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t num_dependencies, const CUDA_MEMCPY3D* copy_params,
                               CUcontext handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    Copy copy;
    if (const CUresult result = operation_of("cuGraphAddMemcpyNode", copy_params, *context, copy)) {
      return result;
    }
    return add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_MEMCPY,
                    std::move(copy), handle);
  });
}

CUresult graph_add_memset_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               std::size_t num_dependencies,
                               const CUDA_MEMSET_NODE_PARAMS* memset_params, CUcontext handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    Fill fill;
    if (const CUresult result =
            operation_of("cuGraphAddMemsetNode", memset_params, *context, fill)) {
      return result;
    }
    return add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_MEMSET, fill,
                    handle);
  });
}

CUresult graph_add_host_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             std::size_t num_dependencies,
                             const CUDA_HOST_NODE_PARAMS* node_params) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    HostCall call;
    if (const CUresult result = operation_of(node_params, call)) return result;
    return add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_HOST,
                    std::move(call), nullptr);
  });
}

CUresult graph_add_empty_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t num_dependencies) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    return add_node({node, graph, dependencies, num_dependencies}, CU_GRAPH_NODE_TYPE_EMPTY,
                    Empty{}, nullptr);
  });
}

CUresult graph_add_child_graph_node(CUgraphNode* node, CUgraph graph,
                                    const CUgraphNode* dependencies, std::size_t num_dependencies,
                                    CUgraph child_graph) {
  bool conditional = false;
  const CUresult result = with_graph(child_graph, [&](const CUgraph_st& child) {
    conditional = has_conditions(child);
    if (conditional || has_memory_nodes(child)) return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<CUgraphNode_st> added;
    const std::shared_ptr<CUgraph_st> copy = copy_of(child);
    const CUresult done = add_node({node, graph, dependencies, num_dependencies},
                                   CU_GRAPH_NODE_TYPE_GRAPH, Empty{}, nullptr, added);
    if (added) added->child = copy;
    return done;
  });
  return without_memory_nodes("cuGraphAddChildGraphNode", result, conditional);
}

CUresult graph_add_event_record_node(CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* dependencies, std::size_t num_dependencies,
                                     CUevent event) {
  return add_event_node({node, graph, dependencies, num_dependencies}, event, true);
}

CUresult graph_add_event_wait_node(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, std::size_t num_dependencies,
                                   CUevent event) {
  return add_event_node({node, graph, dependencies, num_dependencies}, event, false);
}

CUresult graph_get_nodes(CUgraph handle, CUgraphNode* nodes, std::size_t* num_nodes) {
  return with_graph(handle, [&](const CUgraph_st& graph) {
    std::vector<CUgraphNode> all;
    for (const auto& node : graph.nodes) all.push_back(node.get());
    return give_nodes(all, nodes, num_nodes);
  });
}

CUresult graph_get_root_nodes(CUgraph handle, CUgraphNode* root_nodes,
                              std::size_t* num_root_nodes) {
  return with_graph(handle, [&](const CUgraph_st& graph) {
    std::vector<CUgraphNode> roots;
    for (const auto& node : graph.nodes) {
      if (node->edges.empty()) roots.push_back(node.get());
    }
    return give_nodes(roots, root_nodes, num_root_nodes);
  });
}

CUresult graph_node_get_type(CUgraphNode handle, CUgraphNodeType* type) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = node.type;
    return CUDA_SUCCESS;
  });
}

CUresult graph_kernel_node_get_params(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* node_params) {
  return with_node(handle, [&](CUgraphNode_st& node) {
    auto* const launch = std::get_if<KernelLaunch>(&node.operation);
    if (node_params == nullptr || launch == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!living(launch->function)) return CUDA_ERROR_INVALID_HANDLE;
    node.arguments.clear();
    for (const std::uint32_t offset : parameter_offsets(launch->function)) {
      node.arguments.push_back(launch->arguments.data() + offset);
    }
    *node_params = {};
    node_params->func = launch->function;
    node_params->gridDimX = launch->grid.x;
    node_params->gridDimY = launch->grid.y;
    node_params->gridDimZ = launch->grid.z;
    node_params->blockDimX = launch->block.x;
    node_params->blockDimY = launch->block.y;
    node_params->blockDimZ = launch->block.z;
    node_params->sharedMemBytes = launch->dynamic_shared_bytes;
    node_params->kernelParams = node.arguments.data();
    node_params->ctx = node.context;
    return CUDA_SUCCESS;
  });
}

CUresult graph_kernel_node_set_params(CUgraphNode handle,
                                      const CUDA_KERNEL_NODE_PARAMS* node_params) {
  return guarded([&] {
    KernelLaunch launch;
    CUcontext context = nullptr;
    // Clusters and cooperation stay.
    (void)with_node(handle, [&](const CUgraphNode_st& node) {
      if (const auto* now = std::get_if<KernelLaunch>(&node.operation)) launch = *now;
      return CUDA_SUCCESS;
    });
    // The new arguments may alias the old ones (get, change, set), so they are read first.
    if (const CUresult result = kernel_of(node_params, launch, context); result != CUDA_SUCCESS) {
      return result;
    }
    return with_node(handle, [&](CUgraphNode_st& node) {
      if (node.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
      node.operation = std::move(launch);
      node.context = context;
      return CUDA_SUCCESS;
    });
  });
}

CUresult graph_destroy_node(CUgraphNode handle) {
  const CUresult result = with_node(handle, [&](CUgraphNode_st& node) {
    CUgraph_st& graph = *node.graph;
    if (graph.capturing) return CUDA_ERROR_ILLEGAL_STATE;
    if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    for (const std::shared_ptr<CUgraphNode_st>& other : graph.nodes) {
      std::erase_if(other->edges, [&](const auto& edge) { return edge.from == handle; });
    }
    std::erase_if(graph.nodes, [&](const auto& one) { return one.get() == handle; });
    if (node.child) remove_handles(*node.child);
    for (const std::shared_ptr<CUgraph_st>& body : node.bodies) remove_handles(*body);
    if (auto* choice = std::get_if<Choose>(&node.operation)) choice->condition->used = false;
    gone(handle);
    return CUDA_SUCCESS;
  });
  return without_memory_nodes("cuGraphDestroyNode", result);
}

CUresult graph_node_find_in_clone(CUgraphNode* node, CUgraphNode original_node,
                                  CUgraph cloned_graph) {
  return with_graph(cloned_graph, [&](const CUgraph_st& graph) {
    if (node == nullptr || original_node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = std::ranges::find_if(
        graph.nodes, [&](const auto& one) { return one->origin == original_node; });
    if (found == graph.nodes.end()) return CUDA_ERROR_INVALID_VALUE;
    *node = found->get();
    return CUDA_SUCCESS;
  });
}

/// The node owns the inner graph.
CUresult graph_child_graph_node_get_graph(CUgraphNode handle, CUgraph* graph) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    if (graph == nullptr || !node.child) return CUDA_ERROR_INVALID_VALUE;
    if (!living(node.child.get())) {
      for (const std::shared_ptr<CUgraphNode_st>& one : node.child->nodes) enroll(one);
      enroll(node.child);
    }
    *graph = node.child.get();
    return CUDA_SUCCESS;
  });
}

CUresult graph_debug_dot_print(CUgraph handle, const char* path, unsigned /*flags*/) {
  std::string text = "digraph graph {\n";
  const CUresult result = with_graph(handle, [&](const CUgraph_st& graph) {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    print_dot(graph, "node_", text);
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return result;
  return guarded([&]() -> CUresult {
    text += "}\n";
    std::FILE* const file = std::fopen(path, "wb");
    if (file == nullptr) {
      return refuse(CUDA_ERROR_OPERATING_SYSTEM,
                    "cuGraphDebugDotPrint: cannot write " + std::string(path));
    }
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
