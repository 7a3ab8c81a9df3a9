// src/cli_common/device_choice.cpp - the device that a command runs on
#include "cli_common/device_choice.hpp"

#include "cli_common/command_line.hpp"
#include "cli_common/nearest.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::string_view kCuda = "cuda:";
constexpr std::string_view kEmulated = "emulator:";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

DeviceChoice choose_device(const std::string& option, std::string_view emulator_only,
                           const Settings& settings) {
  const std::string name = option.empty() ? settings.device : option;
  DeviceChoice choice;
  choice.from = (option.empty() ? "PTXGEN_DEVICE=" : "--device ") + name;
  choice.default_gpu = settings.emulated_gpu;
  if (name == "emulator") return choice;
  if (name.starts_with(kEmulated)) {
    choice.gpu = name.substr(kEmulated.size());
    return choice;
  }
  if (name == "auto") {
    if (!emulator_only.empty()) return choice;
    const Device found = Device::open("auto", settings);
    choice.emulator = found.info().kind == DeviceKind::Emulator;
    if (!choice.emulator) choice.name = format_text("cuda:{}", found.info().ordinal);
    return choice;
  }
  if (name == "host") {
    if (!emulator_only.empty()) {
      throw UsageError(format_text(
          "{} needs the emulator, and {} is the host; leave it out, or use --device emulator",
          emulator_only, choice.from));
    }
    choice.emulator = false;
    choice.host = true;
    choice.name = name;
    return choice;
  }
  if (!name.starts_with(kCuda) || !is_number(name.substr(kCuda.size()))) {
    throw UsageError(format_text(
        "{}: there is no such device; expects auto, emulator, host or cuda:N", choice.from));
  }
  if (!emulator_only.empty()) {
    throw UsageError(format_text(
        "{} needs the emulator, and {} is a GPU; leave it out, or use --device emulator",
        emulator_only, choice.from));
  }
  choice.emulator = false;
  choice.name = name;
  return choice;
}

ptx::Gpu chosen_gpu(const std::string& option, const DeviceChoice& choice,
                    std::string_view target) {
  std::string name = option.empty() ? choice.gpu : option;
  std::string from = option.empty() ? choice.from : "--gpu " + option;
  if (name.empty()) {
    if (!target.empty()) return emulator::default_gpu(target);
    name = choice.default_gpu;
    from = "PTXGEN_EMULATED_GPU=" + name;
  }
  return gpu_of_name(name, from);
}

ptx::Gpu gpu_of_name(const std::string& name, const std::string& from) {
  if (const ptx::Gpu* row = ptx::find_gpu(name)) return *row;
  try {
    return emulator::gpu_named(name);
  } catch (const Error& error) {
    std::vector<std::string> names;
    for (const ptx::Gpu& row : ptx::gpus()) names.emplace_back(row.name);
    throw UsageError(from + ": " + error.message + did_you_mean(name, names));
  }
}

Device open_device(const DeviceChoice& choice, const ptx::Gpu& gpu, const Settings& settings) {
  if (!choice.emulator) return Device::open(choice.name, settings);
  const std::string name(gpu.name);
  if (ptx::find_gpu(name) != nullptr) {
    return Device::open(std::string(kEmulated) + name, settings);
  }
  // A generic part, which no name of Device::open stands for.
  return Device::open(driver::emulated::table(), driver::emulated::add_gpu(gpu),
                      DeviceKind::Emulator, settings);
}

void DeviceOptions::add_to(Command& command) {
  command.add_option("--device", device, "auto, emulator, host or cuda:N");
  command.add_option("--gpu", gpu, "GPU that the emulator models: t4 to rtx5090, sm_90");
}

ptx::Gpu planned_gpu(const std::string& gpu, const std::string& device, const Settings& settings) {
  const DeviceChoice choice = choose_device(device, gpu.empty() ? "" : "--gpu", settings);
  if (!choice.emulator) return gpu_of(open_device(choice, {}, settings).info());
  return chosen_gpu(gpu, choice, {});
}

std::string DeviceOptions::full_name(const DeviceChoice& choice) const {
  if (!choice.emulator || choice.host) return choice.name;
  return "emulator:" + std::string(chosen_gpu(gpu, choice, {}).name);
}

}  // namespace ptxgen::cli
