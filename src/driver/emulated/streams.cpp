// src/driver/emulated/streams.cpp - the queue of a context, its worker, streams, host functions
#include <algorithm>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver {
namespace {

using emulated::Operation;

/// Assigns the item's number; with the context's mutex held.
std::uint64_t count_in(CUctx_st& context, CUstream_st& stream, const Operation& operation) {
  const std::uint64_t number = ++context.enqueued;
  stream.last = number;
  if ((stream.flags & CU_STREAM_NON_BLOCKING) == 0) context.last_blocking = number;
  const auto record = [](const std::shared_ptr<CUevent_st>& event) {
    const std::lock_guard lock(event->mutex);
    ++event->recorded;
  };
  if (const auto* one = std::get_if<emulated::RecordEvent>(&operation)) record(one->event);
  if (const auto* one = std::get_if<emulated::RunGraph>(&operation)) {
    for (const auto& event : emulated::records_of(*one->executable)) record(event);
  }
  return number;
}

/// Runs one item with no lock of the context; `lock` is released meanwhile.
void carry_out(CUctx_st& context, std::unique_lock<std::mutex>& lock, const Operation& operation) {
  context.busy = true;
  CUresult fault = context.fault;
  const bool is_record = std::holds_alternative<emulated::RecordEvent>(operation);
  lock.unlock();
  if (is_record) {
    // Released below: after a wait for the event, a query of its stream must return done too.
  } else if (fault == CUDA_SUCCESS) {
    fault = emulated::execute(&context, operation);
  } else {
    emulated::pass_over(operation, fault);
  }
  lock.lock();
  context.busy = false;
  if (context.fault == CUDA_SUCCESS) context.fault = fault;
  ++context.reached;
  if (is_record) emulated::pass_over(operation, fault);
  context.finished.notify_all();
  if (!context.queue.empty()) context.queued.notify_one();
}

void work_off(CUctx_st& context) {
  std::unique_lock lock(context.mutex);
  for (;;) {
    context.queued.wait(lock,
                        [&] { return context.stop || (!context.queue.empty() && !context.busy); });
    if (context.stop) return;
    CUctx_st::Item item = std::move(context.queue.front());
    context.queue.pop_front();
    carry_out(context, lock, item.operation);
    // The item is destroyed without the lock.
    lock.unlock();
    item = {};
    lock.lock();
  }
}

}  // namespace

void CUctx_st::start() {
  worker = std::thread([this] { work_off(*this); });
}

