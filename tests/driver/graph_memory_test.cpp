// tests/driver/graph_memory_test.cpp - memory that graphs allocate; parameters of nodes set later
#include <array>
#include <catch2/catch.hpp>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

constexpr std::size_t kGraphBytes = 1000;

CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(std::size_t bytes = kGraphBytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = bytes;
  return params;
}

CUDA_MEMSET_NODE_PARAMS fill_params_of(CUdeviceptr to, unsigned value,
                                       std::size_t width = kGraphBytes) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = to;
  params.value = value;
  params.elementSize = 1;
  params.width = width;
  params.height = 1;
  return params;
}

CUDA_MEMCPY3D copy_params_of(CUdeviceptr to, CUdeviceptr from, std::size_t bytes = kGraphBytes) {
  CUDA_MEMCPY3D params{};
  params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = from;
  params.dstDevice = to;
  params.WidthInBytes = bytes;
  params.Height = params.Depth = 1;
  return params;
}

/// A graph that allocates memory and fills it; `out` has a copy of it.
struct MemoryGraph : DriverFixture {
  MemoryGraph() : out(allocate(kGraphBytes)), stream(make_stream()) {
    PTXGEN_OK(driver.graph_create(&graph, 0));
    CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params();
    PTXGEN_OK(driver.graph_add_mem_alloc_node(&alloc, graph, nullptr, 0, &params));
    memory = params.dptr;
    const CUDA_MEMSET_NODE_PARAMS fill_params = fill_params_of(memory, 7);
    PTXGEN_OK(driver.graph_add_memset_node(&fill, graph, &alloc, 1, &fill_params, context));
    const CUDA_MEMCPY3D copy_params = copy_params_of(out, memory);
    PTXGEN_OK(driver.graph_add_memcpy_node(&copy, graph, &fill, 1, &copy_params, context));
  }
  void add_free() { PTXGEN_OK(driver.graph_add_mem_free_node(&free, graph, &copy, 1, memory)); }
  void instantiate(unsigned long long flags = 0) {
    PTXGEN_OK(driver.graph_instantiate_with_flags(&exec, graph, flags));
  }
  std::uint64_t used(CUgraphMem_attribute attribute = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) {
    std::uint64_t value = ~std::uint64_t{0};
    PTXGEN_OK(driver.stream_synchronize(stream));
    PTXGEN_OK(driver.device_graph_mem_trim(0));
    PTXGEN_OK(driver.device_get_graph_mem_attribute(0, attribute, &value));
    return value;
  }
  std::size_t free_bytes() {
    std::size_t free_now = 0;
    std::size_t total = 0;
    PTXGEN_OK(driver.mem_get_info(&free_now, &total));
    return free_now;
  }
  bool all_sevens() {
    return bytes_of(out, kGraphBytes) == std::vector<unsigned char>(kGraphBytes, 7);
  }

  CUdeviceptr out = 0;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode alloc = nullptr, fill = nullptr, copy = nullptr, free = nullptr;
};

}  // namespace

