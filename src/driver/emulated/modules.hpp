// src/driver/emulated/modules.hpp - loaded modules and their functions
#pragma once

#include <atomic>
#include <memory>
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
  /// Declared 32-bit registers, at most 255 and as many as the largest block can have: what is
  /// allocated, only a compiler knows.
  int registers = 0;
  int binary_version = 0;  ///< 10 * major + minor of the GPU
  std::atomic<int> most_dynamic_shared{0};
  std::atomic<int> carveout{-1};
  std::atomic<int> cluster_width{0}, cluster_height{0}, cluster_depth{0};
  std::atomic<int> non_portable_cluster{0};
  std::atomic<int> cluster_policy{0};

  [[nodiscard]] int static_shared() const noexcept {
    return static_cast<int>(kernel->static_shared_bytes);
  }
  /// Beyond which a launch fails.
  [[nodiscard]] int most_threads() const noexcept;
};

/// A module, of the context that was current when it was loaded. Its program reaches into the
/// context's memory: made and destroyed with `memory_mutex` held.
struct CUmod_st {
  CUmod_st(CUcontext owner, emulator::Program&& loaded) noexcept
      : context(owner), program(std::move(loaded)) {}

  const CUcontext context;
  emulator::Program program;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  std::shared_ptr<const emulated::ModuleNotes> notes;  ///< guarded by the context's `memory_mutex`
};

namespace emulated {

/// Static shared memory of a block; with dynamic memory more only where a kernel has opted in, on
/// every architecture of the target table.
inline constexpr std::uint32_t kStaticShared = 48 * 1024;

/// Compiles PTX for the context's GPU and makes it a living module. `name` is what messages call
/// the text. What went wrong is in the options' error log, in the form of ptxas messages
/// (`ptxas NAME, line N; error   : ...`), and in the driver's log. CUDA_ERROR_INVALID_PTX: does not
/// parse or verify, is for a newer GPU, or has what the emulator does not run;
/// CUDA_ERROR_UNSUPPORTED_PTX_VERSION: newer than newest_ptx().
[[nodiscard]] CUresult load_module(CUcontext context, std::string_view ptx, const std::string& name,
                                   JitOptions& options, CUmodule& loaded);

/// As `load_module`, but keeps nothing: for the linker. `gpu` may be another one.
[[nodiscard]] CUresult try_ptx(const ptx::Gpu& gpu, std::string_view ptx, const std::string& name,
                               JitOptions& options);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