void CUctx_st::shut_down() {
  {
    const std::lock_guard lock(mutex);
    stop = true;
    queued.notify_all();
  }
  if (worker.joinable()) worker.join();
  std::deque<Item> rest;
  {
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return !busy; });
    rest.swap(queue);
  }
  for (const Item& item : rest) {
    emulated::pass_over(item.operation, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  const std::lock_guard lock(mutex);
  reached = enqueued;
  finished.notify_all();
}

namespace emulated {
namespace {

/// The result of a wait.
CUresult verdict(const CUctx_st& context) {
  if (context.fault != CUDA_SUCCESS) return context.fault;
  return context.stop ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult wait_until(CUctx_st& context, std::unique_lock<std::mutex>& lock, std::uint64_t number) {
  context.finished.wait(lock, [&] { return context.reached >= number; });
  return verdict(context);
}

/// The last item that a wait for the stream covers.
std::uint64_t last_of(const CUctx_st& context, const CUstream_st& stream) {
  return &stream == context.legacy.get() ? context.last_blocking : stream.last;
}

/// Common checks of operations: capture of this stream or of streams that it waits for.
CUresult before(const std::shared_ptr<CUstream_st>& stream, CUctx_st& context, Operation& operation,
                bool& captured) {
  captured = false;
  if (stream->capturing.load(std::memory_order_acquire)) {
    const CUresult result = capture_operation(stream, operation, captured);
    if (captured || result != CUDA_SUCCESS) return result;
  }
  if (stream == context.legacy && context.blocking_captures.load() != 0) {
    return not_in_legacy(&context);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult resolve(CUstream handle, std::shared_ptr<CUstream_st>& stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  std::shared_ptr<CUctx_st> context;
  if (number <= kStreamPerThread) {
    const CUresult result = enter(context);
    if (context) stream = number == kStreamPerThread ? context->per_thread : context->legacy;
    return result;
  }
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  stream = hold(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream->green != nullptr && !living(stream->green)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(context->mutex);
  return context->fault;
}

CUresult resolve(CUstream handle, CUstream& stream) {
  std::shared_ptr<CUstream_st> held;
  const CUresult result = resolve(handle, held);
  stream = held.get();
  return result;
}

CUresult submit(const std::shared_ptr<CUstream_st>& stream, Operation operation) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  bool captured = false;
  if (const CUresult result = before(stream, *context, operation, captured);
      captured || result != CUDA_SUCCESS) {
    return result;
  }
  const std::lock_guard lock(context->mutex);
  if (const CUresult result = verdict(*context); result != CUDA_SUCCESS) return result;
  context->queue.push_back({stream, std::move(operation)});
  count_in(*context, *stream, context->queue.back().operation);
  context->queued.notify_one();
  return CUDA_SUCCESS;
}

CUresult submit(CUstream handle, Operation operation) {
  const std::shared_ptr<CUstream_st> stream = hold(handle);
  return stream ? submit(stream, std::move(operation)) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult perform(const std::shared_ptr<CUstream_st>& stream, Operation operation) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const CUresult result = not_in_capture(stream); result != CUDA_SUCCESS) return result;
  if (stream == context->legacy && context->blocking_captures.load() != 0) {
    return not_in_legacy(context.get());
  }
  std::unique_lock lock(context->mutex);
  if (const CUresult result = verdict(*context); result != CUDA_SUCCESS) return result;
  const std::uint64_t number = count_in(*context, *stream, operation);
  // With nothing before it there is no need to wake the worker for it.
  if (context->queue.empty() && !context->busy) {
    carry_out(*context, lock, operation);
    return verdict(*context);
  }
  context->queue.push_back({stream, std::move(operation)});
  context->queued.notify_one();
  return wait_until(*context, lock, number);
}

CUresult wait_for_all(CUcontext handle) {
  const std::shared_ptr<CUctx_st> context = hold(handle);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  std::unique_lock lock(context->mutex);
  return wait_until(*context, lock, context->enqueued);
}

CUresult wait_for(const std::shared_ptr<CUstream_st>& stream) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  std::unique_lock lock(context->mutex);
  return wait_until(*context, lock, last_of(*context, *stream));
}

namespace entries {
namespace {

CUresult make_stream(CUstream* stream, unsigned flags, int priority) {
  std::shared_ptr<CUctx_st> context;
  if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
  if (stream == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  const auto created = std::make_shared<CUstream_st>(
      context.get(), flags, std::clamp(priority, kGreatestPriority, kMinPriority), current_green());
  enroll(created);
  *stream = created.get();
  return CUDA_SUCCESS;
}

/// The green context of a stream: of a special one, the current one.
CUgreenCtx green_of_stream(CUstream handle, const CUstream_st& stream) {
  const bool special = reinterpret_cast<std::uintptr_t>(handle) <= kStreamPerThread;
  return special ? current_green() : stream.green;
}

/// For queries of a stream that ignore faults.
template <class Work>
CUresult with_stream(CUstream handle, Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream); result != CUDA_SUCCESS) return result;
    return work(stream);
  });
}

/// Streams in a capture, and the legacy stream during captures, cannot be synchronised or queried.
CUresult check_capture(const std::shared_ptr<CUstream_st>& stream) {
  if (const CUresult result = not_in_capture(stream); result != CUDA_SUCCESS) return result;
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream == context->legacy && context->blocking_captures.load() != 0) {
    return not_in_legacy(context.get());
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult stream_create(CUstream* stream, unsigned flags) {
  return guarded([&] { return make_stream(stream, flags, kMinPriority); });
}

CUresult stream_create_with_priority(CUstream* stream, unsigned flags, int priority) {
  return guarded([&] { return make_stream(stream, flags, priority); });
}

CUresult stream_destroy(CUstream handle) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUstream_st> stream = hold(handle);
    const std::shared_ptr<CUctx_st> context = stream ? hold(stream->context) : nullptr;
    if (!context || stream == context->legacy || stream == context->per_thread) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!gone(handle)) return CUDA_ERROR_INVALID_HANDLE;
    abandon_capture(stream);
    // The stream is destroyed in any case, also in a poisoned context.
    const std::lock_guard lock(context->mutex);
    return context->fault;
  });
}

CUresult stream_synchronize(CUstream handle) {
  return with_stream(handle, [](const std::shared_ptr<CUstream_st>& stream) {
    const CUresult result = check_capture(stream);
    return result != CUDA_SUCCESS ? result : wait_for(stream);
  });
}

CUresult stream_query(CUstream handle) {
  return with_stream(handle, [](const std::shared_ptr<CUstream_st>& stream) {
    if (const CUresult result = check_capture(stream); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    const std::lock_guard lock(context->mutex);
    if (context->fault != CUDA_SUCCESS) return context->fault;
    return context->reached >= last_of(*context, *stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult stream_get_priority(CUstream handle, int* priority) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
  });
}

CUresult stream_get_flags(CUstream handle, unsigned* flags) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
  });
}

CUresult stream_get_ctx(CUstream handle, CUcontext* context) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUgreenCtx green = green_of_stream(handle, *stream);
    if (green != nullptr) return ctx_from_green_ctx(context, green);
    *context = stream->context;
    return CUDA_SUCCESS;
  });
}

CUresult stream_get_ctx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (context == nullptr || green == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *green = green_of_stream(handle, *stream);
    *context = stream->context;
    return CUDA_SUCCESS;
  });
}

CUresult stream_get_green_ctx(CUstream handle, CUgreenCtx* green) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *green = green_of_stream(handle, *stream);
    return CUDA_SUCCESS;
  });
}

CUresult stream_get_id(CUstream handle, unsigned long long* id) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = stream->id;
    return CUDA_SUCCESS;
  });
}

CUresult stream_get_device(CUstream handle, CUdevice* device) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<CUctx_st> context = hold(stream->context);
    if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

CUresult stream_add_callback(CUstream handle, CUstreamCallback callback, void* user_data,
                             unsigned flags) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = not_in_capture(stream); result != CUDA_SUCCESS) return result;
    return submit(stream, HostCall{nullptr, callback, handle, user_data, nullptr});
  });
}

CUresult launch_host_func(CUstream handle, CUhostFn work, void* user_data) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return submit(stream, HostCall{work, nullptr, handle, user_data, nullptr});
  });
}

}  // namespace entries

CUresult launch_host_kernel(CUstream handle, std::shared_ptr<const HostKernel> kernel) noexcept {
  return entries::with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    return submit(stream, HostCall{nullptr, nullptr, handle, nullptr, std::move(kernel)});
  });
}

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
