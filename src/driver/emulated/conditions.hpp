// src/driver/emulated/conditions.hpp - conditions of graphs, which kernels set
#pragma once

#include "driver/emulated/graph_memory.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// What a handle of cuGraphConditionalHandleCreate stands for. The handle is the address of a cell
/// in the context's memory, which cudaGraphSetConditional writes
/// (emulator/machine/system_calls.cpp) and conditional nodes read. The cell is given back at the
/// next `sweep`.
struct Condition {
  Condition(std::shared_ptr<GraphMemories> its_owner, CUcontext its_context, CUdeviceptr its_cell,
            unsigned its_first, bool assigned) noexcept
      : owner(std::move(its_owner)),
        context(its_context),
        cell(its_cell),
        first(its_first),
        assign(assigned) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;
  ~Condition();

  const std::shared_ptr<GraphMemories> owner;
  const CUcontext context;
  const CUdeviceptr cell;
  const unsigned first;  ///< its value at each launch, if `assign`
  const bool assign;

  // Guarded by graphs_mutex().
  bool used = false;  ///< by a node
  std::weak_ptr<CUgraphExec_st> executable;
};

/// At the begin of a launch. On the worker; takes the lock of the context's memory.
void reset(const Condition& condition);
/// Its value now. A warning in the log, and 0, if it has none.
[[nodiscard]] unsigned value_of(const Condition& condition);

/// Why a graph cannot be instantiated. With graphs_mutex() held, where the text cannot be logged.
struct Unfit {
  CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  CUgraphNode node = nullptr;
  const char* text = nullptr;
};
[[nodiscard]] Unfit unfit(const CUgraph_st& graph);

/// Adds a node with empty bodies, which it tells in `params`. Takes the mutex.
[[nodiscard]] CUresult add_conditional_node(const NewNode& wanted,
                                            CUDA_CONDITIONAL_NODE_PARAMS& params);
/// Gives back the cells of conditions that are gone, so that kernels that set them are told.
void sweep_conditions();

}  // namespace ptxgen::inline v0::driver::emulated
