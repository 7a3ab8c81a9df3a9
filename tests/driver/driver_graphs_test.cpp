// tests/driver/driver_graphs_test.cpp - graphs of the emulated driver
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

/// A graph whose host nodes append their letters to `order`.
struct Letters {
  explicit Letters(const Table& table) : driver(table) {
    PTXGEN_OK(driver.graph_create(&graph, 0));
  }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;
  ~Letters() { static_cast<void>(driver.graph_destroy(graph)); }

  struct Letter {
    std::string* order;
    char letter;
  };
  CUgraphNode add(char letter, std::vector<CUgraphNode> after = {}) {
    letters.push_back(std::make_unique<Letter>(Letter{&order, letter}));
    CUDA_HOST_NODE_PARAMS params = {[](void* user) {
                                      const auto& one = *static_cast<Letter*>(user);
                                      one.order->push_back(one.letter);
                                    },
                                    letters.back().get()};
    CUgraphNode node = nullptr;
    PTXGEN_OK(driver.graph_add_host_node(&node, graph, after.data(), after.size(), &params));
    return node;
  }
  std::string run() {
    order.clear();
    CUgraphExec executable = nullptr;
    PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
    PTXGEN_OK(driver.graph_upload(executable, nullptr));
    PTXGEN_OK(driver.graph_launch(executable, nullptr));
    PTXGEN_OK(driver.ctx_synchronize());
    PTXGEN_OK(driver.graph_exec_destroy(executable));
    return order;
  }

  const Table& driver;
  CUgraph graph = nullptr;
  std::string order;
  std::vector<std::unique_ptr<Letter>> letters;
};

CUDA_MEMSET_NODE_PARAMS fill(CUdeviceptr to, unsigned value, std::size_t words) {
  return {to, 0, value, 4, words, 1};
}

}  // namespace

