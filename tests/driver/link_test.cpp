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
