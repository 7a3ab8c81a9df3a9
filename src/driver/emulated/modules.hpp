// src/driver/emulated/modules.hpp - loaded modules and their functions
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/emulated/jit.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver {

/// A kernel of a module; lives as long as it. Attributes that a caller may set are atomic: launches
/// read them from any thread.
struct CUfunc_st {
  CUmodule owner = nullptr;
  const emulator::Program::Kernel* kernel = nullptr;
  /// Declared 32-bit registers, at most 255 and as many as the largest block can have. Allocated
  /// registers are known to a compiler only.
  int registers = 0;
  int binary_version = 0;  ///< 10 * major + minor of the GPU
  std::atomic<int> max_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  std::atomic<int> cluster_width{0}, cluster_height{0}, cluster_depth{0};
  std::atomic<int> non_portable_cluster{0};
  std::atomic<int> cluster_policy{0};

  // State of the launch functions from before CUDA 4.0 (old_launch.cpp).
  std::mutex old_mutex;
  emulator::Dim3 old_block{0, 0, 0};
  unsigned old_shared = 0;
  std::vector<std::byte> old_parameters;

  [[nodiscard]] int static_shared() const noexcept {
    return static_cast<int>(kernel->static_shared_bytes);
  }
  /// Limit for a launch.
  [[nodiscard]] int max_threads() const noexcept;
};

/// A module, of the context that was current when it was loaded. Its program reaches into the
/// context's memory: made and destroyed with `memory_mutex` held.
struct CUmod_st {
  CUmod_st(CUcontext owner, emulator::Program&& loaded) noexcept
      : context(owner), program(std::move(loaded)) {}

  const CUcontext context;
  CUlibrary library = nullptr;  ///< which made it, and which alone unloads it
  emulator::Program program;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  std::shared_ptr<const emulated::ModuleNotes> notes;  ///< guarded by the context's `memory_mutex`
};

namespace emulated {

/// Limit of static shared memory per block; with dynamic memory more after an opt-in, on every
/// architecture of the target table.
inline constexpr std::uint32_t kStaticShared = 48 * 1024;

/// Compiles PTX for the context's GPU and makes it a living module. `name` is what messages call
/// the text. Errors go to the options' error log in the format of ptxas (`ptxas NAME, line N; error
/// : ...`), and in the driver's log. CUDA_ERROR_INVALID_PTX: does not parse or verify, is for a
/// newer GPU, or has what the emulator does not run; CUDA_ERROR_UNSUPPORTED_PTX_VERSION: newer than
/// newest_ptx().
[[nodiscard]] CUresult load_module(CUcontext context, std::string_view ptx, const std::string& name,
                                   JitOptions& options, CUmodule& loaded);

/// The same for any image that the driver accepts, with the PTX for the context's GPU. The caller
/// finishes `options`.
[[nodiscard]] CUresult load_bytes(CUctx_st& context, std::span<const std::byte> image,
                                  const std::string& name, JitOptions& options, CUmodule& loaded);
/// As `load_bytes` for a GPU without a context; keeps nothing, but shows `look` the module.
[[nodiscard]] CUresult try_bytes(const ptx::Gpu& gpu, std::span<const std::byte> image,
                                 const std::string& name, JitOptions& options,
                                 const std::function<void(const CUmod_st&)>& look);
/// Unloads a module without pending work; false if it is not loaded.
bool unload_module(CUctx_st& context, CUmodule module);

/// cuFuncGetAttribute and cuFuncSetAttribute (functions.cpp).
[[nodiscard]] CUresult get_attribute(const CUfunc_st& function, CUfunction_attribute attribute,
                                     int& value);
[[nodiscard]] CUresult set_attribute(CUfunc_st& function, CUfunction_attribute attribute,
                                     int value);

/// As `load_module`, but keeps nothing: for the linker. `gpu` may be another one.
[[nodiscard]] CUresult try_ptx(const ptx::Gpu& gpu, std::string_view ptx, const std::string& name,
                               JitOptions& options);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