TEST_CASE("a graph allocates, uses and frees memory in each launch") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  fixture.add_free();
  fixture.instantiate();
  const std::size_t before = fixture.free_bytes();
  for (int i = 0; i < 3; ++i) PTXGEN_OK(driver.graph_launch(fixture.exec, fixture.stream));
  CHECK(fixture.used() == 0);
  CHECK(fixture.used(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= kGraphBytes);
  CHECK(fixture.all_sevens());
  CHECK(fixture.free_bytes() == before);
  std::uint64_t zero = 0;
  PTXGEN_OK(driver.device_set_graph_mem_attribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
  CHECK(fixture.used(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 0);
  PTXGEN_CHECK_RESULT(
      driver.device_set_graph_mem_attribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.device_graph_mem_trim(0));
  PTXGEN_CHECK_RESULT(driver.device_graph_mem_trim(99), CUDA_ERROR_INVALID_DEVICE);
  // What its own graph frees is never the caller's.
  PTXGEN_CHECK_RESULT(driver.mem_free(fixture.memory), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemFree: the graph's memory at 0x") &&
                              Catch::Contains("or frees it itself"));
  CUDA_MEM_ALLOC_NODE_PARAMS found{};
  PTXGEN_OK(driver.graph_mem_alloc_node_get_params(fixture.alloc, &found));
  CHECK(found.dptr == fixture.memory);
  CHECK(found.bytesize == kGraphBytes);
  REQUIRE(found.accessDescCount == 1);
  CHECK(found.accessDescs->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUdeviceptr freed = 0;
  PTXGEN_OK(driver.graph_mem_free_node_get_params(fixture.free, &freed));
  CHECK(freed == fixture.memory);
  PTXGEN_CHECK_RESULT(driver.graph_mem_free_node_get_params(fixture.copy, &freed),
                      CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("freed memory of graphs counts until it is trimmed") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  fixture.add_free();
  fixture.instantiate();
  const auto now = [&] {
    std::uint64_t value = 0;
    PTXGEN_OK(driver.ctx_synchronize());
    PTXGEN_OK(
        driver.device_get_graph_mem_attribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
    return value;
  };
  CHECK(fixture.used() == 0);
  // A second launch uses the memory of the first again.
  for (int i = 0; i < 2; ++i) PTXGEN_OK(driver.graph_launch(fixture.exec, fixture.stream));
  CHECK(now() == kGraphBytes);
  PTXGEN_OK(driver.device_graph_mem_trim(0));
  CHECK(now() == 0);
}

TEST_CASE("graphs allocate managed memory") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params();
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  CUgraphNode node = nullptr;
  const CUresult added = driver.graph_add_mem_alloc_node(&node, graph, nullptr, 0, &params);
  if (added == CUDA_ERROR_NOT_SUPPORTED) {  // under a sanitizer
    CHECK_THAT(fixture.log, Catch::Contains("cuGraphAddMemAllocNode: managed memory needs one"));
    return;
  }
  PTXGEN_OK(added);
  CUDA_MEM_ALLOC_NODE_PARAMS found{};
  PTXGEN_OK(driver.graph_mem_alloc_node_get_params(node, &found));
  CHECK(found.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED);
  const CUDA_MEMSET_NODE_PARAMS fill = fill_params_of(params.dptr, 9);
  PTXGEN_OK(driver.graph_add_memset_node(&node, graph, &node, 1, &fill, fixture.context));
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  const auto* const host =
      reinterpret_cast<const unsigned char*>(static_cast<std::uintptr_t>(params.dptr));
  CHECK(host[kGraphBytes - 1] == 9);
  PTXGEN_OK(driver.mem_free(params.dptr));
}

TEST_CASE("memory that a graph does not free is the caller's until it is freed") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  fixture.instantiate();
  PTXGEN_OK(driver.graph_launch(fixture.exec, fixture.stream));
  CHECK(fixture.used() == kGraphBytes);
  CHECK(fixture.bytes_of(fixture.memory, kGraphBytes)[kGraphBytes - 1] == 7);
  PTXGEN_CHECK_RESULT(driver.graph_launch(fixture.exec, fixture.stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("was not freed since the previous launch") &&
                              Catch::Contains("AUTO_FREE_ON_LAUNCH"));
  PTXGEN_OK(driver.mem_free_async(fixture.memory, fixture.stream));
  CHECK(fixture.used() == 0);
  PTXGEN_CHECK_RESULT(driver.mem_free_async(fixture.memory, fixture.stream),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_launch(fixture.exec, fixture.stream));
  PTXGEN_OK(driver.mem_free(fixture.memory));
  CHECK(fixture.used() == 0);
  // It outlives its graph, and its addresses are given back after that.
  PTXGEN_OK(driver.graph_launch(fixture.exec, fixture.stream));
  PTXGEN_OK(driver.graph_exec_destroy(fixture.exec));
  PTXGEN_OK(driver.graph_destroy(fixture.graph));
  CHECK(fixture.used() == kGraphBytes);
  CHECK(fixture.bytes_of(fixture.memory, kGraphBytes)[0] == 7);
  PTXGEN_OK(driver.mem_free(fixture.memory));
  CHECK(fixture.used() == 0);
  PTXGEN_CHECK_RESULT(driver.mem_free(fixture.memory), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a graph can free what it allocated at the launch before, another one too") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  fixture.instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 3; ++i) PTXGEN_OK(driver.graph_launch(fixture.exec, fixture.stream));
  CHECK(fixture.used() == kGraphBytes);
  CUgraph other = nullptr;
  CUgraphNode free = nullptr;
  CUgraphExec other_exec = nullptr;
  PTXGEN_OK(driver.graph_create(&other, 0));
  PTXGEN_OK(driver.graph_add_mem_free_node(&free, other, nullptr, 0, fixture.memory));
  PTXGEN_OK(driver.graph_instantiate_with_flags(&other_exec, other, 0));
  PTXGEN_OK(driver.graph_launch(other_exec, fixture.stream));
  CHECK(fixture.used() == 0);
  PTXGEN_CHECK_RESULT(driver.graph_launch(other_exec, fixture.stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("of another graph, which is not allocated"));
  // Freed by another graph, it cannot be freed by its own.
  PTXGEN_CHECK_RESULT(
      driver.graph_add_mem_free_node(&free, fixture.graph, nullptr, 0, fixture.memory),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_mem_free_node(&free, other, nullptr, 0, fixture.memory),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_add_mem_free_node(&free, other, nullptr, 0, fixture.out),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("is of no allocation node, or another node frees it"));
}

TEST_CASE("graphs with memory nodes are instantiated once, not cloned, not cut") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  fixture.instantiate();
  CUgraphExec second = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_flags(&second, fixture.graph, 0),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("is instantiated already"));
  PTXGEN_OK(driver.graph_exec_destroy(fixture.exec));
  fixture.instantiate();
  CUgraph clone = nullptr;
  CUgraph parent = nullptr;
  CUgraphNode node = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_clone(&clone, fixture.graph), CUDA_ERROR_NOT_SUPPORTED);
  PTXGEN_OK(driver.graph_create(&parent, 0));
  PTXGEN_CHECK_RESULT(driver.graph_add_child_graph_node(&node, parent, nullptr, 0, fixture.graph),
                      CUDA_ERROR_NOT_SUPPORTED);
  PTXGEN_CHECK_RESULT(driver.graph_destroy_node(fixture.copy), CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphClone: a graph with nodes that allocate") &&
                              Catch::Contains("cuGraphAddChildGraphNode: ") &&
                              Catch::Contains("cuGraphDestroyNode: "));
  PTXGEN_OK(driver.stream_begin_capture(fixture.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  PTXGEN_CHECK_RESULT(driver.graph_launch(fixture.exec, fixture.stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cannot be captured"));
  PTXGEN_OK(driver.stream_end_capture(fixture.stream, &clone));
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(0);
  PTXGEN_CHECK_RESULT(driver.graph_add_mem_alloc_node(&node, parent, nullptr, 0, &params),
                      CUDA_ERROR_INVALID_VALUE);
  params = alloc_params();
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST;
  PTXGEN_CHECK_RESULT(driver.graph_add_mem_alloc_node(&node, parent, nullptr, 0, &params),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("allocates memory of devices"));
}

TEST_CASE("stream-ordered allocation and freeing are captured as nodes") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  CUgraph captured = nullptr;
  CUdeviceptr memory = 0;
  PTXGEN_OK(driver.stream_begin_capture(fixture.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_OK(driver.mem_alloc_async(&memory, 64, fixture.stream));
  PTXGEN_OK(driver.memset_d8_async(memory, 9, 64, fixture.stream));
  PTXGEN_OK(driver.memcpy_within_device_async(fixture.out, memory, 64, fixture.stream));
  PTXGEN_OK(driver.mem_free_async(memory, fixture.stream));
  PTXGEN_CHECK_RESULT(driver.mem_free_async(memory, fixture.stream), CUDA_ERROR_INVALID_VALUE);
  // Not of a graph.
  PTXGEN_CHECK_RESULT(driver.mem_free_async(fixture.out, fixture.stream), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.stream_end_capture(fixture.stream, &captured));
  std::array<CUgraphNode, 8> nodes{};
  std::size_t count = nodes.size();
  PTXGEN_OK(driver.graph_get_nodes(captured, nodes.data(), &count));
  REQUIRE(count == 4);
  CUgraphNodeType type{};
  PTXGEN_OK(driver.graph_node_get_type(nodes[0], &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  PTXGEN_OK(driver.graph_node_get_type(nodes[3], &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_MEM_FREE);
  CUgraphExec exec = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&exec, captured, 0));
  PTXGEN_OK(driver.graph_launch(exec, fixture.stream));
  CHECK(fixture.used() == 0);
  CHECK(fixture.bytes_of(fixture.out, 64) == std::vector<unsigned char>(64, 9));
  // An update that would move the memory is refused.
  CUgraph again = nullptr;
  PTXGEN_OK(driver.stream_begin_capture(fixture.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PTXGEN_OK(driver.mem_alloc_async(&memory, 64, fixture.stream));
  PTXGEN_OK(driver.memset_d8_async(memory, 8, 64, fixture.stream));
  PTXGEN_OK(driver.memcpy_within_device_async(fixture.out, memory, 64, fixture.stream));
  PTXGEN_OK(driver.mem_free_async(memory, fixture.stream));
  PTXGEN_OK(driver.stream_end_capture(fixture.stream, &again));
  CUgraphExecUpdateResultInfo info{};
  PTXGEN_CHECK_RESULT(driver.graph_exec_update(exec, again, &info),
                      CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("an access to a graph's memory while it is not allocated is a fault by name") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  CHECK(driver.memset_d8(fixture.memory, 1, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THAT(fixture.log, Catch::Contains("is in graph allocation ") &&
                              Catch::Contains("which the graph has not allocated, or has freed"));
}

TEST_CASE("parameters of copies, fills and host functions can be set in graphs") {
  MemoryGraph fixture;
  const Table& driver = fixture.driver;
  CUgraph graph = nullptr;
  CUgraphNode fill = nullptr, copy = nullptr, host = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  const CUdeviceptr from = fixture.allocate(2 * kGraphBytes);
  CUDA_MEMSET_NODE_PARAMS fill_params = fill_params_of(from, 1);
  PTXGEN_OK(driver.graph_add_memset_node(&fill, graph, nullptr, 0, &fill_params, fixture.context));
  CUDA_MEMCPY3D copy_params = copy_params_of(fixture.out, from);
  PTXGEN_OK(driver.graph_add_memcpy_node(&copy, graph, &fill, 1, &copy_params, fixture.context));
  int calls = 0;
  const CUDA_HOST_NODE_PARAMS call{[](void* user) { ++*static_cast<int*>(user); }, &calls};
  PTXGEN_OK(driver.graph_add_host_node(&host, graph, &copy, 1, &call));

  CUDA_MEMSET_NODE_PARAMS found_fill{};
  PTXGEN_OK(driver.graph_memset_node_get_params(fill, &found_fill));
  CHECK(found_fill.dst == from);
  CHECK(found_fill.width == kGraphBytes);
  CUDA_MEMCPY3D found_copy{};
  PTXGEN_OK(driver.graph_memcpy_node_get_params(copy, &found_copy));
  CHECK(found_copy.dstDevice == fixture.out);
  CHECK(found_copy.WidthInBytes == kGraphBytes);
  CUDA_HOST_NODE_PARAMS found_call{};
  PTXGEN_OK(driver.graph_host_node_get_params(host, &found_call));
  CHECK(found_call.userData == &calls);
  PTXGEN_CHECK_RESULT(driver.graph_memset_node_get_params(copy, &found_fill),
                      CUDA_ERROR_INVALID_VALUE);

  found_fill.value = 7;
  found_fill.dst = from + kGraphBytes;
  PTXGEN_OK(driver.graph_memset_node_set_params(fill, &found_fill));
  found_copy.srcDevice = from + kGraphBytes;
  PTXGEN_OK(driver.graph_memcpy_node_set_params(copy, &found_copy));
  found_copy.WidthInBytes = 3 * kGraphBytes;
  PTXGEN_CHECK_RESULT(driver.graph_memcpy_node_set_params(copy, &found_copy),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphMemcpyNodeSetParams: 3000 bytes"));
  CUgraphExec exec = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&exec, graph, 0));
  PTXGEN_OK(driver.graph_launch(exec, fixture.stream));
  PTXGEN_OK(driver.stream_synchronize(fixture.stream));
  CHECK(fixture.all_sevens());
  CHECK(calls == 1);

  int others = 0;
  const CUDA_HOST_NODE_PARAMS other{call.fn, &others};
  fill_params = fill_params_of(from, 3, 500);
  copy_params = copy_params_of(fixture.out, from, 500);
  PTXGEN_OK(driver.graph_exec_memset_node_set_params(exec, fill, &fill_params, fixture.context));
  PTXGEN_OK(driver.graph_exec_memcpy_node_set_params(exec, copy, &copy_params, fixture.context));
  PTXGEN_OK(driver.graph_exec_host_node_set_params(exec, host, &other));
  // A memset of rows stays one, a copy stays linear and between the same kinds of memory.
  fill_params.height = 2;
  fill_params.pitch = 500;
  PTXGEN_CHECK_RESULT(
      driver.graph_exec_memset_node_set_params(exec, fill, &fill_params, fixture.context),
      CUDA_ERROR_INVALID_VALUE);
  copy_params.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy_params.dstHost = &others;
  copy_params.WidthInBytes = 4;
  PTXGEN_CHECK_RESULT(
      driver.graph_exec_memcpy_node_set_params(exec, copy, &copy_params, fixture.context),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_exec_host_node_set_params(exec, fill, &other),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_launch(exec, fixture.stream));
  PTXGEN_OK(driver.stream_synchronize(fixture.stream));
  const std::vector<unsigned char> bytes = fixture.bytes_of(fixture.out, kGraphBytes);
  CHECK(bytes[499] == 3);
  CHECK(bytes[500] == 7);
  CHECK(calls == 1);
  CHECK(others == 1);
}
