// tests/driver/driver_graph_kernels_test.cpp - kernels in graphs, captures and mapped memory
#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

// add(u32* to, u32 value): to[0] += value, by one thread
constexpr char kAdd[] = R"(.version 8.0
.target sm_80
.address_size 64
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
)";

struct AddFixture : DriverFixture {
  AddFixture() {
    PTXGEN_OK(driver.module_load_data(&module, kAdd));
    PTXGEN_OK(driver.module_get_function(&add, module, "add"));
    sum = allocate(4);
    PTXGEN_OK(driver.memset_d32(sum, 0, 1));
  }
  unsigned value() {
    unsigned host = 0;
    PTXGEN_OK(driver.memcpy_to_host(&host, sum, 4));
    return host;
  }
  /// A node that adds `amount`; the arguments need not live longer than the call.
  CUgraphNode add_node(CUgraph graph, unsigned amount) {
    std::array<void*, 2> arguments{&sum, &amount};
    const CUDA_KERNEL_NODE_PARAMS params = node_params(arguments.data());
    CUgraphNode node = nullptr;
    PTXGEN_OK(driver.graph_add_kernel_node(&node, graph, nullptr, 0, &params));
    return node;
  }
  CUDA_KERNEL_NODE_PARAMS node_params(void** arguments) const {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = add;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
    return params;
  }

  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr sum = 0;
};

}  // namespace

TEST_CASE("kernel nodes keep their arguments, and take others") {
  AddFixture fixture;
  const Table& driver = fixture.driver;
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  const CUgraphNode node = fixture.add_node(graph, 5);
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  CHECK(fixture.value() == 10);

  CUDA_KERNEL_NODE_PARAMS params = {};
  PTXGEN_OK(driver.graph_kernel_node_get_params(node, &params));
  CHECK(params.func == fixture.add);
  CHECK(params.blockDimX == 1);
  unsigned amount = 0;
  std::memcpy(&amount, params.kernelParams[1], 4);
  CHECK(amount == 5);
  amount = 100;
  std::memcpy(params.kernelParams[1], &amount, 4);  // in place, and given back
  PTXGEN_OK(driver.graph_kernel_node_set_params(node, &params));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));  // its own copy
  CHECK(fixture.value() == 15);
  CUgraphExecUpdateResultInfo info = {};
  PTXGEN_OK(driver.graph_exec_update(executable, graph, &info));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  CHECK(fixture.value() == 115);

  amount = 1000;
  std::array<void*, 2> arguments{&fixture.sum, &amount};
  params = fixture.node_params(arguments.data());
  PTXGEN_OK(driver.graph_exec_kernel_node_set_params(executable, node, &params));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  CHECK(fixture.value() == 1115);
  params.blockDimX = 2000;
  PTXGEN_CHECK_RESULT(driver.graph_exec_kernel_node_set_params(executable, node, &params),
                      CUDA_ERROR_INVALID_VALUE);
  CUgraphNode empty = nullptr;
  PTXGEN_OK(driver.graph_add_empty_node(&empty, graph, nullptr, 0));
  PTXGEN_CHECK_RESULT(driver.graph_kernel_node_get_params(empty, &params),
                      CUDA_ERROR_INVALID_VALUE);
  params = fixture.node_params(arguments.data());
  PTXGEN_CHECK_RESULT(driver.graph_exec_kernel_node_set_params(executable, empty, &params),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  PTXGEN_OK(driver.graph_destroy(graph));
}

