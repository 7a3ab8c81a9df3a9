// src/cli_common/device_choice.hpp - the device that a command runs on
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/target.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::cli {

class Command;

/// The device of `--device`, else of PTXGEN_DEVICE, with "auto" resolved.
struct DeviceChoice {
  bool emulator = true;
  bool host = false;              ///< described kernels run as functions of the host
  std::string name = "emulator";  ///< "emulator", "host", "cuda:0"
  std::string gpu;                ///< of PTXGEN_DEVICE=emulator:NAME, else empty
  std::string from;               ///< its name in messages: "--device cuda:0"
  std::string default_gpu;        ///< Settings::emulated_gpu
};

/// `emulator_only` names an option in use that only the emulator supports, or is empty. If it is
/// not empty, "auto" means the emulator and a GPU is refused. Throws `UsageError`, and `Error` as
/// Device::open.
[[nodiscard]] DeviceChoice choose_device(const std::string& option, std::string_view emulator_only,
                                         const Settings& settings);

/// A GPU of the table, or a generic part ("sm_90"). Throws `UsageError` that begins with `from` and
/// lists the names.
[[nodiscard]] ptx::Gpu gpu_of_name(const std::string& name, const std::string& from);

/// The GPU that the emulator models, the same for all commands: `--gpu`, the choice's own, the
/// default for a `.target`, or where `target` is empty `Settings::emulated_gpu`. Throws as
/// `gpu_of_name`.
[[nodiscard]] ptx::Gpu chosen_gpu(const std::string& option, const DeviceChoice& choice,
                                  std::string_view target);

/// The GPU to plan for, without a launch: `--gpu`, else the device of `--device` with its own
/// properties, else the default of the emulator. Throws as the functions above.
[[nodiscard]] ptx::Gpu planned_gpu(const std::string& gpu, const std::string& device,
                                   const Settings& settings);

/// Opens the device; `gpu` is the GPU that the emulator models. Throws `Error` as Device::open.
[[nodiscard]] Device open_device(const DeviceChoice& choice, const ptx::Gpu& gpu,
                                 const Settings& settings);

/// `--device` and `--gpu` of a command that launches kernels. All throw as the functions above.
struct DeviceOptions {
  std::string device;
  std::string gpu;

  void add_to(Command& command);
  [[nodiscard]] DeviceChoice choice(const Settings& settings) const {
    return choose_device(device, gpu.empty() ? "" : "--gpu", settings);
  }
  [[nodiscard]] Device open(const DeviceChoice& choice, const Settings& settings) const {
    return open_device(choice, chosen_gpu(gpu, choice, {}), settings);
  }
  /// The device as Device::open takes it: "emulator:h200", "host", "cuda:0".
  [[nodiscard]] std::string full_name(const DeviceChoice& choice) const;
};

}  // namespace ptxgen::cli
