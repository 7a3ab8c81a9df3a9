// ptxgen/runtime/assemble/compile.hpp - CUDA C++ text as a module of ours
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

struct CudaOptions {
  /// What is compiled for, "sm_90"; also the target of the PTX.
  std::string target = "sm_75";
  /// Further options of NVRTC: "--use_fast_math", "-I/my/headers", "-DTILE=32".
  std::vector<std::string> nvrtc;
  /// What messages call the program.
  std::string name = "source.cu";
  /// The gates that kernels of the library pass too.
  bool gates = true;
  /// Where NVRTC is looked for. The toolkit's own headers (cuda_fp16.h, ...) are found where they
  /// lie beside it.
  Settings settings = Settings::from_environment();
};

/// A CUDA C++ program that was compiled, read and checked; Launcher::load loads it.
struct CudaProgram {
  ptx::Module module;
  std::string ptx;  ///< NVRTC's own text
  std::string log;  ///< its warnings; whole
};

/// CUDA C++ through NVRTC, our parser and our gates. Give kernels `extern "C"`, or their names are
/// C++'s mangled ones.
///
/// Throws `Error`: (Stage::Build) "no-nvrtc", "missing-header" naming the header and the folders
/// searched, "nvrtc-rejected" with line, excerpt and whole log, "nvrtc-failed"; (Stage::Verify)
/// what the gates find.
[[nodiscard]] CudaProgram compile_cuda(std::string_view source, const CudaOptions& options = {});

}  // namespace ptxgen::inline v0