TEST_CASE("a captured launch runs with each launch of its graph") {
  AddFixture fixture;
  const Table& driver = fixture.driver;
  const CUstream stream = fixture.make_stream();
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  {
    unsigned amount = 7;
    std::array<void*, 2> arguments{&fixture.sum, &amount};
    PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    PTXGEN_OK(
        driver.launch_kernel(fixture.add, 1, 1, 1, 1, 1, 1, 0, stream, arguments.data(), nullptr));
    CUmodule module = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    PTXGEN_OK(driver.thread_exchange_stream_capture_mode(&mode));
    PTXGEN_OK(driver.module_load_data(&module, kAdd));
    PTXGEN_OK(driver.thread_exchange_stream_capture_mode(&mode));
    PTXGEN_OK(driver.stream_end_capture(stream, &graph));
  }
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) PTXGEN_OK(driver.graph_launch(executable, stream));
  PTXGEN_OK(driver.stream_synchronize(stream));
  CHECK(fixture.value() == 21);
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUmodule never = nullptr;
  PTXGEN_CHECK_RESULT(driver.module_load_data(&never, kAdd), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph invalid = nullptr;
  PTXGEN_CHECK_RESULT(driver.stream_end_capture(stream, &invalid),
                      CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  PTXGEN_OK(driver.graph_destroy(graph));
}

TEST_CASE("a graph whose module was unloaded is refused") {
  AddFixture fixture;
  const Table& driver = fixture.driver;
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  const CUgraphNode node = fixture.add_node(graph, 5);
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  PTXGEN_OK(driver.module_unload(fixture.module));
  PTXGEN_CHECK_RESULT(driver.graph_launch(executable, nullptr), CUDA_ERROR_INVALID_HANDLE);
  CHECK_THAT(fixture.log, Catch::Contains("a kernel whose module was unloaded"));
  CUDA_KERNEL_NODE_PARAMS params = {};
  PTXGEN_CHECK_RESULT(driver.graph_kernel_node_get_params(node, &params),
                      CUDA_ERROR_INVALID_HANDLE);
  CUgraphExec other = nullptr;
  PTXGEN_CHECK_RESULT(driver.graph_instantiate_with_flags(&other, graph, 0),
                      CUDA_ERROR_INVALID_HANDLE);
  PTXGEN_OK(driver.ctx_synchronize());
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  PTXGEN_OK(driver.graph_destroy(graph));
}

TEST_CASE("a kernel reaches pinned memory at its device address") {
  AddFixture fixture;
  const Table& driver = fixture.driver;
  void* memory = nullptr;
  PTXGEN_OK(driver.mem_host_alloc(&memory, 64, kMemHostAllocDeviceMap));
  auto* const words = static_cast<unsigned*>(memory);
  words[3] = 40;
  CUdeviceptr mapped = 0;
  PTXGEN_OK(driver.mem_host_get_device_pointer(&mapped, words + 3, 0));
  unsigned amount = 2;
  std::array<void*, 2> arguments{&mapped, &amount};
  PTXGEN_OK(
      driver.launch_kernel(fixture.add, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK(words[3] == 42);
  PTXGEN_OK(driver.mem_free_host(memory));
}

TEST_CASE("pinned memory stays initialised when bytes that nothing wrote are copied to it") {
  AddFixture fixture;
  const Table& driver = fixture.driver;
  void* memory = nullptr;
  PTXGEN_OK(driver.mem_host_alloc(&memory, 64, 0));
  const auto pinned = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory));
  const CUdeviceptr unwritten = fixture.allocate(64);
  const CUdeviceptr copied = fixture.allocate(64);
  PTXGEN_OK(driver.memcpy_unified(pinned, unwritten, 64));
  auto* const words = static_cast<unsigned*>(memory);
  words[3] = 40;  // which the emulator does not see
  PTXGEN_OK(driver.memcpy_unified(copied, pinned, 64));
  const auto add_to = [&](CUdeviceptr address) {
    unsigned amount = 2;
    std::array<void*, 2> arguments{&address, &amount};
    PTXGEN_OK(
        driver.launch_kernel(fixture.add, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr));
    PTXGEN_OK(driver.ctx_synchronize());
  };
  fixture.log.clear();
  add_to(copied + 12);
  CHECK(fixture.log.empty());
  CHECK(fixture.bytes_of(copied + 12, 1) == std::vector<unsigned char>{42});
  add_to(unwritten + 12);
  CHECK_THAT(fixture.log, Catch::Contains("which was never written"));
  PTXGEN_OK(driver.mem_free_host(memory));
}

TEST_CASE("graph launches run with the options that the context has then") {
  AddFixture fixture;
  const Table& driver = fixture.driver;
  CUgraph graph = nullptr;
  PTXGEN_OK(driver.graph_create(&graph, 0));
  fixture.add_node(graph, 5);
  CUgraphExec executable = nullptr;
  PTXGEN_OK(driver.graph_instantiate_with_flags(&executable, graph, 0));
  emulator::Options options = emulated::default_options();
  options.counters = false;
  PTXGEN_OK(emulated::set_launch_options(fixture.context, options));
  bool counted = true;
  PTXGEN_OK(emulated::observe_launches(
      fixture.context,
      [](void* user, const emulated::LaunchReport& report) {
        *static_cast<bool*>(user) = report.result.counters.warp_instructions != 0;
      },
      &counted));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK_FALSE(counted);
  options.counters = true;
  PTXGEN_OK(emulated::set_launch_options(fixture.context, options));
  PTXGEN_OK(driver.graph_launch(executable, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK(counted);
  PTXGEN_OK(emulated::observe_launches(fixture.context, nullptr, nullptr));
  PTXGEN_OK(driver.graph_exec_destroy(executable));
  PTXGEN_OK(driver.graph_destroy(graph));
}
