// tests/driver/graph_conditions_test.cpp - conditional nodes of graphs
#include <array>
#include <catch2/catch.hpp>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

// add(u32* to, u32 value): *to += value
// set(u64 handle, u32 value): sets the condition
// count(u64 handle, u32* left): --*left; the condition is what is left
constexpr char kConditionText[] = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry add(.param .u64 to, .param .u32 value)
{
  .reg .u64 %rd<2>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [value];
  ld.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, %r1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry set(.param .u64 handle, .param .u32 value)
{
  .reg .u64 %rd<2>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [value];
  {
    .param .b64 a;
    .param .b32 b;
    st.param.b64 [a], %rd1;
    st.param.b32 [b], %r1;
    call.uni cudaGraphSetConditional, (a, b);
  }
  ret;
}
.visible .entry count(.param .u64 handle, .param .u64 left)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [left];
  ld.global.u32 %r1, [%rd2];
  sub.u32 %r1, %r1, 1;
  st.global.u32 [%rd2], %r1;
  {
    .param .b64 a;
    .param .b32 b;
    st.param.b64 [a], %rd1;
    st.param.b32 [b], %r1;
    call.uni cudaGraphSetConditional, (a, b);
  }
  ret;
}
)";

struct ConditionFixture : DriverFixture {
  ConditionFixture() : sum(allocate(4)), left(allocate(4)) {
    PTXGEN_OK(driver.module_load_data(&module, kConditionText));
    PTXGEN_OK(driver.module_get_function(&add, module, "add"));
    PTXGEN_OK(driver.module_get_function(&set, module, "set"));
    PTXGEN_OK(driver.module_get_function(&count, module, "count"));
    PTXGEN_OK(driver.memset_d32(sum, 0, 1));
    PTXGEN_OK(driver.memset_d32(left, 0, 1));
    PTXGEN_OK(driver.graph_create(&graph, 0));
  }
  CUgraphConditionalHandle handle(unsigned first = 0, unsigned flags = 0) {
    CUgraphConditionalHandle created = 0;
    PTXGEN_OK(driver.graph_conditional_handle_create(&created, graph, context, first, flags));
    return created;
  }
  template <class First, class Second>
  CUgraphNode kernel(CUgraph where, CUfunction function, First first, Second second,
                     std::vector<CUgraphNode> after = {}) {
    std::array<void*, 2> arguments{&first, &second};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments.data();
    CUgraphNode added = nullptr;
    PTXGEN_OK(driver.graph_add_kernel_node(&added, where, after.data(), after.size(), &params));
    return added;
  }
  /// Adds a conditional node to `where`; `bodies` are its graphs.
  CUresult condition(CUgraph where, CUgraphConditionalHandle of, CUgraphConditionalNodeType type,
                     unsigned size, std::vector<CUgraphNode> after = {}) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = of;
    params.conditional.type = type;
    params.conditional.size = size;
    params.conditional.ctx = context;
    const CUresult result =
        driver.graph_add_node_v2(&node, where, after.data(), nullptr, after.size(), &params);
    if (result == CUDA_SUCCESS) {
      bodies.assign(params.conditional.phGraph_out, params.conditional.phGraph_out + size);
    }
    return result;
  }
  CUgraphExec instantiate() {
    CUgraphExec executable = nullptr;
    PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
    return executable;
  }
  /// What a launch adds to the sum.
  unsigned launch(CUgraphExec executable) {
    unsigned host = 0;
    PTXGEN_OK(driver.memset_d32(sum, 0, 1));
    PTXGEN_OK(driver.graph_launch(executable, nullptr));
    PTXGEN_OK(driver.memcpy_to_host(&host, sum, 4));
    return host;
  }
  void set_left(unsigned value) { PTXGEN_OK(driver.memset_d32(left, value, 1)); }
  CUresult refusal(CUgraphInstantiateResult why) {
    CUgraphExec executable = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS wanted = {};
    const CUresult result = driver.graph_instantiate_with_params(&executable, graph, &wanted);
    CHECK(wanted.result_out == why);
    return result;
  }

  CUmodule module = nullptr;
  CUfunction add = nullptr, set = nullptr, count = nullptr;
  CUdeviceptr sum = 0, left = 0;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  std::vector<CUgraph> bodies;
};

}  // namespace

