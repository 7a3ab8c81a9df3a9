// src/runtime/device/stream.cpp - streams and the start of captures
#include "ptxgen/runtime/device/stream.hpp"

#include "runtime/device/stream_owner.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

Stream::Owner::~Owner() {
  if (core->capturing(handle)) {
    core->release(Release::Capture, handle);
    static_cast<void>(core->capture_ended(handle));
  }
  if (!borrowed) core->release(Release::Stream, handle);
}

Stream::Stream(const Context& context, Kind kind, int priority) : core_(&context.core()) {
  core_->alive(Stage::Device);
  owner_ = Hidden<Owner>::make(core_->shared_from_this());
  const Current current(*core_, Stage::Device);
  const auto flags = static_cast<unsigned>(
      kind == Kind::NonBlocking ? driver::CU_STREAM_NON_BLOCKING : driver::CU_STREAM_DEFAULT);
  if (priority == 0) {
    core_->call(Stage::Device, &Table::stream_create, &owner_->handle, flags);
  } else {
    core_->need(Stage::Device, &Table::stream_create_with_priority, "a stream with a priority");
    core_->call(Stage::Device, &Table::stream_create_with_priority, &owner_->handle, flags,
                priority);
  }
  handle_ = owner_->handle;
}

Stream Stream::borrowed(const Context& context, driver::CUstream handle) {
  Stream stream;
  stream.core_ = &context.core();
  stream.core_->note_borrowed();
  stream.owner_ = Hidden<Owner>::make(stream.core_->shared_from_this());
  stream.owner_->borrowed = true;
  stream.owner_->handle = handle;
  stream.handle_ = handle;
  stream.borrowed_ = true;
  return stream;
}

Stream::Stream(Stream&& other) noexcept
    : owner_(std::move(other.owner_)),
      core_(std::exchange(other.core_, nullptr)),
      handle_(std::exchange(other.handle_, nullptr)),
      borrowed_(std::exchange(other.borrowed_, false)) {}
Stream& Stream::operator=(Stream&& other) noexcept {
  const Stream old(std::move(*this));
  owner_ = std::move(other.owner_);
  core_ = std::exchange(other.core_, nullptr);
  handle_ = std::exchange(other.handle_, nullptr);
  borrowed_ = std::exchange(other.borrowed_, false);
  return *this;
}
Stream::~Stream() = default;

void Stream::synchronize() const {
  const Span span(core_->trace(), "wait", "runtime");
  core_->enter_and_call(Stage::Launch, &Table::stream_synchronize, handle_);
  core_->waited();
}

bool Stream::done() const {
  core_->alive(Stage::Launch);
  const Current current(*core_, Stage::Launch);
  const driver::CUresult result = core_->table().stream_query(handle_);
  if (result == driver::CUDA_ERROR_NOT_READY) return false;
  if (result != driver::CUDA_SUCCESS) {
    throw core_->failure(Stage::Launch, {&row_of(&Table::stream_query), result});
  }
  return true;
}

void Stream::wait(const Event& event) const {
  core_->enter_and_call(Stage::Device, &Table::stream_wait_event, handle_, event.handle(), 0u);
}

void Stream::record(const Event& event) const {
  core_->enter_and_call(Stage::Device, &Table::event_record, event.handle(), handle_);
}

void Stream::begin_capture(CaptureMode mode) const {
  core_->alive(Stage::Launch);
  if (core_->capturing(handle_)) {
    throw Error(Stage::Launch, "capture", "the stream is already being captured");
  }
  const Current current(*core_, Stage::Launch);
  // Recorded before it begins: nothing may be unloaded in between.
  core_->capture_begins(handle_);
  const driver::CUresult result =
      core_->table().stream_begin_capture(handle_, static_cast<driver::CUstreamCaptureMode>(mode));
  if (result == driver::CUDA_SUCCESS) return;
  static_cast<void>(core_->capture_ended(handle_));
  throw core_->failure(Stage::Launch, {&row_of(&Table::stream_begin_capture), result});
}

bool Stream::capturing() const {
  driver::CUstreamCaptureStatus status = driver::CU_STREAM_CAPTURE_STATUS_NONE;
  core_->enter_and_call(Stage::Launch, &Table::stream_is_capturing, handle_, &status);
  return status != driver::CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace ptxgen::inline v0
