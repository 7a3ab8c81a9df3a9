// src/driver/emulated/capture.cpp - stream capture
#include <algorithm>
#include <set>
#include <utility>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/graphs.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

struct Captures {
  std::vector<std::shared_ptr<Capture>> active;  ///< guarded by graphs_mutex()
  std::atomic<int> count{0};
  std::uint64_t last_number = 0;
};

Captures& captures() {
  static Captures* const the_captures = new Captures;
  return *the_captures;
}

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// What follows is called with graphs_mutex() held, unless it says otherwise.

void count_blocking(const CUstream_st& stream, int change) {
  if ((stream.flags & CU_STREAM_NON_BLOCKING) != 0) return;
  const std::shared_ptr<CUctx_st> context = hold(stream.context);
  if (context) context->blocking_captures += change;
}

void draw_in(const std::shared_ptr<Capture>& capture, const std::shared_ptr<CUstream_st>& stream,
             std::vector<CUgraphNode> tail) {
  capture->branches[stream.get()] = {stream, std::move(tail), {}};
  stream->capture = capture;
  stream->capturing.store(true, std::memory_order_release);
  count_blocking(*stream, +1);
}

void let_go(CUstream_st& stream) {
  stream.capturing.store(false, std::memory_order_release);
  stream.capture = nullptr;
  count_blocking(stream, -1);
}

/// Releases all its streams. The graph stays with its owner.
void finish(const std::shared_ptr<Capture>& capture) {
  for (auto& [handle, branch] : capture->branches) let_go(*branch.stream);
  capture->branches.clear();
  capture->graph->capturing = false;
  std::erase(captures().active, capture);
  captures().count = static_cast<int>(captures().active.size());
}

void drop(const std::shared_ptr<Capture>& capture) {
  if (capture->own_graph) remove_handles(*capture->graph);
  finish(capture);
}

CUresult invalidate(Capture& capture, CUresult result) {
  capture.invalid = true;
  return result;
}

std::shared_ptr<Capture> active_capture(std::uint64_t number) {
  const auto found = std::ranges::find(captures().active, number, &Capture::number);
  return found != captures().active.end() ? *found : nullptr;
}

CUgraphNodeType type_of(const Operation& operation) {
  if (std::holds_alternative<KernelLaunch>(operation)) return CU_GRAPH_NODE_TYPE_KERNEL;
  if (std::holds_alternative<Copy>(operation)) return CU_GRAPH_NODE_TYPE_MEMCPY;
  if (std::holds_alternative<Fill>(operation)) return CU_GRAPH_NODE_TYPE_MEMSET;
  if (std::holds_alternative<HostCall>(operation)) return CU_GRAPH_NODE_TYPE_HOST;
  if (std::holds_alternative<RecordEvent>(operation)) return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  if (std::holds_alternative<WaitEvent>(operation)) return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  if (std::holds_alternative<AllocateMemory>(operation)) return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  if (std::holds_alternative<FreeMemory>(operation)) return CU_GRAPH_NODE_TYPE_MEM_FREE;
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

std::shared_ptr<CUgraphNode_st> add_node(const std::shared_ptr<CUstream_st>& stream,
                                         Operation operation) {
  Capture::Branch& branch = stream->capture->branches.at(stream.get());
  const CUgraphNodeType type = type_of(operation);
  std::shared_ptr<CUgraphNode_st> node =
      append(*stream->capture->graph, type, std::move(operation), stream->context, branch.tail);
  for (std::size_t i = 0; i < branch.edges.size(); ++i) node->edges[i].data = branch.edges[i];
  enroll(node);
  branch.tail = {node.get()};
  branch.edges.clear();
  return node;
}

/// Whether every node of the capture comes before the end of the origin stream.
bool is_joined(const Capture& capture) {
  std::set<CUgraphNode> before;
  std::vector<CUgraphNode> open = capture.branches.at(capture.origin.get()).tail;
  while (!open.empty()) {
    const CUgraphNode node = open.back();
    open.pop_back();
    if (!before.insert(node).second) continue;
    for (const CUgraphNode_st::Edge& edge : node->edges) open.push_back(edge.from);
  }
  return std::ranges::all_of(capture.graph->nodes, [&](const auto& node) {
    return node->number < capture.first_number || before.contains(node.get());
  });
}

/// The stream that a capture call names, in a context without a fault. Takes no lock of captures.
template <class Work>
CUresult with_stream(CUstream handle, Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUstream_st> stream;
    if (const CUresult result = resolve(handle, stream); result != CUDA_SUCCESS) return result;
    return work(stream);
  });
}

