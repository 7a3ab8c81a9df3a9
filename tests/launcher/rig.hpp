// tests/launcher/rig.hpp - a launcher over a driver with some calls replaced
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/log.hpp"

namespace ptxgen::test {

/// While one lives, objects that are made without a log of their own write into it.
class LogOfTest {
 public:
  LogOfTest() {
    set_default_log(Log(LogLevel::Info, {[](void* user, LogLevel, std::string_view message) {
                                           auto& self = *static_cast<LogOfTest*>(user);
                                           const std::lock_guard lock(self.mutex_);
                                           self.text_ += std::string(message) + "\n";
                                         },
                                         this, nullptr}));
  }
  LogOfTest(const LogOfTest&) = delete;
  LogOfTest& operator=(const LogOfTest&) = delete;
  ~LogOfTest() { reset_default_log(); }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

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
