// tests/driver/libraries_test.cpp - cuLibrary and cuKernel of the emulated driver
#include <array>

#include "emulated_context.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;
using ptxgen::test::ptx_module;

namespace {

const std::string kKernels = ptx_module(R"(
.visible .global .u32 counter = 7;
.visible .entry put(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry idle() { ret; }
)");

CUlibrary load(const Table& api, const std::string& ptx = kKernels) {
  CUlibrary library = nullptr;
  REQUIRE(api.library_load_data(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          CUDA_SUCCESS);
  return library;
}

CUkernel kernel_of(const Table& api, CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  REQUIRE(api.library_get_kernel(&kernel, library, name) == CUDA_SUCCESS);
  return kernel;
}

/// The API takes a kernel wherever it takes a function.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

unsigned put(EmulatedContext& gpu, CUfunction function, unsigned value) {
  CUdeviceptr out = gpu.allocate(4);
  void* parameters[] = {&out, &value};
  REQUIRE(gpu.api.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
  unsigned host = 0;
  REQUIRE(gpu.api.memcpy_to_host(&host, out, 4) == CUDA_SUCCESS);
  REQUIRE(gpu.api.mem_free(out) == CUDA_SUCCESS);
  return host;
}

}  // namespace

TEST_CASE("libraries: a kernel is launched as a function") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  CUlibrary library = load(api);
  unsigned count = 0;
  CHECK(api.library_get_kernel_count(&count, library) == CUDA_SUCCESS);
  CHECK(count == 2);
  std::array<CUkernel, 3> all{};
  CHECK(api.library_enumerate_kernels(all.data(), 3, library) == CUDA_SUCCESS);
  const CUkernel kernel = kernel_of(api, library, "put");
  CHECK(all[0] == kernel);
  CHECK(all[2] == nullptr);
  CHECK(put(gpu, as_function(kernel), 42) == 42);

  CUfunction function = nullptr;
  CHECK(api.kernel_get_function(&function, kernel) == CUDA_SUCCESS);
  CHECK(function != as_function(kernel));
  CHECK(put(gpu, function, 43) == 43);

  const char* name = nullptr;
  CHECK(api.kernel_get_name(&name, kernel) == CUDA_SUCCESS);
  CHECK(std::string(name) == "put");
  CHECK(api.func_get_name(&name, as_function(kernel)) == CUDA_SUCCESS);
  CHECK(std::string(name) == "put");
  CUlibrary owner = nullptr;
  CHECK(api.kernel_get_library(&owner, kernel) == CUDA_SUCCESS);
  CHECK(owner == library);
  std::size_t offset = 0;
  std::size_t bytes = 0;
  CHECK(api.kernel_get_param_info(kernel, 1, &offset, &bytes) == CUDA_SUCCESS);
  CHECK(offset == 8);
  CHECK(bytes == 4);
  CHECK(api.kernel_get_param_info(kernel, 2, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);
  CUcontext context = nullptr;
  CHECK(api.ctx_pop_current(&context) == CUDA_SUCCESS);
  CHECK(api.kernel_get_param_info(kernel, 1, &offset, &bytes) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(api.ctx_push_current(context) == CUDA_SUCCESS);
  int blocks = 0;
  CHECK(api.occupancy_max_active_blocks_per_multiprocessor(&blocks, as_function(kernel), 128, 0) ==
        CUDA_SUCCESS);
  CHECK(blocks > 0);

  CUDA_KERNEL_NODE_PARAMS node{};
  node.kern = kernel_of(api, library, "idle");
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  CUgraph graph = nullptr;
  CUgraphNode added = nullptr;
  REQUIRE(api.graph_create(&graph, 0) == CUDA_SUCCESS);
  CHECK(api.graph_add_kernel_node(&added, graph, nullptr, 0, &node) == CUDA_SUCCESS);
  CHECK(api.graph_destroy(graph) == CUDA_SUCCESS);
  CHECK(gpu.log().empty());
  CHECK(api.library_unload(library) == CUDA_SUCCESS);
}

TEST_CASE("libraries: a managed variable is read at its address by the host") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  CUlibrary library = load(api, ptx_module(R"(
.visible .global .attribute(.managed) .align 4 .u32 seen = 3;
.visible .global .u32 unseen = 4;
)"));
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CHECK(api.library_get_managed(&address, &bytes, library, "unseen") == CUDA_ERROR_NOT_FOUND);
  const CUresult result = api.library_get_managed(&address, &bytes, library, "seen");
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    CHECK_THAT(gpu.log(),
               Contains("managed memory needs one address for the host and for kernels"));
  } else {
    REQUIRE(result == CUDA_SUCCESS);
    CHECK(bytes == 4);
    CHECK(*reinterpret_cast<const unsigned*>(static_cast<std::uintptr_t>(address)) == 3);
  }
  CHECK(api.library_unload(library) == CUDA_SUCCESS);
}

TEST_CASE("libraries: every context has a module of its own") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  CUlibrary library = load(api);
  CUmodule first = nullptr;
  CUdeviceptr counter = 0;
  std::size_t bytes = 0;
  REQUIRE(api.library_get_module(&first, library) == CUDA_SUCCESS);
  CHECK(api.library_get_global(&counter, &bytes, library, "counter") == CUDA_SUCCESS);
  CHECK(bytes == 4);
  unsigned value = 0;
  CHECK(api.memcpy_to_host(&value, counter, 4) == CUDA_SUCCESS);
  CHECK(value == 7);
  CHECK(api.library_get_global(&counter, &bytes, library, "nothing") == CUDA_ERROR_NOT_FOUND);
  CHECK(api.library_get_managed(&counter, &bytes, library, "counter") == CUDA_ERROR_NOT_FOUND);
  CHECK(api.module_unload(first) == CUDA_ERROR_NOT_PERMITTED);
  CHECK_THAT(gpu.log(), Contains("cuModuleUnload: the module belongs to a library; call "
                                 "cuLibraryUnload"));
  const CUkernel kernel = kernel_of(api, library, "put");
  {
    EmulatedContext other;
    CUmodule second = nullptr;
    REQUIRE(api.library_get_module(&second, library) == CUDA_SUCCESS);
    CHECK(second != first);
    CHECK(put(other, as_function(kernel), 5) == 5);
  }
  // The other context has gone, with its module.
  CHECK(put(gpu, as_function(kernel), 6) == 6);
  CUmodule again = nullptr;
  CHECK(api.library_get_module(&again, library) == CUDA_SUCCESS);
  CHECK(again == first);
  CHECK(api.library_unload(library) == CUDA_SUCCESS);
  CHECK(api.library_unload(library) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.launch_kernel(as_function(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.kernel_get_name(nullptr, kernel) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("libraries: loaded without a context, attributes are kept for later ones") {
  const Table& api = driver::emulated::table();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  {
    EmulatedContext gpu;  // starts the driver
    REQUIRE(api.ctx_set_current(nullptr) == CUDA_SUCCESS);
    library = load(api);
    kernel = kernel_of(api, library, "put");
    CHECK(api.kernel_set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel,
                                   0) == CUDA_SUCCESS);
    int value = 0;
    CHECK(api.kernel_get_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0) ==
          CUDA_ERROR_INVALID_CONTEXT);
    CHECK_THAT(gpu.log(), Contains("kernel 'put' is compiled for device 0 in a context of it"));
    CHECK(api.kernel_get_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 99) ==
          CUDA_ERROR_INVALID_DEVICE);
    CUlibrary bad = nullptr;
    CHECK(api.library_load_data(&bad, ".version 8.0\n.target sm_80\n.nonsense", nullptr, nullptr, 0,
                                nullptr, nullptr, 0) == CUDA_ERROR_INVALID_PTX);
    CHECK(bad == nullptr);
    CHECK_THAT(gpu.log(), Contains("nonsense"));
  }
  EmulatedContext gpu;
  int value = 0;
  CHECK(api.kernel_get_attribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel,
                                 0) == CUDA_SUCCESS);
  CHECK(value == 60000);
  CHECK(api.kernel_set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30, kernel,
                                 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(put(gpu, as_function(kernel), 1) == 1);
  CHECK(api.library_unload(library) == CUDA_SUCCESS);
}

TEST_CASE("libraries: files and options") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  const TemporaryDirectory folder;
  write_file(folder.file("k.ptx"), kKernels);
  CUlibrary library = nullptr;
  CUlibraryOption preserved[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  void* values[] = {reinterpret_cast<void*>(1)};
  CHECK(api.library_load_from_file(&library, folder.file("k.ptx").c_str(), nullptr, nullptr, 0,
                                   preserved, values, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.library_load_from_file(&library, folder.file("none.ptx").c_str(), nullptr, nullptr, 0,
                                   nullptr, nullptr, 0) == CUDA_ERROR_FILE_NOT_FOUND);
  CUjit_option jit[] = {CU_JIT_MAX_REGISTERS};
  void* jit_values[] = {reinterpret_cast<void*>(2)};
  REQUIRE(api.library_load_from_file(&library, folder.file("k.ptx").c_str(), jit, jit_values, 1,
                                     nullptr, nullptr, 0) == CUDA_SUCCESS);
  int registers = 0;
  CHECK(api.kernel_get_attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                 kernel_of(api, library, "put"), 0) == CUDA_SUCCESS);
  CHECK(registers == 2);
  CUkernel kernel = nullptr;
  CHECK(api.library_get_kernel(&kernel, library, "missing") == CUDA_ERROR_NOT_FOUND);
  CHECK(api.library_unload(library) == CUDA_SUCCESS);
  REQUIRE(api.library_load_data(&library, kKernels.c_str(), nullptr, nullptr, 0, preserved, values,
                                1) == CUDA_SUCCESS);
  CHECK(api.library_unload(library) == CUDA_SUCCESS);
}

TEST_CASE("linked images keep the register limit of their link") {
  EmulatedContext gpu;
  const Table& api = gpu.api;
  CUjit_option names[] = {CU_JIT_MAX_REGISTERS};
  void* values[] = {reinterpret_cast<void*>(3)};
  CUlinkState link = nullptr;
  REQUIRE(api.link_create(1, names, values, &link) == CUDA_SUCCESS);
  std::string text = kKernels;
  REQUIRE(api.link_add_data(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "k.ptx", 0,
                            nullptr, nullptr) == CUDA_SUCCESS);
  void* image = nullptr;
  REQUIRE(api.link_complete(link, &image, nullptr) == CUDA_SUCCESS);
  CUmodule module = nullptr;
  REQUIRE(api.module_load_data(&module, image) == CUDA_SUCCESS);
  int registers = 0;
  CHECK(api.func_get_attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                               gpu.function(module, "put")) == CUDA_SUCCESS);
  CHECK(registers == 3);
  CHECK(api.link_destroy(link) == CUDA_SUCCESS);
}
