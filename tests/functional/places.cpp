// tests/functional/places.cpp - the devices that the functional tests run on
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // for the listener
#include "functional/places.hpp"

#include <catch2/catch.hpp>
#include <iostream>

#include "support/comparisons.hpp"

namespace ptxgen::functional {

namespace {

std::vector<std::string> find_places() {
  const Settings settings = Settings::from_environment();
  if (!settings.device.empty() && settings.device != "auto") return {settings.device};
  std::vector<std::string> names = {"emulator"};
  for (const DeviceInfo& info : Device::list(settings)) {
    if (info.kind == DeviceKind::Cuda) names.push_back("cuda:" + std::to_string(info.ordinal));
  }
  return names;
}

// Says at the start of every run which devices it is about: a run that never saw a GPU must not
// look like one that did.
class PlacesListener : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override {
    std::cout << "devices:";
    bool gpu = false;
    for (const std::string& name : places()) {
      try {
        const DeviceInfo info = Device::open(name).info();
        gpu = gpu || info.kind == DeviceKind::Cuda;
        std::cout << " " << name << " (" << info.name << ", sm_" << info.sm << ", "
                  << (info.kind == DeviceKind::Cuda ? "driver " : "emulated driver ")
                  << driver::version_text(info.driver_version) << ")";
      } catch (const std::exception& error) {
        std::cout << " " << name << " (" << error.what() << ")";
      }
    }
    std::cout << (gpu ? "" : "; no GPU among them") << std::endl;
  }
};

CATCH_REGISTER_LISTENER(PlacesListener)

}  // namespace

LauncherOptions Place::launcher_options() {
  LauncherOptions options;
  // PTXGEN_GEMV is for users; the tests say themselves which kernel they mean.
  options.settings.gemv = "auto";
  return options;
}

Place::Place(const std::string& name, LauncherOptions options)
    : device(Device::open(name)),
      context(device),
      stream(context),
      launcher(context, std::move(options)) {}

Launcher Place::with_gemv(GemvChoice choice) const {
  LauncherOptions options = launcher_options();
  options.gemv = choice;
  return Launcher(context, std::move(options));
}

const std::vector<std::string>& places() {
  static const std::vector<std::string> found = find_places();
  return found;
}

void on_every_place(const std::function<void(Place&)>& work) {
  for (const std::string& name : places()) {
    INFO("device " << name);
    Place place(name);
    const std::uint64_t compared = test::comparisons();
    const std::uint64_t skipped = test::skips();
    work(place);
    if (test::comparisons() == compared && test::skips() == skipped) {
      FAIL("nothing was compared on " << name << ", and nothing said that it was skipped");
    }
  }
}

}  // namespace ptxgen::functional
