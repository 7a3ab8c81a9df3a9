// src/driver/emulated/graph_nodes.cpp - parameters of copy, fill and host nodes
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graphs.hpp"
#include "driver/emulated/memory.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

CUDA_MEMCPY3D params_of(const Copy& copy) {
  const auto side = [](const Place& place, CUmemorytype& kind, auto& host_memory,
                       CUdeviceptr& device_memory) {
    kind = place.kind;
    if (place.kind == CU_MEMORYTYPE_HOST) {
      using Host = std::remove_reference_t<decltype(host_memory)>;
      host_memory = reinterpret_cast<Host>(static_cast<std::uintptr_t>(place.address));
    } else {
      device_memory = place.address;
    }
  };
  CUDA_MEMCPY3D params{};
  side(copy.to, params.dstMemoryType, params.dstHost, params.dstDevice);
  side(copy.from, params.srcMemoryType, params.srcHost, params.srcDevice);
  params.dstPitch = static_cast<std::size_t>(copy.to_pitch);
  params.dstHeight = static_cast<std::size_t>(copy.to_height);
  params.srcPitch = static_cast<std::size_t>(copy.from_pitch);
  params.srcHeight = static_cast<std::size_t>(copy.from_height);
  params.WidthInBytes = static_cast<std::size_t>(copy.width);
  params.Height = static_cast<std::size_t>(copy.height);
  params.Depth = static_cast<std::size_t>(copy.depth);
  return params;
}

CUDA_MEMSET_NODE_PARAMS params_of(const Fill& fill) {
  return {fill.to,
          static_cast<std::size_t>(fill.pitch),
          fill.value,
          fill.element_bytes,
          static_cast<std::size_t>(fill.width),
          static_cast<std::size_t>(fill.height)};
}

/// The context of a node of this kind.
template <class Kind>
CUresult context_of_node(CUgraphNode handle, std::shared_ptr<CUctx_st>& context) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    if (!std::holds_alternative<Kind>(node.operation)) return CUDA_ERROR_INVALID_VALUE;
    context = hold(node.context);
    return context ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  });
}

template <class Kind>
CUresult set_operation(CUgraphNode handle, Kind operation) {
  return with_node(handle, [&](CUgraphNode_st& node) {
    if (!std::holds_alternative<Kind>(node.operation)) return CUDA_ERROR_INVALID_VALUE;
    node.operation = std::move(operation);
    return CUDA_SUCCESS;
  });
}

/// A copy or fill, checked in the context of its node.
template <class Kind, class Params>
CUresult set_params(const char* call, CUgraphNode handle, const Params* params) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = context_of_node<Kind>(handle, context)) return result;
    Kind operation;
    if (const CUresult result = operation_of(call, params, *context, operation)) return result;
    return set_operation(handle, std::move(operation));
  });
}

template <class Kind, class Params>
CUresult get_params(CUgraphNode handle, Params* params) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    const auto* const operation = std::get_if<Kind>(&node.operation);
    if (params == nullptr || operation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = params_of(*operation);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult operation_of(const char* call, const CUDA_MEMCPY3D* params, CUctx_st& context,
                      Copy& copy) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = copy_from(*params, copy)) return result;
  return check_copy(context, call, copy);
}

CUresult operation_of(const char* call, const CUDA_MEMSET_NODE_PARAMS* params, CUctx_st& context,
                      Fill& fill) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned size = params->elementSize;
  if ((size != 1 && size != 2 && size != 4) || params->width == 0 || params->height == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  fill.to = params->dst;
  fill.value = params->value;
  fill.element_bytes = size;
  fill.width = params->width;
  fill.height = params->height;
  if (fill.height > 1) fill.pitch = params->pitch;
  return check_fill(context, call, fill);
}

CUresult operation_of(const CUDA_HOST_NODE_PARAMS* params, HostCall& call) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call = {params->fn, nullptr, nullptr, params->userData, nullptr};
  return CUDA_SUCCESS;
}

namespace entries {

CUresult graph_memcpy_node_get_params(CUgraphNode handle, CUDA_MEMCPY3D* copy_params) {
  const CUresult with_array = with_node(handle, [](const CUgraphNode_st& node) -> CUresult {
    const auto* const copy = std::get_if<Copy>(&node.operation);
    if (copy == nullptr || (!copy->from.in_array && !copy->to.in_array)) return CUDA_SUCCESS;
    return refuse(CUDA_ERROR_NOT_SUPPORTED,
                  "cuGraphMemcpyNodeGetParams: the node copies from or to a CUDA array, which the "
                  "emulated driver keeps as addresses; keep the parameters that made the node");
  });
  return with_array != CUDA_SUCCESS ? with_array : get_params<Copy>(handle, copy_params);
}
CUresult graph_memcpy_node_set_params(CUgraphNode node, const CUDA_MEMCPY3D* copy_params) {
  return set_params<Copy>("cuGraphMemcpyNodeSetParams", node, copy_params);
}
CUresult graph_memset_node_get_params(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* memset_params) {
  return get_params<Fill>(node, memset_params);
}
CUresult graph_memset_node_set_params(CUgraphNode node,
                                      const CUDA_MEMSET_NODE_PARAMS* memset_params) {
  return set_params<Fill>("cuGraphMemsetNodeSetParams", node, memset_params);
}

CUresult graph_host_node_get_params(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* host_params) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    const auto* const call = std::get_if<HostCall>(&node.operation);
    if (host_params == nullptr || call == nullptr || call->work == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *host_params = {call->work, call->user};
    return CUDA_SUCCESS;
  });
}
CUresult graph_host_node_set_params(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* host_params) {
  return guarded([&]() -> CUresult {
    HostCall call;
    if (const CUresult result = operation_of(host_params, call)) return result;
    return set_operation(handle, std::move(call));
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