/// What a capture into a graph of the caller begins after.
struct CaptureStart {
  CUgraph graph = nullptr;  ///< null: a new one
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;
};

/// The nodes of a list, which must be different ones of the graph.
CUresult read_nodes(const CUgraph_st& graph, const CUgraphNode* list, std::size_t count,
                    std::vector<CUgraphNode>& nodes) {
  if (list == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const std::shared_ptr<CUgraphNode_st> node = hold(list[i]);
    if (!node || node->graph != &graph || std::ranges::find(nodes, node.get()) != nodes.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    nodes.push_back(node.get());
  }
  return CUDA_SUCCESS;
}

CUresult begin_capture(const std::shared_ptr<CUstream_st>& stream, CUstreamCaptureMode mode,
                       const CaptureStart& start = {}) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream == context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(graphs_mutex());
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  const auto capture = std::make_shared<Capture>();
  capture->own_graph = start.graph == nullptr;
  capture->graph = capture->own_graph ? std::make_shared<CUgraph_st>() : hold(start.graph);
  std::vector<CUgraphNode> tail;
  if (!capture->graph) return CUDA_ERROR_INVALID_VALUE;
  if (capture->graph->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  if (const CUresult result = read_nodes(*capture->graph, start.nodes, start.count, tail)) {
    return result;
  }
  capture->first_number = capture->graph->next_number;
  capture->number = ++captures().last_number;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph->capturing = true;
  capture->origin = stream;
  if (capture->own_graph) enroll(capture->graph);
  draw_in(capture, stream, std::move(tail));
  if (start.data != nullptr) {
    capture->branches.at(stream.get()).edges.assign(start.data, start.data + start.count);
  }
  captures().active.push_back(capture);
  captures().count = static_cast<int>(captures().active.size());
  return CUDA_SUCCESS;
}

/// What the stream's next node comes after, besides or instead of what it would.
CUresult update_dependencies(CUstream handle, const CaptureStart& wanted, unsigned flags) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graphs_mutex());
    if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    std::vector<CUgraphNode> nodes;
    if (const CUresult result =
            read_nodes(*stream->capture->graph, wanted.nodes, wanted.count, nodes)) {
      return result;
    }
    Capture::Branch& branch = stream->capture->branches.at(stream.get());
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
      branch.tail.clear();
      branch.edges.clear();
    }
    branch.edges.resize(branch.tail.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (std::ranges::find(branch.tail, nodes[i]) != branch.tail.end()) continue;
      branch.tail.push_back(nodes[i]);
      branch.edges.push_back(wanted.data != nullptr ? wanted.data[i] : CUgraphEdgeData{});
    }
    return CUDA_SUCCESS;
  });
}

