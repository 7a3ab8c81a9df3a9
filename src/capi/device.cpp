// src/capi/device.cpp - log, devices, cache, stages
#include <algorithm>
#include <utility>

#include "capi/objects.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/support/log.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

using namespace ptxgen;
using namespace ptxgen::capi;

namespace ptxgen::inline v0::capi {

Settings settings_from(const ptxgen_device_options& options) {
  Settings settings = options.ignore_environment != 0 ? Settings{} : Settings::from_environment();
  for (const ptxgen_setting& setting :
       need_array(options.settings, options.setting_count, "options.settings")) {
    const std::string_view variable = need_text(setting.variable, "options.settings.variable");
    const std::string_view value = need_text(setting.value, "options.settings.value");
    const auto fields = setting_fields();
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const SettingField& field) {
      return field.variable == variable;
    });
    if (found == fields.end()) {
      throw UsageError{"bad-setting",
                       format_text("there is no setting '{}'; there are: {}", variable,
                                   join_text(fields, ", ", &SettingField::variable))};
    }
    settings.*found->value = value;
  }
  if (options.strict != 0) settings.strict = "1";
  return settings;
}

}  // namespace ptxgen::inline v0::capi

ptxgen_device::ptxgen_device(SharedRuntime shared)
    : Handle(kKind),
      runtime(std::move(shared)),
      cache_folder(std::as_const(runtime->launcher).cache().folder()) {}

namespace {

LauncherOptions launcher_options(const ptxgen_device_options& from, const Settings& settings) {
  LauncherOptions options;
  options.settings = settings;
  options.gates = from.no_gates == 0;
  options.module.gates = options.gates;
  options.module.max_registers = from.max_registers;
  if (from.set_optimization != 0) {
    if (from.optimization > 4) {
      throw UsageError{
          "out-of-range",
          format_text("options.optimization is {}; valid levels are 0 to 4", from.optimization)};
    }
    options.module.optimization = from.optimization;
  }
  options.module.line_info = from.line_info != 0;
  options.module.cold = from.cold != 0;
  return options;
}

ptxgen_device_info to_c(const DeviceInfo& from) noexcept {
  ptxgen_device_info info{};
  info.struct_bytes = sizeof info;
  info.kind = from.kind == DeviceKind::Host       ? PTXGEN_DEVICE_HOST
              : from.kind == DeviceKind::Emulator ? PTXGEN_DEVICE_EMULATOR
                                                  : PTXGEN_DEVICE_CUDA;
  info.ordinal = from.ordinal;
  write_text(info.name, from.name);
  write_text(info.target, from.target);
  info.sm = from.sm;
  info.driver_version = from.driver_version;
  info.newest_ptx = from.newest_ptx;
  const DeviceLimits& limits = from.limits;
  info.multiprocessors = limits.multiprocessors;
  info.threads_per_block = limits.threads_per_block;
  info.threads_per_multiprocessor = limits.threads_per_multiprocessor;
  std::copy_n(limits.block, 3, info.block);
  std::copy_n(limits.grid, 3, info.grid);
  info.shared_per_block = limits.shared_per_block;
  info.shared_per_block_opt_in = limits.shared_per_block_opt_in;
  info.shared_per_multiprocessor = limits.shared_per_multiprocessor;
  info.reserved_shared_per_block = limits.reserved_shared_per_block;
  info.registers_per_block = limits.registers_per_block;
  info.l2_bytes = limits.l2_bytes;
  info.clock_khz = limits.clock_khz;
  info.memory_bytes = limits.memory_bytes;
  info.cooperative = limits.cooperative ? 1 : 0;
  info.clusters = limits.clusters ? 1 : 0;
  return info;
}

/// Adapter from Log to a C callback.
struct Receiver {
  ptxgen_log_callback callback;
  void* user;
};

}  // namespace

