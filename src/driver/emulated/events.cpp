// src/driver/emulated/events.cpp - events of the emulated driver
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated::entries {
namespace {

constexpr unsigned kRecordExternal = 1;  ///< CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL
constexpr unsigned kAllFlags =
    CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

CUresult fault_of_context(CUcontext handle) {
  const std::shared_ptr<CUctx_st> context = hold(handle);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(context->mutex);
  return context->fault;
}

template <class Work>
CUresult with_event(CUevent handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUevent_st> event = hold(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    return work(event);
  });
}

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags) {
  return with_event(handle, [&](const std::shared_ptr<CUevent_st>& event) {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(stream_handle, stream); result != CUDA_SUCCESS) {
      return result;
    }
    if (flags > kRecordExternal) return CUDA_ERROR_INVALID_VALUE;
    if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capturing.load(std::memory_order_acquire)) {
      bool captured = false;
      const CUresult result =
          capture_record(stream, event, (flags & kRecordExternal) != 0, captured);
      if (captured || result != CUDA_SUCCESS) return result;
    }
    if (event->capture.load() != 0) leave_capture(event.get());
    return submit(stream, RecordEvent{event});
  });
}

/// State of the last record; false if it has not been reached.
bool is_reached(CUevent_st& event) {
  const std::lock_guard lock(event.mutex);
  return event.done >= event.recorded;
}

CUresult elapsed(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  return with_event(start_handle, [&](const std::shared_ptr<CUevent_st>& start) {
    const std::shared_ptr<CUevent_st> end = hold(end_handle);
    if (!end) return CUDA_ERROR_INVALID_HANDLE;
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (start->context != end->context) return CUDA_ERROR_INVALID_HANDLE;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    if (start->capture.load() != 0 || end->capture.load() != 0) return CUDA_ERROR_CAPTURED_EVENT;
    if (const CUresult result = fault_of_context(start->context); result != CUDA_SUCCESS) {
      return result;
    }
    std::chrono::steady_clock::time_point when[2];
    for (const int i : {0, 1}) {
      CUevent_st& event = i == 0 ? *start : *end;
      const std::lock_guard lock(event.mutex);
      if (event.recorded == 0) return CUDA_ERROR_INVALID_HANDLE;
      if (event.done < event.recorded) return CUDA_ERROR_NOT_READY;
      when[i] = event.when;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(when[1] - when[0]).count();
    return CUDA_SUCCESS;
  });
}

/// With the context that a handle names and an event, for work on all streams of the context: they
/// share one queue, and its legacy stream stands for it. A capture of one of them forbids that.
template <class Work>
CUresult with_context_event(CUcontext handle, CUevent event_handle, Work&& work) {
  return with_event(event_handle, [&](const std::shared_ptr<CUevent_st>& event) -> CUresult {
    const std::shared_ptr<CUctx_st> context = hold(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult result = not_while_captured(context.get())) return result;
    return work(context, event);
  });
}

}  // namespace

CUresult ctx_record_event(CUcontext handle, CUevent event_handle) {
  return with_context_event(handle, event_handle, [](const auto& context, const auto& event) {
    if (event->context != context.get()) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture.load() != 0) leave_capture(event.get());
    return submit(context->legacy, RecordEvent{event});
  });
}

CUresult ctx_wait_event(CUcontext handle, CUevent event_handle) {
  return with_context_event(handle, event_handle, [](const auto& context, const auto& event) {
    if (event->capture.load() != 0) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    // Within one queue the record precedes.
    if (event->context == context.get()) return CUDA_SUCCESS;
    std::uint64_t ticket = 0;
    {
      const std::lock_guard lock(event->mutex);
      ticket = event->recorded;
      if (event->done >= ticket) return CUDA_SUCCESS;
    }
    return submit(context->legacy, WaitEvent{event, ticket});
  });
}

CUresult event_create(CUevent* event, unsigned flags) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context); result != CUDA_SUCCESS) return result;
    if (event == nullptr || (flags & ~kAllFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) {
      if ((flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
      return refuse(CUDA_ERROR_NOT_SUPPORTED,
                    "cuEventCreate: the emulated driver does not support interprocess events");
    }
    const auto created = std::make_shared<CUevent_st>(context.get(), flags);
    enroll(created);
    *event = created.get();
    return CUDA_SUCCESS;
  });
}

CUresult event_destroy(CUevent handle) {
  return with_event(handle, [&](const std::shared_ptr<CUevent_st>& event) {
    if (!gone(handle)) return CUDA_ERROR_INVALID_HANDLE;
    return fault_of_context(event->context);
  });
}

CUresult event_record(CUevent event, CUstream stream) { return record(event, stream, 0); }

CUresult event_record_with_flags(CUevent event, CUstream stream, unsigned flags) {
  return record(event, stream, flags);
}

CUresult event_query(CUevent handle) {
  return with_event(handle, [](const std::shared_ptr<CUevent_st>& event) {
    if (event->capture.load() != 0) return CUDA_ERROR_CAPTURED_EVENT;
    const bool reached = is_reached(*event);
    const CUresult fault = fault_of_context(event->context);
    if (fault != CUDA_SUCCESS) return fault;
    return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult event_synchronize(CUevent handle) {
  return with_event(handle, [](const std::shared_ptr<CUevent_st>& event) {
    if (event->capture.load() != 0) return CUDA_ERROR_CAPTURED_EVENT;
    {
      std::unique_lock lock(event->mutex);
      const std::uint64_t ticket = event->recorded;
      event->reached.wait(lock, [&] { return event->done >= ticket; });
    }
    return fault_of_context(event->context);
  });
}

CUresult event_elapsed_time(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

CUresult event_elapsed_time_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}

CUresult stream_wait_event(CUstream stream_handle, CUevent handle, unsigned flags) {
  return with_event(handle, [&](const std::shared_ptr<CUevent_st>& event) {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(stream_handle, stream); result != CUDA_SUCCESS) {
      return result;
    }
    if (flags > kRecordExternal) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capturing.load(std::memory_order_acquire) || event->capture.load() != 0) {
      bool captured = false;
      const CUresult result = capture_wait(stream, event, (flags & kRecordExternal) != 0, captured);
      if (captured || result != CUDA_SUCCESS) return result;
    }
    std::uint64_t ticket = 0;
    {
      const std::lock_guard lock(event->mutex);
      ticket = event->recorded;
      if (event->done >= ticket) return CUDA_SUCCESS;
    }
    // Within one queue the record precedes.
    if (event->context == stream->context) return CUDA_SUCCESS;
    return submit(stream, WaitEvent{event, ticket});
  });
}

}  // namespace ptxgen::inline v0::driver::emulated::entries
