// src/runtime/driver_calls.hpp - the few driver functions used before the driver table
#pragma once

#include <cstddef>
#include <string>

#include "support/dynamic_library.hpp"

namespace ptxgen::inline v0 {

/// The driver functions that assembling and `diagnose` need, in our own words: handles are opaque,
/// a status is an int and 0 is good. Symbols as of CUDA 11.0 and later.
struct DriverCalls {
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;

  /// The name of the first function that is missing, or null when all are there.
  [[nodiscard]] const char* resolve(const DynamicLibrary& library);
  /// "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected".
  [[nodiscard]] std::string status_text(int status) const;
};

/// A driver version such as 13020 as "13.2".
[[nodiscard]] std::string driver_version_text(int version);

// Values of the driver's CUresult and CUdevice_attribute enumerations.
inline constexpr int kDriverSuccess = 0;
inline constexpr int kDriverStubLibrary = 34;
inline constexpr int kDriverInvalidImage = 200;
inline constexpr int kDriverNoBinaryForGpu = 209;
inline constexpr int kDriverInvalidPtx = 218;
inline constexpr int kDriverUnsupportedPtxVersion = 222;
inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeComputeMajor = 75;
inline constexpr int kAttributeComputeMinor = 76;

}  // namespace ptxgen::inline v0
