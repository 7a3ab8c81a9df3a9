// ptxgen/runtime/module/compile.hpp - CUDA C++ text to a module
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

struct CudaOptions {
  /// Architecture to compile for and target of the PTX: "sm_90".
  std::string target = "sm_75";
  /// Further options of NVRTC: "--use_fast_math", "-I/my/headers", "-DTILE=32".
  std::vector<std::string> nvrtc;
  /// The program's name in messages.
  std::string name = "source.cu";
  /// Whether the gates check the module.
  bool gates = true;
  /// Where to search for NVRTC. The toolkit's headers (cuda_fp16.h, ...) are found next to it.
  Settings settings = Settings::from_environment();
};

/// A CUDA C++ program, compiled, parsed and checked; Launcher::load loads it.
struct CudaProgram {
  ptx::Module module;
  std::string ptx;  ///< NVRTC's own text
  std::string log;  ///< NVRTC's complete output
};

/// Compiles CUDA C++ with NVRTC, then parses and checks the PTX. Declare kernels `extern "C"`;
/// otherwise their names are mangled.
///
/// Throws `Error`: (Stage::Build) "no-nvrtc", "missing-header" naming the header and the folders
/// searched, "nvrtc-rejected" with line, excerpt and complete log, "nvrtc-failed"; (Stage::Verify)
/// findings of the gates.
[[nodiscard]] CudaProgram compile_cuda(std::string_view source, const CudaOptions& options = {});

}  // namespace ptxgen::inline v0
