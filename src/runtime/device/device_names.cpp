// src/runtime/device/device_names.cpp - devices by name: auto, cuda:N, emulator, host
#include <atomic>
#include <optional>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/support/observe.hpp"
#include "runtime/device/device_state.hpp"
#include "runtime/device/driver_error.hpp"
#include "support/format.hpp"
#include "support/join.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kEmulator = "emulator";
constexpr std::string_view kHost = "host";

std::string gpu_names() { return join_text(ptx::gpus(), ", ", &ptx::Gpu::name); }

const ptx::Gpu& gpu_of(std::string_view name) {
  if (const ptx::Gpu* gpu = ptx::find_gpu(name)) return *gpu;
  throw Error(Stage::Device, "bad-device",
              format_text("there is no emulated GPU '{}'; there are {}", name, gpu_names()));
}

int ptx_number(const std::string& text) {
  if (const std::optional<int> version = parse_version(text)) return *version;
  throw Error(
      Stage::Device, "bad-setting",
      format_text("PTXGEN_EMULATED_PTX is '{}'; expected a PTX version, for example 9.0", text));
}

Device open_emulator(std::string_view name, const Settings& settings,
                     DeviceKind kind = DeviceKind::Emulator) {
  const ptx::Gpu& gpu = gpu_of(name);
  driver::emulated::set_newest_ptx(ptx_number(settings.emulated_ptx));
  return Device::open(driver::emulated::table(), driver::emulated::add_gpu(gpu), kind, settings);
}

Device open_host(const Settings& settings) {
  return open_emulator(settings.emulated_gpu, settings, DeviceKind::Host);
}

/// libcuda's table after cuInit and its number of devices, or the reason for a failure.
struct Libcuda {
  const driver::Table* table = nullptr;
  int devices = 0;
  Error problem{Stage::Device, "no-driver", ""};
  bool found = false;  ///< a library was found, usable or not
};

Libcuda start_libcuda(const Settings& settings) {
  Libcuda cuda;
  const driver::Libcuda library = driver::find_libcuda(settings);
  cuda.found = !library.where.empty();
  if (library.table == nullptr) {
    cuda.problem.message =
        cuda.found ? library.where + " cannot be used"
                   : "no NVIDIA driver was found (PTXGEN_LIBCUDA_PATH names one); the device "
                     "'emulator' needs none";
    cuda.problem.log = library.problem;
    cuda.problem.file = library.where;
    cuda.problem.refresh();
    return cuda;
  }
  try {
    must(*library.table, Stage::Device, &driver::Table::init, 0u);
    must(*library.table, Stage::Device, &driver::Table::device_get_count, &cuda.devices);
    cuda.table = library.table;
    if (cuda.devices == 0) {
      cuda.problem = Error(Stage::Device, "no-device",
                           format_text("the driver {} has no device", library.where));
    }
  } catch (const Error& error) {
    cuda.problem = error;
    if (error.driver_status == driver::CUDA_ERROR_NO_DEVICE) cuda.problem.code = "no-device";
    cuda.problem.file = library.where;
    cuda.problem.refresh();
  }
  return cuda;
}

/// True for the first caller of the process.
bool first_time() noexcept {
  static std::atomic<bool> called{false};
  return !called.exchange(true);
}

Device open_automatic(const Settings& settings) {
  const Libcuda cuda = start_libcuda(settings);
  if (cuda.devices > 0) return Device::open(*cuda.table, 0, DeviceKind::Cuda, settings);
  Device emulator = open_emulator(settings.emulated_gpu, settings);
  emulator.log().write(first_time() ? LogLevel::Warn : LogLevel::Debug, [&] {
    return format_text(
        "no GPU, so device 'auto' is the emulated {}: results are exact, times are not those of a "
        "GPU; PTXGEN_DEVICE=emulator selects it without this message ({})",
        settings.emulated_gpu, cuda.problem.message);
  });
  return emulator;
}

Device open_gpu_or_host(const Settings& settings) {
  const Libcuda cuda = start_libcuda(settings);
  if (cuda.devices > 0) return Device::open(*cuda.table, 0, DeviceKind::Cuda, settings);
  Device host = open_host(settings);
  host.log().info([&] {
    return format_text("no GPU, so device 'auto:host' is the host ({})", cuda.problem.message);
  });
  return host;
}

/// The N of "cuda:N"; "cuda" is 0.
std::optional<int> cuda_ordinal(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return std::nullopt;
  name.remove_prefix(5);
  const std::optional<int> ordinal = parse_number<int>(name);
  return ordinal && *ordinal >= 0 ? ordinal : std::nullopt;
}

}  // namespace

Device Device::open(std::string_view name, const Settings& settings) {
  if (name.empty()) name = settings.device;
  if (name == "auto") return open_automatic(settings);
  if (name == "auto:host") return open_gpu_or_host(settings);
  if (name == kHost) return open_host(settings);
  if (name == kEmulator) return open_emulator(settings.emulated_gpu, settings);
  if (name.starts_with("emulator:")) {
    return open_emulator(name.substr(kEmulator.size() + 1), settings);
  }
  if (const std::optional<int> ordinal = cuda_ordinal(name)) {
    const Libcuda cuda = start_libcuda(settings);
    if (cuda.table == nullptr || cuda.devices == 0) throw cuda.problem;
    return open(*cuda.table, *ordinal, DeviceKind::Cuda, settings);
  }
  throw Error(Stage::Device, "bad-device",
              format_text("'{}' is not a device; valid are auto, auto:host, cuda:N, host, emulator "
                          "and emulator:NAME "
                          "with {}",
                          name, gpu_names()));
}

std::vector<DeviceInfo> Device::list(const Settings& settings) {
  std::vector<DeviceInfo> found;
  const Libcuda cuda = start_libcuda(settings);
  for (int i = 0; i < cuda.devices; ++i) {
    try {
      driver::CUdevice device = 0;
      must(*cuda.table, Stage::Device, &driver::Table::device_get, &device, i);
      found.push_back(ask_device(*cuda.table, device, i, DeviceKind::Cuda));
    } catch (const Error& error) {
      open_log(settings).warn(
          [&] { return format_text("device cuda:{} left out: {}", i, error.message); });
    }
  }
  for (const DeviceKind kind : {DeviceKind::Emulator, DeviceKind::Host}) {
    try {
      found.push_back(open_emulator(settings.emulated_gpu, settings, kind).info());
    } catch (const Error& error) {
      open_log(settings).warn([&] {
        return format_text("the {} left out: {}", kind == DeviceKind::Host ? "host" : "emulator",
                           error.message);
      });
    }
  }
  return found;
}

}  // namespace ptxgen::inline v0
