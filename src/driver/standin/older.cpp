// src/driver/standin/older.cpp - older symbols by newer ones
#include <cstring>

#include "driver/standin/standin.hpp"

namespace ptxgen::inline v0::driver {

using standin::OldKernelNodeParams;
using standin::table;

namespace {

CUDA_KERNEL_NODE_PARAMS with_new_members(const OldKernelNodeParams& old) {
  static_assert(sizeof old == offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
  CUDA_KERNEL_NODE_PARAMS parameters{};
  std::memcpy(&parameters, &old, sizeof old);
  return parameters;
}

/// A device as a place for memory; CU_DEVICE_CPU is the host.
CUmemLocation location_of(CUdevice device) {
  constexpr CUdevice kHost = -1;
  return device == kHost ? CUmemLocation{CU_MEM_LOCATION_TYPE_HOST, 0}
                         : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, device};
}

/// Result of calls that only need a context.
CUresult need_context() {
  CUdevice device = 0;
  return table().ctx_get_device(&device);
}

}  // namespace

extern "C" {

#define PTXGEN_OLDER(symbol, since, parameters) CUresult symbol parameters;
#include "driver/standin/older.def"

CUresult cuGetProcAddress(const char* name, void** entry, int version, std::uint64_t flags) {
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = standin::get_proc_address(name, entry, version, flags, &status);
  const bool missing = result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS;
  return missing ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult cuCtxCreate_v3(CUcontext* context, void* affinities, int count, unsigned flags,
                        CUdevice device) {
  if ((affinities == nullptr) != (count == 0)) return CUDA_ERROR_INVALID_VALUE;
  if (count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return table().ctx_create_v2(context, flags, device);
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return table().stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id) {
  return table().stream_get_capture_info_v2(stream, status, id, nullptr, nullptr, nullptr);
}

CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                            char* log, std::size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return table().graph_instantiate_with_flags(executable, graph, 0);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                               char* log, std::size_t log_bytes) {
  return cuGraphInstantiate(executable, graph, error_node, log, log_bytes);
}

CUresult cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = table().graph_exec_update(executable, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return status;
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              std::size_t count, const OldKernelNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = with_new_members(*parameters);
  return table().graph_add_kernel_node(node, graph, dependencies, count, &newer);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, OldKernelNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS newer{};
  const CUresult status = table().graph_kernel_node_get_params(node, &newer);
  if (status == CUDA_SUCCESS) std::memcpy(parameters, &newer, sizeof *parameters);
  return status;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const OldKernelNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = with_new_members(*parameters);
  return table().graph_kernel_node_set_params(node, &newer);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const OldKernelNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = with_new_members(*parameters);
  return table().graph_exec_kernel_node_set_params(executable, node, &newer);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice device,
                            CUstream stream) {
  return table().mem_prefetch_async(address, bytes, location_of(device), 0, stream);
}

CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return table().mem_advise(address, bytes, advice, location_of(device));
}

/// SIZE_MAX in `failed`: the error is not that of one copy.
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes,
                            std::size_t count, CUmemcpyAttributes* attributes,
                            std::size_t* first_copies, std::size_t num_attributes,
                            std::size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return table().memcpy_batch_async(to, from, sizes, count, attributes, first_copies,
                                    num_attributes, stream);
}
CUresult cuMemcpy3DBatchAsync(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* copies,
                              std::size_t* failed, unsigned long long flags, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return table().memcpy_3d_batch_async(count, copies, flags, stream);
}

CUresult cuProfilerStart() { return need_context(); }
CUresult cuProfilerStop() { return need_context(); }

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  const bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
  return known ? need_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return need_context();
}

// Bank sizes: 0 the default, 1 four bytes, 2 eight bytes. GPUs since sm_50 have four.
CUresult cuCtxSetSharedMemConfig(int config) {
  return config >= 0 && config <= 2 ? need_context() : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetSharedMemConfig(int* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = 1;
  return need_context();
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, int config) {
  if (config < 0 || config > 2) return CUDA_ERROR_INVALID_VALUE;
  return table().func_set_cache_config(function, CU_FUNC_CACHE_PREFER_NONE);
}
}

}  // namespace ptxgen::inline v0::driver
