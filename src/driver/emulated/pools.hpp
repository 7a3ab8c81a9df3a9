// src/driver/emulated/pools.hpp - memory pools of stream-ordered allocations
#pragma once

#include <cstdint>
#include <memory>

#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// A pool's part of one allocation. The bytes count as used until the last copy is gone.
struct PoolShare {
  PoolShare(std::shared_ptr<CUmemPoolHandle_st> of, std::uint64_t its_bytes) noexcept
      : pool(std::move(of)), bytes(its_bytes) {}
  PoolShare(const PoolShare&) = delete;
  PoolShare& operator=(const PoolShare&) = delete;
  ~PoolShare();

  const std::shared_ptr<CUmemPoolHandle_st> pool;
  const std::uint64_t bytes;
};

/// What a pool allocates.
enum class PoolMemory { Device, Host, Managed };
/// The same, and the pool's location; for managed memory the preferred one.
[[nodiscard]] PoolMemory memory_of(const CUmemPoolHandle_st& pool, CUmemLocation& location);
/// The pool from which cuMemAllocAsync allocates on a device.
[[nodiscard]] std::shared_ptr<CUmemPoolHandle_st> current_pool(CUdevice device);
/// Takes `bytes` of a pool for an allocation on `device`. CUDA_ERROR_INVALID_VALUE: the pool is of
/// another device (those of the host and of managed memory are of all); CUDA_ERROR_OUT_OF_MEMORY:
/// beyond its maximum size.
[[nodiscard]] CUresult take_share(const std::shared_ptr<CUmemPoolHandle_st>& pool, CUdevice device,
                                  std::uint64_t bytes, std::shared_ptr<PoolShare>& share);

}  // namespace ptxgen::inline v0::driver::emulated
