// src/driver/cudart/graphs.cpp - graphs of the runtime
#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

cudaError_t kernel_node(const cudaKernelNodeParams* parameters,
                        CUDA_KERNEL_NODE_PARAMS& converted) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (const cudaError_t error = find_kernel(parameters->func, kernel)) return error;
  converted = {};
  converted.kern = kernel;
  converted.gridDimX = parameters->gridDim.x;
  converted.gridDimY = parameters->gridDim.y;
  converted.gridDimZ = parameters->gridDim.z;
  converted.blockDimX = parameters->blockDim.x;
  converted.blockDimY = parameters->blockDim.y;
  converted.blockDimZ = parameters->blockDim.z;
  converted.sharedMemBytes = parameters->sharedMemBytes;
  converted.kernelParams = parameters->kernelParams;
  converted.extra = parameters->extra;
  return cudaSuccess;
}

cudaError_t add_copy(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     std::size_t count, const CUDA_MEMCPY3D& copy) {
  return error_of(cuGraphAddMemcpyNode(node, graph, after, count, &copy, context_of_thread()));
}

cudaError_t add_copy(const char* call, cudaGraphNode_t* node, cudaGraph_t graph,
                     const cudaGraphNode_t* after, std::size_t count, void* to, const void* from,
                     std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = enter()) return error;
  CUDA_MEMCPY3D copy{};
  if (const cudaError_t error = copy_of(call, to, from, bytes, kind, copy)) return error;
  return add_copy(node, graph, after, count, copy);
}

}  // namespace

CUcontext context_of_thread() {
  CUcontext context = nullptr;
  static_cast<void>(cuCtxGetCurrent(&context));
  return context;
}

CUDA_MEMSET_NODE_PARAMS fill_of(const cudaMemsetParams& parameters) {
  return {address_of(parameters.dst), parameters.pitch, parameters.value,
          parameters.elementSize,     parameters.width, parameters.height};
}

namespace entries {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return driver_call(cuGraphCreate, graph, flags);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return driver_call(cuGraphDestroy, graph); }
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return driver_call(cuGraphClone, clone, graph);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, std::size_t count,
                                   const cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS converted{};
  if (const cudaError_t error = kernel_node(parameters, converted)) return error;
  return error_of(cuGraphAddKernelNode_v2(node, graph, after, count, &converted));
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS found{};
  if (const cudaError_t error = driver_call(cuGraphKernelNodeGetParams_v2, node, &found)) {
    return error;
  }
  *parameters = {};
  parameters->func = host_function_of(found.func);
  parameters->gridDim = {found.gridDimX, found.gridDimY, found.gridDimZ};
  parameters->blockDim = {found.blockDimX, found.blockDimY, found.blockDimZ};
  parameters->sharedMemBytes = found.sharedMemBytes;
  parameters->kernelParams = found.kernelParams;
  parameters->extra = found.extra;
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS converted{};
  if (const cudaError_t error = kernel_node(parameters, converted)) return error;
  return error_of(cuGraphKernelNodeSetParams_v2(node, &converted));
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS converted{};
  if (const cudaError_t error = kernel_node(parameters, converted)) return error;
  return error_of(cuGraphExecKernelNodeSetParams_v2(executable, node, &converted));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, std::size_t count,
                                   const cudaMemcpy3DParms* copy) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  CUDA_MEMCPY3D converted{};
  if (const cudaError_t error = copy_of("cudaGraphAddMemcpyNode", *copy, converted)) return error;
  return add_copy(node, graph, after, count, converted);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, std::size_t count, void* to,
                                     const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return add_copy("cudaGraphAddMemcpyNode1D", node, graph, after, count, to, from, bytes, kind);
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, std::size_t count,
                                           const void* symbol, const void* from, std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind kind) {
  void* to = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, to)) return error;
  return add_copy("cudaGraphAddMemcpyNodeToSymbol", node, graph, after, count, to, from, bytes,
                  kind);
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* after, std::size_t count,
                                             void* to, const void* symbol, std::size_t bytes,
                                             std::size_t offset, cudaMemcpyKind kind) {
  void* from = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, from)) return error;
  return add_copy("cudaGraphAddMemcpyNodeFromSymbol", node, graph, after, count, to, from, bytes,
                  kind);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, std::size_t count,
                                   const cudaMemsetParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  const CUDA_MEMSET_NODE_PARAMS converted = fill_of(*parameters);
  return error_of(cuGraphAddMemsetNode(node, graph, after, count, &converted, context_of_thread()));
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* after, std::size_t count,
                                 const cudaHostNodeParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  const CUDA_HOST_NODE_PARAMS converted{parameters->fn, parameters->userData};
  return driver_call(cuGraphAddHostNode, node, graph, after, count, &converted);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* after, std::size_t count) {
  return driver_call(cuGraphAddEmptyNode, node, graph, after, count);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, std::size_t count,
                                       cudaGraph_t child) {
  return driver_call(cuGraphAddChildGraphNode, node, graph, after, count, child);
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* after, std::size_t count,
                                        cudaEvent_t event) {
  return driver_call(cuGraphAddEventRecordNode, node, graph, after, count, event);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* after, std::size_t count,
                                      cudaEvent_t event) {
  return driver_call(cuGraphAddEventWaitNode, node, graph, after, count, event);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return driver_call(cuGraphChildGraphNodeGetGraph, node, graph);
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return driver_call(cuGraphNodeFindInClone, node, original, clone);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, CUgraphNodeType* type) {
  return driver_call(cuGraphNodeGetType, node, type);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return driver_call(cuGraphGetNodes, graph, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return driver_call(cuGraphGetRootNodes, graph, nodes, count);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return driver_call(cuGraphDestroyNode, node);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  return driver_call(cuGraphInstantiateWithFlags, executable, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return driver_call(cuGraphInstantiateWithFlags, executable, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  return driver_call(cuGraphInstantiateWithParams, executable, graph, parameters);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return driver_call(cuGraphUpload, executable, stream);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return driver_call(cuGraphLaunch, executable, stream);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return driver_call(cuGraphExecDestroy, executable);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return driver_call(cuGraphExecUpdate_v2, executable, graph, info);
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  return driver_call(cuGraphDebugDotPrint, graph, path, flags);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* user, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
  return driver_call(cuUserObjectCreate, object, user, destroy, references, flags);
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return driver_call(cuUserObjectRetain, object, count);
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return driver_call(cuUserObjectRelease, object, count);
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
  return driver_call(cuGraphRetainUserObject, graph, object, count, flags);
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return driver_call(cuGraphReleaseUserObject, graph, object, count);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
