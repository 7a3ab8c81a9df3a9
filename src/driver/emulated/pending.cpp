// src/driver/emulated/pending.cpp - placeholders for what other files will define
#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"

/// Weak, so that the real definitions win; goes away when all of them are there.
namespace ptxgen::inline v0::driver::emulated {

#define PTXGEN_PENDING __attribute__((weak))

PTXGEN_PENDING void unload_modules_of(CUcontext) {}
PTXGEN_PENDING CUresult run_kernel(CUcontext, const KernelLaunch&) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
PTXGEN_PENDING CUresult make_launch(const CUDA_KERNEL_NODE_PARAMS&, KernelLaunch&) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
PTXGEN_PENDING std::vector<std::uint32_t> parameter_offsets(CUfunction) { return {}; }
PTXGEN_PENDING CUresult fault_of(emulator::Rule) noexcept { return CUDA_ERROR_LAUNCH_FAILED; }

namespace entries {

// clang-format off
PTXGEN_PENDING CUresult get_proc_address(const char*, void**, int, std::uint64_t, CUdriverProcAddressQueryResult*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_load_data_ex(CUmodule*, const void*, unsigned, CUjit_option*, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_unload(CUmodule) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_get_function(CUfunction*, CUmodule, const char*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_get_global(CUdeviceptr*, std::size_t*, CUmodule, const char*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult link_create(unsigned, CUjit_option*, void**, CUlinkState*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult link_add_data(CUlinkState, CUjitInputType, void*, std::size_t, const char*, unsigned, CUjit_option*, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult link_complete(CUlinkState, void**, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult link_destroy(CUlinkState) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_load(CUmodule*, const char*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_load_data(CUmodule*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_load_fat_binary(CUmodule*, const void*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_get_loading_mode(CUmoduleLoadingMode*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_get_function_count(unsigned*, CUmodule) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult module_enumerate_functions(CUfunction*, unsigned, CUmodule) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult link_add_file(CUlinkState, CUjitInputType, const char*, unsigned, CUjit_option*, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_get_attribute(int*, CUfunction_attribute, CUfunction) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_set_attribute(CUfunction, CUfunction_attribute, int) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult launch_kernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult occupancy_max_active_blocks_per_multiprocessor(int*, CUfunction, int, std::size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_set_cache_config(CUfunction, CUfunc_cache) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_get_name(const char**, CUfunction) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_get_module(CUmodule*, CUfunction) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_get_param_info(CUfunction, std::size_t, std::size_t*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_load(CUfunction) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult func_is_loaded(CUfunctionLoadingState*, CUfunction) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult launch_kernel_ex(const CUlaunchConfig*, CUfunction, void**, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult launch_cooperative_kernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult occupancy_max_active_blocks_per_multiprocessor_with_flags(int*, CUfunction, int, std::size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult occupancy_max_potential_block_size(int*, int*, CUfunction, CUoccupancyB2DSize, std::size_t, int) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult occupancy_available_dynamic_shared_per_block(std::size_t*, CUfunction, int, int) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult occupancy_max_potential_cluster_size(int*, CUfunction, const CUlaunchConfig*) { return CUDA_ERROR_NOT_SUPPORTED; }
PTXGEN_PENDING CUresult occupancy_max_active_clusters(int*, CUfunction, const CUlaunchConfig*) { return CUDA_ERROR_NOT_SUPPORTED; }
// clang-format on

}  // namespace entries

#undef PTXGEN_PENDING

}  // namespace ptxgen::inline v0::driver::emulated
