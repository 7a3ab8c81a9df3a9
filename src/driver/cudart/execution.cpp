// src/driver/cudart/execution.cpp - launches, attributes of kernels, occupancy, libraries
#include "driver/cudart/launch.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

CUfunction function_of(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

/// Sizes that no kernel can have; those are an error of the configuration, others of the value.
bool impossible(const dim3& grid, const dim3& block) {
  constexpr unsigned kMaxGridX = 0x7fffffff;
  constexpr unsigned kMaxGrid = 65535;
  constexpr unsigned kMaxThreads = 1024;
  constexpr unsigned kMaxBlockZ = 64;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  return grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kMaxGridX || grid.y > kMaxGrid ||
         grid.z > kMaxGrid || block.x > kMaxThreads || block.y > kMaxThreads ||
         block.z > kMaxBlockZ || threads == 0 || threads > kMaxThreads;
}

cudaError_t launch_error(CUresult result, const dim3& grid, const dim3& block) {
  if (result == CUDA_ERROR_INVALID_VALUE && impossible(grid, block)) {
    return cudaErrorInvalidConfiguration;
  }
  return error_of(result);
}

/// The launch attributes are the driver's.
CUlaunchConfig config_of(const cudaLaunchConfig_t& config) {
  CUlaunchConfig converted{};
  converted.gridDimX = config.gridDim.x;
  converted.gridDimY = config.gridDim.y;
  converted.gridDimZ = config.gridDim.z;
  converted.blockDimX = config.blockDim.x;
  converted.blockDimY = config.blockDim.y;
  converted.blockDimZ = config.blockDim.z;
  converted.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  converted.hStream = config.stream;
  converted.attrs = config.attrs;
  converted.numAttrs = config.numAttrs;
  return converted;
}

/// `work` with the kernel of a host function.
template <class Work>
cudaError_t with_kernel(const void* function, Work&& work) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, kernel)) return error;
  return error_of(work(kernel));
}

/// Launch sizes are 32 bits in the driver.
bool fits(std::size_t shared_bytes) { return shared_bytes <= UINT32_MAX; }

}  // namespace

