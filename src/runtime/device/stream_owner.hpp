// src/runtime/device/stream_owner.hpp - a driver stream and its workspace
#pragma once

#include <memory>
#include <utility>

#include "ptxgen/runtime/device/stream.hpp"
#include "runtime/device/core.hpp"
#include "runtime/device/workspace.hpp"

namespace ptxgen::inline v0 {

struct Stream::Owner {
  explicit Owner(std::shared_ptr<const ContextCore> of) noexcept : core(std::move(of)) {}
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  /// Ends a running capture.
  ~Owner();
  const std::shared_ptr<const ContextCore> core;
  driver::CUstream handle = nullptr;
  bool borrowed = false;
  StreamWorkspace workspace;  ///< unused if borrowed: the host's stream outlives this object
};

struct StreamAccess {
  [[nodiscard]] static StreamWorkspace& workspace(const Stream& stream) noexcept {
    return stream.owner_->workspace;
  }
};

}  // namespace ptxgen::inline v0
