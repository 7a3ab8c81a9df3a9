// tests/functional/places.hpp - the devices that the functional tests run on
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::functional {

/// A device with a context, a stream and a launcher that keeps nothing on the disk.
struct Place {
  explicit Place(const std::string& name, LauncherOptions options = launcher_options());

  Device device;
  Context context;
  Stream stream;
  Launcher launcher;

  [[nodiscard]] bool emulated() const { return device.info().kind == DeviceKind::Emulator; }
  /// A launcher of the same context that serves GEMV by `choice`.
  [[nodiscard]] Launcher with_gemv(GemvChoice choice) const;

  [[nodiscard]] static LauncherOptions launcher_options();
};

/// The names for Device::open: what PTXGEN_DEVICE says; if it says "auto" or nothing, the emulator
/// and every GPU of this machine. Never empty.
[[nodiscard]] const std::vector<std::string>& places();

/// Runs `work` on each of them, with a context of its own; the device's name is in the messages of
/// checks that fail. Work that compares nothing and skips no part fails; a case that skips its part
/// on every device counts as skipped.
void on_every_place(const std::function<void(Place&)>& work);

}  // namespace ptxgen::functional
