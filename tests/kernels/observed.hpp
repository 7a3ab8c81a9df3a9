// tests/kernels/observed.hpp - what the emulated device says of launches
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "launcher/rig.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// The counters and findings of launches on the emulated device, under all checks.
struct Observed {
  std::vector<emulator::LineCounters> lines;
  std::string findings;

  explicit Observed(const Rig& rig) : rig_(rig) {
    REQUIRE(driver::emulated::observe_launches(rig.context.handle(), report, this) ==
            driver::CUDA_SUCCESS);
  }
  void schedule(std::uint64_t number) const {
    emulator::Options options = driver::emulated::default_options();
    options.checks = emulator::RuleSet::all();
    options.seed = number;
    REQUIRE(driver::emulated::set_launch_options(rig_.context.handle(), options) ==
            driver::CUDA_SUCCESS);
  }
  ~Observed() {
    static_cast<void>(driver::emulated::observe_launches(rig_.context.handle(), nullptr, nullptr));
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  static void report(void* user, const driver::emulated::LaunchReport& launch) {
    auto& all = *static_cast<Observed*>(user);
    all.lines = launch.result.counters.lines;
    for (const emulator::RunFinding& finding : launch.result.findings)
      all.findings += emulator::to_text(finding) + "\n";
  }
  const Rig& rig_;
};

}  // namespace ptxgen::test
