// src/qa/facts.hpp - what the environment lines know of machine and build
#pragma once

#include <cstdint>
#include <string>

#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::qa {

/// Collected once. Zero or empty: unknown.
struct Facts {
  bool gpu = false;  ///< the device is one of libcuda
  DeviceInfo device;
  std::string compiler;      ///< "GCC", "Clang"
  int compiler_version = 0;  ///< major
  long language = 0;         ///< of C++, as __cplusplus
  int cmake_major = 0;       ///< of the build
  int cmake_minor = 0;
  std::uint64_t disk_free = 0;   ///< bytes, where temporary files are written
  std::uint64_t memory = 0;      ///< bytes of the machine
  std::string governor;          ///< of the first processor; empty: not exposed
  bool processes_known = false;  ///< whether the driver's tool listed them
  std::uint32_t gpu_processes = 0;
};
[[nodiscard]] Facts collect_facts(const Device& device, const Settings& settings);

}  // namespace ptxgen::qa
