// src/driver/emulated/state.hpp - what the emulated driver keeps: contexts, streams, modules,
// graphs
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "ptxgen/driver/emulated.hpp"

/// Handles of the API are addresses of these structures. A handle that a caller passes is looked up
/// among the living ones first (`living`), so that a stale one gets an error code and not a crash.
namespace ptxgen::inline v0::driver {

namespace emulated {

// Work ------------------------------------------------------------------------------------------

/// A kernel launch with its own copy of the arguments. Run by launch.cpp.
struct KernelLaunch {
  CUfunction function = nullptr;
  emulator::Dim3 grid;
  emulator::Dim3 block;
  emulator::Dim3 cluster{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::byte> arguments;  ///< the parameter block
  emulator::Options options;         ///< as they were when the launch was queued
};

/// A place in host or device memory, or, of kind Unified, either, found out by the address.
struct Place {
  CUmemorytype kind = CU_MEMORYTYPE_UNIFIED;
  std::uint64_t address = 0;
};
/// `depth` x `height` rows of `width` bytes. Host memory that the caller may change after the call
/// was copied into `staged`.
struct Copy {
  Place to, from;
  std::uint64_t width = 0, height = 1, depth = 1;
  std::uint64_t to_pitch = 0, to_height = 0, from_pitch = 0, from_height = 0;
  std::shared_ptr<std::vector<std::byte>> staged;
};
/// `height` rows of `width` elements of 1, 2 or 4 bytes.
struct Fill {
  std::uint64_t to = 0;
  std::uint32_t value = 0;
  std::uint32_t element_bytes = 1;
  std::uint64_t width = 0, height = 1, pitch = 0;
};
/// A function of the host. `stream`: cuStreamAddCallback, which also passes stream and status.
struct HostCall {
  CUhostFn work = nullptr;
  CUstreamCallback callback = nullptr;
  CUstream stream = nullptr;
  void* user = nullptr;
};
struct RecordEvent {
  CUevent event = nullptr;
  std::uint64_t ticket = 0;
};
struct WaitEvent {
  CUevent event = nullptr;
};
struct FreeMemory {
  CUdeviceptr address = 0;
};
struct RunGraph {
  std::shared_ptr<const struct Executable> executable;
};
struct Empty {};
using Operation = std::variant<Empty, KernelLaunch, Copy, Fill, HostCall, RecordEvent, WaitEvent,
                               FreeMemory, RunGraph>;

struct Node;

}  // namespace emulated

// Handles ---------------------------------------------------------------------------------------

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  // Guarded by the context's mutex.
  std::uint64_t recorded = 0;  ///< tickets given out
  std::uint64_t done = 0;      ///< the last ticket that was reached
  std::chrono::steady_clock::time_point when;
  /// Recorded in a capture: the nodes it stands for, and the capture's number.
  std::vector<CUgraphNode> captured;
  std::uint64_t capture = 0;
};

/// A capture in progress; shared by the streams that were drawn in.
struct Capture;

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  // Guarded by the context's mutex.
  std::uint64_t queued = 0;  ///< operations given to the stream
  std::uint64_t done = 0;
  std::shared_ptr<Capture> capture;
};

/// One module: PTX and what became of it. modules.cpp.
struct CUmod_st;
struct CUfunc_st;

/// A context: a device memory, a queue, and the thread that works it off. One queue for all streams
/// of a context: the order in which the host queued work is one that every dependency allows.
struct CUctx_st {
  CUctx_st(CUdevice device, const ptx::Gpu& gpu, unsigned flags);
  CUctx_st(const CUctx_st&) = delete;
  CUctx_st& operator=(const CUctx_st&) = delete;
  ~CUctx_st();  ///< lets the thread finish what it runs, drops the rest

  const CUdevice device;
  const unsigned flags;

  /// Memory and modules. Held by the worker while an operation runs and by host threads that
  /// allocate, free, copy or load.
  std::mutex memory_mutex;
  emulator::Device memory;

  /// Queue, streams, events, captures, the fault.
  std::mutex mutex;
  std::condition_variable queued;    ///< for the worker
  std::condition_variable finished;  ///< for those who wait
  struct Item {
    CUstream stream;  ///< null: none, the operation belongs to the context
    emulated::Operation operation;
  };
  std::deque<Item> queue;
  std::uint64_t given = 0;    ///< items ever queued
  std::uint64_t reached = 0;  ///< items done
  bool stop = false;
  /// Not CUDA_SUCCESS: a kernel has faulted, and every call gets this from now on.
  CUresult fault = CUDA_SUCCESS;
  std::string fault_text;  ///< the finding in words

