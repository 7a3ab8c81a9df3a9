// src/driver/emulated/functions.cpp - attributes of kernels
#include <algorithm>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/libraries.hpp"
#include "driver/emulated/modules.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// Common checks of calls on a function.
CUresult check(CUfunction& function) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(context)) return result;
  return find_function(context, function);
}

/// The `.const` variables of the module.
int constant_bytes(const CUfunc_st& function) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : function.owner->program.module().variables) {
    if (variable.space == ptx::Space::Const) bytes += ptx::size_in_bytes(variable);
  }
  return static_cast<int>(std::min<std::uint64_t>(bytes, 1u << 30));
}

bool has_directive(const CUfunc_st& function, ptx::DirectiveKind kind) {
  const ptx::Function* found =
      function.owner->program.module().find_function(function.kernel->name);
  return found != nullptr && std::ranges::any_of(found->directives, [kind](const auto& directive) {
           return directive.kind == kind;
         });
}

CUresult get(const CUfunc_st& function, CUfunction_attribute attribute, int& value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      value = function.max_threads();
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      value = function.static_shared();
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      value = constant_bytes(function);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      value = static_cast<int>(function.kernel->local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      value = function.registers;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: {
      // The virtual architecture of the PTX, not its `.version`: 90 for .target sm_90.
      ptx::TargetName target;
      value =
          ptx::parse_target_name(function.owner->program.module().target, target) ? target.sm : 0;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      value = function.binary_version;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      value = function.max_dynamic_shared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value = function.carveout;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      value = function.kernel->required_cluster.x == 0 &&
              has_directive(function, ptx::DirectiveKind::explicitcluster);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      value = function.cluster_width;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      value = function.cluster_height;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      value = function.cluster_depth;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      value = function.non_portable_cluster;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value = function.cluster_policy;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult set_dynamic_shared(CUfunc_st& function, int value) {
  const int optin = static_cast<int>(function.owner->context->memory.gpu().shared_per_block);
  if (value >= 0 && value <= optin - function.static_shared()) {
    function.max_dynamic_shared = value;
    return CUDA_SUCCESS;
  }
  return refuse(CUDA_ERROR_INVALID_VALUE,
                format_text("{} of dynamic shared memory for kernel '{}', which has {} of static "
                            "shared memory; a block can have {} in total",
                            count_text(value, "byte"), function.kernel->name,
                            count_text(function.static_shared(), "byte"), optin));
}

CUresult set_cluster(const CUfunc_st& function, std::atomic<int>& part, std::uint32_t declared,
                     int value) {
  if (value < 0) return CUDA_ERROR_INVALID_VALUE;
  if (declared != 0) {
    return refuse(
        CUDA_ERROR_NOT_PERMITTED,
        format_text("kernel '{}' has its cluster size from .reqnctapercluster; it cannot be set",
                    function.kernel->name));
  }
  part = value;
  return CUDA_SUCCESS;
}

CUresult set(CUfunc_st& function, CUfunction_attribute attribute, int value) {
  const emulator::Dim3& declared = function.kernel->required_cluster;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return set_dynamic_shared(function, value);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      function.carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return set_cluster(function, function.cluster_width, declared.x, value);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return set_cluster(function, function.cluster_height, declared.y, value);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return set_cluster(function, function.cluster_depth, declared.z, value);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      if (value != 0 && value != 1) return CUDA_ERROR_INVALID_VALUE;
      function.non_portable_cluster = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (value < 0 || value > 2) return CUDA_ERROR_INVALID_VALUE;
      function.cluster_policy = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult get_attribute(const CUfunc_st& function, CUfunction_attribute attribute, int& value) {
  return get(function, attribute, value);
}

CUresult set_attribute(CUfunc_st& function, CUfunction_attribute attribute, int value) {
  return set(function, attribute, value);
}

namespace entries {

CUresult func_get_attribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return get(*function, attribute, *value);
  });
}

CUresult func_set_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    return set(*function, attribute, value);
  });
}

CUresult func_set_cache_config(CUfunction function, CUfunc_cache config) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    const bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult func_get_name(const char** name, CUfunction function) {
  return guarded([&] {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check(function)) return result;
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function->kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult func_get_module(CUmodule* handle, CUfunction function) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *handle = function->owner;
    return CUDA_SUCCESS;
  });
}

CUresult func_get_param_info(CUfunction function, std::size_t param_index,
                             std::size_t* param_offset, std::size_t* param_size) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    const auto& parameters = function->kernel->parameters;
    if (param_offset == nullptr || param_index >= parameters.size()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *param_offset = parameters[param_index].offset;
    if (param_size != nullptr) *param_size = parameters[param_index].bytes;
    return CUDA_SUCCESS;
  });
}

CUresult func_load(CUfunction function) {
  return guarded([&] { return check(function); });
}

CUresult func_is_loaded(CUfunctionLoadingState* state, CUfunction function) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
