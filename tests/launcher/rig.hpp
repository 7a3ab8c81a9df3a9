// tests/launcher/rig.hpp - a launcher over a driver with some calls replaced
#pragma once

#include <string>
#include <vector>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/support/error.hpp"
#include "support/log_of_test.hpp"

namespace ptxgen::test {

/// Nothing from the environment or the disk.
[[nodiscard]] inline LauncherOptions plain_options() {
  LauncherOptions options;
  options.settings = Settings{};
  options.settings.search_usual_places = false;
  options.cache.mode = CacheMode::MemoryOnly;
  return options;
}

/// Through a table of our own the emulated device passes for a GPU.
struct Rig {
  explicit Rig(LauncherOptions options = plain_options(),
               const driver::Table& of = driver::emulated::table())
      : table(of),
        device(Device::open(table, 0, DeviceKind::Cuda)),
        context(device),
        stream(context),
        launcher(context, std::move(options)) {}

  const driver::Table table;
  const Device device;
  const Context context;
  const Stream stream;
  Launcher launcher;
};

template <class Work>
[[nodiscard]] Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(Stage::Io, "no error", "");
}

template <class Buffer>
[[nodiscard]] std::vector<typename Buffer::Host> read(const Buffer& buffer) {
  std::vector<typename Buffer::Host> values(buffer.size());
  buffer.read(values);
  return values;
}

}  // namespace ptxgen::test
