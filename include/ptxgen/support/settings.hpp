// ptxgen/support/settings.hpp - settings from the environment
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

// field, environment variable, value when the variable is unset or empty, what it is for.
#define PTXGEN_SETTINGS(X)                                                                         \
  X(libcuda_path, "PTXGEN_LIBCUDA_PATH", "", "the NVIDIA driver library, libcuda.so.1")            \
  X(nvrtc_path, "PTXGEN_NVRTC_PATH", "", "the CUDA C++ compiler library, libnvrtc.so")             \
  X(nvjitlink_path, "PTXGEN_NVJITLINK_PATH", "", "the assembler library, libnvJitLink.so")         \
  X(ptxas_path, "PTXGEN_PTXAS_PATH", "", "the assembler program, ptxas")                           \
  X(nvdisasm_path, "PTXGEN_NVDISASM_PATH", "", "the disassembler program, nvdisasm")               \
  X(cublas_path, "PTXGEN_CUBLAS_PATH", "", "the BLAS library, libcublas.so")                       \
  X(cuda_path, "PTXGEN_CUDA_PATH", "", "a CUDA toolkit, looked at before any other")               \
  X(cache_dir, "PTXGEN_CACHE_DIR", "", "where compiled kernels are kept between runs")             \
  X(cache, "PTXGEN_CACHE", "on", "the cache of kernels: on, read-only, memory or off")             \
  X(cache_lower_dir, "PTXGEN_CACHE_LOWER_DIR", "", "compiled kernels that are only read")          \
  X(device, "PTXGEN_DEVICE", "auto", "the device to use: auto, emulator, host or cuda:N")          \
  X(host, "PTXGEN_HOST", "auto", "kernels on the host: auto, simd, scalar, or vectors (avx2)")     \
  X(emulated_gpu, "PTXGEN_EMULATED_GPU", "h200", "the GPU that the emulated driver shows")         \
  X(strict, "PTXGEN_STRICT", "0", "1: errors found on the emulated device are thrown")             \
  X(emulated_ptx, "PTXGEN_EMULATED_PTX", "9.0", "the newest PTX version that it accepts")          \
  X(gemv, "PTXGEN_GEMV", "auto", "the GEMV to use: auto, or one of the names of `gemv --impl`")    \
  X(passes, "PTXGEN_PASSES", "default", "the passes of a launcher, separated by commas, or none")  \
  X(tuned, "PTXGEN_TUNED", "", "the folder of measured GEMV plans, or off")                        \
  X(log, "PTXGEN_LOG", "warn", "the log level: off, error, warn, info, debug or trace")            \
  X(trace, "PTXGEN_TRACE", "", "a file to write a Chrome trace of what the library does to")       \
  X(repro, "PTXGEN_REPRO", "", "a folder where launches that fail on the emulator are recorded")   \
  X(record, "PTXGEN_RECORD", "", "a file where the stand-in driver records what a program does")   \
  X(record_limit, "PTXGEN_RECORD_LIMIT", "1024", "the size of that file, MiB, at which it ends")   \
  X(nvtx_path, "PTXGEN_NVTX_PATH", "", "the profiler library, libnvToolsExt.so.1")                 \
  X(nvtx_injection, "NVTX_INJECTION64_PATH", "", "the library of an attached profiler, set by it") \
  X(cuda_home, "CUDA_HOME", "", "a CUDA toolkit, one of the usual places")                         \
  X(cuda_toolkit, "CUDA_PATH", "", "a CUDA toolkit, one of the usual places")                      \
  X(conda_prefix, "CONDA_PREFIX", "", "a conda environment, one of the usual places")              \
  X(program_path, "PATH", "", "folders searched for programs")                                     \
  X(xdg_cache_home, "XDG_CACHE_HOME", "", "the parent of the cache folder")                        \
  X(home, "HOME", "", "the user's folder, for the cache folder when nothing else says")            \
  X(temp_dir, "TMPDIR", "/tmp", "where short-lived files for ptxas are written")

/// All settings that the environment can change. Objects of the library take it by
/// const reference and copy what they need; nothing else of the library reads the environment.
///
/// A `..._path` setting that is not empty is a file, or a folder that holds the file, and is then
/// the only place tried: a wrong one is reported instead of silently replaced by another library.
/// Plain data: equal rules as for any struct of strings between threads.
struct Settings {
#define PTXGEN_SETTING_FIELD(field, variable, initial, doc) std::string field = initial;
  PTXGEN_SETTINGS(PTXGEN_SETTING_FIELD)
#undef PTXGEN_SETTING_FIELD

  /// False: only `..._path` settings and `cuda_path` are looked at, neither libraries that the
  /// process has loaded already, nor the loader's search path, PATH and the toolkit's usual
  /// folders. There is no variable for it; tests use it to see a machine without anything.
  bool search_usual_places = true;

  /// The settings with every variable of `setting_fields()` applied that is set and not empty.
  /// The only place of the library that calls getenv; not to run beside a setenv in another thread.
  [[nodiscard]] static Settings from_environment();

  /// Where compiled kernels are kept: `cache_dir`, else `xdg_cache_home`/ptxgen, else
  /// `home`/.cache/ptxgen, else empty: none.
  [[nodiscard]] std::string cache_folder() const;
};

/// One row of the table of settings.
struct SettingField {
  std::string_view variable;     ///< "PTXGEN_PTXAS_PATH"
  std::string_view name;         ///< "ptxas_path"
  std::string Settings::*value;  ///< its member
  std::string_view doc;          ///< one line
};

inline constexpr SettingField kSettingFields[] = {
#define PTXGEN_SETTING_ROW(field, variable, initial, doc) {variable, #field, &Settings::field, doc},
    PTXGEN_SETTINGS(PTXGEN_SETTING_ROW)
#undef PTXGEN_SETTING_ROW
};

#undef PTXGEN_SETTINGS

/// All settings in a fixed order, for printing the effective values.
[[nodiscard]] constexpr std::span<const SettingField> setting_fields() noexcept {
  return kSettingFields;
}

}  // namespace ptxgen::inline v0
