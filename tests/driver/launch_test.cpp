// tests/driver/launch_test.cpp - launches: arguments, limits, attributes
#include <unistd.h>

#include <array>
#include <cstdio>
#include <thread>

#include "emulated_context.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;
using ptxgen::test::ptx_module;

namespace {

/// store(out, x, y): out[thread] = x + y, with x of 1 byte in front of y of 8. wide: two registers
/// for each of 1024 threads. shared: 1000 bytes of its own.
const std::string kKernels = ptx_module(R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry store(.param .u64 out, .param .u8 x, .param .u64 y) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  ld.param.u8 %rd2, [x];
  ld.param.u64 %rd3, [y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 8;
  add.u64 %rd1, %rd1, %rd4;
  add.u64 %rd5, %rd2, %rd3;
  st.global.u64 [%rd1], %rd5;
  ret;
}
.visible .entry plain() .maxntid 256 { ret; }
.visible .entry exact() .reqntid 64, 2 { ret; }
.visible .entry shared() {
  .reg .b32 %r<3>;
  .shared .align 4 .b8 own[1000];
  mov.u32 %r1, own;
  mov.u32 %r2, dynamic;
  ret;
}
)");

struct Fixture {
  EmulatedContext gpu;
  CUmodule module = gpu.load(kKernels);
  CUfunction plain = gpu.function(module, "plain");
  CUfunction store = gpu.function(module, "store");
  CUfunction shared = gpu.function(module, "shared");

  CUresult launch(CUfunction function, emulator::Dim3 grid, emulator::Dim3 block,
                  unsigned bytes = 0, void** parameters = nullptr, void** extra = nullptr) {
    return gpu.api.launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, bytes,
                                 nullptr, parameters, extra);
  }
  CUresult launch_ex(CUfunction function, emulator::Dim3 grid,
                     std::vector<CUlaunchAttribute> attributes) {
    CUlaunchConfig config{};
    config.gridDimX = grid.x;
    config.gridDimY = grid.y;
    config.gridDimZ = grid.z;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    return gpu.api.launch_kernel_ex(&config, function, nullptr, nullptr);
  }
};

CUlaunchAttribute attribute(CUlaunchAttributeID id, unsigned a = 0, unsigned b = 0,
                            unsigned c = 0) {
  CUlaunchAttribute result{};
  result.id = id;
  result.value.clusterDim = {a, b, c};
  return result;
}

}  // namespace

