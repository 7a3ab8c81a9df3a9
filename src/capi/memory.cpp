// src/capi/memory.cpp - buffers, streams, events, graphs
#include <utility>

#include "capi/objects.hpp"
#include "driver/emulated/host_view.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace {

/// `[offset, offset + bytes)` of a buffer.
void check_range(const ptxgen_buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                 std::string_view name) {
  const std::uint64_t has = buffer.memory.bytes();
  if (offset <= has && bytes <= has - offset) return;
  throw Error(Stage::Device, "out-of-bounds",
              format_text("{} from offset {} of {} exceed its {}", count_text(bytes, "byte"),
                          offset, name, count_text(has, "byte")));
}

/// The stream that may be left out.
const Stream* optional_stream(const ptxgen_stream* stream) {
  return stream == nullptr ? nullptr : &need(stream, "stream").stream();
}

std::shared_ptr<const SharedStream> share(const SharedRuntime& runtime, Stream stream) {
  return std::make_shared<const SharedStream>(SharedStream{runtime, std::move(stream)});
}

}  // namespace

extern "C" {

ptxgen_status ptxgen_buffer_create(ptxgen_device* device, uint64_t bytes,
                                   ptxgen_buffer** buffer) noexcept {
  return guarded(device, [&] {
    ptxgen_buffer*& result = need_result(buffer, "buffer");
    result = new ptxgen_buffer(need(device, "device").runtime, bytes);
  });
}

void ptxgen_buffer_free(ptxgen_buffer* buffer) noexcept { delete buffer; }

ptxgen_span ptxgen_buffer_span(const ptxgen_buffer* buffer) noexcept {
  if (buffer == nullptr || !buffer->is(Kind::Buffer)) return {0, 0};
  return {buffer->memory.address(), buffer->memory.bytes()};
}

void* ptxgen_buffer_host(ptxgen_buffer* buffer) noexcept {
  if (buffer == nullptr || !buffer->is(Kind::Buffer) || buffer->memory.bytes() == 0) return nullptr;
  if (!is_emulated(buffer->runtime->device.info().kind)) return nullptr;
  return driver::emulated::host_view(buffer->runtime->context.handle(), buffer->memory.address(),
                                     buffer->memory.bytes());
}

ptxgen_status ptxgen_buffer_write(ptxgen_buffer* buffer, uint64_t offset, const void* from,
                                  uint64_t bytes, const ptxgen_stream* stream) noexcept {
  return guarded(buffer, [&] {
    ptxgen_buffer& to = need(buffer, "buffer");
    const Stream* const on = optional_stream(stream);
    if (from == nullptr && bytes != 0) throw_null("from");
    check_range(to, offset, bytes, "buffer");
    if (bytes != 0) to.memory.write(offset, from, bytes, on);
  });
}

ptxgen_status ptxgen_buffer_read(const ptxgen_buffer* buffer, uint64_t offset, void* to,
                                 uint64_t bytes, const ptxgen_stream* stream) noexcept {
  return guarded(buffer, [&] {
    const ptxgen_buffer& from = need(buffer, "buffer");
    const Stream* const on = optional_stream(stream);
    if (to == nullptr && bytes != 0) throw_null("to");
    check_range(from, offset, bytes, "buffer");
    if (bytes != 0) from.memory.read(offset, to, bytes, on);
  });
}

ptxgen_status ptxgen_buffer_copy(ptxgen_buffer* to, uint64_t to_offset, const ptxgen_buffer* from,
                                 uint64_t from_offset, uint64_t bytes,
                                 const ptxgen_stream* stream) noexcept {
  return guarded(to, [&] {
    ptxgen_buffer& target = need(to, "to");
    const ptxgen_buffer& source = need(from, "from");
    const Stream* const on = optional_stream(stream);
    check_range(target, to_offset, bytes, "to");
    check_range(source, from_offset, bytes, "from");
    if (bytes != 0) target.memory.copy(to_offset, source.memory, from_offset, bytes, on);
  });
}

ptxgen_status ptxgen_buffer_fill(ptxgen_buffer* buffer, uint64_t offset, uint32_t value,
                                 uint32_t element_bytes, uint64_t count,
                                 const ptxgen_stream* stream) noexcept {
  return guarded(buffer, [&] {
    ptxgen_buffer& to = need(buffer, "buffer");
    const Stream* const on = optional_stream(stream);
    if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) {
      throw UsageError{"out-of-range",
                       format_text("element_bytes is {}; it is 1, 2 or 4", element_bytes)};
    }
    if (offset % element_bytes != 0) {
      throw UsageError{"misaligned",
                       format_text("offset is {}, which is not a multiple of element_bytes, {}",
                                   offset, element_bytes)};
    }
    if (count > UINT64_MAX / element_bytes) {
      throw UsageError{"out-of-range", format_text("count is {}", count)};
    }
    check_range(to, offset, count * element_bytes, "buffer");
    if (count != 0) to.memory.fill(offset, value, element_bytes, count, on);
  });
}

