// src/driver/recorder/sink.hpp - who gets the steps of a program
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ptxgen/driver/steps.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0::driver::recorder {

/// Receives the steps in their order, one call at a time.
class StepSink {
 public:
  StepSink() = default;
  StepSink(const StepSink&) = delete;
  StepSink& operator=(const StepSink&) = delete;
  virtual ~StepSink() = default;

  /// Before the first step: the device's name, and the GPU's in the GPU table or nothing.
  virtual void begin(std::string_view device, std::string_view gpu) = 0;
  /// The hash of a content, which is kept once.
  [[nodiscard]] virtual std::string keep(std::span<const std::byte> content) = 0;
  /// The hash of outputs of a launch, which are kept as long as all of them are few.
  [[nodiscard]] virtual std::string keep_output(std::span<const std::byte> output) = 0;
  virtual void write(const Step& step) = 0;
  /// What is not recorded, and why: for the user, and part of the recording.
  virtual void note(const std::string& text) = 0;
  /// No step follows. `failure`: the error that lost the context, or empty.
  virtual void end(std::string_view failure) = 0;
  /// Whether it takes no further step: it was ended, is full, or cannot be written.
  [[nodiscard]] virtual bool ended() const noexcept = 0;
};

/// A recording in the file that PTXGEN_RECORD names; null if it cannot be created, which is said on
/// standard error. Defined in `runtime/recording`, which includes this folder and is not included
/// by it.
[[nodiscard]] std::unique_ptr<StepSink> open_program_recording(const Settings& settings);

}  // namespace ptxgen::inline v0::driver::recorder