CUresult end_capture(const std::shared_ptr<CUstream_st>& stream, CUgraph* graph) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  const std::lock_guard lock(graphs_mutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) {
    return invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  if (capture->invalid) {
    drop(capture);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (!is_joined(*capture)) {
    drop(capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = capture->graph.get();
  finish(capture);
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus status_of(const CUstream_st& stream) {
  if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/// The legacy stream has no state of its own while other streams are captured. Takes the lock.
CUresult check_legacy(const std::shared_ptr<CUstream_st>& stream) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream == context->legacy && context->blocking_captures.load() != 0) {
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

struct InfoRequest {
  CUstreamCaptureStatus* status;
  std::uint64_t* number;
  CUgraph* graph;
  const CUgraphNode** nodes;
  const CUgraphEdgeData** edges;
  std::size_t* count;
};

CUresult capture_info(CUstream handle, const InfoRequest& wanted) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (wanted.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_legacy(stream); result != CUDA_SUCCESS) return result;
    const std::lock_guard lock(graphs_mutex());
    *wanted.status = status_of(*stream);
    if (*wanted.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    Capture& capture = *stream->capture;
    Capture::Branch& branch = capture.branches.at(stream.get());
    branch.edges.resize(branch.tail.size());
    if (wanted.number != nullptr) *wanted.number = capture.number;
    if (wanted.graph != nullptr) *wanted.graph = capture.graph.get();
    if (wanted.nodes != nullptr) *wanted.nodes = branch.tail.data();
    if (wanted.edges != nullptr) *wanted.edges = branch.edges.data();
    if (wanted.count != nullptr) *wanted.count = branch.tail.size();
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult capture_operation(const std::shared_ptr<CUstream_st>& stream, Operation& operation,
                           bool& captured) {
  const std::lock_guard lock(graphs_mutex());
  captured = stream->capture != nullptr;
  if (!captured) return CUDA_SUCCESS;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  static_cast<void>(add_node(stream, std::move(operation)));
  return CUDA_SUCCESS;
}

CUresult capture_graph(const std::shared_ptr<CUstream_st>& stream, const CUgraph_st& graph,
                       bool& captured) {
  captured = stream->capture != nullptr;
  if (!captured) return CUDA_SUCCESS;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const std::shared_ptr<CUgraph_st> child = copy_of(graph);
  const std::shared_ptr<CUgraphNode_st> node = add_node(stream, Empty{});
  node->type = CU_GRAPH_NODE_TYPE_GRAPH;
  node->child = child;
  return CUDA_SUCCESS;
}

CUresult capture_record(const std::shared_ptr<CUstream_st>& stream,
                        const std::shared_ptr<CUevent_st>& event, bool external, bool& captured) {
  const std::lock_guard lock(graphs_mutex());
  captured = stream->capture != nullptr;
  if (!captured) return CUDA_SUCCESS;
  Capture& capture = *stream->capture;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (external) {
    static_cast<void>(add_node(stream, RecordEvent{event}));
    return CUDA_SUCCESS;
  }
  event->capture = capture.number;
  event->captured = capture.branches.at(stream.get()).tail;
  return CUDA_SUCCESS;
}

CUresult capture_wait(const std::shared_ptr<CUstream_st>& stream,
                      const std::shared_ptr<CUevent_st>& event, bool external, bool& captured) {
  const std::shared_ptr<CUctx_st> context = hold(stream->context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const std::lock_guard lock(graphs_mutex());
  captured = true;
  const std::shared_ptr<Capture> own = stream->capture;
  const std::uint64_t number = event->capture.load();
  const std::shared_ptr<Capture> others = number != 0 ? active_capture(number) : nullptr;
  if (own) {
    if (own->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (external) {
      static_cast<void>(add_node(stream, WaitEvent{event, 0}));
      return CUDA_SUCCESS;
    }
    if (!others) return invalidate(*own, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (others != own) {
      others->invalid = true;
      return invalidate(*own, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    std::vector<CUgraphNode>& tail = own->branches.at(stream.get()).tail;
    for (const CUgraphNode node : event->captured) {
      if (std::ranges::find(tail, node) == tail.end()) tail.push_back(node);
    }
    return CUDA_SUCCESS;
  }
  if (number == 0 || external) {
    captured = false;
    return CUDA_SUCCESS;
  }
  if (!others) return CUDA_ERROR_CAPTURED_EVENT;
  if (others->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream == context->legacy) return invalidate(*others, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  draw_in(others, stream, event->captured);
  return CUDA_SUCCESS;
}

CUresult unsafe_during_capture() {
  if (captures().count.load() == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_SUCCESS;
  }
  const std::lock_guard lock(graphs_mutex());
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : captures().active) {
    const bool own = capture->thread == std::this_thread::get_id() &&
                     capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool everybodys = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                            capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (own || everybodys) result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult not_in_capture(const std::shared_ptr<CUstream_st>& stream) {
  if (!stream->capturing.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_mutex());
  if (!stream->capture) return CUDA_SUCCESS;
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult not_in_legacy(CUcontext context) {
  const std::lock_guard lock(graphs_mutex());
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : captures().active) {
    for (const auto& [handle, branch] : capture->branches) {
      if (branch.stream->context != context) continue;
      if ((branch.stream->flags & CU_STREAM_NON_BLOCKING) != 0) continue;
      result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
  }
  return result;
}

CUresult not_while_captured(CUcontext context) {
  if (captures().count.load() == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(graphs_mutex());
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : captures().active) {
    for (const auto& [handle, branch] : capture->branches) {
      if (branch.stream->context != context) continue;
      result = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
  }
  return result;
}

void leave_capture(CUevent event) {
  const std::lock_guard lock(graphs_mutex());
  event->capture = 0;
  event->captured.clear();
}

void abandon_capture(const std::shared_ptr<CUstream_st>& stream) {
  if (!stream->capturing.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(graphs_mutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return;
  if (capture->origin == stream) {  // no thread can end it
    capture->invalid = true;
    return drop(capture);
  }
  // Its nodes stay: the end of the capture finds those that were not joined.
  capture->branches.erase(stream.get());
  let_go(*stream);
}

void abandon_captures_of(CUcontext context) {
  const std::lock_guard lock(graphs_mutex());
  const std::vector<std::shared_ptr<Capture>> active = captures().active;
  for (const std::shared_ptr<Capture>& capture : active) {
    const bool takes_part = std::ranges::any_of(
        capture->branches, [&](const auto& one) { return one.second.stream->context == context; });
    if (takes_part) drop(capture);
  }
}

namespace entries {

CUresult stream_begin_capture(CUstream handle, CUstreamCaptureMode mode) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    return begin_capture(stream, mode);
  });
}

CUresult stream_begin_capture_to_graph(CUstream handle, CUgraph graph,
                                       const CUgraphNode* dependencies,
                                       const CUgraphEdgeData* dependency_data,
                                       std::size_t num_dependencies, CUstreamCaptureMode mode) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return begin_capture(stream, mode, {graph, dependencies, dependency_data, num_dependencies});
  });
}

CUresult stream_update_capture_dependencies(CUstream stream, CUgraphNode* dependencies,
                                            std::size_t num_dependencies, unsigned flags) {
  return update_dependencies(stream, {nullptr, dependencies, nullptr, num_dependencies}, flags);
}
CUresult stream_update_capture_dependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                               const CUgraphEdgeData* dependency_data,
                                               std::size_t num_dependencies, unsigned flags) {
  return update_dependencies(stream, {nullptr, dependencies, dependency_data, num_dependencies},
                             flags);
}

CUresult stream_end_capture(CUstream handle, CUgraph* graph) {
  return with_stream(handle, [&](const std::shared_ptr<CUstream_st>& stream) {
    return end_capture(stream, graph);
  });
}

CUresult stream_is_capturing(CUstream handle, CUstreamCaptureStatus* capture_status) {
  return capture_info(handle, {capture_status, nullptr, nullptr, nullptr, nullptr, nullptr});
}

CUresult stream_get_capture_info_v2(CUstream handle, CUstreamCaptureStatus* capture_status_out,
                                    std::uint64_t* id_out, CUgraph* graph_out,
                                    const CUgraphNode** dependencies_out,
                                    std::size_t* num_dependencies_out) {
  return capture_info(handle, {capture_status_out, id_out, graph_out, dependencies_out, nullptr,
                               num_dependencies_out});
}

CUresult stream_get_capture_info_v3(CUstream handle, CUstreamCaptureStatus* capture_status_out,
                                    std::uint64_t* id_out, CUgraph* graph_out,
                                    const CUgraphNode** dependencies_out,
                                    const CUgraphEdgeData** edge_data_out,
                                    std::size_t* num_dependencies_out) {
  return capture_info(handle, {capture_status_out, id_out, graph_out, dependencies_out,
                               edge_data_out, num_dependencies_out});
}

CUresult thread_exchange_stream_capture_mode(CUstreamCaptureMode* mode) {
  return guarded([&] {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(thread_mode, *mode);
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
