// src/runtime/device/context.cpp - a device's primary context
#include "runtime/device/core.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

struct Context::Shared {
  std::shared_ptr<const ContextCore> core;
};

Context::Context(const Device& device)
    : shared_(Hidden<Shared>::make(Shared{ContextCore::open(device)})),
      core_(shared_->core.get()) {}
Context::Context(Context&& other) noexcept
    : shared_(std::move(other.shared_)), core_(std::exchange(other.core_, nullptr)) {}
Context& Context::operator=(Context&& other) noexcept {
  const Context old(std::move(*this));
  shared_ = std::move(other.shared_);
  core_ = std::exchange(other.core_, nullptr);
  return *this;
}
Context::~Context() = default;

const Device& Context::device() const noexcept { return core_->device(); }
driver::CUcontext Context::handle() const noexcept { return core_->handle(); }
bool Context::poisoned() const noexcept { return core_->poisoned(); }

void Context::synchronize() const {
  core_->alive(Stage::Launch);
  const Current current(*core_, Stage::Launch);
  core_->call(Stage::Launch, &Table::ctx_synchronize);
  core_->waited();
}

Context::Memory Context::memory() const {
  core_->alive(Stage::Device);
  const Current current(*core_, Stage::Device);
  std::size_t free = 0;
  std::size_t total = 0;
  core_->call(Stage::Device, &Table::mem_get_info, &free, &total);
  return {free, total};
}

void Context::reset(const Device& device) {
  must(device.table(), Stage::Device, &Table::device_primary_ctx_reset, device.driver_ordinal());
}

}  // namespace ptxgen::inline v0
