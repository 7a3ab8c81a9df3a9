// src/driver/cudart/version_13.cpp - libcudart.so.13: what CUDA 12 has not, or otherwise
#include "driver/cudart/exports.hpp"
#include "driver/cudart/properties.hpp"

namespace ptxgen::inline v0::driver::cudart {

namespace entries {

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) cudaError_t symbol parameters;
#include "driver/cudart/functions_13.def"

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count)) return error;
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  if (const cudaError_t error = fill_properties(*properties, device)) return error;
  properties->mpsEnabled = attribute_of(device, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
  properties->deviceNumaConfig = attribute_of(device, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG);
  properties->deviceNumaId = attribute_of(device, CU_DEVICE_ATTRIBUTE_NUMA_ID);
  properties->hostNumaId = attribute_of(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
  return cudaSuccess;
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* properties) {
  return choose_device(device, properties, &cudaGetDeviceProperties);
}

cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  return driver_call(cuMemPrefetchAsync_v2, address_of(memory), bytes, location, flags, stream);
}
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, CUmem_advise advice,
                          cudaMemLocation location) {
  return driver_call(cuMemAdvise_v2, address_of(memory), bytes, advice, location);
}
cudaError_t cudaMemPrefetchBatchAsync(void** memory, std::size_t* sizes, std::size_t count,
                                      cudaMemLocation* locations, std::size_t* first_ranges,
                                      std::size_t num_locations, std::uint64_t flags,
                                      cudaStream_t stream) {
  return driver_call(cuMemPrefetchBatchAsync, reinterpret_cast<CUdeviceptr*>(memory), sizes, count,
                     locations, first_ranges, num_locations, flags, stream);
}
cudaError_t cudaMemDiscardBatchAsync(void** memory, std::size_t* sizes, std::size_t count,
                                     std::uint64_t flags, cudaStream_t stream) {
  return driver_call(cuMemDiscardBatchAsync, reinterpret_cast<CUdeviceptr*>(memory), sizes, count,
                     flags, stream);
}
cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** memory, std::size_t* sizes,
                                                std::size_t count, cudaMemLocation* locations,
                                                std::size_t* first_ranges,
                                                std::size_t num_locations, std::uint64_t flags,
                                                cudaStream_t stream) {
  return driver_call(cuMemDiscardAndPrefetchBatchAsync, reinterpret_cast<CUdeviceptr*>(memory),
                     sizes, count, locations, first_ranges, num_locations, flags, stream);
}
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     CUmemAllocationType type) {
  return driver_call(cuMemGetDefaultMemPool, pool, location, type);
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                              CUmemAllocationType type) {
  return driver_call(cuMemGetMemPool, pool, location, type);
}
cudaError_t cudaMemSetMemPool(cudaMemLocation* location, CUmemAllocationType type,
                              cudaMemPool_t pool) {
  return driver_call(cuMemSetMemPool, location, type, pool);
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* sizes,
                                 std::size_t count, cudaMemcpyAttributes* attributes,
                                 std::size_t* first_copies, std::size_t num_attributes,
                                 cudaStream_t stream) {
  return copy_batch(to, from, sizes, count, attributes, first_copies, num_attributes, stream);
}
cudaError_t cudaMemcpy3DBatchAsync(std::size_t count, cudaMemcpy3DBatchOp* copies,
                                   std::uint64_t flags, cudaStream_t stream) {
  return driver_call(cuMemcpy3DBatchAsync_v2, count, copies, flags, stream);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, CUstreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
  return driver_call(cuStreamGetCaptureInfo_v3, stream, status,
                     reinterpret_cast<std::uint64_t*>(id), graph, nodes, edges, count);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     std::size_t count) {
  return driver_call(cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* edges, std::size_t count,
                                                unsigned flags) {
  return driver_call(cuStreamUpdateCaptureDependencies_v2, stream, nodes, edges, count, flags);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        std::size_t count) {
  return driver_call(cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* edges, std::size_t* count) {
  return driver_call(cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* edges, std::size_t* count) {
  return driver_call(cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData* edges, std::size_t count,
                             cudaGraphNodeParams* parameters) {
  return add_any_node(node, graph, after, edges, count, parameters);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, std::size_t* count) {
  return driver_call(cuGraphGetEdges_v2, graph, from, to, edges, count);
}

cudaError_t cudaLogsRegisterCallback(CUlogsCallback callback, void* user,
                                     CUlogsCallbackHandle* handle) {
  if (const cudaError_t error = start()) return error;
  return error_of(cuLogsRegisterCallback(callback, user, handle));
}
cudaError_t cudaLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  return error_of(cuLogsUnregisterCallback(handle));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  return attributes != nullptr ? pointer_attributes(*attributes, memory) : cudaErrorInvalidValue;
}

}  // namespace entries

extern "C" {

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) \
  PTXGEN_CUDART_EXPORT(symbol, parameters, arguments)
#include "driver/cudart/functions_13.def"

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) \
  PTXGEN_CUDART_PER_THREAD(symbol, parameters, arguments)
#include "driver/cudart/functions_13.def"

#define PTXGEN_PER_THREAD(symbol, suffix) PTXGEN_CUDART_ALIAS(symbol, suffix)
#include "driver/cudart/per_thread_13.def"

#define PTXGEN_REFUSED(symbol) PTXGEN_CUDART_REFUSE(symbol)
#include "driver/cudart/refused_13.def"
}

}  // namespace ptxgen::inline v0::driver::cudart
