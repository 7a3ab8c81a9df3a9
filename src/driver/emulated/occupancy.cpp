// src/driver/emulated/occupancy.cpp - the occupancy calls
#include <algorithm>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/launch.hpp"
#include "driver/emulated/libraries.hpp"
#include "ptx/occupancy.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

const ptx::Gpu& gpu_of(const CUfunc_st& function) { return function.owner->context->memory.gpu(); }

ptx::BlockNeeds needs_of(const CUfunc_st& function, std::uint64_t threads, std::uint64_t dynamic) {
  ptx::BlockNeeds needs;
  needs.threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 0xffffffffu));
  needs.registers = static_cast<std::uint32_t>(function.registers);
  needs.static_shared = function.kernel->static_shared_bytes;
  needs.dynamic_shared = dynamic;
  needs.max_dynamic_shared = static_cast<std::uint32_t>(function.max_dynamic_shared.load());
  return needs;
}

/// Resident blocks per multiprocessor; 0 for blocks that a launch would reject.
std::uint32_t active_blocks(const CUfunc_st& function, std::uint64_t threads,
                            std::uint64_t dynamic) {
  if (threads > static_cast<unsigned>(function.max_threads())) return 0;
  return blocks_per_sm(gpu_of(function), needs_of(function, threads, dynamic));
}

CUresult check(CUfunction& function) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(context)) return result;
  return find_function(context, function);
}

/// Resident clusters of that many blocks. The blocks of a cluster run on the multiprocessors of one
/// GPC. The GPU table does not have the number of multiprocessors per GPC; an even distribution in
/// pairs, at most 18 each as on H100, is assumed.
std::uint64_t active_clusters(const ptx::Gpu& gpu, std::uint64_t blocks_on_one,
                              std::uint64_t size) {
  constexpr std::uint64_t kMaxInGpc = 18;
  const std::uint64_t gpcs = (gpu.sms + kMaxInGpc - 1) / kMaxInGpc;
  const std::uint64_t pairs = gpu.sms / 2u;
  std::uint64_t clusters = 0;
  for (std::uint64_t gpc = 0; gpc < gpcs; ++gpc) {
    const std::uint64_t multiprocessors = 2 * (pairs * (gpc + 1) / gpcs - pairs * gpc / gpcs);
    clusters += multiprocessors * blocks_on_one / size;
  }
  return clusters;
}

std::uint64_t threads_of(const CUlaunchConfig& config) {
  return std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
}

/// The cluster size of a configuration.
emulator::Dim3 cluster_of(const CUfunc_st& function, const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = config.attrs[i].value.clusterDim;
    return {size.x, size.y, size.z};
  }
  const emulator::Dim3 own{static_cast<std::uint32_t>(function.cluster_width.load()),
                           static_cast<std::uint32_t>(function.cluster_height.load()),
                           static_cast<std::uint32_t>(function.cluster_depth.load())};
  return own.count() != 0 ? own : emulator::Dim3{1, 1, 1};
}

}  // namespace

std::uint64_t resident_blocks(const CUfunc_st& function, std::uint64_t block_threads,
                              std::uint64_t dynamic_shared_bytes) {
  return std::uint64_t{active_blocks(function, block_threads, dynamic_shared_bytes)} *
         gpu_of(function).sms;
}

bool has_clusters(const ptx::Gpu& gpu) noexcept { return ptx::sm_of(gpu) >= 90; }

namespace entries {

CUresult occupancy_max_active_blocks_per_multiprocessor(int* num_blocks, CUfunction function,
                                                        int block_size,
                                                        std::size_t dynamic_smem_size) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (num_blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *num_blocks = static_cast<int>(
        active_blocks(*function, static_cast<unsigned>(block_size), dynamic_smem_size));
    return CUDA_SUCCESS;
  });
}

CUresult occupancy_max_active_blocks_per_multiprocessor_with_flags(int* num_blocks,
                                                                   CUfunction function,
                                                                   int block_size,
                                                                   std::size_t dynamic_smem_size,
                                                                   unsigned flags) {
  // 1 is CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE, which concerns GPUs before sm_60 only.
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return occupancy_max_active_blocks_per_multiprocessor(num_blocks, function, block_size,
                                                        dynamic_smem_size);
}

