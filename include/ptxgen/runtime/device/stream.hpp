// ptxgen/runtime/device/stream.hpp - streams, events and graphs
#pragma once

#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::inline v0 {

class Event;
class Graph;

/// A queue of work of one context. Work of one stream runs in order.
///
/// Threads: const members from any thread; the caller orders calls of different threads.
class Stream {
 public:
  enum class Kind : std::uint8_t {
    Blocking,     ///< synchronises with the legacy default stream
    NonBlocking,  ///< does not synchronise with the default stream
  };
  /// Throws `Error` (Stage::Device, "driver-call").
  explicit Stream(const Context& context, Kind kind = Kind::NonBlocking, int priority = 0);
  /// A stream that the host application owns (a CUstream or cudaStream_t of the same context, or
  /// null for the default stream).
  [[nodiscard]] static Stream borrowed(const Context& context, driver::CUstream handle);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for all queued work. Throws as Context::synchronize.
  void synchronize() const;
  /// Whether everything queued is done.
  [[nodiscard]] bool done() const;
  /// Makes later work of this stream wait for the event.
  void wait(const Event& event) const;
  void record(const Event& event) const;

  /// Which unsafe calls a capture forbids, as CUstreamCaptureMode.
  enum class CaptureMode : std::uint8_t { Global, ThreadLocal, Relaxed };
  /// Records work instead of running it until `end_capture`. Not on the default stream.
  void begin_capture(CaptureMode mode = CaptureMode::ThreadLocal) const;
  /// Ends the capture and instantiates the graph. Throws `Error` (Stage::Launch, "capture") if the
  /// capture was invalidated; the stream is usable again in any case.
  [[nodiscard]] Graph end_capture() const;
  [[nodiscard]] bool capturing() const;

  [[nodiscard]] driver::CUstream handle() const noexcept { return handle_; }
  [[nodiscard]] const ContextCore& core() const noexcept { return *core_; }
  /// Whether the host application owns it, which may capture it unnoticed.
  [[nodiscard]] bool is_borrowed() const noexcept { return borrowed_; }

 private:
  friend struct StreamAccess;  // src/runtime
  Stream() = default;
  struct Owner;
  Hidden<Owner> owner_;
  const ContextCore* core_ = nullptr;
  driver::CUstream handle_ = nullptr;
  bool borrowed_ = false;
};

/// A point in a stream, with the time at which it was reached.
class Event {
 public:
  /// An event without timing is cheaper.
  explicit Event(const Context& context, bool timing = true);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  void synchronize() const;
  [[nodiscard]] bool done() const;
  /// Time from `start` to this event: device time on a GPU, host time on the emulated device.
  /// Throws `Error` (Stage::Device, "driver-call") if one was not recorded or has not completed.
  [[nodiscard]] float milliseconds_since(const Event& start) const;

  [[nodiscard]] driver::CUevent handle() const noexcept;

 private:
  struct Owner;
  Hidden<Owner> owner_;
};

/// Captured work that can be launched repeatedly. Keeps the modules of launches by a Launcher
/// loaded; the caller keeps the buffers.
class Graph {
 public:
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// Queues the graph. Throws `Error` (Stage::Launch).
  void launch(const Stream& stream) const;
  [[nodiscard]] std::size_t nodes() const noexcept;
  [[nodiscard]] driver::CUgraphExec handle() const noexcept;

 private:
  friend class Stream;
  struct Owner;
  explicit Graph(Hidden<Owner> owner);
  Hidden<Owner> owner_;
};

}  // namespace ptxgen::inline v0