TEST_CASE("nodes run in an order that the edges allow, else by number") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  Letters letters(driver);
  const CUgraphNode a = letters.add('a');
  const CUgraphNode b = letters.add('b');
  const CUgraphNode c = letters.add('c', {a});
  const CUgraphNode d = letters.add('d');
  CHECK(letters.run() == "abcd");
  PTXGEN_OK(driver.graph_add_dependencies(letters.graph, &d, &a, 1));
  CHECK(letters.run() == "bdac");
  std::size_t count = 0;
  PTXGEN_OK(driver.graph_get_root_nodes(letters.graph, nullptr, &count));
  CHECK(count == 2);
  CUgraphNode roots[3];
  count = 3;
  PTXGEN_OK(driver.graph_get_root_nodes(letters.graph, roots, &count));
  CHECK(count == 2);
  CHECK(roots[0] == b);
  CHECK(roots[1] == d);
  CHECK(roots[2] == nullptr);
  CUgraphNode from[2];
  CUgraphNode to[2];
  count = 2;
  PTXGEN_OK(driver.graph_get_edges(letters.graph, from, to, &count));
  CHECK(from[0] == d);
  CHECK(to[0] == a);
  CHECK(from[1] == a);
  CHECK(to[1] == c);
  PTXGEN_OK(driver.graph_destroy_node(a));
  CHECK(letters.run() == "bcd");
  PTXGEN_CHECK_RESULT(driver.graph_destroy_node(a), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("bad graphs and handles are refused") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  Letters letters(driver);
  Letters other(driver);
  const CUgraphNode a = letters.add('a');
  const CUgraphNode b = letters.add('b', {a});
  const CUgraphNode foreign = other.add('x');
  CUgraphExec executable = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_add_dependencies(letters.graph, &a, &b, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_dependencies(letters.graph, &a, &a, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_dependencies(letters.graph, &a, &foreign, 1),
                      CUDA_ERROR_INVALID_VALUE);
  CUgraphNode node = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_add_empty_node(&node, letters.graph, &foreign, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_empty_node(&node, letters.graph, nullptr, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_empty_node(&node, nullptr, nullptr, 0),
                      CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMSET_NODE_PARAMS params = fill(4096, 0, 4);
  PTXGEN_CHECK_RESULT(
      driver.graph_add_memset_node(&node, letters.graph, nullptr, 0, &params, fixture.context),
      CUDA_ERROR_INVALID_VALUE);
  params.elementSize = 3;
  PTXGEN_CHECK_RESULT(
      driver.graph_add_memset_node(&node, letters.graph, nullptr, 0, &params, fixture.context),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(
      driver.graph_add_memset_node(&node, letters.graph, nullptr, 0, &params, nullptr),
      CUDA_ERROR_INVALID_CONTEXT);
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_flags(&executable, letters.graph, 1 << 20),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_add_dependencies(letters.graph, &b, &a, 1));  // a cycle
  CUDA_GRAPH_INSTANTIATE_PARAMS wanted = {};
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_params(&executable, letters.graph, &wanted),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK(wanted.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK_THAT(fixture.log, Catch::Contains("form a cycle"));
  PTXGEN_CHECK_RESULT(driver.graph_launch(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  PTXGEN_OK(driver.graph_destroy(graph));
  PTXGEN_CHECK_RESULT(driver.graph_destroy(graph), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_create(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("copies, fills, children and events are nodes") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUdeviceptr a = fixture.allocate(64);
  const CUdeviceptr b = fixture.allocate(64);
  std::vector<unsigned> host(16, 0);
  const CUevent event = fixture.make_event();
  CUgraph child = nullptr;
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.graph_create(&child, 0));
  PTXGEN_OK(driver.graph_create(&graph, 0));
  CUgraphNode node = nullptr;
  CUgraphNode first = nullptr;
  CUDA_MEMSET_NODE_PARAMS params = fill(a, 0x01020304, 16);
  PTXGEN_OK(driver.graph_add_memset_node(&node, child, nullptr, 0, &params, fixture.context));
  PTXGEN_OK(driver.graph_add_child_graph_node(&first, graph, nullptr, 0, child));
  PTXGEN_OK(driver.graph_destroy(child));  // the node has its own
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = b;
  copy.WidthInBytes = 64;
  copy.Height = copy.Depth = 1;
  CUgraphNode second = nullptr;
  PTXGEN_OK(driver.graph_add_memcpy_node(&second, graph, &first, 1, &copy, fixture.context));
  copy.srcDevice = b;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host.data();
  CUgraphNode third = nullptr;
  PTXGEN_OK(driver.graph_add_memcpy_node(&third, graph, &second, 1, &copy, fixture.context));
  PTXGEN_OK(driver.graph_add_event_record_node(&node, graph, &third, 1, event));
  PTXGEN_OK(driver.graph_add_event_wait_node(&node, graph, &node, 1, event));
  CUgraph clone = nullptr;
  PTXGEN_OK(driver.graph_clone(&clone, graph));
  PTXGEN_OK(driver.graph_destroy(graph));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, clone, 0));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.event_synchronize(event));
  CHECK(host == std::vector<unsigned>(16, 0x01020304));
  // The executable graph lives on in the queue after it is destroyed.
  const CUstream stream = fixture.make_stream();
  std::fill(host.begin(), host.end(), 0);
  Gate gate(driver, stream);
  PTXGEN_OK(driver.graph_launch(executable, stream));
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  PTXGEN_OK(driver.graph_destroy(clone));
  gate.open();
  PTXGEN_OK(driver.stream_synchronize(stream));
  CHECK(host == std::vector<unsigned>(16, 0x01020304));
}

TEST_CASE("an executable graph takes changes that keep its shape") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUdeviceptr a = fixture.allocate(64);
  const auto make = [&](unsigned value, bool second) {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUDA_MEMSET_NODE_PARAMS params = fill(a, value, 16);
    PTXGEN_OK(driver.graph_create(&graph, 0));
    PTXGEN_OK(driver.graph_add_memset_node(&node, graph, nullptr, 0, &params, fixture.context));
    if (second) PTXGEN_OK(driver.graph_add_empty_node(&node, graph, &node, 1));
    return graph;
  };
  CUgraph graph = make(1, false);
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  CUgraph changed = make(2, false);
  CUgraph longer = make(3, true);
  CUgraph different = nullptr;
  CUgraphNode empty = nullptr;
  PTXGEN_OK(driver.graph_create(&different, 0));
  PTXGEN_OK(driver.graph_add_empty_node(&empty, different, nullptr, 0));
  CUgraphExecUpdateResultInfo info = {};
  PTXGEN_CHECK_RESULT(driver.graph_exec_update(executable, longer, &info),
                      CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  PTXGEN_CHECK_RESULT(driver.graph_exec_update(executable, different, &info),
                      CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  CHECK(info.errorNode == empty);
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  CHECK(fixture.bytes_of(a, 1)[0] == 1);
  PTXGEN_OK(driver.graph_exec_update(executable, changed, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  CHECK(fixture.bytes_of(a, 1)[0] == 2);
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  for (const CUgraph one : {graph, changed, longer, different}) {
    PTXGEN_OK(driver.graph_destroy(one));
  }
}

TEST_CASE("a graph of a destroyed context is refused") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUcontext second = nullptr;
  PTXGEN_OK(driver.ctx_create_v2(&second, 0, 0));
  const CUdeviceptr there = fixture.allocate(64);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS params = fill(there, 1, 16);
  PTXGEN_OK(driver.graph_create(&graph, 0));
  PTXGEN_OK(driver.graph_add_memset_node(&node, graph, nullptr, 0, &params, second));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  PTXGEN_OK(driver.ctx_destroy(second));
  PTXGEN_CHECK_RESULT(driver.graph_launch(executable, nullptr), CUDA_ERROR_INVALID_HANDLE);
  CHECK_THAT(fixture.log, Catch::Contains("a context that was destroyed"));
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_flags(&executable, graph, 0),
                      CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_OK(driver.graph_destroy(graph));
}

TEST_CASE("a fault within a graph ends it and poisons the context") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUcontext second = nullptr;
  PTXGEN_OK(driver.ctx_create_v2(&second, 0, 0));
  const CUstream stream = fixture.make_stream();
  const CUevent event = fixture.make_event();
  const CUdeviceptr a = fixture.allocate(64);
  Letters letters(driver);
  CUDA_MEMSET_NODE_PARAMS params = fill(a, 1, 16);
  CUgraphNode node = nullptr;
  PTXGEN_OK(driver.graph_add_memset_node(&node, letters.graph, nullptr, 0, &params, second));
  letters.add('x', {node});
  PTXGEN_OK(driver.graph_add_event_record_node(&node, letters.graph, &node, 1, event));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, letters.graph, 0));
  PTXGEN_OK(driver.mem_free(a));
  PTXGEN_OK(driver.graph_launch(executable, stream));
  PTXGEN_CHECK_RESULT(driver.event_synchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(letters.order.empty());
  CUdeviceptr address = 0;
  PTXGEN_CHECK_RESULT(driver.mem_alloc(&address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  PTXGEN_CHECK_RESULT(driver.stream_synchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  PTXGEN_CHECK_RESULT(driver.ctx_synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THAT(fixture.log, Catch::Contains("a queued operation failed: "));
  PTXGEN_OK(driver.ctx_destroy(second));
  PTXGEN_OK(driver.mem_alloc(&address, 4));
}

TEST_CASE("a graph is printed as dot") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  Letters letters(driver);
  const CUgraphNode a = letters.add('a');
  letters.add('b', {a});
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("ptxgen_graph_" + std::to_string(std::random_device{}()) + ".dot"))
                               .string();
  PTXGEN_OK(driver.graph_debug_dot_print(letters.graph, path.c_str(), 0));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str() ==
        "digraph graph {\n"
        "  node_0 [label=\"0: host function\"];\n"
        "  node_1 [label=\"1: host function\"];\n"
        "  node_0 -> node_1;\n"
        "}\n");
  std::remove(path.c_str());
  PTXGEN_CHECK_RESULT(driver.graph_debug_dot_print(letters.graph, "/no/such/folder/x.dot", 0),
                      CUDA_ERROR_OPERATING_SYSTEM);
}

TEST_CASE("graphs keep objects of the caller alive, copies and launches of graphs too") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::promise<void> destroyed;
  auto gone = destroyed.get_future();
  const auto is_gone = [&](int milliseconds) {
    return gone.wait_for(std::chrono::milliseconds(milliseconds)) == std::future_status::ready;
  };
  CUuserObject object = nullptr;
  const CUhostFn destroy = [](void* user) { static_cast<std::promise<void>*>(user)->set_value(); };
  PTXGEN_CHECK_RESULT(driver.user_object_create(&object, &destroyed, destroy, 1, 0),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.user_object_create(&object, &destroyed, destroy, 2,
                                      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph graph = nullptr;
  CUgraph clone = nullptr;
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  // One reference of the caller's becomes the graph's, the other is given up.
  PTXGEN_OK(driver.graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  PTXGEN_OK(driver.user_object_release(object, 1));
  PTXGEN_OK(driver.graph_retain_user_object(graph, object, 3, 0));
  PTXGEN_CHECK_RESULT(driver.graph_release_user_object(graph, object, 5), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_release_user_object(graph, object, 3));
  PTXGEN_OK(driver.graph_clone(&clone, graph));
  PTXGEN_OK(driver.graph_destroy(graph));
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, clone, 0));
  PTXGEN_OK(driver.graph_destroy(clone));
  CHECK_FALSE(is_gone(1));
  PTXGEN_OK(driver.user_object_retain(object, 1));
  PTXGEN_OK(driver.user_object_release(object, 1));
  const CUstream stream = fixture.make_stream();
  Gate gate(driver, stream);
  PTXGEN_OK(driver.graph_launch(executable, stream));
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  CHECK_FALSE(is_gone(1));
  gate.open();
  PTXGEN_OK(driver.stream_synchronize(stream));
  CHECK(is_gone(10000));
  PTXGEN_CHECK_RESULT(driver.user_object_release(object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("nodes are found in clones, graphs inside nodes are given out") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUgraph graph = nullptr;
  CUgraph inner = nullptr;
  CUgraph clone = nullptr;
  CUgraphNode empty = nullptr;
  CUgraphNode child = nullptr;
  CUgraphNode found = nullptr;
  PTXGEN_OK(driver.graph_create(&inner, 0));
  PTXGEN_OK(driver.graph_add_empty_node(&empty, inner, nullptr, 0));
  PTXGEN_OK(driver.graph_create(&graph, 0));
  PTXGEN_OK(driver.graph_add_child_graph_node(&child, graph, nullptr, 0, inner));
  PTXGEN_OK(driver.graph_clone(&clone, graph));
  PTXGEN_OK(driver.graph_node_find_in_clone(&found, child, clone));
  CHECK(found != child);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  PTXGEN_OK(driver.graph_node_get_type(found, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
  PTXGEN_CHECK_RESULT(driver.graph_node_find_in_clone(&found, empty, clone),
                      CUDA_ERROR_INVALID_VALUE);
  CUgraph held = nullptr;
  CUgraph again = nullptr;
  PTXGEN_OK(driver.graph_child_graph_node_get_graph(child, &held));
  PTXGEN_OK(driver.graph_child_graph_node_get_graph(child, &again));
  CHECK(held == again);
  CHECK(held != inner);
  std::size_t nodes = 0;
  PTXGEN_OK(driver.graph_get_nodes(held, nullptr, &nodes));
  CHECK(nodes == 1);
  PTXGEN_OK(driver.graph_destroy(graph));
  // It went with the node that it belongs to.
  PTXGEN_CHECK_RESULT(driver.graph_get_nodes(held, nullptr, &nodes), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_destroy(clone));
  PTXGEN_OK(driver.graph_destroy(inner));
}