TEST_CASE("IF runs its body, or the other one, as a kernel says") {
  ConditionFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphConditionalHandle handle = fixture.handle();
  const CUgraphNode first = fixture.kernel(fixture.graph, fixture.set, handle, 1u);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_IF, 2, {first}));
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  PTXGEN_OK(driver.graph_node_get_type(fixture.node, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
  fixture.kernel(fixture.bodies[0], fixture.add, fixture.sum, 10u);
  fixture.kernel(fixture.bodies[1], fixture.add, fixture.sum, 20u);
  const CUgraphExec executable = fixture.instantiate();
  CHECK(fixture.launch(executable) == 10);
  std::array<void*, 2> arguments{};
  unsigned no = 0;
  CUgraphConditionalHandle same = handle;
  arguments = {&same, &no};
  CUDA_KERNEL_NODE_PARAMS params = {};
  PTXGEN_OK(driver.graph_kernel_node_get_params(first, &params));
  params.kernelParams = arguments.data();
  PTXGEN_OK(driver.graph_exec_kernel_node_set_params(executable, first, &params));
  CHECK(fixture.launch(executable) == 20);
  PTXGEN_CHECK_RESULT(driver.graph_destroy(fixture.bodies[0]), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("WHILE repeats its body, with another condition in it") {
  ConditionFixture fixture;
  const CUgraphConditionalHandle handle = fixture.handle(1, kGraphAssignDefault);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1));
  const CUgraph body = fixture.bodies[0];
  const CUgraphNode counted = fixture.kernel(body, fixture.count, handle, fixture.left);
  fixture.kernel(body, fixture.add, fixture.sum, 1u, {counted});
  const CUgraphConditionalHandle inner = fixture.handle();
  const CUgraphNode chosen = fixture.kernel(body, fixture.set, inner, 1u, {counted});
  PTXGEN_OK(fixture.condition(body, inner, CU_GRAPH_COND_TYPE_IF, 1, {chosen}));
  fixture.kernel(fixture.bodies[0], fixture.add, fixture.sum, 100u);
  const CUgraphExec executable = fixture.instantiate();
  fixture.set_left(7);
  CHECK(fixture.launch(executable) == 707);
  // The default value is assigned at each launch.
  fixture.set_left(3);
  CHECK(fixture.launch(executable) == 303);
}

TEST_CASE("SWITCH runs the body of its number, or none") {
  ConditionFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphConditionalHandle handle = fixture.handle(2, kGraphAssignDefault);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_SWITCH, 3));
  for (unsigned i = 0; i < 3; ++i) {
    fixture.kernel(fixture.bodies[i], fixture.add, fixture.sum, i + 1);
  }
  const CUgraphExec executable = fixture.instantiate();
  CHECK(fixture.launch(executable) == 3);

  // An update brings other handles and default values.
  CUgraph before = fixture.graph;
  for (const unsigned value : {0u, 3u, 4000000000u}) {
    PTXGEN_OK(driver.graph_create(&fixture.graph, 0));
    const CUgraphConditionalHandle other = fixture.handle(value, kGraphAssignDefault);
    PTXGEN_OK(fixture.condition(fixture.graph, other, CU_GRAPH_COND_TYPE_SWITCH, 3));
    for (unsigned i = 0; i < 3; ++i) {
      fixture.kernel(fixture.bodies[i], fixture.add, fixture.sum, i + 10);
    }
    CUgraphExecUpdateResultInfo info = {};
    PTXGEN_OK(driver.graph_exec_update(executable, fixture.graph, &info));
    PTXGEN_OK(driver.graph_destroy(fixture.graph));
    CHECK(fixture.launch(executable) == (value == 0 ? 10 : 0));
  }
  PTXGEN_OK(driver.graph_create(&fixture.graph, 0));
  const CUgraphConditionalHandle other = fixture.handle(0, kGraphAssignDefault);
  PTXGEN_OK(fixture.condition(fixture.graph, other, CU_GRAPH_COND_TYPE_SWITCH, 2));
  CUgraphExecUpdateResultInfo info = {};
  PTXGEN_CHECK_RESULT(driver.graph_exec_update(executable, fixture.graph, &info),
                      CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
  CHECK(info.errorNode == fixture.node);
  PTXGEN_OK(driver.graph_destroy(before));
}

