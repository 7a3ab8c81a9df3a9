// tests/driver/link_test.cpp - cuLink on the emulated driver
#include <array>

#include "emulated_context.hpp"
#include "fatbin_builder.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;
using ptxgen::test::ptx_module;

namespace {

const std::string kUser = ptx_module(R"(
.extern .func (.param .b32 r) answer();
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  .param .b32 b;
  ld.param.u64 %rd1, [out];
  call (b), answer;
  ld.param.b32 %r1, [b];
  st.global.u32 [%rd1], %r1;
  ret;
}
)");
const std::string kAnswer = ptx_module(R"(
.visible .func (.param .b32 r) answer() {
  .reg .b32 %r<2>;
  mov.u32 %r1, 42;
  st.param.b32 [r], %r1;
  ret;
}
)");

CUresult add(EmulatedContext& gpu, CUlinkState link, const std::string& ptx, const char* name,
             CUjitInputType type = CU_JIT_INPUT_PTX) {
  return gpu.api.link_add_data(link, type, const_cast<char*>(ptx.c_str()), ptx.size() + 1, name, 0,
                               nullptr, nullptr);
}

}  // namespace

TEST_CASE("link: two texts become a module that runs") {
  EmulatedContext gpu;
  CUlinkState link = nullptr;
  REQUIRE(gpu.api.link_create(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
  REQUIRE(add(gpu, link, kUser, "user") == CUDA_SUCCESS);
  REQUIRE(add(gpu, link, kAnswer, "answer") == CUDA_SUCCESS);
  void* image = nullptr;
  std::size_t size = 0;
  REQUIRE(gpu.api.link_complete(link, &image, &size) == CUDA_SUCCESS);
  CHECK(size > kAnswer.size());
  // The image goes with the link; callers copy it.
  std::vector<char> copy(static_cast<char*>(image), static_cast<char*>(image) + size);
  CHECK(add(gpu, link, kAnswer, "late") == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(gpu.api.link_destroy(link) == CUDA_SUCCESS);
  CHECK(gpu.api.link_destroy(link) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(gpu.api.link_complete(link, &image, &size) == CUDA_ERROR_INVALID_HANDLE);

  CUmodule module = nullptr;
  REQUIRE(gpu.api.module_load_data(&module, copy.data()) == CUDA_SUCCESS);
  CUdeviceptr out = gpu.allocate(4);
  std::array<void*, 1> parameters{&out};
  REQUIRE(gpu.api.launch_kernel(gpu.function(module, "k"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                parameters.data(), nullptr) == CUDA_SUCCESS);
  std::uint32_t value = 0;
  REQUIRE(gpu.api.memcpy_to_host(&value, out, 4) == CUDA_SUCCESS);
  CHECK(value == 42);

  // The image is an input of another link too.
  CUlinkState again = nullptr;
  REQUIRE(gpu.api.link_create(0, nullptr, nullptr, &again) == CUDA_SUCCESS);
  CHECK(gpu.api.link_add_data(again, CU_JIT_INPUT_CUBIN, copy.data(), copy.size(), "linked", 0,
                              nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(gpu.api.link_complete(again, &image, &size) == CUDA_SUCCESS);
  CHECK(size == copy.size());
  CHECK(gpu.api.link_destroy(again) == CUDA_SUCCESS);
}

TEST_CASE("link: logs of the options that it was created with") {
  EmulatedContext gpu;
  std::array<char, 1000> info{};
  std::array<char, 1000> error{};
  std::array names{CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                   CU_JIT_LOG_VERBOSE,      CU_JIT_TARGET};
  std::array<void*, 6> values{info.data(),
                              reinterpret_cast<void*>(info.size()),
                              error.data(),
                              reinterpret_cast<void*>(error.size()),
                              reinterpret_cast<void*>(1),
                              reinterpret_cast<void*>(100)};
  CUlinkState link = nullptr;
  REQUIRE(gpu.api.link_create(6, names.data(), values.data(), &link) == CUDA_SUCCESS);
  void* image = nullptr;
  std::size_t size = 0;
  CHECK(gpu.api.link_complete(link, &image, &size) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(gpu, link, ptx_module("?\n"), "broken.ptx") == CUDA_ERROR_INVALID_PTX);
  CHECK_THAT(error.data(), Contains("ptxas broken.ptx, line 4; error   : "));
  CUjit_option option = CU_JIT_TARGET;
  void* target = reinterpret_cast<void*>(90);
  CHECK(gpu.api.link_add_data(link, CU_JIT_INPUT_PTX, const_cast<char*>(kAnswer.c_str()),
                              kAnswer.size() + 1, "own", 1, &option,
                              &target) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("belongs to cuLinkCreate"));
  CHECK(add(gpu, link, "hello", "text") == CUDA_ERROR_INVALID_PTX);
  CHECK(add(gpu, link, test::cubin_bytes(), "machine", CU_JIT_INPUT_CUBIN) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THAT(gpu.log(), Contains("'machine'") && Contains("a cubin"));
  // The target is above the GPU: linked, but not loaded here.
  CHECK(add(gpu, link, ptx_module(".visible .entry k() { ret; }", "sm_100", "8.6"), "new") ==
        CUDA_SUCCESS);
  REQUIRE(gpu.api.link_complete(link, &image, &size) == CUDA_SUCCESS);
  CHECK_THAT(info.data(), Contains("Function properties for k"));
  CUmodule module = nullptr;
  CHECK(gpu.api.module_load_data(&module, image) == CUDA_ERROR_INVALID_PTX);
  CHECK(gpu.api.link_destroy(link) == CUDA_SUCCESS);
}

TEST_CASE("link: what is missing or twice is said when it is completed") {
  EmulatedContext gpu;
  void* image = nullptr;
  std::size_t size = 0;
  const auto complete = [&](const std::string& a, const std::string& b, const char* words) {
    CUlinkState link = nullptr;
    REQUIRE(gpu.api.link_create(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
    CHECK(add(gpu, link, a, "a") == CUDA_SUCCESS);
    CHECK(add(gpu, link, b, "b") == CUDA_SUCCESS);
    CHECK(gpu.api.link_complete(link, &image, &size) == CUDA_ERROR_INVALID_PTX);
    CHECK_THAT(gpu.log(), Contains(words));
    CHECK(gpu.api.link_destroy(link) == CUDA_SUCCESS);
  };
  complete(kAnswer, kAnswer, "'answer' is defined by 'a' and by 'b'");
  complete(kUser, ptx_module(""), "answer");
}

namespace {

/// Threads add to out[15] and read it after a barrier of the grid. The last thread stores what the
/// other functions return.
const std::string kGridSync = ptx_module(R"(
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 r) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 r) cudaCGGetSize(.param .b64 n, .param .b64 g, .param .b64 handle);
.extern .func (.param .b32 r) cudaCGGetRank(.param .b64 n, .param .b64 g, .param .b64 handle);
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<10>;
  .local .align 8 .b8 place[8];
  .param .b32 one;
  .param .b64 handle;
  .param .b64 a;
  .param .b64 b;
  .param .b32 flags;
  .param .b32 error;
  ld.param.u64 %rd1, [out];
  st.param.b32 [one], 1;
  call (handle), cudaCGGetIntrinsicHandle, (one);
  st.param.b32 [flags], 0;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.z;
  mov.u32 %r9, %ctaid.y;
  or.b32 %r16, %r1, %r3;
  or.b32 %r16, %r16, %r9;
  setp.eq.u32 %p1, %r1, 0;
  setp.eq.u32 %p3, %r16, 0;
  @%p1 red.global.add.u32 [%rd1+60], 1;
  call (error), cudaCGSynchronize, (handle, flags);
  ld.param.b32 %r10, [error];
  ld.global.u32 %r4, [%rd1+60];
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  @%p3 st.global.u32 [%rd3], %r4;
  call (error), cudaCGSynchronizeGrid, (handle, flags);
  ld.param.b32 %r11, [error];
  mov.u64 %rd4, place;
  cvta.local.u64 %rd5, %rd4;
  st.param.b64 [a], %rd5;
  add.u64 %rd6, %rd5, 4;
  st.param.b64 [b], %rd6;
  call (error), cudaCGGetSize, (a, b, handle);
  ld.param.b32 %r12, [error];
  ld.local.u32 %r5, [place];
  ld.local.u32 %r7, [place+4];
  mov.u64 %rd7, 0;
  st.param.b64 [b], %rd7;
  call (error), cudaCGGetRank, (a, b, handle);
  ld.param.b32 %r13, [error];
  ld.local.u32 %r6, [place];
  st.param.b64 [handle], 5;
  call (error), cudaCGSynchronize, (handle, flags);
  ld.param.b32 %r14, [error];
  add.u32 %r8, %r6, 1;
  setp.ne.u32 %p2, %r8, %r5;
  @%p2 ret;
  st.global.u32 [%rd1+40], %r5;
  st.global.u32 [%rd1+44], %r7;
  or.b32 %r15, %r10, %r11;
  or.b32 %r15, %r15, %r12;
  or.b32 %r15, %r15, %r13;
  st.global.u32 [%rd1+48], %r15;
  st.global.u32 [%rd1+52], %r14;
  ret;
}
)");

/// An archive as ar writes it, with one empty member of a long name.
std::string archive(const std::string& member) {
  const std::string names = member + "/\n";
  const auto header = [](std::string name, std::size_t size) {
    name.resize(48, ' ');
    std::string text = name + std::to_string(size);
    text.resize(58, ' ');
    return text + "`\n";
  };
  return "!<arch>\n" + header("/", 2) + "xy" + header("//", names.size()) + names +
         (names.size() % 2 != 0 ? "\n" : "") + header("/0", 0);
}

}  // namespace

TEST_CASE("link: libcudadevrt gives kernels the synchronisation of a grid") {
  EmulatedContext gpu;
  const auto link_with = [&](const std::string& library, CUmodule& module) {
    CUlinkState link = nullptr;
    REQUIRE(gpu.api.link_create(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
    CUresult result =
        gpu.api.link_add_data(link, CU_JIT_INPUT_LIBRARY, const_cast<char*>(library.data()),
                              library.size(), "lib.a", 0, nullptr, nullptr);
    if (result == CUDA_SUCCESS) {
      void* image = nullptr;
      std::size_t size = 0;
      REQUIRE(add(gpu, link, kGridSync, "k") == CUDA_SUCCESS);
      result = gpu.api.link_complete(link, &image, &size);
      if (result == CUDA_SUCCESS) {
        REQUIRE(gpu.api.module_load_data(&module, image) == CUDA_SUCCESS);
      }
    }
    CHECK(gpu.api.link_destroy(link) == CUDA_SUCCESS);
    return result;
  };
  CUmodule module = nullptr;
  CHECK(link_with(archive("other_device_library.o"), module) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THAT(gpu.log(), Contains("of libraries libcudadevrt.a"));
  CHECK(link_with("!<arch>\nshort", module) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  static_cast<void>(gpu.log());
  REQUIRE(link_with(archive("cuda_device_runtime.o"), module) == CUDA_SUCCESS);

  CUdeviceptr out = gpu.allocate(128);
  REQUIRE(gpu.api.memset_d8(out, 0, 128) == CUDA_SUCCESS);
  std::array<void*, 1> parameters{&out};
  const CUfunction kernel = gpu.function(module, "k");
  REQUIRE(gpu.api.launch_cooperative_kernel(kernel, 3, 2, 1, 40, 1, 2, 0, nullptr,
                                            parameters.data()) == CUDA_SUCCESS);
  REQUIRE(gpu.api.ctx_synchronize() == CUDA_SUCCESS);
  std::array<std::uint32_t, 16> values{};
  REQUIRE(gpu.api.memcpy_to_host(values.data(), out, sizeof values) == CUDA_SUCCESS);
  // Two threads of each of the 6 blocks have tid.x 0; the counts are of both rows of blocks.
  CHECK(values[0] == 12);
  CHECK(values[1] == 12);
  CHECK(values[2] == 12);
  CHECK(values[10] == 3 * 2 * 40 * 2);
  CHECK(values[11] == 1);  // grids
  CHECK(values[12] == 0);
  CHECK(values[13] == 1);  // cudaErrorInvalidValue: 5 is no handle
  static_cast<void>(gpu.log());

  REQUIRE(gpu.api.launch_kernel(kernel, 3, 1, 1, 32, 1, 1, 0, nullptr, parameters.data(),
                                nullptr) == CUDA_SUCCESS);
  CHECK(gpu.api.ctx_synchronize() == CUDA_ERROR_LAUNCH_FAILED);
  CHECK_THAT(gpu.log(), Contains("its grid barrier (grid.sync) has no workspace because the "
                                 "launch is not cooperative"));
}
