// src/driver/emulated/launch.cpp - launch calls
#include "driver/emulated/launch.hpp"

#include <algorithm>
#include <cstring>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/libraries.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using emulator::Dim3;

thread_local std::uint64_t last_number = 0;

/// Writes the reason to the driver's log.
class Refusal {
 public:
  explicit Refusal(const CUfunc_st& function) : function_(function) {}
  CUresult operator()(CUresult result, const std::string& why) const {
    return refuse(result,
                  format_text("kernel '{}' is not launched: {}", function_.kernel->name, why));
  }

 private:
  const CUfunc_st& function_;
};

CUresult check_sizes(const LaunchRequest& request, const Refusal& refuse) {
  const Dim3& grid = request.grid;
  const Dim3& block = request.block;
  const CUfunc_st& function = *request.function;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    return refuse(
        CUDA_ERROR_INVALID_VALUE,
        format_text(
            "a grid of {} blocks; every dimension is at least 1, at most (2147483647,65535,65535)",
            dims_text(grid)));
  }
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 ||
      block.z > 64 || block.count() > 1024) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("a block of {} threads; every dimension is at least 1, at most "
                              "(1024,1024,64), and 1024 threads in all",
                              dims_text(block)));
  }
  if (block.count() > static_cast<unsigned>(function.max_threads())) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("a block of {} threads; at most {} by its .maxntid or .reqntid",
                              dims_text(block), function.max_threads()));
  }
  const Dim3& required = function.kernel->required_block;
  if (required.count() != 0 && required != block) {
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("a block of {} threads; its .reqntid requires {}", dims_text(block),
                              dims_text(required)));
  }
  const auto limit = static_cast<std::uint32_t>(function.max_dynamic_shared.load());
  if (request.dynamic_shared_bytes > limit) {
    const std::uint32_t optin = function.owner->context->memory.gpu().shared_per_block;
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  format_text("{} of dynamic shared memory; it may have {}, and up to {} after "
                              "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is set",
                              count_text(request.dynamic_shared_bytes, "byte"), limit,
                              optin - function.kernel->static_shared_bytes));
  }
  return CUDA_SUCCESS;
}

CUresult check_cluster(const LaunchRequest& request, const Refusal& refuse, Dim3& cluster) {
  const CUfunc_st& function = *request.function;
  const Dim3 own{static_cast<std::uint32_t>(function.cluster_width.load()),
                 static_cast<std::uint32_t>(function.cluster_height.load()),
                 static_cast<std::uint32_t>(function.cluster_depth.load())};
  const bool asked = request.cluster.count() != 0;
  if (asked && own.count() != 0 && own != request.cluster) {
    return refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                  format_text("clusters of {} blocks; the kernel has {}",
                              dims_text(request.cluster), dims_text(own)));
  }
  if (!asked && own.count() == 0 && function.kernel->explicit_cluster) {
    return refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE,
                  "no cluster size, which a kernel with .explicitcluster requires; set "
                  "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION");
  }
  cluster = asked ? request.cluster : own.count() != 0 ? own : Dim3{1, 1, 1};
  if (cluster == Dim3{1, 1, 1}) return CUDA_SUCCESS;
  const ptx::Gpu& gpu = function.owner->context->memory.gpu();
  if (!has_clusters(gpu)) {
    return refuse(
        CUDA_ERROR_NOT_SUPPORTED,
        format_text("clusters of {} blocks; '{}' does not support clusters, which need sm_90",
                    dims_text(cluster), gpu.name));
  }
  const std::uint64_t portable = function.non_portable_cluster != 0 ? 16 : 8;
  const std::uint64_t limit = std::min<std::uint64_t>(portable, function.kernel->max_cluster);
  const Dim3& grid = request.grid;
  if (cluster.count() > limit || grid.x % cluster.x != 0 || grid.y % cluster.y != 0 ||
      grid.z % cluster.z != 0) {
    return refuse(
        CUDA_ERROR_INVALID_CLUSTER_SIZE,
        format_text(
            "clusters of {} blocks in a grid of {}; a cluster has at most {} and divides the grid",
            dims_text(cluster), dims_text(grid), count_text(limit, "block")));
  }
  return CUDA_SUCCESS;
}

