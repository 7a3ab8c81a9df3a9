// src/driver/cudart/exports.hpp - what the exported functions of both versions share
#pragma once

#include "driver/cudart/cudart.hpp"
#include "driver/symbols.hpp"

namespace ptxgen::inline v0::driver::cudart {

/// An argument for callers built for per-thread default streams, where stream 0 is the thread's
/// own.
template <class Argument>
class PerThread {
 public:
  explicit PerThread(Argument argument) noexcept : argument_(argument) {}
  operator Argument() const noexcept { return argument_; }  // NOLINT: stands for the argument

 private:
  Argument argument_;
};
template <>
class PerThread<cudaStream_t> {
 public:
  explicit PerThread(cudaStream_t stream) noexcept
      : stream_(stream != nullptr ? stream : reinterpret_cast<cudaStream_t>(kStreamPerThread)) {}
  operator cudaStream_t() const noexcept { return stream_; }  // NOLINT: stands for the argument

 private:
  cudaStream_t stream_;
};
template <>
class PerThread<const cudaLaunchConfig_t*> {
 public:
  explicit PerThread(const cudaLaunchConfig_t* config) noexcept : null_(config == nullptr) {
    if (null_) return;
    config_ = *config;
    config_.stream = PerThread<cudaStream_t>(config_.stream);
  }
  operator const cudaLaunchConfig_t*() const noexcept { return null_ ? nullptr : &config_; }

 private:
  bool null_;
  cudaLaunchConfig_t config_{};
};
/// Flags of cudaGetDriverEntryPoint: without any, the driver's symbols for such callers.
template <>
class PerThread<unsigned long long> {
 public:
  explicit PerThread(unsigned long long flags) noexcept
      : flags_(flags != 0 ? flags : kPerThreadDefaultStream) {}
  operator unsigned long long() const noexcept { return flags_; }  // NOLINT: as above

 private:
  unsigned long long flags_;
};

template <class... Parameters>
cudaError_t call_per_thread(cudaError_t (*function)(Parameters...), Parameters... arguments) {
  return function(PerThread<Parameters>(arguments)...);
}

/// Answers a call of a function that is not emulated.
cudaError_t refuse_call(const char* symbol) noexcept;

}  // namespace ptxgen::inline v0::driver::cudart

#define PTXGEN_CUDART_EXPORT(symbol, parameters, arguments) \
  cudaError_t symbol parameters {                           \
    return call([&] { return entries::symbol arguments; }); \
  }
// Hidden; an alias exports those that have a variant.
#define PTXGEN_CUDART_ARGUMENTS(...) __VA_OPT__(, ) __VA_ARGS__
#define PTXGEN_CUDART_PER_THREAD(symbol, parameters, arguments)                      \
  __attribute__((visibility("hidden"))) cudaError_t per_thread_##symbol parameters { \
    return call_per_thread(&symbol PTXGEN_CUDART_ARGUMENTS arguments);               \
  }
#define PTXGEN_CUDART_ALIAS(symbol, suffix) \
  extern decltype(symbol) symbol##suffix __attribute__((alias("per_thread_" #symbol)));
// Without parameters: in both ABIs the caller cleans up its arguments.
#define PTXGEN_CUDART_REFUSE(symbol) \
  cudaError_t symbol();              \
  cudaError_t symbol() { return refuse_call(#symbol); }
