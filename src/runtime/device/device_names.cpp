// src/runtime/device/device_names.cpp - devices by name: auto, cuda:N, emulator
#include <atomic>
#include <charconv>
#include <optional>

#include "runtime/device/device_state.hpp"
#include "runtime/device/driver_error.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/support/observe.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kEmulator = "emulator";

std::string gpu_names() {
  std::string names;
  for (const ptx::Gpu& gpu : ptx::gpus()) {
    names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  }
  return names;
}

const ptx::Gpu& gpu_of(std::string_view name) {
  if (const ptx::Gpu* gpu = ptx::find_gpu(name)) return *gpu;
  throw Error(Stage::Device, "bad-device",
              "there is no emulated GPU '" + std::string(name) + "'; there are " + gpu_names());
}

/// "9.0" as 90.
int ptx_number(const std::string& text) {
  int major = 0;
  int minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, first] = std::from_chars(text.data(), end, major);
  if (first == std::errc{} && dot != end && *dot == '.') {
    const auto [rest, second] = std::from_chars(dot + 1, end, minor);
    if (second == std::errc{} && rest == end && minor < 10) return major * 10 + minor;
  }
  throw Error(Stage::Device, "bad-setting",
              "PTXGEN_EMULATED_PTX is '" + text + "'; expected a PTX version, for example 9.0");
}

Device open_emulator(std::string_view name, const Settings& settings) {
  const ptx::Gpu& gpu = gpu_of(name);
  driver::emulated::set_newest_ptx(ptx_number(settings.emulated_ptx));
  return Device::open(driver::emulated::table(), driver::emulated::add_gpu(gpu),
                      DeviceKind::Emulator, settings);
}

/// libcuda's table, started, and how many devices it shows; else why not.
struct Libcuda {
  const driver::Table* table = nullptr;
  int devices = 0;
  Error problem{Stage::Device, "no-driver", ""};
  bool found = false;  ///< there is a library, usable or not
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
      cuda.problem =
          Error(Stage::Device, "no-device", "the driver " + library.where + " shows no device");
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
  static std::atomic<bool> told{false};
  return !told.exchange(true);
}

Device open_automatic(const Settings& settings) {
  const Libcuda cuda = start_libcuda(settings);
  if (cuda.devices > 0) return Device::open(*cuda.table, 0, DeviceKind::Cuda, settings);
  Device emulator = open_emulator(settings.emulated_gpu, settings);
  emulator.log().write(first_time() ? LogLevel::Warn : LogLevel::Debug, [&] {
    return "no GPU, so device 'auto' is the emulated " + settings.emulated_gpu +
           ": results are right, times say nothing about a GPU; PTXGEN_DEVICE=emulator chooses it "
           "without this message (" +
           cuda.problem.message + ")";
  });
  return emulator;
}

/// The N of "cuda:N"; "cuda" is 0.
std::optional<int> cuda_ordinal(std::string_view name) {
  if (name == "cuda") return 0;
  if (!name.starts_with("cuda:")) return std::nullopt;
  name.remove_prefix(5);
  int ordinal = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  if (failure != std::errc{} || end != name.data() + name.size() || ordinal < 0) {
    return std::nullopt;
  }
  return ordinal;
}

}  // namespace

Device Device::open(std::string_view name, const Settings& settings) {
  if (name.empty()) name = settings.device;
  if (name == "auto") return open_automatic(settings);
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
              "'" + std::string(name) +
                  "' is not a device; possible are auto, cuda:N, emulator and emulator:NAME with " +
                  gpu_names());
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
          [&] { return "device cuda:" + std::to_string(i) + " left out: " + error.message; });
    }
  }
  try {
    found.push_back(open_emulator(settings.emulated_gpu, settings).info());
  } catch (const Error& error) {
    open_log(settings).warn([&] { return "the emulator left out: " + error.message; });
  }
  return found;
}

}  // namespace ptxgen::inline v0
