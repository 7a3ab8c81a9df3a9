// src/runtime/driver_calls.cpp - the few driver functions used before the driver table
#include "runtime/driver_calls.hpp"

namespace ptxgen::inline v0 {

const char* DriverCalls::resolve(const DynamicLibrary& library) {
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto*& function) {
    if (missing == nullptr && !library.resolve(name, function)) missing = name;
  };
  need("cuInit", init);
  need("cuDriverGetVersion", driver_version);
  need("cuGetErrorName", error_name);
  need("cuGetErrorString", error_string);
  need("cuDeviceGetCount", device_count);
  need("cuDeviceGet", device_get);
  need("cuDeviceGetName", device_name);
  need("cuDeviceGetAttribute", device_attribute);
  need("cuDeviceTotalMem_v2", device_memory);
  return missing;
}

std::string DriverCalls::status_text(int status) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (error_name != nullptr) (void)error_name(status, &name);
  if (error_string != nullptr) (void)error_string(status, &words);
  std::string text = name == nullptr ? "driver status" : name;
  text += " (" + std::to_string(status) + ")";
  if (words != nullptr) text += ": " + std::string(words);
  return text;
}

std::string driver_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace ptxgen::inline v0
