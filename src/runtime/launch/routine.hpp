// src/runtime/launch/routine.hpp - what the runtime adds to families of kernels
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ptxgen/kernels/description.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "runtime/device/core.hpp"

namespace ptxgen::inline v0 {

/// A routine of another library that serves calls of a family.
///
/// Threads: all members from any thread at once.
class Routine {
 public:
  Routine() = default;
  Routine(const Routine&) = delete;
  Routine& operator=(const Routine&) = delete;
  virtual ~Routine() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;  ///< "cublasSgemv"
  [[nodiscard]] virtual bool ready() const noexcept = 0;
  /// Opens the library. Not during a stream capture unless `ready`. Throws "no-..." where there is
  /// none, or the device is emulated.
  virtual void open() = 0;
  /// Throws if `open` cannot succeed on this device whatever is installed.
  virtual void refuse_device() const = 0;
  /// Queues a call of the family; `ready`.
  virtual void launch(const void* spec, const void* operands, driver::CUstream stream) const = 0;
  /// The same call, to be queued later; keeps the library open.
  [[nodiscard]] virtual std::function<void(driver::CUstream)> bind(const void* spec,
                                                                   const void* operands) const = 0;
};

/// A launcher's state of one family.
struct FamilyState {
  const KernelDescription* kernel = nullptr;
  std::string_view implementation = "auto";  ///< asked for
  const PlanSource* measured = nullptr;
  std::unique_ptr<const PlanSource> tuned;  ///< owner of `measured` if it was read from files
  std::shared_ptr<Routine> routine;         ///< null: the family has none
  std::atomic<bool> fell_back{false};       ///< the routine serves what it can from now on
};

/// What the runtime adds to a family: the launcher's options for it, measured plans in files, and a
/// routine. Null where there is none.
struct FamilyParts {
  const KernelFamily* family;
  void (*configure)(const LauncherOptions& options, FamilyState& family);
  std::unique_ptr<const PlanSource> (*tuned)(const Device& device, const std::string& folder);
  std::shared_ptr<Routine> (*routine)(const ContextCore& core, const Settings& settings);
};
/// Null: the runtime adds nothing to that family.
[[nodiscard]] const FamilyParts* family_parts(const KernelFamily* family) noexcept;

}  // namespace ptxgen::inline v0
