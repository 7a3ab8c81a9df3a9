// src/driver/recorder/recorder.hpp - a driver table that records what a program does
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "driver/recorder/shadow.hpp"
#include "driver/recorder/sink.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0::driver::recorder {

// What a program asks for ------------------------------------------------------------------------

/// A launch with a copy of its arguments.
struct KernelWork {
  CUfunction function = nullptr;
  LaunchStep step;  ///< without module, kernel and outputs
};
/// One side of a copy; the kind is not Unified.
struct Side {
  CUmemorytype kind = CU_MEMORYTYPE_HOST;
  StepRows rows;
};
struct CopyWork {
  Side to, from;
};
struct FillWork {
  FillStep step;
};
struct HostWork {
  CUhostFn function = nullptr;
  void* user = nullptr;
};
struct EventWork {
  CUevent event = nullptr;
  bool waits = false;
};
/// An allocation node, or, with 0 bytes, one that frees.
struct MemoryWork {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
};
struct ChildWork {
  CUgraph graph = nullptr;
};
/// What one node of a graph does.
using Work = std::variant<std::monostate, KernelWork, CopyWork, FillWork, HostWork, EventWork,
                          MemoryWork, ChildWork>;

/// An executable graph as its nodes in an order that the edges allow; `known` is false if one of
/// them is of a kind that is not recorded.
struct RecordedGraph {
  struct Node {
    CUgraphNode node = nullptr;
    Work work;
  };
  std::vector<Node> nodes;
  bool known = true;
  bool changed = false;    ///< since it was built, in a way that `nodes` do not show
  bool allocates = false;  ///< or frees: its memory is there only while the driver runs all of it
};

/// A kernel of a recorded module.
struct RecordedKernel {
  std::uint64_t module = 0;
  std::string name;
  struct Parameter {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0;
};
/// A loaded module, or the module of a library.
struct RecordedModule {
  std::uint64_t number = 0;
  bool loaded = false;  ///< false: its variables are not known yet
  CUmodule handle = nullptr;
  CUlibrary library = nullptr;  ///< which has the module
  std::string ptx;              ///< hash
  std::vector<std::string> variable_names;
  std::vector<CUdeviceptr> variables;
  std::map<std::string, RecordedKernel, std::less<>> kernels;
};

// The recorder -----------------------------------------------------------------------------------

/// Functions of a table have no place for a pointer of ours: there is one recorder in a process.
/// Each call that is a step waits until its work is done; steps of all threads and streams are one
/// sequence. What is done while a stream is captured is found by its effect afterwards.
///
/// One context is recorded: the first in which a step is made, or, after that was destroyed, the
/// next.
class Recorder {
 public:
  Recorder(const Table& table, StepSink& steps, bool all_calls)
      : base(table), sink(steps), sees_all_calls(all_calls), shadow(table) {}

  const Table& base;
  StepSink& sink;
  const bool sees_all_calls;  ///< false: memory may change by calls that are not of the table
  std::mutex mutex;           ///< guards everything below but `captures`
  Shadow shadow;
  std::atomic<int> captures{0};  ///< in progress, of any thread

  CUcontext context = nullptr;
  const ptx::Gpu* gpu = nullptr;
  bool begun = false;
  bool suspect = false;  ///< memory may have changed by what is no step

  struct Host {
    std::uint64_t bytes = 0;
    bool registered = false;
  };
  std::map<const void*, Host> host_memory;  ///< pinned and registered, by host address
  std::set<CUdeviceptr> allocated;
  std::uint64_t allocations = 0;
  /// A CUDA array, with its address in steps.
  struct Array {
    CUdeviceptr address = 0;
    ArrayImage image;
    StepArray step;
  };
  std::map<CUarray, Array> arrays;
  std::uint64_t next_array = kFirstArrayAddress;
  /// Texture and surface objects by kind (`ObjectStep::surface`) and handle.
  std::set<std::pair<bool, unsigned long long>> objects;

  /// Virtual memory: handles of cuMemCreate, mappings and reservations by address.
  struct Handle {
    std::uint64_t number = 0;
    std::uint64_t references = 1;
    std::uint64_t mappings = 0;
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
    bool accessible = false;
  };
  std::map<CUmemGenericAllocationHandle, Handle> handles;
  std::uint64_t next_handle = 0;
  std::map<CUdeviceptr, Mapping> mappings;
  std::map<CUdeviceptr, std::uint64_t> reservations;  ///< bytes

  /// Memory of allocation nodes, and which graph and executable have the node.
  struct GraphMemory {
    std::uint64_t bytes = 0;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
  };
  std::map<CUdeviceptr, GraphMemory> graph_memory;

  /// Memory that was allocated while a stream is captured, when it cannot be read.
  struct Pending {
    CUdeviceptr address = 0;
    std::uint64_t bytes = 0;
    StepMemory memory = StepMemory::Device;
  };
  std::vector<Pending> pending;
  std::vector<ObjectStep> pending_objects;

  std::uint64_t modules_loaded = 0;
  std::map<CUmodule, RecordedModule> modules;
  std::map<CUlibrary, RecordedModule> libraries;
  std::map<const void*, RecordedKernel> kernels;  ///< by CUfunction or CUkernel

  std::map<CUgraphNode, Work> nodes;
  std::map<CUgraphExec, RecordedGraph> graphs;
  std::set<std::string> noted;

  /// Before the first step: finds the GPU, of the current context or else of device 0.
  void begin();
  /// Says once what is not recorded.
  void note(const std::string& text);
  /// Writes what the host changed without a call.
  void catch_up();
  /// The end of a step that failed asynchronously: the context is lost.
  void lost(CUresult result);
};

/// The recorder of this process, or null.
[[nodiscard]] Recorder* active() noexcept;

/// A call of the program, which may be a step. `records()` is false while the call is only passed
/// on: the stream is captured, the context is another one, or the recording has ended.
class CallScope {
 public:
  explicit CallScope(CUstream stream = nullptr);
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope() = default;

