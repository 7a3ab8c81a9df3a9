// src/runtime/launch/launcher_blas.hpp - the launcher's cuBLAS
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/device/core.hpp"
#include "runtime/launch/cublas.hpp"

namespace ptxgen::inline v0 {

/// cuBLAS with a handle of one context, opened by the first `get`.
///
/// Threads: all members from any thread at once.
class LazyCublas {
 public:
  LazyCublas(const ContextCore& core, const Settings& settings) noexcept
      : core_(core), settings_(settings) {}
  LazyCublas(const LazyCublas&) = delete;
  LazyCublas& operator=(const LazyCublas&) = delete;
  ~LazyCublas();

  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  /// Not during a stream capture unless `ready`. Throws as Cublas, and "no-cublas" on the emulated
  /// device.
  [[nodiscard]] const std::shared_ptr<const Cublas>& get();
  /// Throws "no-cublas" on the emulated device.
  void refuse_emulated() const;

 private:
  const ContextCore& core_;
  const Settings& settings_;
  std::mutex mutex_;
  std::shared_ptr<const Cublas> library_;  ///< constant once `ready_`
  std::atomic<bool> ready_{false};
};

/// Queues `y = x^T A` by cuBLAS; y, a, x in this order. k may be 0.
void gemv_by_blas(const ContextCore& core, const Cublas& library, driver::CUstream stream,
                  std::array<std::uint64_t, 3> yax, std::uint32_t k, std::uint32_t n);

}  // namespace ptxgen::inline v0
