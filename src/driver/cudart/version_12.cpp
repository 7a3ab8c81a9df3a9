// src/driver/cudart/version_12.cpp - libcudart.so.12: what CUDA 13 has not, or otherwise
#include <cstring>

#include "driver/cudart/exports.hpp"
#include "driver/cudart/properties.hpp"

namespace ptxgen::inline v0::driver::cudart {

namespace entries {

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) cudaError_t symbol parameters;
#include "driver/cudart/functions_12.def"

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  *version = 12090;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp12* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  int number = 0;
  if (const cudaError_t error =
          cudaDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device)) {
    return error;
  }
  if (const cudaError_t error = fill_properties(*properties, device)) return error;
  properties->clockRate = number;
  properties->deviceOverlap = attribute_of(device, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP);
  properties->kernelExecTimeoutEnabled =
      attribute_of(device, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  properties->computeMode = attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  properties->memoryClockRate = attribute_of(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  properties->singleToDoublePrecisionPerfRatio =
      attribute_of(device, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  return cudaSuccess;
}

/// Programs built with CUDA 11 and before call this; their structure ends earlier.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp12* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  cudaDeviceProp12 newer{};
  if (const cudaError_t error = cudaGetDeviceProperties_v2(&newer, device)) return error;
  std::memcpy(properties, &newer, offsetof(cudaDeviceProp12, hostRegisterSupported));
  return cudaSuccess;
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp12* properties) {
  return choose_device(device, properties, &cudaGetDeviceProperties_v2);
}

cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return driver_call(cuEventElapsedTime_v2, milliseconds, start, end);
}

namespace {

cudaMemLocation location_of(int device) {
  return device == kCpuDeviceId ? cudaMemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                                : cudaMemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}

}  // namespace

cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int device,
                                 cudaStream_t stream) {
  return cudaMemPrefetchAsync_v2(memory, bytes, location_of(device), 0, stream);
}
cudaError_t cudaMemPrefetchAsync_v2(const void* memory, std::size_t bytes, cudaMemLocation location,
                                    unsigned flags, cudaStream_t stream) {
  return driver_call(cuMemPrefetchAsync_v2, address_of(memory), bytes, location, flags, stream);
}
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, CUmem_advise advice, int device) {
  return cudaMemAdvise_v2(memory, bytes, advice, location_of(device));
}
cudaError_t cudaMemAdvise_v2(const void* memory, std::size_t bytes, CUmem_advise advice,
                             cudaMemLocation location) {
  return driver_call(cuMemAdvise_v2, address_of(memory), bytes, advice, location);
}

/// SIZE_MAX in `failed`: the error is not that of one copy.
cudaError_t cudaMemcpyBatchAsync(void** to, void** from, std::size_t* sizes, std::size_t count,
                                 cudaMemcpyAttributes* attributes, std::size_t* first_copies,
                                 std::size_t num_attributes, std::size_t* failed,
                                 cudaStream_t stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return copy_batch(to, from, sizes, count, attributes, first_copies, num_attributes, stream);
}
cudaError_t cudaMemcpy3DBatchAsync(std::size_t count, cudaMemcpy3DBatchOp* copies,
                                   std::size_t* failed, std::uint64_t flags, cudaStream_t stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return driver_call(cuMemcpy3DBatchAsync_v2, count, copies, flags, stream);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, CUstreamCaptureStatus* status,
                                     unsigned long long* id) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, CUstreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** nodes, std::size_t* count) {
  return driver_call(cuStreamGetCaptureInfo_v2, stream, status,
                     reinterpret_cast<std::uint64_t*>(id), graph, nodes, count);
}
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, CUstreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** nodes,
                                        const cudaGraphEdgeData** edges, std::size_t* count) {
  return driver_call(cuStreamGetCaptureInfo_v3, stream, status,
                     reinterpret_cast<std::uint64_t*>(id), graph, nodes, edges, count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, std::size_t count) {
  return driver_call(cuGraphAddDependencies, graph, from, to, count);
}
cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        std::size_t count) {
  return driver_call(cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                std::size_t count, unsigned flags) {
  return driver_call(cuStreamUpdateCaptureDependencies, stream, nodes, count, flags);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, std::size_t count) {
  return driver_call(cuGraphRemoveDependencies, graph, from, to, count);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         std::size_t* count) {
  return driver_call(cuGraphNodeGetDependencies, node, nodes, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           std::size_t* count) {
  return driver_call(cuGraphNodeGetDependentNodes, node, nodes, count);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             std::size_t count, cudaGraphNodeParams* parameters) {
  return add_any_node(node, graph, after, nullptr, count, parameters);
}
cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                   const cudaGraphEdgeData* edges,
                                                   std::size_t count, unsigned flags) {
  return driver_call(cuStreamUpdateCaptureDependencies_v2, stream, nodes, edges, count, flags);
}
cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                           const cudaGraphNode_t* to,
                                           const cudaGraphEdgeData* edges, std::size_t count) {
  return driver_call(cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}
cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                            cudaGraphEdgeData* edges, std::size_t* count) {
  return driver_call(cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
}
cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                              cudaGraphEdgeData* edges, std::size_t* count) {
  return driver_call(cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
}
cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph,
                                const cudaGraphNode_t* after, const cudaGraphEdgeData* edges,
                                std::size_t count, cudaGraphNodeParams* parameters) {
  return add_any_node(node, graph, after, edges, count, parameters);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              std::size_t* count) {
  return driver_call(cuGraphGetEdges, graph, from, to, count);
}
cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                 cudaGraphEdgeData* edges, std::size_t* count) {
  return driver_call(cuGraphGetEdges_v2, graph, from, to, edges, count);
}

// The names of CUDA 3.
cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaThreadSetLimit(CUlimit limit, std::size_t value) {
  return cudaDeviceSetLimit(limit, value);
}
cudaError_t cudaThreadGetLimit(std::size_t* value, CUlimit limit) {
  return cudaDeviceGetLimit(value, limit);
}
cudaError_t cudaThreadGetCacheConfig(CUfunc_cache* config) {
  return cudaDeviceGetCacheConfig(config);
}
cudaError_t cudaThreadSetCacheConfig(CUfunc_cache config) {
  return cudaDeviceSetCacheConfig(config);
}

/// Without the members that CUDA 13 has added.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  cudaPointerAttributes newer{};
  if (attributes == nullptr) return cudaErrorInvalidValue;
  if (const cudaError_t error = pointer_attributes(newer, memory)) return error;
  std::memcpy(attributes, &newer, offsetof(cudaPointerAttributes, reserved));
  return cudaSuccess;
}

}  // namespace entries

extern "C" {

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) \
  PTXGEN_CUDART_EXPORT(symbol, parameters, arguments)
#include "driver/cudart/functions_12.def"

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) \
  PTXGEN_CUDART_PER_THREAD(symbol, parameters, arguments)
#include "driver/cudart/functions_12.def"

#define PTXGEN_PER_THREAD(symbol, suffix) PTXGEN_CUDART_ALIAS(symbol, suffix)
#include "driver/cudart/per_thread_12.def"

#define PTXGEN_REFUSED(symbol) PTXGEN_CUDART_REFUSE(symbol)
#include "driver/cudart/refused_12.def"
}

}  // namespace ptxgen::inline v0::driver::cudart
