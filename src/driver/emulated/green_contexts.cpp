// src/driver/emulated/green_contexts.cpp - multiprocessors as resources, green contexts
#include "driver/emulated/green_contexts.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "driver/emulated/entries.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

struct GreenHandles {
  std::mutex mutex;
  std::unordered_map<CUcontext, CUgreenCtx> by_context;
};

/// Never destroyed, as the other tables of the driver.
GreenHandles& green_handles() {
  static GreenHandles* const the_handles = new GreenHandles;
  return *the_handles;
}

/// What the driver keeps in the padding of a CUdevResource.
struct Origin {
  std::uint64_t mark = 0;  ///< kMark: of this driver
  CUdevice device = 0;
  std::uint64_t split = 0;  ///< of cuDevSmResourceSplitByCount: its number; 0: not of a split
};
constexpr std::uint64_t kMark = 0x7074'7867'656e'736d;

CUdevResource resource_of(const CUdevSmResource& sm, CUdevice device, std::uint64_t split) {
  CUdevResource resource{};
  const Origin origin{kMark, device, split};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource._internal_padding, &origin, sizeof origin);
  resource.sm = sm;
  return resource;
}

Origin origin_of(const CUdevResource& resource) {
  static_assert(sizeof(Origin) <= sizeof resource._internal_padding);
  Origin origin;
  std::memcpy(&origin, resource._internal_padding, sizeof origin);
  return origin;
}

/// All multiprocessors, with the smallest part and the alignment that cuda.h names for the compute
/// capability (CUDA 13.0, "Green Contexts").
CUdevSmResource multiprocessors_of(const ptx::Gpu& gpu) {
  const int sm = ptx::sm_of(gpu);
  const unsigned alignment = sm >= 90 ? 8 : 2;
  return {static_cast<unsigned>(gpu.sms), sm >= 90 ? 8u : sm >= 80 ? 4u : 2u, alignment};
}

CUresult give_resource(CUdevResource* resource, CUdevResourceType type, const CUdevSmResource& sm,
                       CUdevice device) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = resource_of(sm, device, 0);
  return CUDA_SUCCESS;
}

template <class Work>
CUresult with_green(CUgreenCtx handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUgreenCtx_st> green = hold(handle);
    return green ? work(*green) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

/// How a split divides multiprocessors: the size of each group, and how many there can be.
struct SmGroups {
  CUdevSmResource each{};
  unsigned count = 0;
};

CUresult plan_groups(const CUdevSmResource& input, CUdevice device, unsigned flags, unsigned wanted,
                     SmGroups& groups) {
  constexpr unsigned kFlags = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |
                              CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  const ptx::Gpu* const gpu = gpu_of(device);
  if (gpu == nullptr || (flags & ~kFlags) != 0 || wanted > input.smCount) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) != 0 && ptx::sm_of(*gpu) < 90) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  "cuDevSmResourceSplitByCount: CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE"
                  " needs compute capability 9.0");
  }
  groups.each = multiprocessors_of(*gpu);
  if ((flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0) {
    groups.each.minSmPartitionSize = 2;
    groups.each.smCoscheduledAlignment = 2;
  }
  const unsigned step = groups.each.smCoscheduledAlignment;
  const unsigned smallest = std::max(wanted, groups.each.minSmPartitionSize);
  groups.each.smCount = (smallest + step - 1) / step * step;
  groups.count = input.smCount / groups.each.smCount;
  if (groups.count != 0) return CUDA_SUCCESS;
  return refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                format_text("cuDevSmResourceSplitByCount: a group of {} needs {} of them on this "
                            "device, more than the {} of the input",
                            wanted, groups.each.smCount, input.smCount));
}

/// Whether the parts may be in one descriptor: of one device, and of one split if there are
/// several.
CUresult check_parts(std::span<const CUdevResource> parts) {
  const Origin first = origin_of(parts.front());
  for (const CUdevResource& part : parts) {
    if (part.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const Origin origin = origin_of(part);
    if (origin.mark != kMark || gpu_of(origin.device) == nullptr || part.sm.smCount == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const bool together = parts.size() == 1 || (origin.device == first.device &&
                                                origin.split == first.split && origin.split != 0);
    if (!together) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUgreenCtx green_of(CUcontext handle) {
  const std::lock_guard lock(green_handles().mutex);
  const auto found = green_handles().by_context.find(handle);
  return found != green_handles().by_context.end() ? found->second : nullptr;
}

namespace entries {

CUresult device_get_dev_resource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const ptx::Gpu* const gpu = gpu_of(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return give_resource(resource, type, multiprocessors_of(*gpu), device);
  });
}

CUresult ctx_get_dev_resource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (const CUgreenCtx green = green_of(handle)) {
      return green_ctx_get_dev_resource(green, resource, type);
    }
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    return device_get_dev_resource(context->device, resource, type);
  });
}

CUresult green_ctx_get_dev_resource(CUgreenCtx handle, CUdevResource* resource,
                                    CUdevResourceType type) {
  return with_green(handle, [&](const CUgreenCtx_st& green) {
    return give_resource(resource, type, green.sm, green.device);
  });
}

