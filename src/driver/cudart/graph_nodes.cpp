// src/driver/cudart/graph_nodes.cpp - parameters of nodes after they were added; memory nodes
#include <cstring>

#include "driver/cudart/cudart.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

/// Sets a copy node, in a graph or (not null) in an executable one.
cudaError_t set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, const CUDA_MEMCPY3D& copy) {
  return error_of(executable != nullptr
                      ? cuGraphExecMemcpyNodeSetParams(executable, node, &copy, context_of_thread())
                      : cuGraphMemcpyNodeSetParams(node, &copy));
}

cudaError_t set_box(const char* call, cudaGraphExec_t executable, cudaGraphNode_t node,
                    const cudaMemcpy3DParms* copy) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  CUDA_MEMCPY3D converted{};
  if (const cudaError_t error = copy_of(call, *copy, converted)) return error;
  return set_copy(executable, node, converted);
}

cudaError_t set_bytes(const char* call, cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                      const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = enter()) return error;
  CUDA_MEMCPY3D converted{};
  if (const cudaError_t error = copy_of(call, to, from, bytes, kind, converted)) return error;
  return set_copy(executable, node, converted);
}

cudaMemcpyKind kind_of(const CUDA_MEMCPY3D& copy) {
  const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  if (to_host) return from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  return from_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

}  // namespace

namespace entries {

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* copy) {
  if (copy == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D found{};
  if (const cudaError_t error = driver_call(cuGraphMemcpyNodeGetParams, node, &found)) return error;
  void* const from = found.srcMemoryType == CU_MEMORYTYPE_HOST ? const_cast<void*>(found.srcHost)
                                                               : pointer_to(found.srcDevice);
  void* const to =
      found.dstMemoryType == CU_MEMORYTYPE_HOST ? found.dstHost : pointer_to(found.dstDevice);
  *copy = {};
  copy->srcPtr = {from, found.srcPitch, found.srcPitch, found.srcHeight};
  copy->dstPtr = {to, found.dstPitch, found.dstPitch, found.dstHeight};
  copy->extent = {found.WidthInBytes, found.Height, found.Depth};
  copy->kind = kind_of(found);
  return cudaSuccess;
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* copy) {
  return set_box("cudaGraphMemcpyNodeSetParams", nullptr, node, copy);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           std::size_t bytes, cudaMemcpyKind kind) {
  return set_bytes("cudaGraphMemcpyNodeSetParams1D", nullptr, node, to, from, bytes, kind);
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* from, std::size_t bytes,
                                                 std::size_t offset, cudaMemcpyKind kind) {
  void* to = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, to)) return error;
  return set_bytes("cudaGraphMemcpyNodeSetParamsToSymbol", nullptr, node, to, from, bytes, kind);
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to,
                                                   const void* symbol, std::size_t bytes,
                                                   std::size_t offset, cudaMemcpyKind kind) {
  void* from = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, from)) return error;
  return set_bytes("cudaGraphMemcpyNodeSetParamsFromSymbol", nullptr, node, to, from, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* copy) {
  if (executable == nullptr) return cudaErrorInvalidValue;
  return set_box("cudaGraphExecMemcpyNodeSetParams", executable, node, copy);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void* to, const void* from, std::size_t bytes,
                                               cudaMemcpyKind kind) {
  if (executable == nullptr) return cudaErrorInvalidValue;
  return set_bytes("cudaGraphExecMemcpyNodeSetParams1D", executable, node, to, from, bytes, kind);
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable,
                                                     cudaGraphNode_t node, const void* symbol,
                                                     const void* from, std::size_t bytes,
                                                     std::size_t offset, cudaMemcpyKind kind) {
  if (executable == nullptr) return cudaErrorInvalidValue;
  void* to = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, to)) return error;
  return set_bytes("cudaGraphExecMemcpyNodeSetParamsToSymbol", executable, node, to, from, bytes,
                   kind);
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable,
                                                       cudaGraphNode_t node, void* to,
                                                       const void* symbol, std::size_t bytes,
                                                       std::size_t offset, cudaMemcpyKind kind) {
  if (executable == nullptr) return cudaErrorInvalidValue;
  void* from = nullptr;
  if (const cudaError_t error = part_of(symbol, bytes, offset, from)) return error;
  return set_bytes("cudaGraphExecMemcpyNodeSetParamsFromSymbol", executable, node, to, from, bytes,
                   kind);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMSET_NODE_PARAMS found{};
  if (const cudaError_t error = driver_call(cuGraphMemsetNodeGetParams, node, &found)) return error;
  *parameters = {pointer_to(found.dst), found.pitch, found.value,
                 found.elementSize,     found.width, found.height};
  return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  const CUDA_MEMSET_NODE_PARAMS converted = fill_of(*parameters);
  return driver_call(cuGraphMemsetNodeSetParams, node, &converted);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = enter()) return error;
  const CUDA_MEMSET_NODE_PARAMS converted = fill_of(*parameters);
  return error_of(
      cuGraphExecMemsetNodeSetParams(executable, node, &converted, context_of_thread()));
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  CUDA_HOST_NODE_PARAMS found{};
  if (const cudaError_t error = driver_call(cuGraphHostNodeGetParams, node, &found)) return error;
  *parameters = {found.fn, found.userData};
  return cudaSuccess;
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  const CUDA_HOST_NODE_PARAMS converted{parameters->fn, parameters->userData};
  return driver_call(cuGraphHostNodeSetParams, node, &converted);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters) {
  if (parameters == nullptr) return cudaErrorInvalidValue;
  const CUDA_HOST_NODE_PARAMS converted{parameters->fn, parameters->userData};
  return driver_call(cuGraphExecHostNodeSetParams, executable, node, &converted);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, std::size_t count,
                                     cudaMemAllocNodeParams* parameters) {
  return driver_call(cuGraphAddMemAllocNode, node, graph, after, count, parameters);
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           cudaMemAllocNodeParams* parameters) {
  return driver_call(cuGraphMemAllocNodeGetParams, node, parameters);
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* after, std::size_t count, void* memory) {
  return driver_call(cuGraphAddMemFreeNode, node, graph, after, count, address_of(memory));
}
/// `memory_out` points to a pointer.
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* memory_out) {
  if (memory_out == nullptr) return cudaErrorInvalidValue;
  CUdeviceptr address = 0;
  if (const cudaError_t error = driver_call(cuGraphMemFreeNodeGetParams, node, &address)) {
    return error;
  }
  void* const memory = pointer_to(address);
  std::memcpy(memory_out, &memory, sizeof memory);
  return cudaSuccess;
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  if (const cudaError_t error = start()) return error;
  return error_of(cuDeviceGraphMemTrim(device));
}
cudaError_t cudaDeviceGetGraphMemAttribute(int device, CUgraphMem_attribute attribute,
                                           void* value) {
  if (const cudaError_t error = start()) return error;
  return error_of(cuDeviceGetGraphMemAttribute(device, attribute, value));
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, CUgraphMem_attribute attribute,
                                           void* value) {
  if (const cudaError_t error = start()) return error;
  return error_of(cuDeviceSetGraphMemAttribute(device, attribute, value));
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
