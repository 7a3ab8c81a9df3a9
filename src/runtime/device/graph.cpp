// src/runtime/device/graph.cpp - ending captures, launching graphs
#include <vector>

#include "ptxgen/runtime/device/stream.hpp"
#include "runtime/device/owned.hpp"

namespace ptxgen::inline v0 {

using driver::Table;

struct Graph::Owner {
  explicit Owner(SharedCore of) noexcept : executable(std::move(of)) {}
  std::vector<std::shared_ptr<const void>> kept;  ///< modules; unloaded after the graph
  Owned<driver::CUgraphExec, Release::GraphExec> executable;
  std::size_t nodes = 0;
};

namespace {

bool broken_capture(driver::CUresult result) noexcept {
  return result >= driver::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= driver::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

using OwnedGraph = Owned<driver::CUgraph, Release::Graph>;

void count_nodes(const ContextCore& core, driver::CUgraph graph, std::size_t& nodes) {
  if (core.table().graph_get_nodes == nullptr) return;
  core.call(Stage::Launch, &Table::graph_get_nodes, graph, nullptr, &nodes);
}

}  // namespace

Graph Stream::end_capture() const {
  const ContextCore& core = *core_;
  bool goes_on = false;
  try {
    core.alive(Stage::Launch);
    Hidden<Graph::Owner> owner = Hidden<Graph::Owner>::make(core.shared_from_this());
    OwnedGraph graph(core.shared_from_this());
    const Current current(core, Stage::Launch);
    const driver::CUresult result = core.table().stream_end_capture(handle_, &graph.handle);
    if (result != driver::CUDA_SUCCESS) {
      goes_on = result == driver::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
      Error error = core.failure(Stage::Launch, {&row_of(&Table::stream_end_capture), result});
      if (broken_capture(result)) error.code = "capture";
      throw error.refresh();
    }
    owner->kept = core.capture_ended(handle_);
    if (graph.handle == nullptr) {
      throw Error(Stage::Launch, "capture",
                  "cuStreamEndCapture: the capture was invalidated and has no graph");
    }
    count_nodes(core, graph.handle, owner->nodes);
    core.call(Stage::Launch, &Table::graph_instantiate_with_flags, &owner->executable.handle,
              graph.handle, 0ull);
    return Graph(std::move(owner));
  } catch (...) {
    if (!goes_on && core.capturing(handle_)) {
      core.release(Release::Capture, handle_);
      static_cast<void>(core.capture_ended(handle_));
    }
    throw;
  }
}

Graph::Graph(Hidden<Owner> owner) : owner_(std::move(owner)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&& other) noexcept {
  const Graph old(std::move(*this));
  owner_ = std::move(other.owner_);
  return *this;
}
Graph::~Graph() = default;

std::size_t Graph::nodes() const noexcept { return owner_->nodes; }
driver::CUgraphExec Graph::handle() const noexcept { return owner_->executable.handle; }

void Graph::launch(const Stream& stream) const {
  const ContextCore& core = *owner_->executable.core;
  core.same(Stage::Launch, stream.core(), "the stream");
  const Span span(core.trace(), "launch", "runtime");
  core.enter_and_call(Stage::Launch, &Table::graph_launch, owner_->executable.handle,
                      stream.handle());
}

}  // namespace ptxgen::inline v0
