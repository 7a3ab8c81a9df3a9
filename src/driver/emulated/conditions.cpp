// src/driver/emulated/conditions.cpp - conditions of graphs and the nodes that read them
#include "driver/emulated/conditions.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/condition_cell.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using emulator::ConditionCell;

bool is_allowed(const CUgraphNode_st& node) noexcept {
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return true;
    default:
      return false;
  }
}

Unfit unfit_body(const CUgraph_st& body, CUcontext context) {
  Unfit found;
  for_each_node(body, [&](CUgraphNode_st& node) {
    if (found.why != CUDA_GRAPH_INSTANTIATE_SUCCESS) return;
    if (!is_allowed(node)) {
      found = {CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, &node,
               "a body of a conditional node holds a node that it may not: kernels, copies, fills, "
               "empty nodes, child graphs and conditional nodes are allowed"};
    } else if (node.context != nullptr && node.context != context) {
      found = {CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, &node,
               "a body of a conditional node holds a node of another context than the node's"};
    }
  });
  return found;
}

/// A handle for nodes in this graph: of the graph itself, or of one that it is part of.
std::shared_ptr<Condition> find_condition(const CUgraph_st& graph, CUdeviceptr handle) {
  for (const CUgraph_st* one = &graph; one != nullptr;
       one = one->owner != nullptr ? one->owner->graph : nullptr) {
    for (const std::shared_ptr<Condition>& condition : one->conditions) {
      if (condition->cell == handle) return condition;
    }
  }
  return nullptr;
}

bool is_size(const CUDA_CONDITIONAL_NODE_PARAMS& params) noexcept {
  switch (params.type) {
    case CU_GRAPH_COND_TYPE_IF:
      return params.size == 1 || params.size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
      return params.size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return params.size >= 1;
  }
  return false;
}

/// With graphs_mutex() held; null, or what is wrong with the handle.
const char* problem_of(const Condition* condition, CUcontext context) {
  if (condition == nullptr) {
    return "the handle is of no condition of this graph or of one that it is part of; it comes "
           "from cuGraphConditionalHandleCreate";
  }
  if (condition->used) return "another conditional node has the handle; create one for each node";
  if (context != nullptr && context != condition->context) {
    return "the context is not that of the handle";
  }
  return nullptr;
}

}  // namespace

Condition::~Condition() {
  const std::lock_guard lock(owner->mutex);
  owner->ended_conditions.push_back(cell);
}

void reset(const Condition& condition) {
  const std::shared_ptr<CUctx_st> context = hold(condition.context);
  if (!context) return;
  const std::lock_guard lock(context->memory_mutex);
  const ConditionCell now{condition.assign ? condition.first : 0, condition.assign ? 1u : 0u};
  std::memcpy(context->memory.space().host(condition.cell), &now, sizeof now);
}

unsigned value_of(const Condition& condition) {
  ConditionCell now;
  {
    const std::shared_ptr<CUctx_st> context = hold(condition.context);
    if (!context) return 0;
    const std::lock_guard lock(context->memory_mutex);
    std::memcpy(&now, context->memory.space().host(condition.cell), sizeof now);
  }
  if (now.is_set != 0) return now.value;
  log(CU_LOG_LEVEL_WARNING,
      format_text(
          "a conditional node reads the handle {:#x}, which has no value: no kernel of this "
          "launch has set it, and it was created without CU_GRAPH_COND_ASSIGN_DEFAULT; it "
          "counts as 0",
          condition.cell));
  return 0;
}

Unfit unfit(const CUgraph_st& graph) {
  Unfit found;
  const auto look_for_unused = [&](const CUgraph_st& one) {
    const bool used = std::ranges::all_of(one.conditions, &Condition::used);
    if (used || found.why != CUDA_GRAPH_INSTANTIATE_SUCCESS) return;
    found = {CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr,
             "a handle of cuGraphConditionalHandleCreate has no conditional node"};
  };
  look_for_unused(graph);
  for_each_node(graph, [&](CUgraphNode_st& node) {
    for (const std::shared_ptr<CUgraph_st>& body : node.bodies) {
      if (found.why == CUDA_GRAPH_INSTANTIATE_SUCCESS) found = unfit_body(*body, node.context);
      look_for_unused(*body);
    }
  });
  return found;
}

CUresult add_conditional_node(const NewNode& wanted, CUDA_CONDITIONAL_NODE_PARAMS& params) {
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!is_size(params)) {
    return refuse(
        CUDA_ERROR_INVALID_VALUE,
        format_text("cuGraphAddNode: {} bodies of a conditional node of type {}; IF has 1 "
                    "or 2, WHILE 1, SWITCH 1 or more",
                    params.size, static_cast<int>(params.type)));
  }
  const char* problem = nullptr;
  {
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> graph = hold(wanted.graph);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Condition> condition = find_condition(*graph, params.handle);
    problem = problem_of(condition.get(), params.ctx);
    if (problem == nullptr) {
      std::shared_ptr<CUgraphNode_st> node;
      if (const CUresult result =
              add_node(wanted, CU_GRAPH_NODE_TYPE_CONDITIONAL, Choose{condition, params.type},
                       condition->context, node)) {
        return result;
      }
      condition->used = true;
      for (unsigned i = 0; i < params.size; ++i) {
        const auto body = std::make_shared<CUgraph_st>();
        body->owner = node.get();
        enroll(body);
        node->bodies.push_back(body);
        node->body_handles.push_back(body.get());
      }
      params.phGraph_out = node->body_handles.data();
    }
  }
  if (problem == nullptr) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_VALUE,
                format_text("cuGraphAddNode: {:#x}: {}", params.handle, problem));
}

void sweep_conditions() {
  const std::shared_ptr<CUctx_st> context = hold(current());
  if (!context) return;
  {
    const std::lock_guard lock(context->graph_memories->mutex);
    if (context->graph_memories->ended_conditions.empty()) return;
  }
  sweep(*context);
}

namespace entries {

CUresult graph_conditional_handle_create(CUgraphConditionalHandle* handle_out, CUgraph graph,
                                         CUcontext handle, unsigned default_launch_value,
                                         unsigned flags) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (handle_out == nullptr || (flags & ~kGraphAssignDefault) != 0 || !living(graph)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::shared_ptr<CUctx_st> context = hold(handle != nullptr ? handle : current());
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    sweep(*context);
    CUdeviceptr cell = 0;
    {
      const std::lock_guard memory_lock(context->memory_mutex);
      cell = context->memory.space().allocate(sizeof(ConditionCell), "condition of a graph",
                                              emulator::AllocationKind::Condition);
    }
    const auto condition =
        std::make_shared<Condition>(context->graph_memories, context.get(), cell,
                                    default_launch_value, (flags & kGraphAssignDefault) != 0);
    reset(*condition);
    const std::lock_guard lock(graphs_mutex());
    const std::shared_ptr<CUgraph_st> owner = hold(graph);
    if (!owner) return CUDA_ERROR_INVALID_VALUE;
    owner->conditions.push_back(condition);
    *handle_out = cell;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
