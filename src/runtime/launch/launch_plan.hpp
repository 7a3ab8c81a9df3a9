// src/runtime/launch/launch_plan.hpp - prepared launches
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/runtime/launch/launcher.hpp"
#include "runtime/device/core.hpp"
#include "runtime/device/workspace.hpp"
#include "runtime/launch/launch_checks.hpp"

namespace ptxgen::inline v0 {

/// A launch in the form that the driver expects.
struct LaunchPlan::State {
  /// A kernel. Throws as Function::allow. `launch()` uses `stream`. `of` is the function's
  /// reference into the cache, or empty. `workspace` is memory that the arguments point to, or
  /// null.
  State(const Function& kernel, CachedModule of, const ContextCore& core,
        const LaunchRecord& record, std::span<const std::byte> arguments, const Stream& stream,
        std::shared_ptr<const Workspace> workspace);
  /// A call of a routine: `queue` queues it.
  State(std::function<void(driver::CUstream)> queue, const ContextCore& core,
        const LaunchRecord& record, const Stream& stream);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;

  void launch(driver::CUstream on) const;
  /// Launches with attributes.
  [[nodiscard, gnu::noinline]] driver::CUresult launch_with_attributes(driver::CUstream on) const;

  const ContextCore& core;
  const std::shared_ptr<const ContextCore> owner;
  const std::optional<Function> kernel;  ///< none: a routine
  const CachedModule module;             ///< keeps the module in the cache; empty for a `Function`
  const std::shared_ptr<const Workspace> workspace;
  const driver::CUstream stream;
  const std::string reason;  ///< the record's
  LaunchRecord record;
  bool with_attributes = false;
  decltype(driver::Table::launch_kernel) call = nullptr;
  driver::CUfunction function = nullptr;
  std::vector<std::max_align_t> block;
  std::size_t block_bytes = 0;
  void* extra[5] = {};

  std::function<void(driver::CUstream)> routine;
};

}  // namespace ptxgen::inline v0
