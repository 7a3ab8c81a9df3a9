// src/runtime/launch/kernel_pipeline.hpp - from a kernel to its PTX
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/optimize.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"

namespace ptxgen::inline v0 {

/// The options of passes and gates, as a module's cache key holds them.
[[nodiscard]] std::uint64_t key_of_passes(const optimize::PassOptions& passes, bool gates,
                                          bool programmatic);

/// Build -> passes -> gates -> print. All members throw what building and gates throw.
struct Pipeline {
  const ptx::Target* target = nullptr;
  const optimize::PassOptions* passes = nullptr;
  bool gates = true;
  const Log* log = nullptr;
  const Trace* trace = nullptr;
  bool programmatic = false;  ///< described kernels wait for the one ahead of them
  /// The device's architecture-specific target ("sm_90a"), for kernels that need it; null:
  /// none.
  const ptx::Target* specific = nullptr;

  /// The target of a kernel. Throws what its check of the target throws.
  [[nodiscard]] const ptx::Target& target_for(const KernelDescription& kernel,
                                              const void* spec) const;

  /// `spec` is a value of the kernel's type.
  [[nodiscard]] KernelText from_described(const KernelDescription& kernel, const void* spec) const;
  [[nodiscard]] KernelText from_module(const ptx::Module& module, std::string_view entry) const;

 private:
  void finish(KernelText& text) const;
  void run_passes(ptx::Module& module, std::string_view entry) const;
  template <class Work>
  void stage(StageTimes& stages, std::string_view name, const Work& work) const;
};

}  // namespace ptxgen::inline v0
