// tests/host/backends.hpp - the backends of the host on this machine
#pragma once

#include <string>
#include <vector>

#include "ptxgen/kernels/host.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "support/log_of_test.hpp"

namespace ptxgen::test {

/// Nothing from the environment or the disk.
[[nodiscard]] inline Settings host_settings(std::string_view backend) {
  Settings settings;
  settings.search_usual_places = false;
  settings.host = backend;
  return settings;
}

/// The vectors that this processor has, widest first.
[[nodiscard]] inline std::vector<HostTarget> supported_targets() {
  std::vector<HostTarget> targets;
  for (const HostTarget& target : host_targets()) {
    if (target.supported) targets.push_back(target);
  }
  return targets;
}

/// Their names, and "scalar".
[[nodiscard]] inline std::vector<std::string> backends() {
  std::vector<std::string> names;
  for (const HostTarget& target : supported_targets()) names.emplace_back(target.name);
  names.emplace_back("scalar");
  return names;
}

/// A device with a launcher.
struct Place {
  explicit Place(std::string_view name, std::string_view backend = "auto")
      : settings(host_settings(backend)),
        device(Device::open(name, settings)),
        context(device),
        stream(context),
        launcher(context, options()) {}

  [[nodiscard]] LauncherOptions options() const {
    LauncherOptions options;
    options.settings = settings;
    options.cache.mode = CacheMode::MemoryOnly;
    return options;
  }

  const Settings settings;
  const Device device;
  const Context context;
  const Stream stream;
  const Launcher launcher;
};

}  // namespace ptxgen::test