TEST_CASE("launch: arguments are copied at the call, from either place") {
  Fixture f;
  CUdeviceptr out = f.gpu.allocate(32);
  std::uint8_t x = 5;
  std::uint64_t y = 1000;
  std::array<void*, 3> parameters{&out, &x, &y};
  REQUIRE(f.launch(f.store, {1, 1, 1}, {2, 1, 1}, 0, parameters.data()) == CUDA_SUCCESS);
  x = 0;
  y = 0;
  struct {
    CUdeviceptr out;
    std::uint8_t x = 7;
    std::uint64_t y = 70;
  } block{out + 16};
  std::size_t size = sizeof block;
  const auto mark = [](std::uintptr_t value) { return reinterpret_cast<void*>(value); };
  std::array<void*, 5> extra{mark(kLaunchParamBufferPointer), &block, mark(kLaunchParamBufferSize),
                             &size, mark(kLaunchParamEnd)};
  REQUIRE(f.launch(f.store, {1, 1, 1}, {2, 1, 1}, 0, nullptr, extra.data()) == CUDA_SUCCESS);
  block = {};
  std::array<std::uint64_t, 4> got{};
  REQUIRE(f.gpu.api.memcpy_to_host(got.data(), out, sizeof got) == CUDA_SUCCESS);
  CHECK(got == std::array<std::uint64_t, 4>{1005, 1005, 77, 77});

  CHECK(f.launch(f.store, {1, 1, 1}, {1, 1, 1}) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(f.gpu.log(), Contains("24 bytes and none were given"));
  CHECK(f.launch(f.store, {1, 1, 1}, {1, 1, 1}, 0, parameters.data(), extra.data()) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(f.gpu.log(), Contains("both kernelParams and extra"));
  size = 23;
  CHECK(f.launch(f.store, {1, 1, 1}, {1, 1, 1}, 0, nullptr, extra.data()) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(f.gpu.log(), Contains("24 bytes and 23 were given"));
  extra[2] = mark(9);
  CHECK(f.launch(f.store, {1, 1, 1}, {1, 1, 1}, 0, nullptr, extra.data()) ==
        CUDA_ERROR_INVALID_VALUE);
  parameters[1] = nullptr;
  CHECK(f.launch(f.store, {1, 1, 1}, {1, 1, 1}, 0, parameters.data()) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(f.gpu.log(), Contains("argument 1 (parameter x) is null"));
  CHECK(f.gpu.api.ctx_synchronize() == CUDA_SUCCESS);
}

TEST_CASE("launch: sizes beyond the limits are refused at the call") {
  Fixture f;
  const CUfunction exact = f.gpu.function(f.module, "exact");
  const auto refused = [&](CUfunction function, emulator::Dim3 grid, emulator::Dim3 block,
                           const char* words) {
    CHECK(f.launch(function, grid, block) == CUDA_ERROR_INVALID_VALUE);
    CHECK_THAT(f.gpu.log(), Contains(words));
  };
  refused(f.plain, {0, 1, 1}, {1, 1, 1}, "a grid of (0,1,1)");
  refused(f.plain, {1, 65536, 1}, {1, 1, 1}, "a grid of (1,65536,1)");
  refused(f.plain, {0x80000000u, 1, 1}, {1, 1, 1}, "at most (2147483647,65535,65535)");
  refused(f.plain, {1, 1, 1}, {1, 0, 1}, "a block of (1,0,1)");
  refused(f.plain, {1, 1, 1}, {1, 1, 65}, "(1024,1024,64)");
  refused(f.store, {1, 1, 1}, {1025, 1, 1}, "a block of (1025,1,1)");
  refused(f.store, {1, 1, 1}, {1024, 2, 1}, "1024 threads in all");
  refused(f.plain, {1, 1, 1}, {257, 1, 1}, "at most 256");
  refused(exact, {1, 1, 1}, {128, 1, 1}, "its .reqntid requires (64,2,1)");
  CHECK(f.launch(f.plain, {1, 1, 1}, {256, 1, 1}) == CUDA_SUCCESS);
  CHECK(f.launch(exact, {1, 1, 1}, {64, 2, 1}) == CUDA_SUCCESS);
  CHECK(f.launch(nullptr, {1, 1, 1}, {1, 1, 1}) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(f.gpu.api.ctx_synchronize() == CUDA_SUCCESS);
}

TEST_CASE("launch: shared memory above 48 KiB needs the kernel's consent") {
  Fixture f;
  const auto set = [&](int bytes) {
    return f.gpu.api.func_set_attribute(f.shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        bytes);
  };
  CHECK(f.launch(f.shared, {1, 1, 1}, {1, 1, 1}, 49152 - 1000) == CUDA_SUCCESS);
  CHECK(f.launch(f.shared, {1, 1, 1}, {1, 1, 1}, 49152) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(f.gpu.log(), Contains("may have 48152") && Contains("up to 231448") &&
                              Contains("MAX_DYNAMIC_SHARED_SIZE_BYTES"));
  CHECK(set(232448) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(f.gpu.log(),
             Contains("1000 bytes of static shared memory") && Contains("232448 in total"));
  CHECK(set(-1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(231424) == CUDA_SUCCESS);
  CHECK(f.launch(f.shared, {1, 1, 1}, {1, 1, 1}, 231424) == CUDA_SUCCESS);
  CHECK(f.launch(f.shared, {1, 1, 1}, {1, 1, 1}, 231425) == CUDA_ERROR_INVALID_VALUE);
  CHECK(f.gpu.api.ctx_synchronize() == CUDA_SUCCESS);
}

TEST_CASE("launch: attributes of cuLaunchKernelEx") {
  Fixture f;
  using enum CUlaunchAttributeID;
  CHECK(f.launch_ex(f.plain, {2, 1, 1},
                    {attribute(CU_LAUNCH_ATTRIBUTE_IGNORE),
                     attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1),
                     attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, 1),
                     attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1),
                     attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 1, 1, 1)}) == CUDA_SUCCESS);
  const auto refused = [&](emulator::Dim3 grid, const CUlaunchAttribute& one, CUresult code,
                           const char* words) {
    CHECK(f.launch_ex(f.plain, grid, {one}) == code);
    CHECK_THAT(f.gpu.log(), Contains(words));
  };
  const auto cluster = [](unsigned x) {
    return attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, x, 1, 1);
  };
  CHECK(f.launch_ex(f.plain, {4, 1, 1}, {cluster(2)}) == CUDA_SUCCESS);
  refused({5, 1, 1}, cluster(2), CUDA_ERROR_INVALID_CLUSTER_SIZE, "divides the grid");
  refused({16, 1, 1}, cluster(16), CUDA_ERROR_INVALID_CLUSTER_SIZE, "at most 8");
  refused({16, 1, 1}, cluster(0), CUDA_ERROR_INVALID_CLUSTER_SIZE, "empty cluster");
  refused({1, 1, 1}, attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), CUDA_ERROR_NOT_SUPPORTED,
          "launch attribute 7");
  refused({1, 1, 1}, attribute(static_cast<CUlaunchAttributeID>(99)), CUDA_ERROR_INVALID_VALUE,
          "launch attribute 99 is not known");
  CHECK(f.gpu.api.launch_kernel_ex(nullptr, f.plain, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(f.gpu.api.ctx_synchronize() == CUDA_SUCCESS);
}

TEST_CASE("launch: a cooperative grid must fit the device at once") {
  Fixture f;
  int blocks = 0;
  REQUIRE(f.gpu.api.occupancy_max_active_blocks_per_multiprocessor(&blocks, f.plain, 256, 0) ==
          CUDA_SUCCESS);
  CHECK(blocks == 8);  // 64 warps of an sm_90 multiprocessor
  const unsigned max = static_cast<unsigned>(blocks) * 132;
  const auto launch = [&](unsigned grid) {
    return f.gpu.api.launch_cooperative_kernel(f.plain, grid, 1, 1, 256, 1, 1, 0, nullptr, nullptr);
  };
  CHECK(launch(max) == CUDA_SUCCESS);
  CHECK(launch(max + 1) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CHECK_THAT(f.gpu.log(), Contains("grid of 1057 blocks; the device holds 1056"));
  CHECK(f.gpu.api.ctx_synchronize() == CUDA_SUCCESS);
}

TEST_CASE("launch: a function belongs to its context") {
  Fixture f;
  const EmulatedContext other;
  CHECK(f.launch(f.plain, {1, 1, 1}, {1, 1, 1}) == CUDA_ERROR_INVALID_HANDLE);
  CHECK_THAT(f.gpu.log(), Contains("in the stream's context"));
  REQUIRE(f.gpu.api.ctx_set_current(f.gpu.context) == CUDA_SUCCESS);
  CHECK(f.launch(f.plain, {1, 1, 1}, {1, 1, 1}) == CUDA_SUCCESS);
}

TEST_CASE("launch: unloading waits for what is queued") {
  Fixture f;
  CUdeviceptr out = f.gpu.allocate(8 * 1024);
  std::uint8_t x = 1;
  std::uint64_t y = 2;
  std::array<void*, 3> parameters{&out, &x, &y};
  for (int i = 0; i < 50; ++i) {
    REQUIRE(f.launch(f.store, {20, 1, 1}, {1024, 1, 1}, 0, parameters.data()) == CUDA_SUCCESS);
  }
  REQUIRE(f.gpu.api.module_unload(f.module) == CUDA_SUCCESS);
  std::uint64_t got = 0;
  CHECK(f.gpu.api.memcpy_to_host(&got, out, 8) == CUDA_SUCCESS);
  CHECK(got == 3);
  CHECK(f.gpu.log().empty());  // the blocks write the same bytes, with the same value: a note
}

TEST_CASE("launch: occupancy through the table") {
  Fixture f;
  int blocks = -1;
  const auto active = [&](CUfunction function, int threads, std::size_t dynamic) {
    REQUIRE(f.gpu.api.occupancy_max_active_blocks_per_multiprocessor_with_flags(
                &blocks, function, threads, dynamic, 0) == CUDA_SUCCESS);
    return blocks;
  };
  CHECK(active(f.shared, 32, 0) == 32);
  CHECK(active(f.shared, 32, 48000) == 4);  // 233472 / 50048
  CHECK(active(f.shared, 32, 49000) == 0);  // without consent
  CHECK(active(f.plain, 257, 0) == 0);      // above .maxntid
  CHECK(f.gpu.api.occupancy_max_active_blocks_per_multiprocessor(&blocks, f.plain, 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);

  int grid = 0;
  int block = 0;
  REQUIRE(f.gpu.api.occupancy_max_potential_block_size(&grid, &block, f.plain, nullptr, 0, 0) ==
          CUDA_SUCCESS);
  CHECK(block == 256);
  CHECK(grid == 8 * 132);
  REQUIRE(f.gpu.api.occupancy_max_potential_block_size(&grid, &block, f.plain, nullptr, 0, 100) ==
          CUDA_SUCCESS);
  // 64 threads are 2 of 64 warps and come 32 times: 2048 threads; 96 come 21 times, 100 16 times.
  CHECK(block == 64);
  const auto per_thread = [](int threads) { return static_cast<std::size_t>(threads) * 1024; };
  REQUIRE(f.gpu.api.occupancy_max_potential_block_size(&grid, &block, f.shared, per_thread, 0, 0) ==
          CUDA_SUCCESS);
  CHECK(block == 32);  // 32 KiB and 1000 bytes: 6 blocks; 48 KiB would be above the consent
  CHECK(grid == 6 * 132);

  std::size_t bytes = 0;
  REQUIRE(f.gpu.api.occupancy_available_dynamic_shared_per_block(&bytes, f.shared, 2, 128) ==
          CUDA_SUCCESS);
  CHECK(bytes == 48152);  // 49152 - 1000, which launches are limited to
  REQUIRE(f.gpu.api.func_set_attribute(f.shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       200000) == CUDA_SUCCESS);
  REQUIRE(f.gpu.api.occupancy_available_dynamic_shared_per_block(&bytes, f.shared, 2, 128) ==
          CUDA_SUCCESS);
  CHECK(bytes == 114712);  // 116736 - 1024 - 1000
  CHECK(f.gpu.api.occupancy_available_dynamic_shared_per_block(&bytes, f.shared, 33, 32) ==
        CUDA_ERROR_INVALID_VALUE);

  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 256;
  config.blockDimY = config.blockDimZ = 1;
  int clusters = 0;
  CHECK(f.gpu.api.occupancy_max_active_clusters(&clusters, f.plain, &config) == CUDA_SUCCESS);
  CHECK(clusters == 1056);
  CHECK(f.gpu.api.occupancy_max_potential_cluster_size(&clusters, f.plain, &config) ==
        CUDA_SUCCESS);
  CHECK(clusters == 8);
  CUlaunchAttribute pair = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2, 1, 1);
  config.attrs = &pair;
  config.numAttrs = 1;
  CHECK(f.gpu.api.occupancy_max_active_clusters(&clusters, f.plain, &config) == CUDA_SUCCESS);
  CHECK(clusters == 528);
  // Eight blocks that have a multiprocessor each: two clusters in each of eight GPCs.
  pair.value.clusterDim = {8, 1, 1};
  config.sharedMemBytes = 200 * 1024;
  REQUIRE(f.gpu.api.func_set_attribute(f.plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       200 * 1024) == CUDA_SUCCESS);
  CHECK(f.gpu.api.occupancy_max_active_clusters(&clusters, f.plain, &config) == CUDA_SUCCESS);
  CHECK(clusters == 16);
  pair.value.clusterDim = {16, 1, 1};
  CHECK(f.gpu.api.occupancy_max_active_clusters(&clusters, f.plain, &config) ==
        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_CASE("launch: clusters by attribute, by directive, and in a graph") {
  Fixture f;
  const auto text = [](const char* directive) {
    return std::string(".version 7.8\n.target sm_90\n.address_size 64\n") +
           ".visible .entry ranks(.param .u64 out) " + directive + R"( {
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctarank;
  mad.lo.u32 %r4, %r3, 10, %r2;
  st.global.u32 [%rd3], %r4;
  ret;
}
)";
  };
  const CUfunction free = f.gpu.function(f.gpu.load(text("")), "ranks");
  const CUfunction bound = f.gpu.function(f.gpu.load(text(".reqnctapercluster 2")), "ranks");
  const CUfunction named = f.gpu.function(f.gpu.load(text(".explicitcluster")), "ranks");
  CUdeviceptr out = f.gpu.allocate(16);
  void* parameters[] = {&out};
  CUstream stream = nullptr;
  REQUIRE(f.gpu.api.stream_create(&stream, 0) == CUDA_SUCCESS);
  const auto launch = [&](CUfunction function, unsigned cluster) {
    CUlaunchAttribute size =
        attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster, 1, 1);
    CUlaunchConfig config{};
    config.gridDimX = 4;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &size;
    config.numAttrs = cluster != 0 ? 1 : 0;
    return f.gpu.api.launch_kernel_ex(&config, function, parameters, nullptr);
  };
  const auto ranks = [&] {
    std::array<std::uint32_t, 4> got{};
    REQUIRE(f.gpu.api.stream_synchronize(stream) == CUDA_SUCCESS);
    REQUIRE(f.gpu.api.memcpy_to_host(got.data(), out, sizeof got) == CUDA_SUCCESS);
    REQUIRE(f.gpu.api.memset_d8(out, 0, 16) == CUDA_SUCCESS);
    return got;
  };
  const std::array<std::uint32_t, 4> single{10, 10, 10, 10}, pairs{20, 21, 20, 21},
      four{40, 41, 42, 43};
  REQUIRE(launch(free, 0) == CUDA_SUCCESS);
  CHECK(ranks() == single);
  REQUIRE(launch(free, 4) == CUDA_SUCCESS);
  CHECK(ranks() == four);
  REQUIRE(launch(bound, 0) == CUDA_SUCCESS);
  CHECK(ranks() == pairs);
  CHECK(launch(bound, 4) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
  CHECK(launch(named, 0) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
  CHECK_THAT(f.gpu.log(), Contains("no cluster size, which a kernel with .explicitcluster"));
  REQUIRE(launch(named, 2) == CUDA_SUCCESS);
  CHECK(ranks() == pairs);

  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  REQUIRE(f.gpu.api.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(launch(free, 4) == CUDA_SUCCESS);
  REQUIRE(f.gpu.api.stream_end_capture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(f.gpu.api.graph_instantiate_with_flags(&executable, graph, 0) == CUDA_SUCCESS);
  CHECK(ranks() == std::array<std::uint32_t, 4>{});
  REQUIRE(f.gpu.api.graph_launch(executable, stream) == CUDA_SUCCESS);
  CHECK(ranks() == four);
  REQUIRE(f.gpu.api.graph_exec_destroy(executable) == CUDA_SUCCESS);
  REQUIRE(f.gpu.api.graph_destroy(graph) == CUDA_SUCCESS);
  REQUIRE(f.gpu.api.stream_destroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("launch: attributes of functions that may be set") {
  Fixture f;
  const auto set = [&](CUfunction_attribute which, int value) {
    return f.gpu.api.func_set_attribute(f.plain, which, value);
  };
  const auto get = [&](CUfunction_attribute which) {
    int value = -5;
    CHECK(f.gpu.api.func_get_attribute(&value, which, f.plain) == CUDA_SUCCESS);
    return value;
  };
  CHECK(get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == -1);
  CHECK(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50) == CUDA_SUCCESS);
  CHECK(get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == 50);
  CHECK(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) == CUDA_SUCCESS);
  CHECK(get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 1);
  CHECK(set(CU_FUNC_ATTRIBUTE_NUM_REGS, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2) == CUDA_SUCCESS);
  CHECK(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1) == CUDA_SUCCESS);
  CHECK(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1) == CUDA_SUCCESS);
  CHECK(f.launch(f.plain, {2, 1, 1}, {1, 1, 1}) == CUDA_SUCCESS);
  CHECK(f.launch(f.plain, {3, 1, 1}, {1, 1, 1}) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
  CHECK(f.gpu.api.func_set_cache_config(f.plain, CU_FUNC_CACHE_PREFER_L1) == CUDA_SUCCESS);
  CHECK(f.gpu.api.func_set_cache_config(f.plain, static_cast<CUfunc_cache>(4)) ==
        CUDA_ERROR_INVALID_VALUE);
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  CHECK(f.gpu.api.func_load(f.plain) == CUDA_SUCCESS);
  CHECK(f.gpu.api.func_is_loaded(&state, f.plain) == CUDA_SUCCESS);
  CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
  int value = 0;
  CHECK(f.gpu.api.func_get_attribute(&value, static_cast<CUfunction_attribute>(77), f.plain) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("launch: device printf is on standard output after the next synchronisation") {
  EmulatedContext gpu;
  const CUmodule module = gpu.load(ptx_module(R"(
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[11] = {116, 104, 114, 101, 97, 100, 32, 37, 100, 10, 0};
.visible .entry says() {
  .local .align 8 .b8 values[8];
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  .param .b64 format;
  .param .b64 arguments;
  .param .b32 written;
  mov.u32 %r1, %tid.x;
  mov.u64 %rd1, values;
  st.local.u32 [%rd1], %r1;
  cvta.local.u64 %rd2, %rd1;
  mov.u64 %rd3, text;
  cvta.global.u64 %rd3, %rd3;
  st.param.b64 [format], %rd3;
  st.param.b64 [arguments], %rd2;
  call (written), vprintf, (format, arguments);
  ret;
}
)"));
  const TemporaryDirectory folder;
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  REQUIRE(kept >= 0);
  std::FILE* const file = std::fopen(folder.file("out").c_str(), "w");
  REQUIRE(file != nullptr);
  REQUIRE(::dup2(::fileno(file), STDOUT_FILENO) >= 0);
  const CUresult queued = gpu.api.launch_kernel(gpu.function(module, "says"), 1, 1, 1, 2, 1, 1, 0,
                                                nullptr, nullptr, nullptr);
  const CUresult done = gpu.api.ctx_synchronize();
  std::fflush(stdout);
  REQUIRE(::dup2(kept, STDOUT_FILENO) >= 0);
  ::close(kept);
  std::fclose(file);
  CHECK(queued == CUDA_SUCCESS);
  CHECK(done == CUDA_SUCCESS);
  CHECK(read_file(folder.file("out")) == "thread 0\nthread 1\n");
}

TEST_CASE("launch: threads load, launch and unload at the same time") {
  Fixture f;
  std::array<std::uint64_t, 4> got{};
  std::array<CUdeviceptr, 4> memory{};
  for (CUdeviceptr& each : memory) each = f.gpu.allocate(8);
  std::vector<std::thread> crew;
  for (std::size_t t = 0; t < got.size(); ++t) {
    crew.emplace_back([&, t] {
      const Table& api = f.gpu.api;
      (void)api.ctx_set_current(f.gpu.context);
      for (std::uint64_t i = 0; i < 20; ++i) {
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        if (api.module_load_data(&module, kKernels.c_str()) != CUDA_SUCCESS) return;
        if (api.module_get_function(&function, module, "store") != CUDA_SUCCESS) return;
        std::uint8_t x = 1;
        std::uint64_t y = 100 * t + i;
        std::array<void*, 3> parameters{&memory[t], &x, &y};
        (void)api.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr);
        if (api.module_unload(module) != CUDA_SUCCESS) return;
      }
      (void)api.memcpy_to_host(&got[t], memory[t], 8);
    });
  }
  for (std::thread& thread : crew) thread.join();
  CHECK(got == std::array<std::uint64_t, 4>{20, 120, 220, 320});
  CHECK(f.gpu.log().empty());
}