CUresult dev_sm_resource_split_by_count(CUdevResource* result, unsigned* num_groups,
                                        const CUdevResource* input, CUdevResource* remaining,
                                        unsigned flags, unsigned min_count) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (num_groups == nullptr || input == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    const Origin origin = origin_of(*input);
    if (origin.mark != kMark) return CUDA_ERROR_INVALID_VALUE;
    if (origin.split != 0) {
      return refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                    "cuDevSmResourceSplitByCount: the input is a part of another split; create a "
                    "green context of it and split that one's resource (cuGreenCtxGetDevResource)");
    }
    SmGroups groups;
    if (const CUresult planned = plan_groups(input->sm, origin.device, flags, min_count, groups)) {
      return planned;
    }
    if (result != nullptr) groups.count = std::min(groups.count, *num_groups);
    *num_groups = groups.count;
    const std::uint64_t split = next_object_number();
    if (result != nullptr) {
      std::fill_n(result, groups.count, resource_of(groups.each, origin.device, split));
    }
    if (remaining != nullptr) {
      CUdevSmResource rest = groups.each;
      rest.smCount = input->sm.smCount - groups.count * groups.each.smCount;
      *remaining = rest.smCount != 0 ? resource_of(rest, origin.device, split) : CUdevResource{};
    }
    return CUDA_SUCCESS;
  });
}

CUresult dev_resource_generate_desc(CUdevResourceDesc* desc, CUdevResource* resources,
                                    unsigned num_resources) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (desc == nullptr || resources == nullptr || num_resources == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::span<const CUdevResource> parts(resources, num_resources);
    if (const CUresult result = check_parts(parts)) return result;
    const auto created = std::make_shared<CUdevResourceDesc_st>();
    created->device = origin_of(parts.front()).device;
    created->sm = parts.front().sm;
    created->sm.smCount = 0;
    for (const CUdevResource& part : parts) created->sm.smCount += part.sm.smCount;
    enroll(created);  // no call of the API frees a descriptor
    *desc = created.get();
    return CUDA_SUCCESS;
  });
}

CUresult green_ctx_create(CUgreenCtx* handle, CUdevResourceDesc desc_handle, CUdevice device,
                          unsigned flags) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (gpu_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::shared_ptr<CUdevResourceDesc_st> desc = hold(desc_handle);
    if (handle == nullptr || !desc || desc->device != device ||
        flags != CU_GREEN_CTX_DEFAULT_STREAM) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto created = std::make_shared<CUgreenCtx_st>();
    if (const CUresult result = device_primary_ctx_retain(&created->primary, device)) return result;
    const std::shared_ptr<CUctx_st> primary = hold(created->primary);
    if (!primary) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    created->device = device;
    created->sm = desc->sm;
    created->id = next_object_number();
    enroll(created);
    enroll_alias(created->context_handle(), primary);
    const std::lock_guard lock(green_handles().mutex);
    green_handles().by_context[created->context_handle()] = created.get();
    *handle = created.get();
    return CUDA_SUCCESS;
  });
}

CUresult green_ctx_destroy(CUgreenCtx handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUgreenCtx_st> green = hold(handle);
    if (!green || !gone(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    const bool retained = gone(green->context_handle());  // not after a reset of the device
    {
      const std::lock_guard lock(green_handles().mutex);
      green_handles().by_context.erase(green->context_handle());
    }
    if (retained) static_cast<void>(device_primary_ctx_release(green->device));
    return CUDA_SUCCESS;
  });
}

CUresult ctx_from_green_ctx(CUcontext* context, CUgreenCtx handle) {
  return with_green(handle, [&](CUgreenCtx_st& green) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!living(green.context_handle())) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = green.context_handle();
    return CUDA_SUCCESS;
  });
}

CUresult green_ctx_stream_create(CUstream* stream, CUgreenCtx handle, unsigned flags,
                                 int priority) {
  return with_green(handle, [&](CUgreenCtx_st& green) -> CUresult {
    if (stream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<CUctx_st> primary = hold(green.context_handle());
    if (!primary) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const auto created = std::make_shared<CUstream_st>(
        primary.get(), flags, std::clamp(priority, kGreatestPriority, kMinPriority), handle);
    enroll(created);
    *stream = created.get();
    return CUDA_SUCCESS;
  });
}

CUresult green_ctx_record_event(CUgreenCtx handle, CUevent event) {
  return with_green(
      handle, [&](const CUgreenCtx_st& green) { return ctx_record_event(green.primary, event); });
}

CUresult green_ctx_wait_event(CUgreenCtx handle, CUevent event) {
  return with_green(
      handle, [&](const CUgreenCtx_st& green) { return ctx_wait_event(green.primary, event); });
}

/// Null: the current one.
CUresult green_ctx_get_id(CUgreenCtx handle, unsigned long long* id) {
  return with_green(handle != nullptr ? handle : current_green(), [&](const CUgreenCtx_st& green) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = green.id;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