extern "C" {

ptxgen_status ptxgen_set_log(ptxgen_log_level level, ptxgen_log_callback callback,
                             void* user) noexcept {
  return guarded(nullptr, [&] {
    if (callback == nullptr) return reset_default_log();
    if (level < PTXGEN_LOG_OFF || level > PTXGEN_LOG_TRACE) {
      throw UsageError{"out-of-range",
                       format_text("level is {}; valid levels are 0 (off) to 5 (trace)", level)};
    }
    LogSink sink;
    sink.user = new Receiver{callback, user};
    sink.write = [](void* receiver, LogLevel of, std::string_view message) {
      const auto& to = *static_cast<const Receiver*>(receiver);
      const std::string terminated(message);
      to.callback(to.user, static_cast<ptxgen_log_level>(of), terminated.c_str(),
                  terminated.size());
    };
    sink.release = [](void* receiver) noexcept { delete static_cast<Receiver*>(receiver); };
    set_default_log(Log(static_cast<LogLevel>(level), sink));
  });
}

ptxgen_status ptxgen_device_open(const char* name, const ptxgen_device_options* options,
                                 ptxgen_device** device) noexcept {
  return guarded(nullptr, [&] {
    ptxgen_device*& result = need_result(device, "device");
    const ptxgen_device_options input = read_struct(options, "options");
    const Settings settings = settings_from(input);
    result = new ptxgen_device(std::make_shared<Runtime>(name == nullptr ? "" : name, settings,
                                                         launcher_options(input, settings)));
  });
}

void ptxgen_device_free(ptxgen_device* device) noexcept { delete device; }

ptxgen_status ptxgen_list_devices(ptxgen_device_info* infos, size_t capacity,
                                  size_t* count) noexcept {
  return guarded(nullptr, [&] {
    std::size_t& found = need_place(count, "count");
    (void)need_array(infos, capacity, "infos");
    const std::vector<DeviceInfo> devices = Device::list(Settings::from_environment());
    const std::size_t stride = capacity == 0 ? 0 : infos->struct_bytes;
    for (std::size_t i = 0; i < std::min(capacity, devices.size()); ++i) {
      // The caller's elements have the caller's size, which may differ from the library's.
      auto* const place = reinterpret_cast<ptxgen_device_info*>(
          reinterpret_cast<unsigned char*>(infos) + i * stride);
      if (i != 0) std::memcpy(static_cast<void*>(place), &stride, sizeof stride);
      write_struct(place, to_c(devices[i]), "infos");
    }
    found = devices.size();
  });
}

ptxgen_status ptxgen_device_get_info(const ptxgen_device* device,
                                     ptxgen_device_info* info) noexcept {
  return guarded(device, [&] {
    write_struct(info, to_c(need(device, "device").runtime->device.info()), "info");
  });
}

ptxgen_status ptxgen_device_memory(const ptxgen_device* device, uint64_t* free_bytes,
                                   uint64_t* total_bytes) noexcept {
  return guarded(device, [&] {
    const Context::Memory memory = need(device, "device").runtime->context.memory();
    if (free_bytes != nullptr) *free_bytes = memory.free;
    if (total_bytes != nullptr) *total_bytes = memory.total;
  });
}

ptxgen_status ptxgen_device_synchronize(const ptxgen_device* device) noexcept {
  return guarded(device, [&] { need(device, "device").runtime->context.synchronize(); });
}

ptxgen_status ptxgen_device_poisoned(const ptxgen_device* device, int32_t* poisoned) noexcept {
  return guarded(device, [&] {
    need_place(poisoned, "poisoned") = need(device, "device").runtime->context.poisoned() ? 1 : 0;
  });
}

ptxgen_status ptxgen_device_reset(const char* name, const ptxgen_device_options* options) noexcept {
  return guarded(nullptr, [&] {
    const Settings settings = settings_from(read_struct(options, "options"));
    Context::reset(Device::open(name == nullptr ? "" : name, settings));
  });
}

ptxgen_status ptxgen_cache_get_statistics(const ptxgen_device* device,
                                          ptxgen_cache_statistics* statistics) noexcept {
  return guarded(device, [&] {
    const Launcher& launcher = need(device, "device").runtime->launcher;
    const CacheStatistics now = launcher.cache().statistics();
    ptxgen_cache_statistics out{};
    out.hits = now.hits;
    out.misses = now.misses;
    out.waits = now.waits;
    out.compiles = now.compiles;
    out.disk_hits = now.disk_hits;
    out.failures = now.failures;
    out.evictions = now.evictions;
    out.modules = now.modules;
    out.compiles_since_prepare = now.compiles_since_prepare;
    out.misses_since_prepare = now.misses_since_prepare;
    write_struct(statistics, out, "statistics");
  });
}

ptxgen_status ptxgen_cache_clear(ptxgen_device* device) noexcept {
  return guarded(device, [&] { need(device, "device").runtime->launcher.cache().clear(); });
}

const char* ptxgen_cache_folder(const ptxgen_device* device) noexcept {
  return device == nullptr || !device->is(Kind::Device) ? "" : device->cache_folder.c_str();
}

ptxgen_status ptxgen_stages(const ptxgen_device* device, const char* kernel,
                            ptxgen_stage_time* stages, size_t capacity, size_t* count) noexcept {
  return guarded(device, [&] {
    const Launcher& launcher = need(device, "device").runtime->launcher;
    const std::string_view name = need_text(kernel, "kernel");
    std::size_t& found = need_place(count, "count");
    (void)need_array(stages, capacity, "stages");
    const StageTimes times = launcher.stages(name);
    for (std::size_t i = 0; i < std::min(capacity, times.stages.size()); ++i) {
      // Names of stages are literals, hence terminated.
      stages[i] = {times.stages[i].stage.data(), times.stages[i].microseconds};
    }
    found = times.stages.size();
  });
}

}  // extern "C"
