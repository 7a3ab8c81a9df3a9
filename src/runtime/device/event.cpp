// src/runtime/device/event.cpp - events
#include "ptxgen/runtime/device/stream.hpp"
#include "runtime/device/owned.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

struct Event::Owner : Owned<driver::CUevent, Release::Event> {
  using Owned::Owned;
};

Event::Event(const Context& context, bool timing)
    : owner_(Hidden<Owner>::make(context.core().shared_from_this())) {
  const auto flags =
      static_cast<unsigned>(timing ? driver::CU_EVENT_DEFAULT : driver::CU_EVENT_DISABLE_TIMING);
  owner_->core->enter_and_call(Stage::Device, &Table::event_create, &owner_->handle, flags);
}

Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&& other) noexcept {
  const Event old(std::move(*this));
  owner_ = std::move(other.owner_);
  return *this;
}
Event::~Event() = default;

driver::CUevent Event::handle() const noexcept { return owner_->handle; }

void Event::synchronize() const {
  const Span span(owner_->core->trace(), "wait", "runtime");
  owner_->core->enter_and_call(Stage::Launch, &Table::event_synchronize, owner_->handle);
  owner_->core->waited();
}

bool Event::done() const {
  const ContextCore& core = *owner_->core;
  core.alive(Stage::Launch);
  const Current current(core, Stage::Launch);
  const driver::CUresult result = core.table().event_query(owner_->handle);
  if (result == driver::CUDA_ERROR_NOT_READY) return false;
  if (result != driver::CUDA_SUCCESS) {
    throw core.failure(Stage::Launch, {&row_of(&Table::event_query), result});
  }
  return true;
}

float Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  owner_->core->enter_and_call(Stage::Device, &Table::event_elapsed_time, &milliseconds,
                               start.handle(), owner_->handle);
  return milliseconds;
}

}  // namespace ptxgen::inline v0
