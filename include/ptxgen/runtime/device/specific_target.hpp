// ptxgen/runtime/device/specific_target.hpp - targets of one architecture alone
#pragma once

#include "ptxgen/runtime/device/device.hpp"

namespace ptxgen::inline v0 {

/// The architecture-specific variant ("sm_90a") of the device's target, if its driver compiles it;
/// else null.
[[nodiscard]] const ptx::Target* specific_target(const DeviceInfo& info) noexcept;

}  // namespace ptxgen::inline v0
