// ptxgen/runtime/device/stream.hpp - streams, events and graphs
#pragma once

#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::inline v0 {

class Event;
class Graph;

/// A queue of work of one context. Work of one stream runs in order.
///
/// Threads: const members from any thread; the order between threads is theirs to settle.
class Stream {
 public:
  enum class Kind : std::uint8_t {
    Blocking,     ///< waits for the legacy default stream and makes it wait
    NonBlocking,  ///< knows nothing of the default stream
  };
  /// Throws `Error` (Stage::Device, "driver-call").
  explicit Stream(const Context& context, Kind kind = Kind::NonBlocking, int priority = 0);
  /// A stream of the host application (a CUstream or cudaStream_t of the same context, or null for
  /// the default stream), which stays its owner.
  [[nodiscard]] static Stream borrowed(const Context& context, driver::CUstream handle);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for what was queued. Throws as Context::synchronize.
  void synchronize() const;
  /// Whether everything queued is done.
  [[nodiscard]] bool done() const;
  /// Later work of this stream waits for what the event has recorded.
  void wait(const Event& event) const;
  void record(const Event& event) const;

  /// How far a capture forbids what could disturb it, as CUstreamCaptureMode.
  enum class CaptureMode : std::uint8_t { Global, ThreadLocal, Relaxed };
  /// From now on work is not run but written down, until `end_capture`. Not on the default stream.
  void begin_capture(CaptureMode mode = CaptureMode::ThreadLocal) const;
  /// Ends the capture and makes the graph ready to launch. Throws `Error` (Stage::Launch,
  /// "capture") if the capture was broken on the way; the stream is usable again in any case.
  [[nodiscard]] Graph end_capture() const;
  [[nodiscard]] bool capturing() const;

  [[nodiscard]] driver::CUstream handle() const noexcept { return handle_; }
  [[nodiscard]] const ContextCore& core() const noexcept { return *core_; }
  /// Whether it belongs to the host application, which may capture it without telling us.
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
  /// Without timing an event is cheaper.
  explicit Event(const Context& context, bool timing = true);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  void synchronize() const;
  [[nodiscard]] bool done() const;
  /// From `start` to this event. Device time on a GPU, host time on the emulated device. Throws
  /// `Error` (Stage::Device, "driver-call") if one was not recorded or not reached.
  [[nodiscard]] float milliseconds_since(const Event& start) const;

  [[nodiscard]] driver::CUevent handle() const noexcept;

 private:
  struct Owner;
  Hidden<Owner> owner_;
};

/// Captured work, ready to be launched again and again. Keeps the modules of the launches that the
/// Launcher recorded in it loaded; buffers are the caller's to keep.
class Graph {
 public:
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// Queues all of it. Throws `Error` (Stage::Launch).
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