  std::unique_ptr<CUstream_st> legacy;      ///< stream 0
  std::unique_ptr<CUstream_st> per_thread;  ///< CU_STREAM_PER_THREAD, one for all threads

  // What the launches are run with, and who is told; guarded by `mutex`.
  emulator::Options options;
  void (*report)(void*, const emulated::LaunchReport&) = nullptr;
  void* report_user = nullptr;

  std::unordered_map<int, std::size_t> limits;  ///< CUlimit -> value
  std::thread worker;
};

namespace emulated {

// state.cpp -------------------------------------------------------------------------------------

/// Whether the handle names a living object of its kind. Under the state's own mutex.
[[nodiscard]] bool living(CUcontext context);
[[nodiscard]] bool living(CUstream stream);
[[nodiscard]] bool living(CUevent event);
[[nodiscard]] bool living(CUmodule module);
[[nodiscard]] bool living(CUfunction function);
[[nodiscard]] bool living(CUgraph graph);
[[nodiscard]] bool living(CUgraphNode node);
[[nodiscard]] bool living(CUgraphExec executable);
[[nodiscard]] bool living(CUlinkState state);
/// Enters an object among the living, or takes it out.
void born(const void* handle);
void gone(const void* handle);

/// Whether cuInit was called.
[[nodiscard]] bool started() noexcept;
/// The context that is current in this thread, or null.
[[nodiscard]] CUcontext current() noexcept;
/// The current context for a call: CUDA_ERROR_NOT_INITIALIZED, INVALID_CONTEXT,
/// CONTEXT_IS_DESTROYED, or its fault.
[[nodiscard]] CUresult enter(CUcontext& context);
/// The GPU of an ordinal, or null.
[[nodiscard]] const ptx::Gpu* gpu_of(CUdevice device);

/// Catches everything, so that no exception leaves the C interface: bad_alloc gives OUT_OF_MEMORY,
/// `Error` the nearest code, and its text goes to the log.
template <class Work>
CUresult guarded(Work&& work) noexcept;
CUresult result_of_exception() noexcept;

template <class Work>
CUresult guarded(Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    return result_of_exception();
  }
}

/// The driver's log: callbacks registered with cuLogsRegisterCallback, and standard error if there
/// is none and the stand-in library runs.
void log(CUlogLevel level, const std::string& text);
/// Whether messages also go to standard error when nobody has registered; the stand-in sets it.
void log_to_standard_error(bool on) noexcept;

// streams.cpp -----------------------------------------------------------------------------------

/// The stream that a handle means in the current context: null and CU_STREAM_LEGACY, the per-thread
/// one, or a living one of any context.
[[nodiscard]] CUresult resolve(CUstream handle, CUstream& stream);
/// Queues the operation, or, if the stream is being captured, adds a node for it (capture.cpp).
[[nodiscard]] CUresult submit(CUstream stream, Operation operation);
/// Waits until everything queued to the context (or the stream) so far has been done; returns the
/// context's fault, if any. Not permitted during a capture that the stream takes part in.
[[nodiscard]] CUresult wait_for_all(CUcontext context);
[[nodiscard]] CUresult wait_for(CUstream stream);
/// Runs one operation on the worker (or inside a graph). execute.cpp.
[[nodiscard]] CUresult execute(CUcontext context, const Operation& operation);

// launch.cpp ------------------------------------------------------------------------------------

/// Runs a kernel with the context's memory held; findings go to the log and the observer. Returns
/// the fault.
[[nodiscard]] CUresult run_kernel(CUcontext context, const KernelLaunch& launch);

// capture.cpp -----------------------------------------------------------------------------------

/// Adds `operation` as a node of the stream's capture.
[[nodiscard]] CUresult capture_operation(CUstream stream, Operation operation);
/// The error for a call that is not possible while a capture is active in this thread's mode
/// (cuMemAlloc, cuModuleLoad and their like, in global and thread-local mode), else CUDA_SUCCESS.
[[nodiscard]] CUresult unsafe_during_capture();

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
