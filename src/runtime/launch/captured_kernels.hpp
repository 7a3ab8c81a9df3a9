// src/runtime/launch/captured_kernels.hpp - kernels used by the host's captures
#pragma once

#include <map>
#include <mutex>

#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/runtime/device/stream.hpp"

namespace ptxgen::inline v0 {

/// A host that captures its own stream gets a graph that ptxgen does not see. What is launched into
/// it stays loaded as long as this object.
///
/// Threads: all members from any thread at once.
class CapturedKernels {
 public:
  void add_if_captured(const CachedModule& module, const Stream& stream) {
    if (!stream.capturing()) return;
    const std::lock_guard lock(mutex_);
    modules_.try_emplace(module.function().handle(), module);
  }
  void add_if_captured(const Function& function, const Stream& stream) {
    if (!stream.capturing()) return;
    const std::lock_guard lock(mutex_);
    functions_.try_emplace(function.handle(), function);
  }

 private:
  std::mutex mutex_;
  std::map<driver::CUfunction, CachedModule> modules_;
  std::map<driver::CUfunction, Function> functions_;
};

}  // namespace ptxgen::inline v0