/// The parameter block, from kernelParams or extra.
CUresult copy_arguments(const LaunchRequest& request, const Refusal& refuse,
                        std::vector<std::byte>& block) {
  const emulator::Program::Kernel& kernel = *request.function->kernel;
  block.assign(kernel.parameter_bytes, std::byte{0});
  if (request.kernel_params != nullptr && request.extra != nullptr) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "both kernelParams and extra are given");
  }
  if (kernel.parameters.empty()) return CUDA_SUCCESS;
  if (request.kernel_params != nullptr) {
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const auto& parameter = kernel.parameters[i];
      if (request.kernel_params[i] == nullptr) {
        return refuse(
            CUDA_ERROR_INVALID_VALUE,
            format_text("the address of argument {} (parameter {}) is null", i, parameter.name));
      }
      std::memcpy(block.data() + parameter.offset, request.kernel_params[i], parameter.bytes);
    }
    return CUDA_SUCCESS;
  }
  const void* from = nullptr;
  std::size_t bytes = 0;
  for (void** item = request.extra; item != nullptr;) {
    const auto kind = reinterpret_cast<std::uintptr_t>(*item++);
    if (kind == kLaunchParamEnd) break;
    if (kind == kLaunchParamBufferPointer) {
      from = *item++;
    } else if (kind == kLaunchParamBufferSize) {
      const void* size = *item++;
      if (size != nullptr) std::memcpy(&bytes, size, sizeof bytes);
    } else {
      return refuse(
          CUDA_ERROR_INVALID_VALUE,
          format_text(
              "extra holds {} where CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE or _END was expected",
              kind));
    }
  }
  if (from == nullptr || bytes < block.size()) {
    return refuse(
        CUDA_ERROR_INVALID_VALUE,
        format_text("its parameters take {} and {} were given", count_text(block.size(), "byte"),
                    from == nullptr ? std::string("none") : std::to_string(bytes)));
  }
  std::memcpy(block.data(), from, block.size());
  return CUDA_SUCCESS;
}

/// Reads one attribute of cuLaunchKernelEx.
CUresult take(const CUlaunchAttribute& attribute, LaunchRequest& request, const Refusal& refuse) {
  const auto no = [&](CUresult result, const char* why) {
    return refuse(result, format_text("launch attribute {} {}", attribute.id, why));
  };
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      request.cooperative = attribute.value.cooperative != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& size = attribute.value.clusterDim;
      request.cluster = {size.x, size.y, size.z};
      if (request.cluster.count() != 0) return CUDA_SUCCESS;
      return no(CUDA_ERROR_INVALID_CLUSTER_SIZE, "requests an empty cluster");
    }
    // Hints and permissions: a programmatic launch may start before the previous one has ended;
    // here it never does, which is a legal order.
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return no(CUDA_ERROR_NOT_SUPPORTED, "is not supported by the emulated driver");
  }
  return no(CUDA_ERROR_INVALID_VALUE, "is not known");
}

constexpr const char* kNoFunction =
    "a launch names a function that is not loaded in the stream's context";

CUresult submit_launch(CUstream handle, LaunchRequest request) {
  std::shared_ptr<CUstream_st> stream;
  if (const CUresult result = resolve(handle, stream)) return result;
  if (const CUresult result = find_function(stream->context, request.function)) {
    return result == CUDA_ERROR_INVALID_HANDLE ? refuse(result, kNoFunction) : result;
  }
  KernelLaunch launch;
  if (const CUresult result = prepare_launch(stream->context, request, launch)) return result;
  // A node gets its numbers when it runs.
  const bool captured = stream->capturing.load(std::memory_order_acquire);
  last_number = launch.number = captured ? 0 : next_launch_number();
  return submit(stream, std::move(launch));
}

CUresult launch_all(CUstream stream, const LaunchRequest& request) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(context)) return result;
  return submit_launch(stream, request);
}

}  // namespace

std::string dims_text(const Dim3& size) {
  return format_text("({},{},{})", size.x, size.y, size.z);
}

std::uint64_t next_launch_number() noexcept {
  static std::atomic<std::uint64_t> numbers{0};
  return ++numbers;
}

