// src/driver/cudart/graph_any.cpp - nodes of any type by one call; events, attributes, conditions
#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

/// The driver's parameters for the runtime's. Types that the driver does not have are its to
/// refuse.
cudaError_t node_of(const char* call, const cudaGraphNodeParams* parameters,
                    CUgraphNodeParams& converted) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  converted = {};
  converted.type = parameters->type;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const cudaKernelNodeParamsV2& from = parameters->kernel;
      CUkernel kernel = nullptr;
      if (const cudaError_t error = find_kernel(from.func, kernel)) return error;
      converted.kernel = {nullptr,           from.gridDim.x,  from.gridDim.y,  from.gridDim.z,
                          from.blockDim.x,   from.blockDim.y, from.blockDim.z, from.sharedMemBytes,
                          from.kernelParams, from.extra,      kernel,          nullptr};
      return cudaSuccess;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      converted.memcpy.copyCtx = context_of_thread();
      return copy_of(call, parameters->memcpy.copyParams, converted.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const cudaMemsetParamsV2& from = parameters->memset;
      converted.memset = {address_of(from.dst), from.pitch,  from.value,         from.elementSize,
                          from.width,           from.height, context_of_thread()};
      return cudaSuccess;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      converted.host = parameters->host;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      converted.graph = parameters->graph;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      converted.eventWait = parameters->eventWait;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      converted.eventRecord = parameters->eventRecord;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      converted.alloc = parameters->alloc;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      converted.free = parameters->free;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      converted.conditional = {parameters->conditional.handle, parameters->conditional.type,
                               parameters->conditional.size, nullptr, context_of_thread()};
      return cudaSuccess;
    default:
      return cudaSuccess;
  }
}

}  // namespace

cudaError_t add_any_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                         const cudaGraphEdgeData* edges, std::size_t count,
                         cudaGraphNodeParams* parameters) {
  CUgraphNodeParams converted{};
  if (const cudaError_t error = node_of("cudaGraphAddNode", parameters, converted)) return error;
  if (const CUresult result = cuGraphAddNode_v2(node, graph, after, edges, count, &converted)) {
    return error_of(result);
  }
  if (converted.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) parameters->alloc.dptr = converted.alloc.dptr;
  if (converted.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    parameters->conditional.phGraph_out = converted.conditional.phGraph_out;
  }
  return cudaSuccess;
}

namespace entries {

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  CUgraphNodeParams converted{};
  if (const cudaError_t error = node_of("cudaGraphNodeSetParams", parameters, converted)) {
    return error;
  }
  return error_of(cuGraphNodeSetParams(node, &converted));
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                       cudaGraphNodeParams* parameters) {
  CUgraphNodeParams converted{};
  if (const cudaError_t error = node_of("cudaGraphExecNodeSetParams", parameters, converted)) {
    return error;
  }
  return error_of(cuGraphExecNodeSetParams(executable, node, &converted));
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return driver_call(cuGraphEventRecordNodeGetEvent, node, event);
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return driver_call(cuGraphEventRecordNodeSetEvent, node, event);
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return driver_call(cuGraphExecEventRecordNodeSetEvent, executable, node, event);
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return driver_call(cuGraphEventWaitNodeGetEvent, node, event);
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return driver_call(cuGraphEventWaitNodeSetEvent, node, event);
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return driver_call(cuGraphExecEventWaitNodeSetEvent, executable, node, event);
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, CUlaunchAttributeID attribute,
                                            cudaLaunchAttributeValue* value) {
  return driver_call(cuGraphKernelNodeGetAttribute, node, attribute, value);
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, CUlaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
  return driver_call(cuGraphKernelNodeSetAttribute, node, attribute, value);
}
/// The order of CUDA 13's header, which is the driver's; CUDA 12's names them the other way round.
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return driver_call(cuGraphKernelNodeCopyAttributes, to, from);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return driver_call(cuGraphExecChildGraphNodeSetParams, executable, node, child);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned enabled) {
  return driver_call(cuGraphNodeSetEnabled, executable, node, enabled);
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned* enabled) {
  return driver_call(cuGraphNodeGetEnabled, executable, node, enabled);
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
  return driver_call(cuGraphExecGetFlags, executable, reinterpret_cast<std::uint64_t*>(flags));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned first, unsigned flags) {
  if (const cudaError_t error = enter()) return error;
  return error_of(cuGraphConditionalHandleCreate(reinterpret_cast<std::uint64_t*>(handle), graph,
                                                 context_of_thread(), first, flags));
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* after,
                                          const cudaGraphEdgeData* edges, std::size_t count,
                                          CUstreamCaptureMode mode) {
  return driver_call(cuStreamBeginCaptureToGraph, stream, graph, after, edges, count, mode);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
