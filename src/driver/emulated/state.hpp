// src/driver/emulated/state.hpp - what the emulated driver keeps
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "driver/emulated/host_kernel.hpp"
#include "driver/emulated/notes.hpp"
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
  bool cluster_given = false;        ///< by the launch, not by the kernel
  std::vector<std::byte> arguments;  ///< the parameter block
  emulator::Options options;         ///< as they were when the launch was queued
  std::uint64_t number = 0;          ///< 0, for a node of a graph: gets one each time it runs
};

/// A place in host or device memory, or, of kind Unified, either, found out by the address.
struct Place {
  CUmemorytype kind = CU_MEMORYTYPE_UNIFIED;
  std::uint64_t address = 0;
  bool in_array = false;  ///< Device: part of a CUDA array, checked already
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
/// A function of the host. `callback`: cuStreamAddCallback, which also passes stream and status.
/// `kernel`: of the library, on device memory.
struct HostCall {
  CUhostFn work = nullptr;
  CUstreamCallback callback = nullptr;
  CUstream stream = nullptr;  ///< as the caller named it
  void* user = nullptr;
  std::shared_ptr<const HostKernel> kernel = nullptr;
};
struct RecordEvent {
  std::shared_ptr<CUevent_st> event;
};
struct WaitEvent {
  std::shared_ptr<CUevent_st> event;
  std::uint64_t ticket = 0;  ///< the record that is waited for
};
class GraphMemory;  ///< graph_memory.hpp: the memory of one allocation node
struct AllocateMemory {
  std::shared_ptr<GraphMemory> memory;
};
/// Frees an allocation, or the memory of an allocation node.
struct FreeMemory {
  CUdeviceptr address = 0;
  std::shared_ptr<GraphMemory> memory = nullptr;
};
struct Executable;  ///< graphs.hpp: what an executable graph does, never changed
struct RunGraph {
  std::shared_ptr<const Executable> executable;
  std::shared_ptr<const emulator::Options> options;  ///< of all its kernels
};
struct Condition;  ///< conditions.hpp: what a handle of a condition stands for
/// A conditional node, which runs one of its bodies, or its body repeatedly, or nothing.
struct Choose {
  std::shared_ptr<Condition> condition;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
};
struct Empty {};
using Operation = std::variant<Empty, KernelLaunch, Copy, Fill, HostCall, RecordEvent, WaitEvent,
                               AllocateMemory, FreeMemory, RunGraph, Choose>;

/// What a texture or surface object was created from.
struct ImageDescription {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
};

class ManagedAdvice;  ///< managed.hpp: what cuMemAdvise said of an allocation
struct PoolShare;     ///< pools.hpp: what an allocation has of its memory pool
struct Capture;  ///< graphs.hpp: a capture in progress, shared by the streams that were drawn in
struct CoredumpScope;  ///< coredump.cpp
struct Reservations;   ///< reservations.hpp
struct GraphMemories;  ///< graph_memory.hpp

/// A number that no other context or stream of the process has.
[[nodiscard]] std::uint64_t next_object_number() noexcept;

}  // namespace emulated

// Handles ---------------------------------------------------------------------------------------

/// Records and their ends are counted; those of one event happen in the order they were queued.
struct CUevent_st {
  CUevent_st(CUcontext owner, unsigned its_flags) noexcept : context(owner), flags(its_flags) {}

  const CUcontext context;
  const unsigned flags;

  std::mutex mutex;  ///< taken last
  std::condition_variable reached;
  std::uint64_t recorded = 0;  ///< records queued
  std::uint64_t done = 0;      ///< records that were reached
  std::chrono::steady_clock::time_point when;

  // Recorded in a capture: its number (0: none), and the nodes the event stands for. Guarded by the
  // mutex of graphs and captures.
  std::atomic<std::uint64_t> capture{0};
  std::vector<CUgraphNode> captured;
};

struct CUstream_st {
  CUstream_st(CUcontext owner, unsigned its_flags, int its_priority,
              CUgreenCtx in = nullptr) noexcept
      : context(owner),
        flags(its_flags),
        priority(its_priority),
        green(in),
        id(emulated::next_object_number()) {}

  const CUcontext context;
  const unsigned flags;
  const int priority;
  const CUgreenCtx green;  ///< the green context that it was created in, or null
  const std::uint64_t id;  ///< as cuStreamGetId reports it

