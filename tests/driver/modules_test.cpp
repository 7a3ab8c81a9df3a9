// tests/driver/modules_test.cpp - loading modules and what is refused
#include <array>

#include "emulated_context.hpp"
#include "fatbin_builder.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using ptxgen::test::EmulatedContext;
using ptxgen::test::FatbinBuilder;
using ptxgen::test::ptx_module;

namespace {

const std::string kTwoKernels = ptx_module(R"(
.const .b32 factors[4] = {1, 2, 3, 4};
.visible .global .u64 counter = 5;
.visible .entry first(.param .u64 a, .param .u32 n) .maxntid 128 {
  .reg .b32 %r<20>;
  ret;
}
.visible .entry second() { ret; }
)");

/// Loads with both logs; they are in `info` and `error` afterwards.
struct Jit {
  std::array<char, 4096> info{};
  std::array<char, 4096> error{};
  std::array<CUjit_option, 6> names{CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                    CU_JIT_LOG_VERBOSE,      CU_JIT_TARGET_FROM_CUCONTEXT};
  std::array<void*, 6> values{info.data(),
                              reinterpret_cast<void*>(info.size()),
                              error.data(),
                              reinterpret_cast<void*>(error.size()),
                              reinterpret_cast<void*>(1),
                              nullptr};
  CUresult load(EmulatedContext& gpu, const void* image, CUmodule& module) {
    return gpu.api.module_load_data_ex(&module, image, static_cast<unsigned>(names.size()),
                                       names.data(), values.data());
  }
};

/// The error log of a text that must be refused with that code.
std::string refusal(EmulatedContext& gpu, const std::string& ptx, CUresult code) {
  Jit jit;
  CUmodule module = nullptr;
  CHECK(jit.load(gpu, ptx.c_str(), module) == code);
  CHECK(module == nullptr);
  // The driver's own log says the same.
  std::string log = jit.error.data();
  CHECK(reinterpret_cast<std::uintptr_t>(jit.values[3]) == log.size());
  while (log.ends_with('\n')) log.pop_back();
  CHECK_THAT(gpu.log(), Contains(log));
  return log;
}

}  // namespace

TEST_CASE("module: kernels, variables and attributes of a loaded one") {
  EmulatedContext gpu;
  Jit jit;
  CUmodule module = nullptr;
  REQUIRE(jit.load(gpu, kTwoKernels.c_str(), module) == CUDA_SUCCESS);
  CHECK(std::string(jit.error.data()).empty());
  CHECK_THAT(jit.info.data(), Contains("Function properties for first") &&
                                  Contains("Used 20 registers") && Contains("those declared"));

  const CUfunction first = gpu.function(module, "first");
  const auto attribute = [&](CUfunction_attribute which) {
    int value = -1;
    CHECK(gpu.api.func_get_attribute(&value, which, first) == CUDA_SUCCESS);
    return value;
  };
  CHECK(attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 128);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_NUM_REGS) == 20);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) == 16);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 0);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION) == 80);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 90);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 49152);
  CHECK(attribute(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) == 0);

  const char* name = nullptr;
  CHECK(gpu.api.func_get_name(&name, first) == CUDA_SUCCESS);
  CHECK(std::string(name) == "first");
  CUmodule owner = nullptr;
  CHECK(gpu.api.func_get_module(&owner, first) == CUDA_SUCCESS);
  CHECK(owner == module);
  std::size_t offset = 0;
  std::size_t size = 0;
  CHECK(gpu.api.func_get_param_info(first, 1, &offset, &size) == CUDA_SUCCESS);
  CHECK(offset == 8);
  CHECK(size == 4);
  CHECK(gpu.api.func_get_param_info(first, 2, &offset, &size) == CUDA_ERROR_INVALID_VALUE);

  unsigned count = 0;
  CHECK(gpu.api.module_get_function_count(&count, module) == CUDA_SUCCESS);
  CHECK(count == 2);
  std::array<CUfunction, 3> all{};
  CHECK(gpu.api.module_enumerate_functions(all.data(), 3, module) == CUDA_SUCCESS);
  CHECK(all[0] == first);
  CHECK(all[1] == gpu.function(module, "second"));
  CHECK(all[2] == nullptr);

  CUdeviceptr address = 0;
  CHECK(gpu.api.module_get_global(&address, &size, module, "counter") == CUDA_SUCCESS);
  CHECK(size == 8);
  std::uint64_t counter = 0;
  CHECK(gpu.api.memcpy_to_host(&counter, address, 8) == CUDA_SUCCESS);
  CHECK(counter == 5);
  CHECK(gpu.api.module_get_global(nullptr, &size, module, "factors") == CUDA_SUCCESS);
  CHECK(size == 16);
  CHECK(gpu.api.module_get_global(&address, &size, module, "none") == CUDA_ERROR_NOT_FOUND);

  CUfunction missing = nullptr;
  CHECK(gpu.api.module_get_function(&missing, module, "third") == CUDA_ERROR_NOT_FOUND);
  CHECK_THAT(gpu.log(), Contains("no kernel 'third'") && Contains("first, second"));
  CHECK(gpu.api.module_unload(module) == CUDA_SUCCESS);
  CHECK(gpu.api.module_unload(module) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(gpu.api.module_get_function(&missing, module, "first") == CUDA_ERROR_INVALID_HANDLE);
  int value = 0;
  CHECK(gpu.api.func_get_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, first) ==
        CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("module: registers are capped by .maxntid, .maxnreg and the JIT option") {
  EmulatedContext gpu;
  const auto registers = [&](const std::string& directive, unsigned option) {
    const std::string ptx =
        ptx_module(".visible .entry k() " + directive + " { .reg .b64 %rd<400>; ret; }\n");
    std::array names{CU_JIT_MAX_REGISTERS};
    std::array<void*, 1> values{reinterpret_cast<void*>(std::uintptr_t{option})};
    CUmodule module = nullptr;
    REQUIRE(gpu.api.module_load_data_ex(&module, ptx.c_str(), option != 0 ? 1u : 0u, names.data(),
                                        values.data()) == CUDA_SUCCESS);
    int value = 0;
    CHECK(gpu.api.func_get_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                     gpu.function(module, "k")) == CUDA_SUCCESS);
    return value;
  };
  CHECK(registers("", 0) == 255);
  CHECK(registers(".maxntid 512", 0) == 128);
  CHECK(registers(".reqntid 32, 32, 1", 0) == 64);
  CHECK(registers(".maxnreg 40", 0) == 40);
  CHECK(registers("", 24) == 24);
}