CUresult occupancy_max_potential_block_size(int* min_grid_size, int* block_size,
                                            CUfunction function,
                                            CUoccupancyB2DSize block_size_to_dynamic_smem_size,
                                            std::size_t dynamic_smem_size, int block_size_limit) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (min_grid_size == nullptr || block_size == nullptr || block_size_limit < 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    constexpr int kWarp = 32;
    int limit = function->max_threads();
    if (block_size_limit != 0) limit = std::min(limit, block_size_limit);
    std::uint64_t best_threads = 0;
    *min_grid_size = 0;
    *block_size = 0;
    // From large to small: of equal occupancies the largest block.
    for (int rounded = (limit + kWarp - 1) / kWarp * kWarp; rounded > 0; rounded -= kWarp) {
      const int size = std::min(rounded, limit);
      const std::size_t dynamic = block_size_to_dynamic_smem_size != nullptr
                                      ? block_size_to_dynamic_smem_size(size)
                                      : dynamic_smem_size;
      const std::uint32_t blocks = active_blocks(*function, static_cast<unsigned>(size), dynamic);
      const std::uint64_t threads = std::uint64_t{blocks} * static_cast<unsigned>(size);
      if (threads <= best_threads) continue;
      best_threads = threads;
      *block_size = size;
      *min_grid_size = static_cast<int>(blocks * gpu_of(*function).sms);
    }
    return CUDA_SUCCESS;
  });
}

CUresult occupancy_available_dynamic_shared_per_block(std::size_t* dynamic_smem_size,
                                                      CUfunction function, int num_blocks,
                                                      int block_size) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (dynamic_smem_size == nullptr || num_blocks <= 0 || block_size <= 0 ||
        active_blocks(*function, static_cast<unsigned>(block_size), 0) <
            static_cast<unsigned>(num_blocks)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *dynamic_smem_size = static_cast<std::size_t>(available_dynamic_shared(
        gpu_of(*function), needs_of(*function, static_cast<unsigned>(block_size), 0),
        static_cast<unsigned>(num_blocks)));
    return CUDA_SUCCESS;
  });
}

CUresult occupancy_max_potential_cluster_size(int* cluster_size, CUfunction function,
                                              const CUlaunchConfig* config) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (cluster_size == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *cluster_size = 1;
    const ptx::Gpu& gpu = gpu_of(*function);
    if (!has_clusters(gpu)) return CUDA_SUCCESS;
    const std::uint32_t blocks =
        active_blocks(*function, threads_of(*config), config->sharedMemBytes);
    const int limit = std::min(function->non_portable_cluster != 0 ? 16 : 8,
                               static_cast<int>(function->kernel->max_cluster));
    for (int size = 2; size <= limit; size *= 2) {
      if (active_clusters(gpu, blocks, static_cast<unsigned>(size)) > 0) *cluster_size = size;
    }
    return CUDA_SUCCESS;
  });
}

CUresult occupancy_max_active_clusters(int* num_clusters, CUfunction function,
                                       const CUlaunchConfig* config) {
  return guarded([&] {
    if (const CUresult result = check(function)) return result;
    if (num_clusters == nullptr || config == nullptr ||
        (config->attrs == nullptr && config->numAttrs != 0)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const emulator::Dim3 cluster = cluster_of(*function, *config);
    if (cluster.count() == 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    const std::uint64_t threads = threads_of(*config);
    if (cluster == emulator::Dim3{1, 1, 1}) {
      *num_clusters = static_cast<int>(resident_blocks(*function, threads, config->sharedMemBytes));
      return CUDA_SUCCESS;
    }
    const ptx::Gpu& gpu = gpu_of(*function);
    if (!has_clusters(gpu)) {
      return refuse(CUDA_ERROR_NOT_SUPPORTED,
                    format_text("'{}' does not support clusters, which need sm_90", gpu.name));
    }
    const std::uint64_t limit = function->non_portable_cluster != 0 ? 16 : 8;
    if (cluster.count() > limit) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *num_clusters = static_cast<int>(active_clusters(
        gpu, active_blocks(*function, threads, config->sharedMemBytes), cluster.count()));
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
