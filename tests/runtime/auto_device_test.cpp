// tests/runtime/auto_device_test.cpp - the message that auto means the emulator
#include <catch2/catch.hpp>

#include "ptxgen/runtime/device/device.hpp"
#include "runtime/object_support.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

// One test case, alone in its process: the message comes once a process.
TEST_CASE("auto that means the emulator is said once a process, with the cure") {
  CaughtLog log;
  Settings settings;
  settings.search_usual_places = false;
  settings.emulated_gpu = "rtx4090";
  CHECK(Device::open("emulator", settings).info().kind == DeviceKind::Emulator);
  settings.device = "emulator";
  CHECK(Device::open({}, settings).info().kind == DeviceKind::Emulator);
  CHECK(log.take().empty());
  settings.device = "auto";
  CHECK(Device::open({}, settings).info().kind == DeviceKind::Emulator);
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "no GPU, so device 'auto' is the emulated rtx4090: results are exact, times are not those "
        "of a GPU; PTXGEN_DEVICE=emulator selects it without this message (no NVIDIA driver was "
        "found (PTXGEN_LIBCUDA_PATH names one); the device 'emulator' needs none)");
  CHECK(Device::open("auto", settings).info().kind == DeviceKind::Emulator);
  CHECK(log.take().empty());
}