ptxgen_status ptxgen_stream_create(ptxgen_device* device, int32_t kind, int32_t priority,
                                   ptxgen_stream** stream) noexcept {
  return guarded(device, [&] {
    ptxgen_stream*& result = need_result(stream, "stream");
    const SharedRuntime& runtime = need(device, "device").runtime;
    if (kind != PTXGEN_STREAM_NON_BLOCKING && kind != PTXGEN_STREAM_BLOCKING) {
      throw UsageError{"out-of-range", format_text("kind is {}; use PTXGEN_STREAM_...", kind)};
    }
    const Stream::Kind built =
        kind == PTXGEN_STREAM_BLOCKING ? Stream::Kind::Blocking : Stream::Kind::NonBlocking;
    result = new ptxgen_stream(share(runtime, Stream(runtime->context, built, priority)));
  });
}

ptxgen_status ptxgen_stream_borrow(ptxgen_device* device, void* cuda_stream,
                                   ptxgen_stream** stream) noexcept {
  return guarded(device, [&] {
    ptxgen_stream*& result = need_result(stream, "stream");
    const SharedRuntime& runtime = need(device, "device").runtime;
    result = new ptxgen_stream(share(
        runtime, Stream::borrowed(runtime->context, static_cast<driver::CUstream>(cuda_stream))));
  });
}

void ptxgen_stream_free(ptxgen_stream* stream) noexcept { delete stream; }

void* ptxgen_stream_cuda(const ptxgen_stream* stream) noexcept {
  return stream == nullptr || !stream->is(Kind::Stream) ? nullptr : stream->stream().handle();
}

ptxgen_status ptxgen_stream_synchronize(const ptxgen_stream* stream) noexcept {
  return guarded(stream, [&] { need(stream, "stream").stream().synchronize(); });
}

ptxgen_status ptxgen_stream_done(const ptxgen_stream* stream, int32_t* done) noexcept {
  return guarded(
      stream, [&] { need_place(done, "done") = need(stream, "stream").stream().done() ? 1 : 0; });
}

ptxgen_status ptxgen_stream_wait(const ptxgen_stream* stream, const ptxgen_event* event) noexcept {
  return guarded(stream, [&] { need(stream, "stream").stream().wait(need(event, "event").event); });
}

ptxgen_status ptxgen_stream_record(const ptxgen_stream* stream,
                                   const ptxgen_event* event) noexcept {
  return guarded(stream,
                 [&] { need(stream, "stream").stream().record(need(event, "event").event); });
}

ptxgen_status ptxgen_event_create(ptxgen_device* device, int32_t timing,
                                  ptxgen_event** event) noexcept {
  return guarded(device, [&] {
    ptxgen_event*& result = need_result(event, "event");
    result = new ptxgen_event(need(device, "device").runtime, timing != 0);
  });
}

void ptxgen_event_free(ptxgen_event* event) noexcept { delete event; }

ptxgen_status ptxgen_event_synchronize(const ptxgen_event* event) noexcept {
  return guarded(event, [&] { need(event, "event").event.synchronize(); });
}

ptxgen_status ptxgen_event_done(const ptxgen_event* event, int32_t* done) noexcept {
  return guarded(event,
                 [&] { need_place(done, "done") = need(event, "event").event.done() ? 1 : 0; });
}

ptxgen_status ptxgen_event_milliseconds(const ptxgen_event* start, const ptxgen_event* end,
                                        float* milliseconds) noexcept {
  return guarded(start, [&] {
    const Event& from = need(start, "start").event;
    const Event& to = need(end, "end").event;
    need_place(milliseconds, "milliseconds") = to.milliseconds_since(from);
  });
}

ptxgen_status ptxgen_stream_begin_capture(const ptxgen_stream* stream, int32_t mode) noexcept {
  return guarded(stream, [&] {
    const Stream& on = need(stream, "stream").stream();
    switch (mode) {
      case PTXGEN_CAPTURE_THREAD:
        return on.begin_capture(Stream::CaptureMode::ThreadLocal);
      case PTXGEN_CAPTURE_GLOBAL:
        return on.begin_capture(Stream::CaptureMode::Global);
      case PTXGEN_CAPTURE_RELAXED:
        return on.begin_capture(Stream::CaptureMode::Relaxed);
      default:
        throw UsageError{"out-of-range", format_text("mode is {}; use PTXGEN_CAPTURE_...", mode)};
    }
  });
}

ptxgen_status ptxgen_stream_end_capture(const ptxgen_stream* stream,
                                        ptxgen_graph** graph) noexcept {
  return guarded(stream, [&] {
    ptxgen_graph*& result = need_result(graph, "graph");
    const ptxgen_stream& on = need(stream, "stream");
    result = new ptxgen_graph(on.shared->runtime, on.stream().end_capture());
  });
}

ptxgen_status ptxgen_stream_capturing(const ptxgen_stream* stream, int32_t* capturing) noexcept {
  return guarded(stream, [&] {
    need_place(capturing, "capturing") = need(stream, "stream").stream().capturing() ? 1 : 0;
  });
}

ptxgen_status ptxgen_graph_launch(const ptxgen_graph* graph, const ptxgen_stream* stream) noexcept {
  return guarded(graph,
                 [&] { need(graph, "graph").graph.launch(need(stream, "stream").stream()); });
}

size_t ptxgen_graph_nodes(const ptxgen_graph* graph) noexcept {
  return graph == nullptr || !graph->is(Kind::Graph) ? 0 : graph->graph.nodes();
}

void ptxgen_graph_free(ptxgen_graph* graph) noexcept { delete graph; }

}  // extern "C"
