// src/driver/standin/start.cpp - settings of the stand-in from the environment
#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "driver/emulated/state.hpp"
#include "driver/recorder/recorder.hpp"
#include "driver/standin/standin.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

extern "C" {
/// The library in front of this one (src/driver/shim) records instead, and sets it to false before
/// the first call.
extern bool ptxgen_driver_records;
bool ptxgen_driver_records = true;
}

namespace ptxgen::inline v0::driver::standin {
namespace {

std::string known_gpus() {
  std::string names;
  for (const ptx::Gpu& gpu : ptx::gpus()) names += " " + std::string(gpu.name);
  return names;
}

/// The error of a setting, or nothing.
struct Problem {
  CUresult result = CUDA_SUCCESS;
  std::string text;
};

Problem apply(const Settings& settings) {
  emulated::log_to_standard_error(settings.log != "off");
  emulated::make_faults_strict(settings.strict == "1");
  const std::optional<int> version = parse_version(settings.emulated_ptx);
  if (!version) {
    return {CUDA_ERROR_INVALID_VALUE,
            format_text("PTXGEN_EMULATED_PTX={} is not a PTX version; write one as in 9.0",
                        settings.emulated_ptx)};
  }
  emulated::set_newest_ptx(*version);
  const ptx::Gpu* gpu = ptx::find_gpu(settings.emulated_gpu);
  if (gpu == nullptr) gpu = ptx::first_gpu_of(settings.emulated_gpu);
  if (gpu == nullptr) {
    return {CUDA_ERROR_NO_DEVICE,
            format_text("PTXGEN_EMULATED_GPU={} is not an emulated GPU; there are{}",
                        settings.emulated_gpu, known_gpus())};
  }
  (void)emulated::add_gpu(*gpu);
  return {};
}

/// Applies the environment once; its error is the result of every cuInit.
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
    // Printed whatever PTXGEN_LOG is: it is the only hint why there is no device.
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
  static const Table plain = [] {
    Table result = emulated::table();
    result.init = init;
    result.driver_get_version = driver_get_version;
    result.get_proc_address = get_proc_address;
    return result;
  }();
  static const Table functions =
      ptxgen_driver_records ? recorder::recorded_if_asked(plain, true) : plain;
  return functions;
}

}  // namespace ptxgen::inline v0::driver::standin
