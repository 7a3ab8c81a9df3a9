// src/cli/commands/step_launch.hpp - the launch that ptxgen step shows
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/args/run_options.hpp"
#include "ptxgen/emulator/host/arguments.hpp"
#include "ptxgen/frames/debugger.hpp"

namespace ptxgen::cli {

/// A launch of a PTX file on the emulator, on a new device for each run. Buffers have the names of
/// their parameters; bytes without a type are shown as f32, if their size allows it.
class StepLaunch : public frames::LaunchSource {
 public:
  /// `options` must outlive it. Throws as `Program::load`, `Arguments` and `launch_of`.
  StepLaunch(const RunOptions& options, std::string text, std::string file, ptx::Gpu gpu,
             std::vector<emulator::ArgumentSpec> specs);

  emulator::Result run(emulator::Observer& observer) override;
  [[nodiscard]] const emulator::Device& device() const override { return *device_; }
  [[nodiscard]] std::span<const frames::Buffer> buffers() const override { return buffers_; }

  /// On the memory that the constructor prepared.
  emulator::Result run_first(emulator::Observer& observer);
  /// Throws as `frames::check_watches`.
  void check(std::span<const frames::Watch> watches) const;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void prepare();

  const RunOptions& options_;
  std::string text_;
  std::string file_;
  ptx::Gpu gpu_;
  std::vector<emulator::ArgumentSpec> specs_;
  emulator::Options how_;
  std::optional<emulator::Device> device_;
  std::optional<emulator::Program> program_;
  std::optional<emulator::Arguments> arguments_;
  std::string kernel_;
  std::vector<frames::Buffer> buffers_;
};

}  // namespace ptxgen::cli