TEST_CASE("module: PTX that does not verify is refused with all its lines") {
  EmulatedContext gpu;
  const std::string log = refusal(gpu, ptx_module(R"(.visible .entry k() {
  .reg .b32 %r<3>;
  add.s32 %r1, %r2, %f9;
  mov.u32 %r1, nothing;
  ret;
}
)"),
                                  CUDA_ERROR_INVALID_PTX);
  CHECK_THAT(log, Contains("ptxas <module>, line 6; error   : ") && Contains("%f9"));
  CHECK_THAT(log, Contains("ptxas <module>, line 7; error   : ") && Contains("nothing"));
  CHECK_THAT(log, Contains("ptxas fatal   : "));
}

TEST_CASE("module: what is refused, why, and with which code") {
  EmulatedContext gpu;
  CHECK_THAT(refusal(gpu, ptx_module("this is no PTX\n"), CUDA_ERROR_INVALID_PTX),
             Contains("line 4; error") && Contains("[syntax]"));
  CHECK_THAT(refusal(gpu, ptx_module(".visible .entry k() { ret; }", "sm_100", "8.6"),
                     CUDA_ERROR_INVALID_PTX),
             Contains("sm_100") && Contains("'h200'") && Contains("line 2"));
  CHECK_THAT(refusal(gpu, ptx_module("", "sm_90", "9.1"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
             Contains("PTX 9.1") && Contains("up to PTX 9.0") && Contains("PTXGEN_EMULATED_PTX"));
  emulated::set_newest_ptx(94);
  static_cast<void>(gpu.load(ptx_module(".visible .entry k() { ret; }\n", "sm_90", "9.4")));
  emulated::set_newest_ptx(90);
  CHECK_THAT(refusal(gpu,
                     ptx_module(".shared .b8 big[49153];\n.visible .entry k() {\n.reg .b32 %r<2>;\n"
                                "mov.u32 %r1, big;\nret;\n}\n"),
                     CUDA_ERROR_INVALID_PTX),
             Contains("49153 bytes of shared memory") && Contains("dynamic"));
  CHECK_THAT(refusal(gpu, ptx_module(".extern .global .u32 x;\n.visible .entry k() { ret; }\n"),
                     CUDA_ERROR_INVALID_PTX),
             Contains("'x'") && Contains("line 4"));
  CHECK_THAT(
      refusal(gpu,
              ptx_module(".visible .entry k() {\n.reg .b64 %rd<2>;\n.reg .f32 %f<5>;\n"
                         "tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2, %f3, %f3}];\n"
                         "ret;\n}\n"),
              CUDA_ERROR_INVALID_PTX),
      Contains("line 7") && Contains("tex"));
  CHECK_THAT(refusal(gpu, "not a module", CUDA_ERROR_INVALID_IMAGE), Contains("'not a module'"));
  CHECK_THAT(refusal(gpu, "", CUDA_ERROR_INVALID_IMAGE), Contains("empty"));
  Jit jit;
  CUmodule module = nullptr;
  CHECK(jit.load(gpu, test::cubin_bytes().data(), module) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THAT(jit.error.data(), Contains("cubin"));
  jit.names[5] = CU_JIT_TARGET;
  jit.values[5] = reinterpret_cast<void*>(120);
  CHECK(jit.load(gpu, kTwoKernels.c_str(), module) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THAT(gpu.log(), Contains("sm_120"));
  jit.values[5] = reinterpret_cast<void*>(90);
  CHECK(jit.load(gpu, kTwoKernels.c_str(), module) == CUDA_SUCCESS);
}

TEST_CASE("module: bad arguments and no context") {
  EmulatedContext gpu;
  CUmodule module = nullptr;
  CHECK(gpu.api.module_load_data(nullptr, "x") == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.api.module_load_data(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.api.module_load_data_ex(&module, "x", 1, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.api.module_unload(nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(gpu.api.module_load(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(gpu.api.ctx_set_current(nullptr) == CUDA_SUCCESS);
  CHECK(gpu.api.module_load_data(&module, kTwoKernels.c_str()) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(gpu.api.ctx_set_current(gpu.context) == CUDA_SUCCESS);
  CHECK(gpu.api.module_load_data(&module, kTwoKernels.c_str()) == CUDA_SUCCESS);
}

TEST_CASE("module: from a file, a fat binary and its wrapper") {
  EmulatedContext gpu;
  const TemporaryDirectory folder;
  FatbinBuilder builder;
  builder.add(FatbinBuilder::Ptx, 80, kTwoKernels);
  const std::vector<std::byte> fatbin = builder.build();
  const std::string_view content(reinterpret_cast<const char*>(fatbin.data()), fatbin.size());
  write_file(folder.file("k.fatbin"), content);
  write_file(folder.file("k.ptx"), kTwoKernels);
  write_file(folder.file("bad.ptx"), ptx_module("?"));
  CUmodule module = nullptr;
  for (const char* name : {"k.fatbin", "k.ptx"}) {
    REQUIRE(gpu.api.module_load(&module, folder.file(name).c_str()) == CUDA_SUCCESS);
    CHECK(gpu.function(module, "second") != nullptr);
  }
  CHECK(gpu.api.module_load(&module, folder.file("none").c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
  CHECK_THAT(gpu.log(), Contains("none"));
  CHECK(gpu.api.module_load(&module, folder.file("bad.ptx").c_str()) == CUDA_ERROR_INVALID_PTX);
  CHECK_THAT(gpu.log(), Contains("bad.ptx, line 4"));
  CHECK(gpu.api.module_load_fat_binary(&module, fatbin.data()) == CUDA_SUCCESS);
  const struct {
    std::uint32_t magic = 0x466243b1;
    std::uint32_t version = 1;
    const void* data;
    const void* more = nullptr;
  } wrapper{.data = fatbin.data()};
  CHECK(gpu.api.module_load_fat_binary(&module, &wrapper) == CUDA_SUCCESS);
  CHECK(gpu.api.module_load_data(&module, &wrapper) == CUDA_SUCCESS);
  CHECK(gpu.function(module, "first") != nullptr);
}

TEST_CASE("module: damaged fat binaries and PTX come back as errors") {
  EmulatedContext gpu;
  FatbinBuilder builder;
  builder.add(FatbinBuilder::Cubin, 90, test::cubin_bytes())
      .add(FatbinBuilder::Ptx, 80, kTwoKernels);
  const std::vector<std::byte> full = builder.build();
  // A container says how long it is, so a cut one says so too: only the link call has a size.
  CUlinkState link = nullptr;
  REQUIRE(gpu.api.link_create(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
  for (std::size_t n = 1; n < full.size(); n += 7) {
    std::vector<std::byte> cut(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK(gpu.api.link_add_data(link, CU_JIT_INPUT_FATBINARY, cut.data(), cut.size(), "cut", 0,
                                nullptr, nullptr) == CUDA_ERROR_INVALID_IMAGE);
  }
  CHECK(gpu.api.link_destroy(link) == CUDA_SUCCESS);
  CHECK_THAT(gpu.log(), Contains("damaged at byte"));
  for (std::size_t n = 0; n < kTwoKernels.size(); n += 5) {
    const std::string cut = kTwoKernels.substr(0, n);
    CUmodule module = nullptr;
    const CUresult result = gpu.api.module_load_data(&module, cut.c_str());
    CHECK((result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_PTX ||
           result == CUDA_ERROR_INVALID_IMAGE));
    CHECK((module != nullptr) == (result == CUDA_SUCCESS));
    if (result != CUDA_SUCCESS) CHECK_FALSE(gpu.log().empty());
  }
}
