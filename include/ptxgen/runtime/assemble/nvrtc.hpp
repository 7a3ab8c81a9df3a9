// ptxgen/runtime/assemble/nvrtc.hpp - CUDA C++ text to PTX
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/hidden.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

/// Result of a compilation by NVRTC.
struct NvrtcResult {
  std::string ptx;
  std::string log;  ///< NVRTC's complete output
};

/// The NVRTC library of this machine. Const members may be called from several threads at once.
class Nvrtc {
 public:
  /// Finds and opens the library. Throws `Error` (stage build, "no-nvrtc") whose log lists every
  /// place tried.
  explicit Nvrtc(const Settings& settings);

  /// The opened file.
  [[nodiscard]] const std::string& where() const noexcept;
  /// "13.0"
  [[nodiscard]] const std::string& version() const noexcept;

  /// Compiles `source` (named `name` in messages) with NVRTC's options, for example
  /// `{"--gpu-architecture=compute_89", "--std=c++17"}`.
  /// Throws `Error` (stage build): "nvrtc-rejected" with file, line, excerpt and the whole log when
  /// the program is wrong, "nvrtc-failed" for an option or a failure of NVRTC itself.
  [[nodiscard]] NvrtcResult compile(std::string_view source, std::span<const std::string> options,
                                    std::string_view name = "source.cu") const;

 private:
  struct Library;
  Hidden<Library> library_;
};

}  // namespace ptxgen::inline v0
