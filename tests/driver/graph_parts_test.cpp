// tests/driver/graph_parts_test.cpp - edges, attributes, events, nodes of any type by one call
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

// store(u32* to, u32 value), by one thread
constexpr char kStore[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 to, .param .u32 value)
{
  .reg .u64 %rd<2>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

struct PartsFixture : DriverFixture {
  PartsFixture() : word(allocate(4)) {
    PTXGEN_OK(driver.module_load_data(&module, kStore));
    PTXGEN_OK(driver.module_get_function(&store, module, "store"));
    PTXGEN_OK(driver.memset_d32(word, 0, 1));
    PTXGEN_OK(driver.graph_create(&graph, 0));
  }
  CUgraphNode empty(std::vector<CUgraphNode> after = {}) {
    CUgraphNode node = nullptr;
    PTXGEN_OK(driver.graph_add_empty_node(&node, graph, after.data(), after.size()));
    return node;
  }
  CUgraphNodeParams kernel_params(unsigned& value) {
    arguments = {&word, &value};
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.func = store;
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
    params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = arguments.data();
    return params;
  }
  CUgraphNode kernel(unsigned value) {
    CUgraphNodeParams params = kernel_params(value);
    CUgraphNode node = nullptr;
    PTXGEN_OK(driver.graph_add_node(&node, graph, nullptr, 0, &params));
    return node;
  }
  CUgraphExec instantiate() {
    CUgraphExec executable = nullptr;
    PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
    return executable;
  }
  unsigned launch(CUgraphExec executable) {
    unsigned host = 0;
    PTXGEN_OK(driver.graph_launch(executable, nullptr));
    PTXGEN_OK(driver.memcpy_to_host(&host, word, 4));
    return host;
  }

  CUmodule module = nullptr;
  CUfunction store = nullptr;
  CUdeviceptr word = 0;
  CUgraph graph = nullptr;
  std::array<void*, 2> arguments{};
};

}  // namespace

TEST_CASE("edges of a node are listed and removed") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphNode a = fixture.empty();
  const CUgraphNode b = fixture.empty({a});
  const CUgraphNode c = fixture.empty({a, b});
  std::size_t count = 0;
  PTXGEN_OK(driver.graph_node_get_dependencies(c, nullptr, &count));
  CHECK(count == 2);
  CUgraphNode nodes[3];
  count = 3;
  PTXGEN_OK(driver.graph_node_get_dependencies(c, nodes, &count));
  CHECK(count == 2);
  CHECK(nodes[0] == a);
  CHECK(nodes[1] == b);
  CHECK(nodes[2] == nullptr);
  count = 3;
  CUgraphEdgeData data[3];
  PTXGEN_OK(driver.graph_node_get_dependent_nodes_v2(a, nodes, data, &count));
  CHECK(count == 2);
  CHECK(nodes[0] == b);
  CHECK(nodes[1] == c);
  CHECK(data[0].type == 0);
  PTXGEN_OK(driver.graph_node_get_dependent_nodes(c, nullptr, &count));
  CHECK(count == 0);
  PTXGEN_CHECK_RESULT(driver.graph_node_get_dependencies(c, nodes, nullptr),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_node_get_dependencies_v2(c, nullptr, data, &count),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_node_get_dependencies(nullptr, nullptr, &count),
                      CUDA_ERROR_INVALID_VALUE);

  // All or none.
  const CUgraphNode from[] = {a, c};
  const CUgraphNode to[] = {c, a};
  PTXGEN_CHECK_RESULT(driver.graph_remove_dependencies(fixture.graph, from, to, 2),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_remove_dependencies(fixture.graph, from, to, 1));
  count = 3;
  PTXGEN_OK(driver.graph_node_get_dependencies(c, nodes, &count));
  CHECK(count == 1);
  CHECK(nodes[0] == b);
}

