// src/driver/standin/standin.hpp - the emulated driver as a libcuda
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "driver/symbols.hpp"
#include "ptxgen/driver/table.hpp"

/// A shared library with libcuda's soname whose functions are those of the emulated driver. It
/// reads the environment once, at the first call that needs it.
namespace ptxgen::inline v0::driver::standin {

/// CUDA_KERNEL_NODE_PARAMS as it was before CUDA 12.
struct OldKernelNodeParams {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};

/// The emulated driver's table, except that cuInit and cuDriverGetVersion use the environment and
/// cuGetProcAddress returns symbols of this library.
[[nodiscard]] const Table& table() noexcept;

/// The symbols of this library.
[[nodiscard]] std::span<const Symbol> symbols() noexcept;
/// The variant of a symbol for per-thread default streams.
struct PerThreadSymbol {
  const char* symbol;  ///< without the suffix
  void* entry;
};
[[nodiscard]] std::span<const PerThreadSymbol> per_thread_symbols() noexcept;

/// Implements cuGetProcAddress_v2: the newest symbol of that name for `version`.
CUresult get_proc_address(const char* name, void** entry, int version, std::uint64_t flags,
                          CUdriverProcAddressQueryResult* status) noexcept;

/// The stream for callers built for per-thread default streams, where stream 0 is the thread's own.
template <class Argument>
class PerThread {
 public:
  explicit PerThread(Argument argument) noexcept : argument_(argument) {
    if constexpr (std::is_same_v<Argument, CUstream>) {
      if (argument_ == nullptr) argument_ = reinterpret_cast<CUstream>(kStreamPerThread);
    }
  }
  operator Argument() const noexcept { return argument_; }  // NOLINT: stands for the argument

 private:
  Argument argument_;
};
template <>
class PerThread<const CUlaunchConfig*> {
 public:
  explicit PerThread(const CUlaunchConfig* config) noexcept : null_(config == nullptr) {
    if (null_) return;
    config_ = *config;
    config_.hStream = PerThread<CUstream>(config_.hStream);
  }
  operator const CUlaunchConfig*() const noexcept { return null_ ? nullptr : &config_; }

 private:
  bool null_;
  CUlaunchConfig config_{};
};

}  // namespace ptxgen::inline v0::driver::standin
