// src/driver/emulated/devices.cpp - versions, error texts, device queries
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"
#include "ptxgen/driver/table.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

struct ErrorText {
  CUresult result;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrorTexts[] = {
#define PTXGEN_DRIVER_RESULT(name, value, text) {name, #name, text},
#include "ptxgen/driver/results.def"
};

const ErrorText* error_text(CUresult result) {
  const auto* const found = std::ranges::find(kErrorTexts, result, &ErrorText::result);
  return found != std::end(kErrorTexts) ? found : nullptr;
}

/// The first CUDA release whose driver compiles that PTX version, or the newest known release.
int driver_version_for(int ptx) {
  constexpr int kOldest = 10000;
  constexpr int kBeyond = 15000;
  int newest = kOldest;
  for (int version = kOldest; version < kBeyond; version += 10) {
    if (driver::newest_ptx(version) == driver::newest_ptx(newest)) continue;
    newest = version;
    if (driver::newest_ptx(version) >= ptx) break;
  }
  return newest;
}

template <class Number>
constexpr int number(Number value) {
  const auto wide = static_cast<std::uint64_t>(value);
  return static_cast<int>(
      std::min<std::uint64_t>(wide, static_cast<std::uint64_t>(std::numeric_limits<int>::max())));
}

/// False if there is no such attribute.
bool attribute_of(const ptx::Gpu& gpu, int ordinal, CUdevice_attribute attribute, int& value) {
  const int sm = ptx::sm_of(gpu);
  // Programs compute the bandwidth as 2 * clock * width / 8: the width is that of such memory, the
  // clock what makes the product right.
  const int bus_width = gpu.bandwidth_gb_per_s > 1800 ? 5120 : 384;
  const int memory_khz = number(gpu.bandwidth_gb_per_s * 1e6 * 8 / 2 / bus_width);
  switch (attribute) {
#define PTXGEN_DEVICE_ATTRIBUTE(name, number_of_it, emulated) \
  case name:                                                  \
    value = emulated;                                         \
    return true;
#include "ptxgen/driver/device_attributes.def"
  }
  return false;
}

constexpr std::uint64_t kUnknownMemory = std::uint64_t{64} << 30;  ///< as the emulator takes it

/// Copies the text, truncated to the buffer and zero-terminated.
void put_text(const std::string& text, char* buffer, int bytes) {
  const std::size_t length = std::min(text.size(), static_cast<std::size_t>(bytes) - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = 0;
}

template <class Work>
CUresult with_device(CUdevice device, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const ptx::Gpu* const gpu = gpu_of(device);
    if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return work(*gpu);
  });
}

std::string bus_id_of(CUdevice device) {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", 1 + device);
  return text;
}

}  // namespace

namespace entries {

// Error texts and versions are available before cuInit and in host functions too.

CUresult driver_get_version(int* driver_version) {
  if (driver_version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driver_version = driver_version_for(newest_ptx());
  return CUDA_SUCCESS;
}

CUresult get_error_name(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = error_text(error);
  *text = row != nullptr ? row->name : nullptr;
  return row != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_error_string(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = error_text(error);
  *text = row != nullptr ? row->text : nullptr;
  return row != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult device_get(CUdevice* device, int ordinal) {
  return with_device(ordinal, [&](const ptx::Gpu&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult device_get_count(int* count) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = gpu_count();
    return CUDA_SUCCESS;
  });
}

CUresult device_get_name(char* name, int bytes, CUdevice device) {
  return with_device(device, [&](const ptx::Gpu& gpu) {
    if (name == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    const std::string_view called = gpu.full_name.empty() ? gpu.name : gpu.full_name;
    put_text(std::string(called) + " (emulated)", name, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult device_total_mem(std::size_t* bytes, CUdevice device) {
  return with_device(device, [&](const ptx::Gpu& gpu) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = gpu.memory_bytes != 0 ? gpu.memory_bytes : kUnknownMemory;
    return CUDA_SUCCESS;
  });
}

CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return with_device(device, [&](const ptx::Gpu& gpu) {
    if (value == nullptr || !attribute_of(gpu, device, attribute, *value)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult device_get_uuid(CUuuid* uuid, CUdevice device) {
  return with_device(device, [&](const ptx::Gpu& gpu) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // The same in every process: the ordinal and a prefix of the name.
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    const std::string text = "ptxgen-" + std::string(gpu.name);
    uuid->bytes[0] = static_cast<char>(1 + device);
    std::memcpy(uuid->bytes + 1, text.data(), std::min(text.size(), sizeof uuid->bytes - 1));
    return CUDA_SUCCESS;
  });
}

CUresult device_compute_capability(int* major, int* minor, CUdevice device) {
  return with_device(device, [&](const ptx::Gpu& gpu) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = ptx::sm_of(gpu) / 10;
    *minor = ptx::sm_of(gpu) % 10;
    return CUDA_SUCCESS;
  });
}

CUresult device_get_pci_bus_id(char* bus_id, int bytes, CUdevice device) {
  return with_device(device, [&](const ptx::Gpu&) {
    if (bus_id == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
    put_text(bus_id_of(device), bus_id, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult device_get_by_pci_bus_id(CUdevice* device, const char* bus_id) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (device == nullptr || bus_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // [domain:]bus:device[.function], hexadecimal
    unsigned part[4] = {0, 0, 0, 0};
    const bool complete =
        std::sscanf(bus_id, "%x:%x:%x.%x", &part[0], &part[1], &part[2], &part[3]) >= 3;
    if (!complete) {
      part[0] = 0;
      part[3] = 0;
      if (std::sscanf(bus_id, "%x:%x.%x", &part[1], &part[2], &part[3]) < 2) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (part[0] != 0 || part[1] == 0 || part[1] > 0x1000 || part[2] != 0 || part[3] != 0 ||
        gpu_of(static_cast<CUdevice>(part[1]) - 1) == nullptr) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = static_cast<CUdevice>(part[1]) - 1;
    return CUDA_SUCCESS;
  });
}

CUresult device_can_access_peer(int* can_access_peer, CUdevice device, CUdevice peer) {
  return with_device(device, [&](const ptx::Gpu&) {
    if (can_access_peer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (gpu_of(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *can_access_peer = 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
