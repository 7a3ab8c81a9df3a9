// src/runtime/device/device_state.hpp - state shared by copies of a Device
#pragma once

#include <memory>
#include <string>

#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/trace.hpp"
#include "runtime/device/finding_store.hpp"

namespace ptxgen::inline v0 {

struct HostTarget;  // ptxgen/kernels/host.hpp

struct DeviceFacts {
  DeviceFacts() = default;
  DeviceFacts(const DeviceFacts&) = delete;
  DeviceFacts& operator=(const DeviceFacts&) = delete;
  ~DeviceFacts() {
    if (findings != nullptr) findings->close_trace();
  }

  const driver::Table* table = nullptr;
  driver::CUdevice device = 0;
  DeviceInfo info;
  const ptx::Target* target = nullptr;
  Log log;
  Trace trace;
  std::string dump_folder;
  std::shared_ptr<FindingStore> findings;
};

struct Device::State {
  std::shared_ptr<const DeviceFacts> facts;
};

/// Queries all fields of DeviceInfo but the target. Throws `Error` (Stage::Device, "driver-call").
[[nodiscard]] DeviceInfo ask_device(const driver::Table& table, driver::CUdevice device,
                                    int ordinal, DeviceKind kind);

/// The name of the reference as a backend of the host.
inline constexpr std::string_view kHostScalar = "scalar";
/// What runs described kernels on the host: the name of a `HostTarget`, or `kHostScalar`. "auto":
/// the widest supported, else scalar; "simd": not scalar. Throws `Error` (Stage::Device):
/// "no-vectors", "bad-setting".
[[nodiscard]] std::string host_backend(const Settings& settings);
/// Sets the fields of a device of kind Host, and logs its backend. Throws as `host_backend`.
void describe_host(DeviceInfo& info, const Settings& settings, const Log& log);
/// The target that `info.host` names; null: scalar, or another kind of device.
[[nodiscard]] const HostTarget* host_target_of(const DeviceInfo& info) noexcept;

/// The newest base target that the device runs and its driver compiles for, or null.
[[nodiscard]] const ptx::Target* target_for(std::uint16_t sm, int newest_ptx) noexcept;

}  // namespace ptxgen::inline v0
