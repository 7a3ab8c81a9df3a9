// src/driver/standin/export_table.cpp - private tables of NVIDIA's driver, which are refused
#include <dlfcn.h>

#include <string_view>

#include "driver/emulated/state.hpp"
#include "driver/standin/standin.hpp"

namespace ptxgen::inline v0::driver {

using standin::table;

namespace {

/// Whether code belongs to NVRTC or nvJitLink, which request the tables but also work without them.
bool does_without_tables(const void* code) {
  Dl_info found{};
  if (dladdr(code, &found) == 0 || found.dli_fname == nullptr) return false;
  std::string_view file = found.dli_fname;
  file.remove_prefix(file.rfind('/') + 1);
  return file.starts_with("libnvrtc") || file.starts_with("libnvJitLink");
}

CUresult refuse_tables() noexcept {
  int version = 0;
  (void)table().driver_get_version(&version);  // decides where the log goes
  try {
    return emulated::refuse(
        CUDA_ERROR_NOT_SUPPORTED,
        "cuGetExportTable: the emulated driver does not have the private tables that NVIDIA's CUDA "
        "runtime needs. The program or one of its libraries has that runtime linked in: start it "
        "with LD_PRELOAD=.../ptxgen/libptxgen_static_cudart.so (beside this driver), or link it "
        "with 'nvcc -cudart shared'");
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace

extern "C" {

CUresult cuGetExportTable(const void** export_table, const CUuuid* id);
CUresult cuGetExportTable(const void** export_table, const CUuuid* id) {
  if (export_table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *export_table = nullptr;
  const void* const caller = __builtin_return_address(0);
  return does_without_tables(caller) ? CUDA_ERROR_NOT_SUPPORTED : refuse_tables();
}
}

}  // namespace ptxgen::inline v0::driver
