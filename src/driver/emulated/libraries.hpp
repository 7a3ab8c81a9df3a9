// src/driver/emulated/libraries.hpp - libraries and their kernels, which belong to no context
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver/emulated/modules.hpp"

namespace ptxgen::inline v0::driver {

/// A kernel of a library. Attributes are kept for functions that are created later.
struct CUkern_st {
  CUlibrary library = nullptr;
  std::size_t index = 0;  ///< of its function in most modules of the library
  std::string name;
  std::vector<emulator::Program::Kernel::Parameter> parameters;

  std::mutex mutex;
  std::map<std::pair<CUdevice, CUfunction_attribute>, int> attributes;
};

/// An image; every context that uses it has its own module (CUctx_st::of_libraries).
struct CUlib_st {
  std::string name;  ///< its name in messages
  std::vector<std::byte> image;
  emulated::JitOptions options;
  std::vector<std::unique_ptr<CUkern_st>> kernels;

  /// Held while a module is created. Recursive: log callbacks may use the library.
  std::recursive_mutex mutex;
  std::vector<std::weak_ptr<CUctx_st>> contexts;  ///< that have a module
};

namespace emulated {

/// The function of a handle. The API accepts a CUkernel wherever it accepts a CUfunction; its
/// function is the one in `context`, whose module is loaded on first use. CUDA_ERROR_INVALID_HANDLE
/// for other handles; else as cuModuleLoadData.
[[nodiscard]] CUresult find_function(CUcontext context, CUfunction& function);

}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
