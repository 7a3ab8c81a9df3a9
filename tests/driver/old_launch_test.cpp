// tests/driver/old_launch_test.cpp - cuFuncSetBlockShape, cuParamSet, cuLaunch and cuCtxAttach
#include <array>

#include "emulated_context.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;
using ptxgen::test::ptx_module;

namespace {

/// scale(out, factor, offset): out[block * threads + thread] = factor * thread + offset.
const std::string kScale = ptx_module(R"(
.visible .entry scale(.param .u64 out, .param .f32 factor, .param .u32 offset) {
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [factor];
  ld.param.u32 %r1, [offset];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %ctaid.x;
  mad.lo.u32 %r5, %r3, %r4, %r2;
  cvt.rn.f32.u32 %f2, %r2;
  cvt.rn.f32.u32 %f3, %r1;
  fma.rn.f32 %f2, %f2, %f1, %f3;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f2;
  ret;
}
)");

}  // namespace

TEST_CASE("launches as before CUDA 4.0 keep block and arguments in the function") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  const CUfunction scale = gpu.function(gpu.load(kScale), "scale");
  CUdeviceptr out = gpu.allocate(8 * sizeof(float));
  REQUIRE(api.func_set_block_shape(scale, 4, 1, 1) == CUDA_SUCCESS);
  REQUIRE(api.func_set_shared_size(scale, 0) == CUDA_SUCCESS);
  REQUIRE(api.param_set_v(scale, 0, &out, sizeof out) == CUDA_SUCCESS);
  REQUIRE(api.param_set_f(scale, 8, 2.0f) == CUDA_SUCCESS);
  REQUIRE(api.param_set_i(scale, 12, 10) == CUDA_SUCCESS);
  REQUIRE(api.param_set_size(scale, 16) == CUDA_SUCCESS);
  REQUIRE(api.launch_grid(scale, 2, 1) == CUDA_SUCCESS);
  std::array<float, 8> host{};
  REQUIRE(api.memcpy_to_host(host.data(), out, sizeof host) == CUDA_SUCCESS);
  CHECK(host == std::array<float, 8>{10, 12, 14, 16, 10, 12, 14, 16});
  // What was not set again is as it was.
  REQUIRE(api.param_set_i(scale, 12, 1) == CUDA_SUCCESS);
  REQUIRE(api.launch(scale) == CUDA_SUCCESS);
  REQUIRE(api.memcpy_to_host(host.data(), out, sizeof host) == CUDA_SUCCESS);
  CHECK(host == std::array<float, 8>{1, 3, 5, 7, 10, 12, 14, 16});
  CUstream stream = nullptr;
  REQUIRE(api.stream_create(&stream, 0) == CUDA_SUCCESS);
  REQUIRE(api.param_set_f(scale, 8, 0.0f) == CUDA_SUCCESS);
  REQUIRE(api.launch_grid_async(scale, 2, 1, stream) == CUDA_SUCCESS);
  REQUIRE(api.stream_synchronize(stream) == CUDA_SUCCESS);
  REQUIRE(api.memcpy_to_host(host.data(), out, sizeof host) == CUDA_SUCCESS);
  CHECK(host == std::array<float, 8>{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(gpu.log().empty());
}

TEST_CASE("launches as before CUDA 4.0 are refused with what is missing") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  const CUfunction scale = gpu.function(gpu.load(kScale), "scale");
  CHECK(api.launch(scale) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("'scale' is not launched: its block has no shape; call "
                                 "cuFuncSetBlockShape before cuLaunch"));
  CHECK(api.func_set_block_shape(scale, 0, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.param_set_i(scale, 13, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("bytes 13 to 17 of the parameters of kernel 'scale', which has "
                                 "16 bytes of them"));
  CHECK(api.param_set_i(scale, -4, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.param_set_size(scale, 17) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.launch_grid(scale, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.func_set_block_shape(nullptr, 1, 1, 1) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a context that was attached to lives until it is detached as often") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  CUcontext result = nullptr;
  REQUIRE(api.ctx_create_v2(&result, 0, 0) == CUDA_SUCCESS);
  CUcontext attached = nullptr;
  CHECK(api.ctx_attach(&attached, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.ctx_attach(&attached, 0) == CUDA_SUCCESS);
  CHECK(attached == result);
  CHECK(api.ctx_detach(gpu.context) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(api.ctx_detach(result) == CUDA_SUCCESS);
  CHECK(api.ctx_synchronize() == CUDA_SUCCESS);
  REQUIRE(api.ctx_detach(result) == CUDA_SUCCESS);
  CUcontext now = nullptr;
  CHECK(api.ctx_get_current(&now) == CUDA_SUCCESS);
  CHECK(now == gpu.context);
  CHECK(api.ctx_detach(result) == CUDA_ERROR_INVALID_CONTEXT);
}
