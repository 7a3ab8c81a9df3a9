// src/cli/commands/launch_observer.cpp - what the emulated driver saw of a launch
#include "cli/commands/launch_observer.hpp"

#include <utility>

namespace ptxgen::cli {

LaunchObserver::LaunchObserver(const Context& context, emulator::Options options, ProgressBar& bar)
    : context_(context.handle()) {
  options.progress = bar.sink();
  (void)driver::emulated::set_launch_options(context_, options);
  (void)driver::emulated::observe_launches(context_, &LaunchObserver::report, this);
}

LaunchObserver::~LaunchObserver() {
  (void)driver::emulated::observe_launches(context_, nullptr, nullptr);
  (void)driver::emulated::set_launch_options(context_, driver::emulated::default_options());
}

std::optional<emulator::Result> LaunchObserver::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

void LaunchObserver::report(void* user, const driver::emulated::LaunchReport& launch) {
  auto& self = *static_cast<LaunchObserver*>(user);
  const std::lock_guard lock(self.mutex_);
  self.result_ = launch.result;
}

}  // namespace ptxgen::cli
