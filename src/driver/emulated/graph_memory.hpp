// src/driver/emulated/graph_memory.hpp - memory that graphs allocate
#pragma once

#include "driver/emulated/graphs.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// What a context has of its allocation nodes. The addresses of a node that is gone are given back
/// at the next `sweep`: the last owner may hold any lock.
struct GraphMemories {
  std::mutex mutex;  ///< taken last
  struct Range {
    std::uint64_t bytes = 0;
    std::weak_ptr<GraphMemory> memory;
  };
  std::map<CUdeviceptr, Range> ranges;
  std::vector<CUdeviceptr> ended;
  std::vector<CUdeviceptr> ended_conditions;
};

/// The memory of one allocation node. Its addresses are the node's for as long as the node, an
/// executable graph or a queued launch has it, and until it is freed; the memory comes with each
/// launch.
class GraphMemory {
 public:
  /// Use `make_graph_memory`.
  GraphMemory(std::shared_ptr<GraphMemories> owner, CUdevice device, CUdeviceptr start,
              std::uint64_t bytes, bool managed) noexcept
      : device_(device),
        start_(start),
        bytes_(bytes),
        managed_(managed),
        owner_(std::move(owner)) {}
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();

  [[nodiscard]] CUdevice device() const noexcept { return device_; }
  [[nodiscard]] CUdeviceptr start() const noexcept { return start_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// The host uses its addresses, too.
  [[nodiscard]] bool managed() const noexcept { return managed_; }

  /// Runs the node, on the worker, with the context's memory held. Throws `Error` if the GPU has no
  /// memory left.
  void allocate(emulator::AddressSpace& space);
  void free(emulator::AddressSpace& space);

  // Guarded by graphs_mutex().
  enum class FreedBy : std::uint8_t { None, OwnGraph, OtherGraph };
  FreedBy freed_by = FreedBy::None;  ///< the graph of its free node
  std::weak_ptr<CUgraphExec_st> executable;
  /// Itself from the call that launches the graph to the call that frees the memory, unless the
  /// graph itself does.
  std::shared_ptr<GraphMemory> held;

 private:
  const CUdevice device_;
  const CUdeviceptr start_;
  const std::uint64_t bytes_;
  const bool managed_;
  const std::shared_ptr<GraphMemories> owner_;
  bool live_ = false;  ///< guarded by the context's memory_mutex
};

/// A node's memory with its addresses. Takes the context's locks.
[[nodiscard]] std::shared_ptr<GraphMemory> make_graph_memory(CUctx_st& context, std::uint64_t bytes,
                                                             bool managed = false);
/// Gives back the addresses of nodes that are gone. Takes the context's locks.
void sweep(CUctx_st& context);
/// The memory whose range holds an address, allocated at this time or not; null if there is none.
[[nodiscard]] std::shared_ptr<GraphMemory> graph_memory_at(CUctx_st& context, CUdeviceptr address);

/// For cuMemFree and cuMemFreeAsync outside of captures: the memory is free from the queued
/// `operation` on. `found` is false if no node's memory begins there.
[[nodiscard]] CUresult free_graph_memory(CUctx_st& context, const char* call, CUdeviceptr address,
                                         FreeMemory& operation, bool& found);
/// The same in a capture, where it becomes a free node.
[[nodiscard]] CUresult capture_free(const std::shared_ptr<CUstream_st>& stream, const char* call,
                                    CUdeviceptr address);
/// cuMemAllocAsync in a capture.
[[nodiscard]] CUresult capture_allocation(const std::shared_ptr<CUstream_st>& stream,
                                          std::uint64_t bytes, CUdeviceptr* address);

/// For a context that is destroyed and runs nothing any more. Takes its locks.
void forget_graph_memory_of(CUctx_st& context);

// With graphs_mutex() held ----------------------------------------------------------------------

/// Whether a graph has nodes that allocate or free: it cannot be cloned, be a child, lose nodes, or
/// be instantiated twice at one time.
[[nodiscard]] bool has_memory_nodes(const CUgraph_st& graph) noexcept;
/// Whether an executable graph of this graph exists, which forbids another one.
[[nodiscard]] bool is_instantiated(const CUgraph_st& graph) noexcept;
void note_instantiation(const CUgraph_st& graph, const std::shared_ptr<CUgraphExec_st>& executable);
/// Fills `kept` and `freed`.
void find_memory(Executable& program);

/// Before a launch: what the graph keeps is allocated from now on, what it frees is not. `free`:
/// what must be freed before (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH). A text, and nothing
/// is changed, if the graph cannot be launched now.
[[nodiscard]] std::string begin_launch(const Executable& program, bool auto_free,
                                       std::vector<std::shared_ptr<GraphMemory>>& free);

}  // namespace ptxgen::inline v0::driver::emulated
