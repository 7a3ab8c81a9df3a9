// src/driver/emulated/pending.cpp - placeholders for what other files will define
#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"

/// Weak, so that the real definitions win; goes away when all of them are there.
namespace ptxgen::inline v0::driver::emulated {

#define PTXGEN_PENDING __attribute__((weak))

PTXGEN_PENDING CUresult capture_operation(const std::shared_ptr<CUstream_st>&, Operation&, bool&) {
  return CUDA_SUCCESS;
}
PTXGEN_PENDING CUresult unsafe_during_capture() { return CUDA_SUCCESS; }
PTXGEN_PENDING CUresult not_in_capture(const std::shared_ptr<CUstream_st>&) { return CUDA_SUCCESS; }
PTXGEN_PENDING CUresult not_in_legacy(CUcontext) { return CUDA_SUCCESS; }
PTXGEN_PENDING CUresult not_while_captured(CUcontext) { return CUDA_SUCCESS; }
PTXGEN_PENDING void leave_capture(CUevent) {}
PTXGEN_PENDING CUresult capture_record(const std::shared_ptr<CUstream_st>&,
                                       const std::shared_ptr<CUevent_st>&, bool, bool&) {
  return CUDA_SUCCESS;
}
PTXGEN_PENDING CUresult capture_wait(const std::shared_ptr<CUstream_st>&,
                                     const std::shared_ptr<CUevent_st>&, bool, bool&) {
  return CUDA_SUCCESS;
}
PTXGEN_PENDING void abandon_capture(const std::shared_ptr<CUstream_st>&) {}
PTXGEN_PENDING const std::vector<std::shared_ptr<CUevent_st>>& records_of(const Executable&) {
  static const std::vector<std::shared_ptr<CUevent_st>> kNone;
  return kNone;
}
PTXGEN_PENDING CUresult execute(CUcontext, const Executable&) { return CUDA_SUCCESS; }
PTXGEN_PENDING void pass_over(const Executable&, CUresult) {}

namespace entries {

// clang-format off
PTXGEN_PENDING CUresult stream_begin_capture(CUstream, CUstreamCaptureMode) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult stream_end_capture(CUstream, CUgraph*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult stream_is_capturing(CUstream, CUstreamCaptureStatus* status) { *status = CU_STREAM_CAPTURE_STATUS_NONE; return CUDA_SUCCESS; }
PTXGEN_PENDING CUresult stream_get_capture_info_v2(CUstream, CUstreamCaptureStatus*, std::uint64_t*, CUgraph*, const CUgraphNode**, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult stream_get_capture_info_v3(CUstream, CUstreamCaptureStatus*, std::uint64_t*, CUgraph*, const CUgraphNode**, const CUgraphEdgeData**, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult thread_exchange_stream_capture_mode(CUstreamCaptureMode*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_destroy(CUgraph) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_instantiate_with_flags(CUgraphExec*, CUgraph, unsigned long long) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_exec_destroy(CUgraphExec) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_launch(CUgraphExec, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_create(CUgraph*, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_clone(CUgraph*, CUgraph) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_kernel_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_KERNEL_NODE_PARAMS*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_memcpy_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_MEMCPY3D*, CUcontext) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_memset_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_MEMSET_NODE_PARAMS*, CUcontext) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_host_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_HOST_NODE_PARAMS*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_empty_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_child_graph_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_event_record_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_event_wait_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_dependencies(CUgraph, const CUgraphNode*, const CUgraphNode*, std::size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_add_dependencies_v2(CUgraph, const CUgraphNode*, const CUgraphNode*, const CUgraphEdgeData*, std::size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_get_nodes(CUgraph, CUgraphNode*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_get_root_nodes(CUgraph, CUgraphNode*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_get_edges(CUgraph, CUgraphNode*, CUgraphNode*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_get_edges_v2(CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_node_get_type(CUgraphNode, CUgraphNodeType*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_kernel_node_get_params(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_kernel_node_set_params(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_destroy_node(CUgraphNode) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_instantiate_with_params(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_upload(CUgraphExec, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_exec_kernel_node_set_params(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_exec_update(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult graph_debug_dot_print(CUgraph, const char*, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
// clang-format on

}  // namespace entries

#undef PTXGEN_PENDING

}  // namespace ptxgen::inline v0::driver::emulated