cudaError_t launch(CUkernel kernel, const LaunchConfiguration& configuration, void** arguments,
                   bool cooperative) {
  const dim3& grid = configuration.grid;
  const dim3& block = configuration.block;
  if (!fits(configuration.shared_bytes)) return cudaErrorInvalidValue;
  const auto shared_bytes = static_cast<unsigned>(configuration.shared_bytes);
  const CUresult result =
      cooperative
          ? cuLaunchCooperativeKernel(function_of(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                      block.z, shared_bytes, configuration.stream, arguments)
          : cuLaunchKernel(function_of(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                           shared_bytes, configuration.stream, arguments, nullptr);
  return launch_error(result, grid, block);
}

namespace entries {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, kernel)) return error;
  return launch(kernel, {grid, block, shared_bytes, stream}, arguments);
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes,
                                        cudaStream_t stream) {
  CUkernel kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, kernel)) return error;
  return launch(kernel, {grid, block, shared_bytes, stream}, arguments, true);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  if (config == nullptr || !fits(config->dynamicSmemBytes)) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, kernel)) return error;
  const CUlaunchConfig converted = config_of(*config);
  return launch_error(cuLaunchKernelEx(&converted, function_of(kernel), arguments, nullptr),
                      config->gridDim, config->blockDim);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  return with_kernel(function, [&](CUkernel kernel) {
    CUresult result = CUDA_SUCCESS;
    const auto get = [&](CUfunction_attribute attribute) {
      int value = 0;
      const CUresult got = cuFuncGetAttribute(&value, attribute, function_of(kernel));
      if (result == CUDA_SUCCESS) result = got;
      return value;
    };
    *attributes = {};
    attributes->sharedSizeBytes =
        static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    attributes->constSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes->localSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    attributes->clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    attributes->requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    attributes->requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    attributes->requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    attributes->clusterSchedulingPolicyPreference =
        get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    attributes->nonPortableClusterSizeAllowed =
        get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    return result;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return with_kernel(function, [&](CUkernel kernel) {
    return cuFuncSetAttribute(function_of(kernel), static_cast<CUfunction_attribute>(attribute),
                              value);
  });
}
cudaError_t cudaFuncSetCacheConfig(const void* function, CUfunc_cache config) {
  return with_kernel(
      function, [&](CUkernel kernel) { return cuFuncSetCacheConfig(function_of(kernel), config); });
}
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig config) {
  if (config < cudaSharedMemBankSizeDefault || config > cudaSharedMemBankSizeEightByte) {
    return cudaErrorInvalidValue;
  }
  return with_kernel(function, [](CUkernel) { return CUDA_SUCCESS; });
}
cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return with_kernel(function, [&](CUkernel kernel) { return cuKernelGetName(name, kernel); });
}
cudaError_t cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset,
                                 std::size_t* bytes) {
  return with_kernel(function, [&](CUkernel kernel) {
    return cuKernelGetParamInfo(kernel, index, offset, bytes);
  });
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* result, const void* function) {
  return with_kernel(function,
                     [&](CUkernel kernel) { return cuKernelGetFunction(result, kernel); });
}
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  if (kernel == nullptr) return cudaErrorInvalidValue;
  return find_kernel(function, *kernel);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, std::size_t shared_bytes) {
  return with_kernel(function, [&](CUkernel kernel) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function_of(kernel), threads,
                                                       shared_bytes);
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, std::size_t shared_bytes, unsigned flags) {
  return with_kernel(function, [&](CUkernel kernel) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function_of(kernel),
                                                                threads, shared_bytes, flags);
  });
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* shared_bytes,
                                                      const void* function, int blocks,
                                                      int threads) {
  return with_kernel(function, [&](CUkernel kernel) {
    return cuOccupancyAvailableDynamicSMemPerBlock(shared_bytes, function_of(kernel), blocks,
                                                   threads);
  });
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  if (config == nullptr || !fits(config->dynamicSmemBytes)) return cudaErrorInvalidValue;
  return with_kernel(function, [&](CUkernel kernel) {
    const CUlaunchConfig converted = config_of(*config);
    return cuOccupancyMaxPotentialClusterSize(blocks, function_of(kernel), &converted);
  });
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  if (config == nullptr || !fits(config->dynamicSmemBytes)) return cudaErrorInvalidValue;
  return with_kernel(function, [&](CUkernel kernel) {
    const CUlaunchConfig converted = config_of(*config);
    return cuOccupancyMaxActiveClusters(clusters, function_of(kernel), &converted);
  });
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, CUjit_option* jit_options,
                                void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                void** values, unsigned count) {
  return driver_call(cuLibraryLoadData, library, code, jit_options, jit_values, jit_count, options,
                     values, count);
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file,
                                    CUjit_option* jit_options, void** jit_values,
                                    unsigned jit_count, CUlibraryOption* options, void** values,
                                    unsigned count) {
  return driver_call(cuLibraryLoadFromFile, library, file, jit_options, jit_values, jit_count,
                     options, values, count);
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return driver_call(cuLibraryUnload, library);
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return driver_call(cuLibraryGetKernel, kernel, library, name);
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return driver_call(cuLibraryGetKernelCount, count, library);
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
  return driver_call(cuLibraryEnumerateKernels, kernels, count, library);
}
cudaError_t cudaLibraryGetGlobal(void** memory, std::size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  CUdeviceptr address = 0;
  const cudaError_t error = driver_call(cuLibraryGetGlobal, &address, bytes, library, name);
  if (error == cudaSuccess && memory != nullptr) *memory = pointer_to(address);
  return error;
}
cudaError_t cudaLibraryGetManaged(void** memory, std::size_t* bytes, cudaLibrary_t library,
                                  const char* name) {
  CUdeviceptr address = 0;
  const cudaError_t error = driver_call(cuLibraryGetManaged, &address, bytes, library, name);
  if (error == cudaSuccess && memory != nullptr) *memory = pointer_to(address);
  return error;
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  return driver_call(cuKernelSetAttribute, static_cast<CUfunction_attribute>(attribute), value,
                     kernel, device);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** entry, unsigned long long flags,
                                    CUdriverProcAddressQueryResult* status) {
  int version = 0;
  static_cast<void>(cuDriverGetVersion(&version));
  int own = 0;
  static_cast<void>(cudaRuntimeGetVersion(&own));
  return cudaGetDriverEntryPointByVersion(
      symbol, entry, static_cast<unsigned>(own < version ? own : version), flags, status);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** entry, unsigned version,
                                             unsigned long long flags,
                                             CUdriverProcAddressQueryResult* status) {
  if (const cudaError_t error = start()) return error;
  return error_of(cuGetProcAddress_v2(symbol, entry, static_cast<int>(version), flags, status));
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::cudart
