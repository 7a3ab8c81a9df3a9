// src/qa/playbook/subject.hpp - the launcher as playbooks see it: events, quantities, defects
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/support/error.hpp"
#include "qa/fixture.hpp"
#include "qa/playbook/probe.hpp"

namespace ptxgen::qa {

struct NamedDoc {
  std::string_view name;
  std::string_view doc;
};

/// Raised where a call of the driver fails; no run performs it.
inline constexpr std::string_view kErrorEvent = "cuda_error";

/// One GEMV by a real launcher, step by step, on a device that is opened on the probe's table.
class LauncherSubject {
 public:
  /// `defect`: what it does wrong, empty for nothing.
  LauncherSubject(const Device& device, DriverProbe& probe, const Settings& settings,
                  std::string_view defect);

  /// What conditions may name; what runs may perform; what a run's `defect` may be.
  [[nodiscard]] static std::span<const NamedDoc> quantities() noexcept;
  [[nodiscard]] static std::span<const NamedDoc> events() noexcept;
  [[nodiscard]] static std::span<const NamedDoc> defects() noexcept;

  /// Performs an event. Throws the `Error` of what failed, which is recorded.
  void perform(std::string_view event);
  /// The value of a quantity now, from the objects and the driver.
  [[nodiscard]] std::int64_t value(std::string_view quantity) const;
  [[nodiscard]] const std::optional<Error>& last_error() const noexcept { return last_error_; }

 private:
  void do_event(std::string_view event);
  /// Throws `Error` (Stage::Launch, "not-ready") if what the event needs is missing.
  static void require(bool ready, std::string_view what, std::string_view event);
  void create();
  void compile();
  void allocate();
  void launch();
  void synchronize();
  [[nodiscard]] bool has(std::string_view defect) const noexcept { return defect_ == defect; }
  [[nodiscard]] std::int64_t context_valid() const;
  [[nodiscard]] std::int64_t ptx_valid() const;
  [[nodiscard]] std::int64_t launch_valid() const;
  [[nodiscard]] std::int64_t allocated_bytes() const;
  [[nodiscard]] std::int64_t output_valid() const;
  [[nodiscard]] std::int64_t device_errors() const;

  Device device_;
  DriverProbe& probe_;
  Settings settings_;
  std::string_view defect_;
  GemvCoalesced spec_;
  Problem problem_;
  // In the order in which they need each other.
  std::optional<Context> context_;
  std::optional<Stream> stream_;
  std::optional<Launcher> launcher_;
  std::optional<GemvCoalesced::KernelType> kernel_;
  std::optional<Function> function_;
  Buffer<f32> y_, a_, x_;
  std::vector<float> output_;
  std::optional<Error> last_error_;
};

}  // namespace ptxgen::qa