  std::uint64_t last = 0;  ///< number of the last item of this stream; guarded by the context

  /// Whether there is a `capture`: looked at without a lock on the way of every operation.
  std::atomic<bool> capturing{false};
  std::shared_ptr<emulated::Capture> capture;  ///< guarded by the mutex of graphs and captures
};

/// One module: PTX and what became of it. modules.cpp.
struct CUmod_st;
struct CUfunc_st;

/// A context: a device memory, a queue, and the thread that works it off. One queue for all streams
/// of a context: the order in which the host queued work is one that every dependency allows.
///
/// Locks are taken in this order: those of graphs and captures, `memory_mutex`, `mutex`, an
/// event's, the registry's. None is held while a function of the caller runs.
struct CUctx_st {
  CUctx_st(CUdevice ordinal, const ptx::Gpu& gpu, unsigned its_flags, bool is_primary);
  CUctx_st(const CUctx_st&) = delete;
  CUctx_st& operator=(const CUctx_st&) = delete;
  ~CUctx_st();

  /// Starts the thread.
  void start();
  /// Lets the thread finish what it runs, drops the rest, ends the thread. Not from that thread.
  void shut_down();

  const CUdevice device;
  const unsigned flags;
  const bool primary;
  const std::uint64_t id = emulated::next_object_number();  ///< as cuCtxGetId reports it

  /// Memory and modules. Held by the worker while an operation other than a host function runs and
  /// by host threads that allocate, free or load.
  std::mutex memory_mutex;
  emulator::Device memory;

  /// Everything below but `worker`.
  std::mutex mutex;
  std::condition_variable queued;    ///< for the worker
  std::condition_variable finished;  ///< for those who wait
  struct Item {
    std::shared_ptr<CUstream_st> stream;
    emulated::Operation operation;
  };
  std::deque<Item> queue;
  std::uint64_t enqueued = 0;       ///< items ever queued
  std::uint64_t reached = 0;        ///< items done
  std::uint64_t last_blocking = 0;  ///< number of the last item that the legacy stream waits for
  bool busy = false;  ///< an item is being done, by the worker or by a synchronous call
  bool stop = false;
  /// Not CUDA_SUCCESS: a kernel has faulted, and every call gets this from now on.
  CUresult fault = CUDA_SUCCESS;

  /// Captures in progress of streams that synchronise with the legacy stream.
  std::atomic<int> blocking_captures{0};

  std::shared_ptr<CUstream_st> legacy;      ///< stream 0
  std::shared_ptr<CUstream_st> per_thread;  ///< CU_STREAM_PER_THREAD, one for all threads

  /// What the API gave out: device memory, and pinned host memory, which is in device memory too,
  /// so that kernels can reach it at its other address.
  struct Block {
    std::uint64_t bytes = 0;
    std::byte* host = nullptr;  ///< pinned memory: where the host finds it
    std::uint64_t start = 0;    ///< of the emulator's allocation
    unsigned flags = 0;         ///< of cuMemHostAlloc
    std::uint64_t id = 0;
    std::shared_ptr<emulated::PoolShare> share;  ///< stream-ordered memory: of its pool
    bool sync_memops = false;                    ///< CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: a hint
    bool unified = false;  ///< the host uses the device address: managed memory, pools of the host
    std::shared_ptr<emulated::ManagedAdvice> advice = nullptr;  ///< of managed memory alone
  };
  std::map<CUdeviceptr, Block> blocks;
  std::map<std::uintptr_t, CUdeviceptr> pinned;  ///< host address -> block
  struct Registration {
    std::uint64_t bytes = 0;
    unsigned flags = 0;
    CUdeviceptr device = 0;  ///< of its mirror, if its device pointer was asked for
  };
  std::map<std::uintptr_t, Registration> registered;  ///< cuMemHostRegister
  struct Mirror {
    std::byte* host = nullptr;
    CUdeviceptr device = 0;
    std::vector<std::byte> before;  ///< its bytes before the operation in progress
  };
  std::vector<Mirror> mirrors;  ///< mirrors.hpp; guarded by `memory_mutex`
  std::mutex mirror_mutex;      ///< before all others: while a registration gets a mirror or ends
  std::atomic<bool> mirrored{false};
  /// Memory that is not in `blocks`: of cuMemMap, of allocation nodes.
  const std::unique_ptr<emulated::Reservations> reservations;
  const std::shared_ptr<emulated::GraphMemories> graph_memories;
  std::uint64_t blocks_made = 0;
  std::uint64_t arrays_made = 0;
  /// By handle; guarded by `memory_mutex`.
  std::unordered_map<std::uint64_t, emulated::ImageDescription> images;
  std::uint64_t pinned_bytes = 0;  ///< of the emulator's allocations that hold pinned memory