TEST_CASE("a body is captured, and a condition in a capture") {
  ConditionFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  const CUstream inner = fixture.make_stream();
  const auto launch_add = [&](CUstream where, unsigned amount) {
    std::array<void*, 2> arguments{&fixture.sum, &amount};
    PTXGEN_OK(
        driver.launch_kernel(fixture.add, 1, 1, 1, 1, 1, 1, 0, where, arguments.data(), nullptr));
  };
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch_add(stream, 1);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  PTXGEN_OK(driver.graph_destroy(fixture.graph));
  PTXGEN_OK(
      driver.stream_get_capture_info_v2(stream, &status, nullptr, &fixture.graph, &last, &count));
  REQUIRE(count == 1);
  const CUgraphConditionalHandle handle = fixture.handle(1, kGraphAssignDefault);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_IF, 1, {*last}));
  PTXGEN_OK(driver.stream_update_capture_dependencies_v2(stream, &fixture.node, nullptr, 1,
                                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  PTXGEN_OK(driver.stream_begin_capture_to_graph(inner, fixture.bodies[0], nullptr, nullptr, 0,
                                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch_add(inner, 10);
  CUgraph ended = nullptr;
  PTXGEN_OK(driver.stream_end_capture(inner, &ended));
  CHECK(ended == fixture.bodies[0]);
  launch_add(stream, 100);
  PTXGEN_OK(driver.stream_end_capture(stream, &ended));
  CHECK(ended == fixture.graph);
  CHECK(fixture.launch(fixture.instantiate()) == 111);

  // The body again, after what it has.
  CUgraphNode in_body = nullptr;
  count = 1;
  PTXGEN_OK(driver.graph_get_nodes(fixture.bodies[0], &in_body, &count));
  PTXGEN_CHECK_RESULT(
      driver.stream_begin_capture_to_graph(inner, fixture.bodies[0], &fixture.node, nullptr, 1,
                                           CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.stream_begin_capture_to_graph(inner, fixture.bodies[0], &in_body, nullptr, 1,
                                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  PTXGEN_CHECK_RESULT(driver.stream_update_capture_dependencies(inner, &fixture.node, 1,
                                                                CU_STREAM_ADD_CAPTURE_DEPENDENCIES),
                      CUDA_ERROR_INVALID_VALUE);
  launch_add(inner, 1000);
  PTXGEN_OK(driver.stream_end_capture(inner, &ended));
  CUgraphNode dependency = nullptr;
  CUgraphNode both[2];
  count = 2;
  PTXGEN_OK(driver.graph_get_nodes(fixture.bodies[0], both, &count));
  REQUIRE(count == 2);
  count = 1;
  PTXGEN_OK(driver.graph_node_get_dependencies(both[1], &dependency, &count));
  CHECK(dependency == in_body);
  PTXGEN_CHECK_RESULT(driver.stream_update_capture_dependencies(inner, nullptr, 0, 0),
                      CUDA_ERROR_ILLEGAL_STATE);
}

TEST_CASE("graphs with conditions are neither cloned, nor children, nor instantiated twice") {
  ConditionFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphConditionalHandle handle = fixture.handle(1, kGraphAssignDefault);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_IF, 1));
  CUgraph other = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_clone(&other, fixture.graph), CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphClone: a graph with conditional nodes cannot be "
                                          "cloned or be a child"));
  PTXGEN_OK(driver.graph_create(&other, 0));
  CUgraphNode node = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_add_child_graph_node(&node, other, nullptr, 0, fixture.graph),
                      CUDA_ERROR_NOT_SUPPORTED);
  CUgraphNodeParams moved{};
  moved.type = CU_GRAPH_NODE_TYPE_GRAPH;
  moved.graph = {fixture.graph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
  PTXGEN_CHECK_RESULT(driver.graph_add_node(&node, other, nullptr, 0, &moved),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("a graph with conditional nodes cannot be a child"));
  CUgraphExec executable = fixture.instantiate();
  CUgraphExec second = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_flags(&second, fixture.graph, 0),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("or with conditional nodes, is instantiated already"));
  const CUstream stream = fixture.make_stream();
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  PTXGEN_CHECK_RESULT(driver.graph_launch(executable, stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("a graph with conditional nodes cannot be captured"));
  PTXGEN_OK(driver.stream_end_capture(stream, &other));
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  executable = fixture.instantiate();
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
}

TEST_CASE("handles and bodies that do not fit are refused") {
  ConditionFixture fixture;
  const Table& driver = fixture.driver;
  const CUgraphConditionalHandle handle = fixture.handle();
  CUgraphConditionalHandle none = 0;
  PTXGEN_CHECK_RESULT(
      driver.graph_conditional_handle_create(&none, fixture.graph, fixture.context, 0, 2),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.graph_conditional_handle_create(&none, nullptr, fixture.context, 0, 0),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(fixture.refusal(CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("has no conditional node"));
  PTXGEN_CHECK_RESULT(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_WHILE, 2),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log,
             Catch::Contains("2 bodies of a conditional node of type 1; IF has 1 or 2, "
                             "WHILE 1, SWITCH 1 or more"));
  PTXGEN_CHECK_RESULT(fixture.condition(fixture.graph, 12345, CU_GRAPH_COND_TYPE_IF, 1),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuGraphAddNode: 0x3039: the handle is of no condition"));
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_IF, 1));
  PTXGEN_CHECK_RESULT(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_IF, 1),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("another conditional node has the handle"));

  CUDA_HOST_NODE_PARAMS host = {[](void*) {}, nullptr};
  CUgraphNode node = nullptr;
  PTXGEN_OK(driver.graph_add_host_node(&node, fixture.bodies[0], nullptr, 0, &host));
  PTXGEN_CHECK_RESULT(fixture.refusal(CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("a body of a conditional node holds a node that it may "
                                          "not"));
  PTXGEN_OK(driver.graph_destroy_node(node));

  CUcontext other = nullptr;
  PTXGEN_OK(driver.ctx_create_v2(&other, 0, 0));
  CUdeviceptr memory = 0;
  PTXGEN_OK(driver.mem_alloc(&memory, 4));
  const CUDA_MEMSET_NODE_PARAMS fill = {memory, 0, 1, 4, 1, 1};
  PTXGEN_OK(driver.graph_add_memset_node(&node, fixture.bodies[0], nullptr, 0, &fill, other));
  PTXGEN_CHECK_RESULT(fixture.refusal(CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("a node of another context than the node's"));
  PTXGEN_OK(driver.ctx_destroy(other));
}

TEST_CASE("a condition without a value counts as 0 and is reported") {
  ConditionFixture fixture;
  const CUgraphConditionalHandle handle = fixture.handle(1, 0);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1));
  fixture.kernel(fixture.bodies[0], fixture.add, fixture.sum, 1u);
  CHECK(fixture.launch(fixture.instantiate()) == 0);
  CHECK_THAT(fixture.log,
             Catch::Contains("which has no value: no kernel of this launch has set it"));
}

TEST_CASE("kernels that set what is no condition are stopped with a reason") {
  ConditionFixture fixture;
  const Table& driver = fixture.driver;
  const auto set = [&](std::uint64_t what) {
    unsigned value = 1;
    std::array<void*, 2> arguments{&what, &value};
    PTXGEN_OK(
        driver.launch_kernel(fixture.set, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr));
    return driver.ctx_synchronize();
  };
  SECTION("any number") {
    CHECK(set(fixture.sum) != CUDA_SUCCESS);
    CHECK_THAT(fixture.log,
               Catch::Contains("cudaGraphSetConditional is called with 0x") &&
                   Catch::Contains("which is no handle of a condition in this context"));
  }
  SECTION("of a graph that was destroyed") {
    const CUgraphConditionalHandle handle = fixture.handle();
    PTXGEN_OK(set(handle));  // outside of a graph: without effect
    PTXGEN_OK(driver.graph_destroy(fixture.graph));
    CHECK(set(handle) != CUDA_SUCCESS);
    CHECK_THAT(fixture.log, Catch::Contains("the handle of a graph that was destroyed"));
  }
}

TEST_CASE("a body that never ends ends with its context") {
  ConditionFixture fixture;
  const CUgraphConditionalHandle handle = fixture.handle(1, kGraphAssignDefault);
  PTXGEN_OK(fixture.condition(fixture.graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1));
  const CUgraphExec executable = fixture.instantiate();
  PTXGEN_OK(fixture.driver.graph_launch(executable, nullptr));
}
