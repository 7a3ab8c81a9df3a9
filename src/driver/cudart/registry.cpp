// src/driver/cudart/registry.cpp - fat binaries, kernels and variables of the program
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "driver/cudart/cudart.hpp"
#include "driver/cudart/launch.hpp"

namespace ptxgen::inline v0::driver::cudart {
namespace {

/// What nvcc puts into a host object. Version 2: the kernels were linked with others'
/// (-rdc=true); `linked` then ends with a null and has the parts that a driver links for itself.
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* const* linked;
};
constexpr std::uint32_t kLinkedVersion = 2;

struct ManagedVariable {
  void** host;  ///< where the program keeps its address
  const char* name;
};

/// A fat binary: what __cudaRegisterFatBinary returns a handle of. Never freed, because functions
/// of the program may run after it was unregistered.
struct Binary {
  const Wrapper* wrapper = nullptr;
  std::mutex mutex;
  std::atomic<bool> loaded{false};
  CUlibrary library = nullptr;
  cudaError_t error = cudaSuccess;  ///< of loading it
  std::vector<ManagedVariable> managed;
};
struct Kernel {
  Kernel(Binary* its_binary, const char* its_name) noexcept : binary(its_binary), name(its_name) {}
  Binary* const binary;
  const char* const name;
  std::atomic<CUkernel> handle{nullptr};
};
struct Variable {
  Binary* binary;
  const char* name;
};

/// Filled before main and by dlopen, read by every launch.
struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void*, Kernel> kernels;
  std::unordered_map<const void*, Variable> variables;
};
Registry& registry() {
  static Registry* const the_registry = new Registry;
  return *the_registry;
}

/// The error of the last __cudaGetKernel that failed: nvcc's launch code ignores its result and
/// then launches a kernel of null.
std::atomic<cudaError_t> failed_lookup{cudaErrorInvalidDeviceFunction};

thread_local std::vector<LaunchConfiguration> configurations;

Binary* binary_of(void** handle) { return reinterpret_cast<Binary*>(handle); }

/// Links the parts of a binary of -rdc=true.
cudaError_t link_parts(const Wrapper& wrapper, CUlibrary& library) {
  CUlinkState link = nullptr;
  if (const CUresult result = cuLinkCreate_v2(0, nullptr, nullptr, &link)) return error_of(result);
  CUresult result = CUDA_SUCCESS;
  for (const void* const* part = wrapper.linked; *part != nullptr && result == CUDA_SUCCESS;
       ++part) {
    // A container's size: its header (16 bytes) and what the header says follows.
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, static_cast<const char*>(*part) + 8, sizeof bytes);
    result = cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, const_cast<void*>(*part), bytes + 16,
                              "<part of the program>", 0, nullptr, nullptr);
  }
  void* image = nullptr;
  std::size_t bytes = 0;
  if (result == CUDA_SUCCESS) result = cuLinkComplete(link, &image, &bytes);
  if (result == CUDA_SUCCESS) {
    result = cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  static_cast<void>(cuLinkDestroy(link));
  return error_of(result);
}

cudaError_t load(Binary& binary) {
  if (binary.loaded.load(std::memory_order_acquire)) return binary.error;
  const std::lock_guard lock(binary.mutex);
  if (binary.loaded.load(std::memory_order_relaxed)) return binary.error;
  const Wrapper& wrapper = *binary.wrapper;
  if (wrapper.version == kLinkedVersion && wrapper.linked != nullptr &&
      *wrapper.linked != nullptr) {
    binary.error = link_parts(wrapper, binary.library);
  } else {
    binary.error = error_of(
        cuLibraryLoadData(&binary.library, &wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0));
  }
  binary.loaded.store(true, std::memory_order_release);
  return binary.error;
}

cudaError_t handle_of(Kernel& kernel, CUkernel& handle) {
  handle = kernel.handle.load(std::memory_order_acquire);
  if (handle != nullptr) return cudaSuccess;
  if (const cudaError_t error = load(*kernel.binary)) return error;
  const CUresult result = cuLibraryGetKernel(&handle, kernel.binary->library, kernel.name);
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (result == CUDA_SUCCESS) kernel.handle.store(handle, std::memory_order_release);
  return error_of(result);
}

Kernel* registered(const void* function) {
  const std::shared_lock lock(registry().mutex);
  const auto found = registry().kernels.find(function);
  return found != registry().kernels.end() ? &found->second : nullptr;
}

/// The address of a managed variable, which is the same for the host.
cudaError_t place(Binary& binary, const ManagedVariable& variable) {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  if (const CUresult result =
          cuLibraryGetManaged(&address, &bytes, binary.library, variable.name)) {
    return error_of(result);
  }
  *variable.host = pointer_to(address);
  return cudaSuccess;
}