  // How launches run, and who receives their reports. A launch takes a copy of `options` when it is
  // queued. The worker copies `report` under `mutex` and calls it under `report_mutex` alone.
  emulator::Options options;
  std::mutex report_mutex;
  void (*report)(void*, const emulated::LaunchReport&) = nullptr;
  void* report_user = nullptr;
  emulated::FaultNote fault_note;  ///< what `fault` was found to be; set before `fault`

  std::unordered_map<int, std::size_t> limits;           ///< CUlimit -> value
  std::shared_ptr<emulated::CoredumpScope> coredump;     ///< what was set; guarded in coredump.cpp
  std::unordered_map<CUlibrary, CUmodule> of_libraries;  ///< their modules in this context
  std::uint64_t attached = 1;  ///< cuCtxAttach and creation, less cuCtxDetach
  std::thread worker;
};

namespace emulated {

// state.cpp -------------------------------------------------------------------------------------

/// Every context that lives, in no order.
[[nodiscard]] std::vector<std::shared_ptr<CUctx_st>> living_contexts();

/// The living object that a handle names, or null: no such handle, or of another kind. The object
/// stays while the pointer is held, even if it is destroyed meanwhile. Only for kinds that were
/// entered with an owner (`enroll`).
[[nodiscard]] std::shared_ptr<CUctx_st> hold(CUcontext context);
[[nodiscard]] std::shared_ptr<CUstream_st> hold(CUstream stream);
[[nodiscard]] std::shared_ptr<CUevent_st> hold(CUevent event);
[[nodiscard]] std::shared_ptr<CUgraph_st> hold(CUgraph graph);
[[nodiscard]] std::shared_ptr<CUgraphNode_st> hold(CUgraphNode node);
[[nodiscard]] std::shared_ptr<CUgraphExec_st> hold(CUgraphExec executable);
[[nodiscard]] std::shared_ptr<CUmemPoolHandle_st> hold(CUmemoryPool pool);
[[nodiscard]] std::shared_ptr<CUlib_st> hold(CUlibrary library);
[[nodiscard]] std::shared_ptr<CUkern_st> hold(CUkernel kernel);
[[nodiscard]] std::shared_ptr<CUuserObject_st> hold(CUuserObject object);
[[nodiscard]] std::shared_ptr<CUarray_st> hold(CUarray array);
[[nodiscard]] std::shared_ptr<CUgreenCtx_st> hold(CUgreenCtx green);
[[nodiscard]] std::shared_ptr<CUdevResourceDesc_st> hold(CUdevResourceDesc desc);
void enroll(const std::shared_ptr<CUctx_st>& context);
void enroll(const std::shared_ptr<CUstream_st>& stream);
void enroll(const std::shared_ptr<CUevent_st>& event);
void enroll(const std::shared_ptr<CUgraph_st>& graph);
void enroll(const std::shared_ptr<CUgraphNode_st>& node);
void enroll(const std::shared_ptr<CUgraphExec_st>& executable);
void enroll(const std::shared_ptr<CUmemPoolHandle_st>& pool);
void enroll(const std::shared_ptr<CUlib_st>& library);
void enroll(const std::shared_ptr<CUkern_st>& kernel);
void enroll(const std::shared_ptr<CUuserObject_st>& object);
void enroll(const std::shared_ptr<CUarray_st>& array);
void enroll(const std::shared_ptr<CUgreenCtx_st>& green);
void enroll(const std::shared_ptr<CUdevResourceDesc_st>& desc);
/// Another handle of a context (cuCtxFromGreenCtx); gone with the context at the latest.
void enroll_alias(CUcontext alias, const std::shared_ptr<CUctx_st>& context);

/// Whether the handle names a living object of its kind.
[[nodiscard]] bool living(CUcontext context);
[[nodiscard]] bool living(CUstream stream);
[[nodiscard]] bool living(CUevent event);
[[nodiscard]] bool living(CUmodule module);
[[nodiscard]] bool living(CUfunction function);
[[nodiscard]] bool living(CUgraph graph);
[[nodiscard]] bool living(CUgraphNode node);
[[nodiscard]] bool living(CUgraphExec executable);
[[nodiscard]] bool living(CUlinkState state);
[[nodiscard]] bool living(CUgreenCtx green);
/// Enters an object among the living (modules, functions, links: whose owner is elsewhere).
void born(CUmodule module);
void born(CUfunction function);
void born(CUlinkState state);
/// Takes an object of any kind out; false if it was not there: of two that destroy one object, one
/// gets false.
bool gone(const void* handle);

/// Takes out the streams and events of a context that goes away.
void forget_handles_of(CUcontext context);

[[nodiscard]] int gpu_count();
/// Whether cuInit was called.
[[nodiscard]] bool started() noexcept;
/// The context that is current in this thread, or null.
[[nodiscard]] CUcontext current() noexcept;
/// The current context for a call: CUDA_ERROR_NOT_INITIALIZED, INVALID_CONTEXT,
/// CONTEXT_IS_DESTROYED, or its fault.
[[nodiscard]] CUresult enter(CUcontext& context);
/// The same; the context stays while it is held.
[[nodiscard]] CUresult enter(std::shared_ptr<CUctx_st>& context);
/// The current context if it is of that device, else the device's primary one, or null.
[[nodiscard]] std::shared_ptr<CUctx_st> context_on(CUdevice device);
/// The green context that is current in this thread, or null.
[[nodiscard]] CUgreenCtx current_green() noexcept;
/// As cuCtxGetStreamPriorityRange tells them; without effect.
inline constexpr int kMinPriority = 0;
inline constexpr int kGreatestPriority = -5;
/// The GPU of an ordinal, or null. Lives for the process.
[[nodiscard]] const ptx::Gpu* gpu_of(CUdevice device);

/// Catches everything, so that no exception leaves the C interface: bad_alloc gives OUT_OF_MEMORY,
/// `Error` the nearest code, and its text goes to the log.
/// A call from a host function (cuLaunchHostFunc, cuStreamAddCallback) gets NOT_PERMITTED.
template <class Work>
CUresult guarded(Work&& work) noexcept;
CUresult result_of_exception() noexcept;
[[nodiscard]] bool in_host_function() noexcept;
/// Calls a function of the caller on the worker; what it calls of the API is not permitted.
void run_host_function(const HostCall& call, CUresult status);
/// While one lives, calls of the API by this thread are not permitted: around functions of the
/// caller that the worker calls, which would wait for themselves.
class NoCalls {
 public:
  NoCalls() noexcept;
  NoCalls(const NoCalls&) = delete;
  NoCalls& operator=(const NoCalls&) = delete;
  ~NoCalls();

