// src/driver/emulated/jit.hpp - options of the JIT compiler and linker, and its logs
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ptxgen/driver/api.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// The option arrays of one call (cuModuleLoadDataEx) or one link, and the results that are written
/// back. The caller's arrays and buffers must stay valid until `finish`.
class JitOptions {
 public:
  JitOptions() = default;
  /// Reads the options; options of later calls override. CUDA_ERROR_INVALID_VALUE with the reason
  /// in `why`: unknown options, bad values, null arrays. Options without a meaning here (cache
  /// mode, fast math of LTO, ...) are accepted; symbols bound to host addresses are not
  /// (CUDA_ERROR_NOT_SUPPORTED).
  [[nodiscard]] CUresult read(unsigned count, const CUjit_option* options, void** values,
                              std::string& why);

  /// Adds a line to one of the logs.
  void info(std::string_view line) { add(info_, line); }
  void error(std::string_view line) { add(error_, line); }
  [[nodiscard]] const std::string& info_log() const noexcept { return info_; }
  [[nodiscard]] const std::string& error_log() const noexcept { return error_; }

  /// Writes the logs into the caller's buffers, truncated and zero-terminated; the written bytes
  /// without the zero into the size options; and the time since `read` in ms into CU_JIT_WALL_TIME.
  /// May be called again with longer logs.
  void finish() noexcept;

  /// A copy for a later compilation: nothing is written back.
  [[nodiscard]] JitOptions without_buffers() const;

  std::optional<ptx::TargetName> target;  ///< CU_JIT_TARGET
  unsigned max_registers = 0;             ///< 0: not given
  unsigned threads_per_block = 0;         ///< 0: not given
  bool verbose = false;

 private:
  /// A buffer of the caller, and the option value with its size, which receives the written bytes.
  struct Log {
    char* buffer = nullptr;
    std::size_t bytes = 0;
    void** size = nullptr;
  };
  static void add(std::string& log, std::string_view line);
  static void write(const Log& log, const std::string& text) noexcept;
  [[nodiscard]] CUresult take(CUjit_option option, void** value, std::string& why);

  Log info_buffer_;
  Log error_buffer_;
  void** wall_time_ = nullptr;
  void** threads_out_ = nullptr;
  std::string info_;
  std::string error_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ptxgen::inline v0::driver::emulated