std::uint64_t last_launch() noexcept { return last_number; }

CUresult prepare_launch(CUcontext context, const LaunchRequest& request, KernelLaunch& launch) {
  if (!living(request.function) || request.function->owner->context != context) {
    return refuse(CUDA_ERROR_INVALID_HANDLE, kNoFunction);
  }
  const CUfunc_st& function = *request.function;
  const Refusal refuse(function);
  if (const CUresult result = check_sizes(request, refuse)) return result;
  if (const CUresult result = check_cluster(request, refuse, launch.cluster)) return result;
  if (request.cooperative) {
    const std::uint64_t limit =
        resident_blocks(function, request.block.count(), request.dynamic_shared_bytes);
    if (request.grid.count() > limit) {
      return refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                    format_text("a cooperative grid of {}; the device holds {} of them at a time",
                                count_text(request.grid.count(), "block"), limit));
    }
  }
  if (const CUresult result = copy_arguments(request, refuse, launch.arguments)) return result;
  launch.function = request.function;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.dynamic_shared_bytes = request.dynamic_shared_bytes;
  launch.cooperative = request.cooperative;
  launch.cluster_given = request.cluster.count() != 0;
  const std::lock_guard lock(context->mutex);
  launch.options = context->options;
  return CUDA_SUCCESS;
}

CUresult make_launch(const CUDA_KERNEL_NODE_PARAMS& parameters, KernelLaunch& launch) {
  LaunchRequest request;
  request.function =
      parameters.func != nullptr ? parameters.func : reinterpret_cast<CUfunction>(parameters.kern);
  CUcontext context = parameters.ctx;
  if (context == nullptr || !living(context)) context = current();
  CUresult found = CUDA_ERROR_INVALID_HANDLE;
  if (context != nullptr || living(request.function)) {
    found = find_function(context, request.function);
  }
  if (found == CUDA_ERROR_INVALID_HANDLE) {
    return refuse(found, "a kernel node names a function that is not loaded");
  }
  if (found != CUDA_SUCCESS) return found;
  request.grid = {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ};
  request.block = {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ};
  request.dynamic_shared_bytes = parameters.sharedMemBytes;
  request.cooperative = launch.cooperative;
  if (launch.cluster_given) request.cluster = launch.cluster;
  request.kernel_params = parameters.kernelParams;
  request.extra = parameters.extra;
  return prepare_launch(request.function->owner->context, request, launch);
}

std::vector<std::uint32_t> parameter_offsets(CUfunction function) {
  std::vector<std::uint32_t> offsets;
  for (const auto& parameter : function->kernel->parameters) offsets.push_back(parameter.offset);
  return offsets;
}

namespace entries {

CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z,
                       unsigned dynamic_shared_bytes, CUstream stream, void** kernel_params,
                       void** extra) {
  return guarded([&] {
    LaunchRequest request;
    request.function = function;
    request.grid = {grid_x, grid_y, grid_z};
    request.block = {block_x, block_y, block_z};
    request.dynamic_shared_bytes = dynamic_shared_bytes;
    request.kernel_params = kernel_params;
    request.extra = extra;
    return launch_all(stream, request);
  });
}

CUresult launch_cooperative_kernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,
                                   void** kernel_params) {
  return guarded([&] {
    LaunchRequest request;
    request.function = function;
    request.grid = {grid_x, grid_y, grid_z};
    request.block = {block_x, block_y, block_z};
    request.dynamic_shared_bytes = dynamic_shared_bytes;
    request.cooperative = true;
    request.kernel_params = kernel_params;
    return launch_all(stream, request);
  });
}

CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                          void** extra) {
  return guarded([&] {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (config == nullptr || (config->attrs == nullptr && config->numAttrs != 0)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(config->hStream, stream)) return result;
    if (const CUresult result = find_function(stream->context, function)) return result;
    LaunchRequest request;
    request.function = function;
    request.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    request.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    request.dynamic_shared_bytes = config->sharedMemBytes;
    request.kernel_params = kernel_params;
    request.extra = extra;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      if (const CUresult result = take(config->attrs[i], request, Refusal(*function))) {
        return result;
      }
    }
    return submit_launch(config->hStream, request);
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
