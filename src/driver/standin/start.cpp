// src/driver/standin/start.cpp - what the environment says to the stand-in
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "driver/emulated/state.hpp"
#include "driver/standin/standin.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0::driver::standin {
namespace {

/// "9.0" as 90; nothing for a text of another form.
std::optional<int> ptx_version(std::string_view text) {
  int major = 0;
  int minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, bad_major] = std::from_chars(text.data(), end, major);
  if (bad_major != std::errc{} || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, bad_minor] = std::from_chars(dot + 1, end, minor);
  if (bad_minor != std::errc{} || rest != end || minor < 0 || minor > 9 || major < 1) {
    return std::nullopt;
  }
  return 10 * major + minor;
}

std::string known_gpus() {
  std::string names;
  for (const ptx::Gpu& gpu : ptx::gpus()) names += " " + std::string(gpu.name);
  return names;
}

/// What a setting got wrong, or nothing.
struct Problem {
  CUresult result = CUDA_SUCCESS;
  std::string text;
};

Problem apply(const Settings& settings) {
  emulated::log_to_standard_error(settings.log != "off");
  emulated::make_faults_strict(settings.strict == "1");
  const std::optional<int> version = ptx_version(settings.emulated_ptx);
  if (!version) {
    return {CUDA_ERROR_INVALID_VALUE, "PTXGEN_EMULATED_PTX=" + settings.emulated_ptx +
                                          " is not a PTX version; write one as in 9.0"};
  }
  emulated::set_newest_ptx(*version);
  const ptx::Gpu* gpu = ptx::find_gpu(settings.emulated_gpu);
  if (gpu == nullptr) gpu = ptx::first_gpu_of(settings.emulated_gpu);
  if (gpu == nullptr) {
    return {CUDA_ERROR_NO_DEVICE, "PTXGEN_EMULATED_GPU=" + settings.emulated_gpu +
                                      " is no GPU that can be emulated; there are" + known_gpus()};
  }
  (void)emulated::add_gpu(*gpu);
  return {};
}

/// Applies the environment once; what it got wrong is every cuInit's result.
CUresult start() noexcept {
  static std::once_flag once;
  static CUresult result = CUDA_SUCCESS;
  std::call_once(once, [] {
    Problem problem;
    try {
      problem = apply(Settings::from_environment());
    } catch (const std::exception& failure) {
      problem.result = CUDA_ERROR_UNKNOWN;
      problem.text = failure.what();
    }
    result = problem.result;
    // Said whatever PTXGEN_LOG is: without it nobody could tell why there is no device.
    if (result != CUDA_SUCCESS) std::fprintf(stderr, "ptxgen: %s\n", problem.text.c_str());
  });
  return result;
}

CUresult init(unsigned flags) noexcept {
  const CUresult result = start();
  return result == CUDA_SUCCESS ? emulated::table().init(flags) : result;
}

CUresult driver_get_version(int* version) noexcept {
  (void)start();
  return emulated::table().driver_get_version(version);
}

}  // namespace

const Table& table() noexcept {
  static const Table functions = [] {
    Table made = emulated::table();
    made.init = init;
    made.driver_get_version = driver_get_version;
    made.get_proc_address = get_proc_address;
    return made;
  }();
  return functions;
}

}  // namespace ptxgen::inline v0::driver::standin
