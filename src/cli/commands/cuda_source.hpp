// src/cli/commands/cuda_source.hpp - PTX of a file that may be CUDA C++
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/support/settings.hpp"

namespace ptxgen::cli {

/// Whether a file is CUDA C++ by its name, `*.cu`.
[[nodiscard]] bool is_cuda_source(const std::string& path) noexcept;

struct CompiledSource {
  std::string ptx;
  std::string tool;  ///< "NVRTC 13.0", "nvcc 13.0.88"
  std::string log;   ///< the compiler's warnings
};

/// Compiles it for a target, by NVRTC, or by nvcc where NVRTC is missing or rejects the file (host
/// code in it, for instance). Lines of the source are kept. Throws `Error` (stage build):
/// "no-compiler" if neither was found, else the message of the last compiler.
[[nodiscard]] CompiledSource compile_source(const std::string& path, std::string_view target,
                                            const Settings& settings);

}  // namespace ptxgen::cli
