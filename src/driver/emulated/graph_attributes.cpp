// src/driver/emulated/graph_attributes.cpp - attributes of kernel nodes, events of event nodes
#include <cstring>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graphs.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// Attributes that a kernel node has (CU_KERNEL_NODE_ATTRIBUTE_... of cuda.h).
bool is_node_attribute(CUlaunchAttributeID attribute) noexcept {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return true;
    default:
      return false;
  }
}

/// Changes what the attribute says of a launch; others are hints, which change no result.
CUresult apply(CUlaunchAttributeID attribute, const CUlaunchAttributeValue& value,
               KernelLaunch& launch) {
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) launch.cooperative = value.cooperative != 0;
  if (attribute != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return CUDA_SUCCESS;
  const emulator::Dim3 cluster{value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
  const emulator::Dim3& grid = launch.grid;
  // As at a launch, where the text says why; here the lock is held.
  if (cluster.count() == 0 || cluster.count() > 16 || grid.x % cluster.x != 0 ||
      grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  launch.cluster = cluster;
  launch.cluster_given = true;
  return CUDA_SUCCESS;
}

template <class Kind>
CUresult get_event(CUgraphNode handle, CUevent* event_out) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    const auto* const operation = std::get_if<Kind>(&node.operation);
    if (event_out == nullptr || operation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *event_out = operation->event.get();
    return CUDA_SUCCESS;
  });
}

template <class Kind>
CUresult set_event(CUgraphNode handle, CUevent event_handle) {
  return with_node(handle, [&](CUgraphNode_st& node) {
    const std::shared_ptr<CUevent_st> event = hold(event_handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    auto* const operation = std::get_if<Kind>(&node.operation);
    if (operation == nullptr) return CUDA_ERROR_INVALID_VALUE;
    operation->event = event;
    node.context = event->context;
    return CUDA_SUCCESS;
  });
}

}  // namespace

namespace entries {

CUresult graph_kernel_node_get_attribute(CUgraphNode handle, CUlaunchAttributeID attribute,
                                         CUlaunchAttributeValue* value_out) {
  return with_node(handle, [&](const CUgraphNode_st& node) {
    const auto* const launch = std::get_if<KernelLaunch>(&node.operation);
    if (value_out == nullptr || launch == nullptr || !is_node_attribute(attribute)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *value_out = {};
    const auto found = node.attributes.find(attribute);
    if (found != node.attributes.end()) *value_out = found->second;
    if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      value_out->cooperative = launch->cooperative ? 1 : 0;
    }
    if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && launch->cluster_given) {
      value_out->clusterDim = {launch->cluster.x, launch->cluster.y, launch->cluster.z};
    }
    return CUDA_SUCCESS;
  });
}

CUresult graph_kernel_node_set_attribute(CUgraphNode handle, CUlaunchAttributeID attribute,
                                         const CUlaunchAttributeValue* value) {
  const CUresult result = with_node(handle, [&](CUgraphNode_st& node) {
    auto* const launch = std::get_if<KernelLaunch>(&node.operation);
    if (value == nullptr || launch == nullptr || !is_node_attribute(attribute)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (const CUresult applied = apply(attribute, *value, *launch)) return applied;
    node.attributes[attribute] = *value;
    return CUDA_SUCCESS;
  });
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    return refuse(result,
                  "cuGraphKernelNodeSetAttribute: kernels cannot update nodes of graphs in the "
                  "emulated driver");
  }
  if (result != CUDA_ERROR_INVALID_CLUSTER_SIZE) return result;
  return refuse(result, format_text("cuGraphKernelNodeSetAttribute: clusters of ({},{},{}) blocks; "
                                    "a cluster has at most 16 and divides the grid",
                                    value->clusterDim.x, value->clusterDim.y, value->clusterDim.z));
}

CUresult graph_kernel_node_copy_attributes(CUgraphNode to, CUgraphNode from) {
  return with_node(from, [&](const CUgraphNode_st& source) -> CUresult {
    const std::shared_ptr<CUgraphNode_st> target = hold(to);
    const auto* const before = std::get_if<KernelLaunch>(&source.operation);
    auto* const after = target ? std::get_if<KernelLaunch>(&target->operation) : nullptr;
    if (before == nullptr || after == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (before->cluster_given) {
      CUlaunchAttributeValue value{};
      value.clusterDim = {before->cluster.x, before->cluster.y, before->cluster.z};
      if (const CUresult result = apply(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value, *after)) {
        return result;
      }
    }
    after->cooperative = before->cooperative;
    target->attributes = source.attributes;
    return CUDA_SUCCESS;
  });
}

CUresult graph_event_record_node_get_event(CUgraphNode node, CUevent* event_out) {
  return get_event<RecordEvent>(node, event_out);
}
CUresult graph_event_record_node_set_event(CUgraphNode node, CUevent event) {
  return set_event<RecordEvent>(node, event);
}
CUresult graph_event_wait_node_get_event(CUgraphNode node, CUevent* event_out) {
  return get_event<WaitEvent>(node, event_out);
}
CUresult graph_event_wait_node_set_event(CUgraphNode node, CUevent event) {
  return set_event<WaitEvent>(node, event);
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