 private:
  bool before_;
};

template <class Work>
CUresult guarded(Work&& work) noexcept {
  if (in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
  try {
    return work();
  } catch (...) {
    return result_of_exception();
  }
}

/// The driver's log: callbacks registered with cuLogsRegisterCallback, and standard error if there
/// is none and the stand-in library runs. Callbacks run without a lock, those of several threads at
/// the same time; not to be called with a lock held that an API function takes.
void log(CUlogLevel level, const std::string& text);
/// Logs the text as an error and returns `result`.
CUresult refuse(CUresult result, const std::string& text);
/// Whether messages also go to standard error when no callback is registered; the stand-in sets it.
/// A text is written there once, however often it is logged.
void log_to_standard_error(bool on) noexcept;
/// Whether every error that is found is a fault (PTXGEN_STRICT), also where hardware would go on;
/// the stand-in sets it. For contexts made from now on.
void make_faults_strict(bool on) noexcept;
[[nodiscard]] bool strict_faults() noexcept;

// streams.cpp -----------------------------------------------------------------------------------

/// The stream that a handle means in the current context: null and CU_STREAM_LEGACY, the per-thread
/// one, or a living one of any context. The stream's context is checked as `enter` does.
[[nodiscard]] CUresult resolve(CUstream handle, CUstream& stream);
[[nodiscard]] CUresult resolve(CUstream handle, std::shared_ptr<CUstream_st>& stream);
/// Queues the operation, or, if the stream is being captured, adds a node for it (capture.cpp).
[[nodiscard]] CUresult submit(CUstream stream, Operation operation);
[[nodiscard]] CUresult submit(const std::shared_ptr<CUstream_st>& stream, Operation operation);
/// Does the operation in its turn and waits for it.
[[nodiscard]] CUresult perform(const std::shared_ptr<CUstream_st>& stream, Operation operation);
/// Waits until everything queued to the context (or the stream) so far has been done; returns the
/// context's fault, if any. Not to be called with a lock held.
[[nodiscard]] CUresult wait_for_all(CUcontext context);
[[nodiscard]] CUresult wait_for(const std::shared_ptr<CUstream_st>& stream);

// execute.cpp -----------------------------------------------------------------------------------

/// Runs one operation on the worker (or inside a graph). Not CUDA_SUCCESS: the context's fault.
[[nodiscard]] CUresult execute(CUcontext context, const Operation& operation);
/// What is left of an operation in a context that has faulted or goes away: events are reached,
/// callbacks get `status`.
void pass_over(const Operation& operation, CUresult status);

// modules.cpp -----------------------------------------------------------------------------------

/// For a context that goes away: all its modules, with `memory_mutex` held.
void unload_modules_of(CUcontext context);

// launch.cpp ------------------------------------------------------------------------------------

/// Runs a kernel with the context's memory held; findings go to the log and the observer. Returns
/// the fault.
[[nodiscard]] CUresult run_kernel(CUcontext context, const KernelLaunch& launch);
/// A number that no other launch of the process has.
[[nodiscard]] std::uint64_t next_launch_number() noexcept;
/// Checks a launch as cuLaunchKernel does and packs its arguments: for kernel nodes of graphs. It
/// is cooperative and has the clusters that `launch` has before.
[[nodiscard]] CUresult make_launch(const CUDA_KERNEL_NODE_PARAMS& parameters, KernelLaunch& launch);
/// Where the function's parameters begin in `KernelLaunch::arguments`, in their order.
[[nodiscard]] std::vector<std::uint32_t> parameter_offsets(CUfunction function);

// capture.cpp -----------------------------------------------------------------------------------

/// Adds `operation` as a node of the stream's capture; `captured` is false if there is none (any
/// more).
[[nodiscard]] CUresult capture_operation(const std::shared_ptr<CUstream_st>& stream,
                                         Operation& operation, bool& captured);
/// The error for a call that is not possible while a capture is active in this thread's mode
/// (cuMemAlloc, cuModuleLoad and their like, in global and thread-local mode), else CUDA_SUCCESS.
[[nodiscard]] CUresult unsafe_during_capture();
/// For calls that a capture does not allow on its streams (synchronising, querying): if the stream
/// takes part in one, the capture is invalid from now on and the result is
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
[[nodiscard]] CUresult not_in_capture(const std::shared_ptr<CUstream_st>& stream);
/// For work in the legacy stream, which would wait for captured ones:
/// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, and the captures are invalid.
[[nodiscard]] CUresult not_in_legacy(CUcontext context);
/// For calls that wait for all streams of a context.
[[nodiscard]] CUresult not_while_captured(CUcontext context);
/// The event no longer stands for a node of a capture: it is recorded outside.
void leave_capture(CUevent event);
/// Records an event in the stream's capture, or draws the stream into the event's.
[[nodiscard]] CUresult capture_record(const std::shared_ptr<CUstream_st>& stream,
                                      const std::shared_ptr<CUevent_st>& event, bool external,
                                      bool& captured);
[[nodiscard]] CUresult capture_wait(const std::shared_ptr<CUstream_st>& stream,
                                    const std::shared_ptr<CUevent_st>& event, bool external,
                                    bool& captured);
/// The stream goes away: a capture that began in it is invalid, another one goes on.
void abandon_capture(const std::shared_ptr<CUstream_st>& stream);
/// The same for all streams of a context.
void abandon_captures_of(CUcontext context);

// graphs.cpp ------------------------------------------------------------------------------------

/// The events that a graph records, one entry for each record.
[[nodiscard]] const std::vector<std::shared_ptr<CUevent_st>>& records_of(const Executable& graph);
/// Runs the nodes one after another.
[[nodiscard]] CUresult execute(CUcontext context, const RunGraph& graph);
void pass_over(const Executable& graph, CUresult status);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