TEST_CASE("edges between kernels have data, which queries do not lose") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphNode a = fixture.kernel(1);
  const CUgraphNode b = fixture.kernel(2);
  const CUgraphNode other = fixture.empty();
  CUgraphEdgeData data{1, 0, 1, {}};  // programmatic
  PTXGEN_CHECK_RESULT(driver.graph_add_dependencies_v2(fixture.graph, &a, &other, &data, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_dependencies_v2(fixture.graph, &other, &a, &data, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_add_dependencies_v2(fixture.graph, &a, &b, &data, 1));
  CUgraphNode found = nullptr;
  CUgraphEdgeData found_data{};
  std::size_t count = 1;
  PTXGEN_CHECK_RESULT(driver.graph_node_get_dependencies(b, &found, &count),
                      CUDA_ERROR_LOSSY_QUERY);
  PTXGEN_OK(driver.graph_node_get_dependencies_v2(b, &found, &found_data, &count));
  CHECK(found == a);
  CHECK(found_data.from_port == 1);
  CHECK(found_data.type == 1);
  PTXGEN_CHECK_RESULT(driver.graph_remove_dependencies(fixture.graph, &a, &b, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_remove_dependencies_v2(fixture.graph, &a, &b, &data, 1));

  unsigned value = 3;
  CUgraphNodeParams params = fixture.kernel_params(value);
  CUgraphNode node = nullptr;
  data.to_port = 1;
  PTXGEN_CHECK_RESULT(driver.graph_add_node_v2(&node, fixture.graph, &a, &data, 1, &params),
                      CUDA_ERROR_INVALID_VALUE);
  data.to_port = 0;
  PTXGEN_OK(driver.graph_add_node_v2(&node, fixture.graph, &a, &data, 1, &params));
  PTXGEN_OK(driver.graph_node_get_dependencies_v2(node, &found, &found_data, &count));
  CHECK(found_data.type == 1);
}

TEST_CASE("dependencies stay in a graph that allocates memory") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.alloc.bytesize = 64;
  CUgraphNode alloc = nullptr;
  PTXGEN_OK(driver.graph_add_node(&alloc, fixture.graph, nullptr, 0, &params));
  CHECK(params.alloc.dptr != 0);
  CUgraphNodeParams free_params{};
  free_params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  free_params.free.dptr = params.alloc.dptr;
  CUgraphNode free = nullptr;
  PTXGEN_OK(driver.graph_add_node(&free, fixture.graph, &alloc, 1, &free_params));
  PTXGEN_CHECK_RESULT(driver.graph_remove_dependencies(fixture.graph, &alloc, &free, 1),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphRemoveDependencies: dependencies cannot be "
                                          "removed from a graph with nodes that allocate"));
  PTXGEN_CHECK_RESULT(driver.graph_node_set_params(alloc, &params), CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphNodeSetParams: a node of type 10"));
}

TEST_CASE("a moved child keeps its handle and may allocate memory") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  CUgraph child = nullptr;
  PTXGEN_OK(driver.graph_create(&child, 0));
  CUgraphNodeParams alloc{};
  alloc.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  alloc.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  alloc.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  alloc.alloc.bytesize = 64;
  CUgraphNode node = nullptr;
  PTXGEN_OK(driver.graph_add_node(&node, child, nullptr, 0, &alloc));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = child;
  PTXGEN_CHECK_RESULT(driver.graph_add_node(&node, fixture.graph, nullptr, 0, &params),
                      CUDA_ERROR_NOT_SUPPORTED);
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  PTXGEN_OK(driver.graph_add_node(&node, fixture.graph, nullptr, 0, &params));
  CUgraph found = nullptr;
  PTXGEN_OK(driver.graph_child_graph_node_get_graph(node, &found));
  CHECK(found == child);
  PTXGEN_CHECK_RESULT(driver.graph_destroy(child), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec executable = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_flags(&executable, child, 0),
                      CUDA_ERROR_INVALID_VALUE);
  executable = fixture.instantiate();
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.mem_free_async(alloc.alloc.dptr, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  PTXGEN_OK(driver.graph_destroy(fixture.graph));
  PTXGEN_CHECK_RESULT(driver.graph_destroy(child), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("nodes of executable graphs are disabled and enabled") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphNode first = fixture.kernel(1);
  const CUgraphNode second = fixture.kernel(2);
  const CUgraphNode empty = fixture.empty();
  const CUgraphNode edge[] = {first, second};
  PTXGEN_OK(driver.graph_add_dependencies(fixture.graph, &edge[0], &edge[1], 1));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, fixture.graph,
                                                CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  CHECK(fixture.launch(executable) == 2);
  unsigned enabled = 7;
  PTXGEN_OK(driver.graph_node_get_enabled(executable, second, &enabled));
  CHECK(enabled == 1);
  PTXGEN_OK(driver.graph_node_set_enabled(executable, second, 0));
  PTXGEN_OK(driver.graph_node_get_enabled(executable, second, &enabled));
  CHECK(enabled == 0);
  CHECK(fixture.launch(executable) == 1);
  PTXGEN_OK(driver.graph_node_set_enabled(executable, second, 1));
  CHECK(fixture.launch(executable) == 2);
  PTXGEN_CHECK_RESULT(driver.graph_node_set_enabled(executable, empty, 0),
                      CUDA_ERROR_INVALID_VALUE);
  std::uint64_t flags = 0;
  PTXGEN_OK(driver.graph_exec_get_flags(executable, &flags));
  CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
}

TEST_CASE("parameters of nodes are set by their type, also in children") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphNode node = fixture.kernel(1);
  unsigned value = 4;
  CUgraphNodeParams params = fixture.kernel_params(value);
  PTXGEN_OK(driver.graph_node_set_params(node, &params));
  CUgraph parent = nullptr;
  PTXGEN_OK(driver.graph_create(&parent, 0));
  CUgraphNodeParams child{};
  child.type = CU_GRAPH_NODE_TYPE_GRAPH;
  child.graph.graph = fixture.graph;
  CUgraphNode child_node = nullptr;
  PTXGEN_OK(driver.graph_add_node(&child_node, parent, nullptr, 0, &child));
  CUgraph inside = nullptr;
  PTXGEN_OK(driver.graph_child_graph_node_get_graph(child_node, &inside));
  CUgraphNode inner = nullptr;
  std::size_t count = 1;
  PTXGEN_OK(driver.graph_get_nodes(inside, &inner, &count));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, parent, 0));
  CHECK(fixture.launch(executable) == 4);
  value = 5;
  params = fixture.kernel_params(value);
  PTXGEN_OK(driver.graph_exec_node_set_params(executable, inner, &params));
  CHECK(fixture.launch(executable) == 5);
  value = 6;
  params = fixture.kernel_params(value);
  PTXGEN_OK(driver.graph_node_set_params(node, &params));
  PTXGEN_OK(driver.graph_exec_child_graph_node_set_params(executable, child_node, fixture.graph));
  CHECK(fixture.launch(executable) == 6);
  CUgraphNode more = fixture.empty();
  PTXGEN_CHECK_RESULT(
      driver.graph_exec_child_graph_node_set_params(executable, child_node, fixture.graph),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_destroy_node(more));
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  PTXGEN_CHECK_RESULT(driver.graph_node_set_params(node, &params), CUDA_ERROR_INVALID_VALUE);
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  PTXGEN_CHECK_RESULT(driver.graph_add_node(&more, fixture.graph, nullptr, 0, &params),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphAddNode: a node of type 12"));
}