  [[nodiscard]] bool records() const noexcept { return lock_.owns_lock(); }
  /// The stream is captured: what is queued becomes a node of a graph.
  [[nodiscard]] bool captured() const noexcept { return captured_; }
  [[nodiscard]] Recorder& recorder() const noexcept { return recorder_; }
  /// Waits for what the call queued.
  [[nodiscard]] CUresult wait() const;
  /// Before a call that changes memory and is no step: its effect is found later.
  void pass_on() const;
  /// After a call that is a step even while a stream is captured: `work(now)`, with the recorder
  /// locked. `now` is false in a capture, when memory cannot be looked at.
  template <class Work>
  void record(Work&& work) const {
    if (records()) return work(true);
    if (recorder_.sink.ended() || recorder_.captures.load() == 0) return;
    const std::lock_guard lock(recorder_.mutex);
    work(false);
  }

 private:
  Recorder& recorder_;
  CUstream stream_;
  bool captured_ = false;
  std::unique_lock<std::mutex> lock_;
};

/// The driver's own call, as the program made it.
using Call = std::function<CUresult()>;

/// An entry of the table: no exception leaves it.
template <class Work>
CUresult entry(Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

// memory.cpp
void allocated(Recorder& recorder, CUdeviceptr address, std::uint64_t bytes, StepMemory memory,
               const void* host = nullptr);
void freed(Recorder& recorder, CUdeviceptr address);
/// The same for memory of a graph's node, which cannot be read now. Its bytes are taken to be 0.
void allocated_in_graph(Recorder& recorder, CUdeviceptr address, std::uint64_t bytes);
/// The same; unless it is `now`, when memory can be looked at again.
void allocated_in(Recorder& recorder, bool now, const Recorder::Pending& memory);

// arrays.cpp
/// The array at an address in steps, or null.
[[nodiscard]] const Recorder::Array* array_at(const Recorder& recorder, CUdeviceptr address);
/// Writes the step of an object, unless its memory is not recorded.
void write_object(Recorder& recorder, const ObjectStep& step);

// virtual_memory.cpp
/// The end of the context: of what it has mapped, too.
void forget_virtual_memory(Recorder& recorder);

// copies.cpp
/// Nothing for a copy of an array that is not recorded.
[[nodiscard]] Work copy_work(const Recorder& recorder, const CUDA_MEMCPY3D& copy);
/// Does a copy or fill by `call` and records it. Its stream is that of the scope.
/// The steps of a copy or fill in a graph that has run. Changes of memory are found later.
void write_in_graph(Recorder& recorder, const CopyWork& copy);
void write_in_graph(Recorder& recorder, const FillStep& fill);
CUresult record_copy(const CallScope& scope, const CopyWork& copy, const Call& call);
/// The same for several copies of one call, in their order.
CUresult record_copies(const CallScope& scope, std::span<const CopyWork> copies, const Call& call);
CUresult record_fill(const CallScope& scope, const FillStep& fill, const Call& call);

// launches.cpp
[[nodiscard]] const RecordedKernel* kernel_of(Recorder& recorder, CUfunction function);
/// The parameter block of a launch, from kernelParams or extra.
[[nodiscard]] std::vector<std::byte> arguments_of(const RecordedKernel& kernel, void** params,
                                                  void** extra);
CUresult record_launch(const CallScope& scope, const KernelWork& work, const Call& call);

/// What has changed since memory was last looked at.
CUresult add_outputs(Recorder& recorder, std::vector<StepOutput>& outputs);

// graph_memory.cpp
/// An allocation node was added to a graph: in a capture of `stream`, or by a call.
void captured_memory(Recorder& recorder, CUstream stream, CUdeviceptr address, std::uint64_t bytes);
void add_graph_memory(Recorder& recorder, CUdeviceptr address, std::uint64_t bytes, CUgraph graph);
/// What a node does that allocates or frees.
[[nodiscard]] Work memory_work(const Recorder& recorder, CUgraphNode node, CUgraphNodeType type);
/// A graph, an executable or memory of a node is gone; without a use its addresses are free.
void end_graph_memory(Recorder& recorder, CUgraph graph, CUgraphExec executable);
/// The end of the context.
void forget_graph_memory(Recorder& recorder);
/// Has the driver run a graph that allocates or frees, and writes its nodes as steps.
CUresult run_with_memory(const CallScope& scope, const RecordedGraph& graph, const Call& call);

// graphs.cpp
/// After a call that was captured in `stream`: its node does `work`.
void captured(Recorder& recorder, CUstream stream, Work work);

// The entries of the table, of all files: they replace those of the recorded one.
void replace_memory(Table& table);
void replace_arrays(Table& table);
void replace_copies(Table& table);
void replace_modules(Table& table);
void replace_launches(Table& table);
void replace_graphs(Table& table);
void replace_graph_memory(Table& table);
void replace_virtual_memory(Table& table);

/// The table that records into `sink`. `base` and `sink` must live until the process ends. Once in
/// a process: a second call replaces the recorder; for tests. `sees_all_calls`: the program has no
/// other way to the driver.
[[nodiscard]] Table recording_table(const Table& base, StepSink& sink, bool sees_all_calls = true);
/// `plain`, or, if PTXGEN_RECORD names a file, a table that records into it until the process ends.
/// `plain` must live until then.
[[nodiscard]] Table recorded_if_asked(const Table& plain, bool sees_all_calls) noexcept;

}  // namespace ptxgen::inline v0::driver::recorder
