// src/driver/standin/refused.cpp - libcuda functions that are not emulated
#include <string>

#include "driver/emulated/state.hpp"
#include "driver/standin/standin.hpp"

namespace ptxgen::inline v0::driver {
namespace {

void log(CUlogLevel level, const std::string& text) {
  // Decides where the log goes.
  int version = 0;
  (void)standin::table().driver_get_version(&version);
  emulated::log(level, text);
}

CUresult refuse(const char* symbol) noexcept {
  try {
    log(CU_LOG_LEVEL_ERROR, std::string(symbol) + ": the emulated driver has no such function");
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

// Without parameters: in both ABIs the caller cleans up its arguments.
extern "C" {
#define PTXGEN_REFUSED(symbol) \
  CUresult symbol();           \
  CUresult symbol() { return refuse(#symbol); }
#include "driver/standin/refused.def"

/// For the CUDA runtime beside this library (src/driver/cudart): a line in the driver's log.
void ptxgen_driver_log(CUlogLevel level, const char* text);
void ptxgen_driver_log(CUlogLevel level, const char* text) {
  try {
    log(level, text);
  } catch (...) {
    // There is no memory for the line.
  }
}
}

}  // namespace ptxgen::inline v0::driver