/// Fills the program's pointers to managed variables, which it follows without a call.
bool place_managed(Binary& binary) {
  if (binary.managed.empty()) return true;
  const cudaError_t error = call([&]() -> cudaError_t {
    if (const cudaError_t failed = enter()) return failed;
    if (const cudaError_t failed = load(binary)) return failed;
    for (const ManagedVariable& variable : binary.managed) {
      if (const cudaError_t failed = place(binary, variable)) return failed;
    }
    return cudaSuccess;
  });
  return error == cudaSuccess;
}

}  // namespace

cudaError_t find_kernel(const void* function, CUkernel& kernel) {
  if (const cudaError_t error = enter()) return error;
  if (Kernel* const found = registered(function)) return handle_of(*found, kernel);
  kernel = static_cast<CUkernel>(const_cast<void*>(function));
  CUlibrary library = nullptr;
  if (cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS) return cudaSuccess;
  return cudaErrorInvalidDeviceFunction;
}

void* host_function_of(CUfunction function) {
  const std::shared_lock lock(registry().mutex);
  for (const auto& [host, kernel] : registry().kernels) {
    const CUkernel handle = kernel.handle.load(std::memory_order_acquire);
    CUfunction own = nullptr;
    if (handle != nullptr && cuKernelGetFunction(&own, handle) == CUDA_SUCCESS && own == function) {
      return const_cast<void*>(host);
    }
  }
  return function;
}

cudaError_t find_variable(const void* symbol, CUdeviceptr& address, std::size_t& bytes) {
  if (const cudaError_t error = enter()) return error;
  Variable variable{};
  {
    const std::shared_lock lock(registry().mutex);
    const auto found = registry().variables.find(symbol);
    if (found == registry().variables.end()) return cudaErrorInvalidSymbol;
    variable = found->second;
  }
  if (const cudaError_t error = load(*variable.binary)) return error;
  const CUresult result =
      cuLibraryGetGlobal(&address, &bytes, variable.binary->library, variable.name);
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : error_of(result);
}

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  auto* const binary = new Binary;
  binary->wrapper = static_cast<const Wrapper*>(wrapper);
  return reinterpret_cast<void**>(binary);
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  Binary* const binary = binary_of(handle);
  {
    const std::unique_lock lock(registry().mutex);
    const auto ours = [&](const auto& entry) { return entry.second.binary == binary; };
    std::erase_if(registry().kernels, ours);
    std::erase_if(registry().variables, ours);
  }
  // At the end of the process work may still be running; a library that is closed is another case.
  const std::lock_guard lock(binary->mutex);
  if (binary->library != nullptr) static_cast<void>(cuLibraryUnload(binary->library));
  binary->library = nullptr;
  binary->error = cudaErrorCudartUnloading;
}

void __cudaRegisterFunction(void** handle, const char* function, char*, const char* name, int,
                            void*, void*, void*, void*, int*) {
  const std::unique_lock lock(registry().mutex);
  registry().kernels.try_emplace(function, binary_of(handle), name);
}

void __cudaRegisterVar(void** handle, char* variable, char*, const char* name, int, std::size_t,
                       int, int) {
  const std::unique_lock lock(registry().mutex);
  registry().variables.insert_or_assign(variable, Variable{binary_of(handle), name});
}

void __cudaRegisterManagedVar(void** handle, void** variable, char*, const char* name, int,
                              std::size_t, int, int) {
  Binary* const binary = binary_of(handle);
  binary->managed.push_back({variable, name});
  const std::unique_lock lock(registry().mutex);
  registry().variables.insert_or_assign(variable, Variable{binary, name});
}

char __cudaInitModule(void** handle) { return place_managed(*binary_of(handle)) ? 1 : 0; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     void* stream) {
  try {
    configurations.push_back({grid, block, shared_bytes, static_cast<cudaStream_t>(stream)});
  } catch (...) {
    return static_cast<unsigned>(note(cudaErrorMemoryAllocation));
  }
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  if (configurations.empty()) return note(cudaErrorMissingConfiguration);
  const LaunchConfiguration launch = configurations.back();
  configurations.pop_back();
  *grid = launch.grid;
  *block = launch.block;
  *shared_bytes = launch.shared_bytes;
  std::memcpy(stream, &launch.stream, sizeof launch.stream);
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(CUkernel* kernel, const void* function) {
  const cudaError_t error = call([&] { return find_kernel(function, *kernel); });
  if (error != cudaSuccess) {
    *kernel = nullptr;
    failed_lookup = error;
  }
  return error;
}

cudaError_t __cudaLaunchKernel(CUkernel kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return call([&] {
    if (kernel == nullptr) return failed_lookup.load();
    if (const cudaError_t error = enter()) return error;
    return launch(kernel, {grid, block, shared_bytes, stream}, arguments);
  });
}

cudaError_t __cudaLaunchKernel_ptsz(CUkernel kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream) {
  if (stream == nullptr) stream = reinterpret_cast<cudaStream_t>(kStreamPerThread);
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
}

}  // namespace ptxgen::inline v0::driver::cudart
