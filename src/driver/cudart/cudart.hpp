// src/driver/cudart/cudart.hpp - the CUDA runtime over a driver
#pragma once

#include <string>

#include "driver/cudart/api.hpp"
#include "driver/standin/driver_api.hpp"

/// libcudart's functions over libcuda's. A thread without a current context uses the primary one of
/// its device (cudaSetDevice), converted at the first call that needs it; a context that the Driver
/// API converted current is used as it is.
namespace ptxgen::inline v0::driver::cudart {

/// The runtime's code for the driver's: the numbers are the same.
[[nodiscard]] constexpr cudaError_t error_of(CUresult result) noexcept {
  return static_cast<cudaError_t>(result);
}

/// Writes the reason to the driver's log and returns `error`.
cudaError_t refuse(cudaError_t error, const std::string& why);

/// Makes a context current in this thread; the driver is started first.
[[nodiscard]] cudaError_t enter();
/// Starts the driver, for calls that need no context.
[[nodiscard]] cudaError_t start();
/// The device that this thread's calls are for.
[[nodiscard]] int device_of_thread();

/// Keeps an error as the thread's last one and returns it.
cudaError_t note(cudaError_t error) noexcept;
/// The thread's last error; `take` resets it.
[[nodiscard]] cudaError_t last_error(bool take) noexcept;
/// For an exception in flight.
[[nodiscard]] cudaError_t error_of_exception() noexcept;

/// An exported function: catches everything and keeps the error.
template <class Work>
cudaError_t call(Work&& work) noexcept {
  try {
    return note(work());
  } catch (...) {
    return note(error_of_exception());
  }
}

/// `driver(...)` with a current context.
template <class... Parameters, class... Arguments>
cudaError_t driver_call(CUresult (*driver)(Parameters...), Arguments... arguments) {
  if (const cudaError_t error = enter()) return error;
  return error_of(driver(arguments...));
}

[[nodiscard]] inline CUdeviceptr address_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}
[[nodiscard]] inline void* pointer_to(CUdeviceptr address) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

// registry.cpp ----------------------------------------------------------------------------------

/// The kernel of a host function, as `<<<>>>` and cudaLaunchKernel name it, in a binary that is
/// loaded at the first use. A kernel's handle is accepted too. cudaErrorInvalidDeviceFunction for
/// other addresses; else as cuLibraryLoadData.
[[nodiscard]] cudaError_t find_kernel(const void* function, CUkernel& kernel);
/// The host function of a driver's function, or the kernel's handle if it has none.
[[nodiscard]] void* host_function_of(CUfunction function);
/// The device memory of a variable in the current context; cudaErrorInvalidSymbol for other
/// addresses.
[[nodiscard]] cudaError_t find_variable(const void* symbol, CUdeviceptr& address,
                                        std::size_t& bytes);

// memory.cpp ------------------------------------------------------------------------------------

/// cudaPointerGetAttributes of CUDA 13.
[[nodiscard]] cudaError_t pointer_attributes(cudaPointerAttributes& attributes, const void* memory);
/// The part of a variable that a copy names.
[[nodiscard]] cudaError_t part_of(const void* symbol, std::size_t bytes, std::size_t offset,
                                  void*& memory);

// copies.cpp ------------------------------------------------------------------------------------

/// The driver's copy for the runtime's. Checks that the pointers fit the direction.
[[nodiscard]] cudaError_t copy_of(const char* call, const cudaMemcpy3DParms& copy,
                                  CUDA_MEMCPY3D& converted);
/// The same for `bytes` from one address to another.
[[nodiscard]] cudaError_t copy_of(const char* call, void* to, const void* from, std::size_t bytes,
                                  cudaMemcpyKind kind, CUDA_MEMCPY3D& converted);
/// cudaMemcpyBatchAsync of both versions.
[[nodiscard]] cudaError_t copy_batch(void* const* to, const void* const* from,
                                     const std::size_t* sizes, std::size_t count,
                                     cudaMemcpyAttributes* attributes, std::size_t* first_copies,
                                     std::size_t num_attributes, cudaStream_t stream);

// graphs.cpp ------------------------------------------------------------------------------------

/// The current context, which copy and fill nodes belong to.
[[nodiscard]] CUcontext context_of_thread();
/// The driver's parameters of a fill node.
[[nodiscard]] CUDA_MEMSET_NODE_PARAMS fill_of(const cudaMemsetParams& parameters);

// graph_any.cpp ---------------------------------------------------------------------------------

/// cudaGraphAddNode of both versions; `edges` may be null.
[[nodiscard]] cudaError_t add_any_node(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, const cudaGraphEdgeData* edges,
                                       std::size_t count, cudaGraphNodeParams* parameters);

// arrays.cpp ------------------------------------------------------------------------------------

/// The channels of an array's elements.
[[nodiscard]] cudaError_t channels_of(CUarray array, cudaChannelFormatDesc& desc);

/// One function per row of functions.def and functions_1x.def.
namespace entries {
#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) cudaError_t symbol parameters;
#include "driver/cudart/functions.def"
}  // namespace entries

}  // namespace ptxgen::inline v0::driver::cudart