TEST_CASE("kernel nodes have attributes, which parameters do not change") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphNode node = fixture.kernel(1);
  CUlaunchAttributeValue value{};
  PTXGEN_OK(driver.graph_kernel_node_get_attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  CHECK(value.cooperative == 0);
  value.cooperative = 1;
  PTXGEN_OK(driver.graph_kernel_node_set_attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  unsigned argument = 2;
  CUgraphNodeParams params = fixture.kernel_params(argument);
  PTXGEN_OK(driver.graph_node_set_params(node, &params));
  value = {};
  PTXGEN_OK(driver.graph_kernel_node_get_attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
  CHECK(value.cooperative == 1);
  value = {};
  value.priority = -3;
  PTXGEN_OK(driver.graph_kernel_node_set_attribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  const CUgraphNode other = fixture.kernel(3);
  PTXGEN_OK(driver.graph_kernel_node_copy_attributes(other, node));
  value = {};
  PTXGEN_OK(driver.graph_kernel_node_get_attribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  CHECK(value.priority == -3);
  value = {};
  value.clusterDim = {2, 1, 1};
  PTXGEN_CHECK_RESULT(
      driver.graph_kernel_node_set_attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value),
      CUDA_ERROR_INVALID_CLUSTER_SIZE);
  CHECK_THAT(fixture.log, Catch::Contains("clusters of (2,1,1) blocks"));
  PTXGEN_CHECK_RESULT(driver.graph_kernel_node_set_attribute(
                          node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("kernels cannot update nodes of graphs"));
  PTXGEN_CHECK_RESULT(
      driver.graph_kernel_node_get_attribute(node, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, &value),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_kernel_node_copy_attributes(node, fixture.empty()),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK(fixture.launch(fixture.instantiate()) == 3);
}

TEST_CASE("event nodes have events, which can be set") {
  PartsFixture fixture;
  const Table& driver = fixture.driver;
  const CUevent one = fixture.make_event();
  const CUevent two = fixture.make_event();
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  params.eventRecord.event = one;
  CUgraphNode record = nullptr;
  PTXGEN_OK(driver.graph_add_node(&record, fixture.graph, nullptr, 0, &params));
  params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  CUgraphNode wait = nullptr;
  PTXGEN_OK(driver.graph_add_node(&wait, fixture.graph, nullptr, 0, &params));
  CUevent found = nullptr;
  PTXGEN_OK(driver.graph_event_record_node_get_event(record, &found));
  CHECK(found == one);
  PTXGEN_OK(driver.graph_event_wait_node_set_event(wait, two));
  PTXGEN_OK(driver.graph_event_wait_node_get_event(wait, &found));
  CHECK(found == two);
  PTXGEN_CHECK_RESULT(driver.graph_event_record_node_get_event(wait, &found),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_event_record_node_set_event(record, nullptr),
                      CUDA_ERROR_INVALID_HANDLE);
  const CUgraphExec executable = fixture.instantiate();
  PTXGEN_OK(driver.graph_exec_event_record_node_set_event(executable, record, two));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  float time = 0;
  // `one` was never recorded.
  PTXGEN_CHECK_RESULT(driver.event_elapsed_time(&time, one, two), CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_OK(driver.event_elapsed_time(&time, two, two));
  PTXGEN_CHECK_RESULT(driver.graph_exec_event_wait_node_set_event(executable, record, two),
                      CUDA_ERROR_INVALID_VALUE);
}
