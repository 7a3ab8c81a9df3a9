// src/driver/nvjitlink/lto.hpp - LTO IR to PTX by NVIDIA's nvJitLink
#pragma once

#include <string>
#include <vector>

namespace ptxgen::inline v0::driver::nvjitlink {

/// NVIDIA's own linker, whose optimiser makes PTX of LTO IR (`-lto -ptx`). It is looked for at
/// PTXGEN_NVJITLINK_PATH, beside the NVRTC or NVVM that the process has loaded (as in the packages
/// of PyPI), and in the usual places.
class LtoLinker {
 public:
  /// Begins a link with options of nvJitLink.h beside these two. False, with a reason in `why`, if
  /// there is no such library or it refuses the options.
  [[nodiscard]] bool begin(std::vector<std::string> options);
  /// Adds LTO IR (with `-ptx` other inputs are refused); 0, or a code of nvJitLinkResult with its
  /// log in `why`.
  [[nodiscard]] int add(int type, const std::string& bytes, const std::string& name);
  /// The PTX of all LTO IR; 0 or a code, as add().
  [[nodiscard]] int complete(std::string& ptx);

  LtoLinker() = default;
  LtoLinker(const LtoLinker&) = delete;
  LtoLinker& operator=(const LtoLinker&) = delete;
  ~LtoLinker();

  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  [[nodiscard]] int fail(int result, const char* call);

  void* handle_ = nullptr;
  std::string why_;
};

}  // namespace ptxgen::inline v0::driver::nvjitlink
